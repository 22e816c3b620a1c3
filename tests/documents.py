"""What the pages of the documentation show, so that it can be run."""

import re

import pytest

# What takes long as it stands is run so too, but not every day.
IN_SMALL = ["in small", pytest.param("as it stands", marks=pytest.mark.slow)]


def blocks(page, language):
    """The blocks of code in one language, as a page has them."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)


def smaller(text, changes):
    """A documented text with each of these words replaced, which it must have."""
    for whole, part in changes.items():
        assert whole in text, whole
        text = text.replace(whole, part)
    return text


def commands(page):
    """The commands that a page shows, without `dynsnap`."""
    return [
        line.removeprefix("$ dynsnap ").split()
        for block in blocks(page, "console")
        for line in block.splitlines()
    ]


def tables(page):
    """The tables of a page: rows of cells, the first of them the column names."""
    found = re.findall(r"(?:^\|.*\n)+", page + "\n", flags=re.MULTILINE)
    split = [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        for table in found
    ]
    return [[head, *rows] for head, _, *rows in split]


def numbers(text):
    """The numbers of a text, as they are written, without sign."""
    return re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])", text)
