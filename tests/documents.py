"""What the pages of the documentation show, so that it can be run."""

import re


def blocks(page, language):
    """The blocks of code in one language, as a page has them."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)


def commands(page):
    """The commands that a page shows, without `dynsnap`."""
    return [
        line.removeprefix("$ dynsnap ").split()
        for block in blocks(page, "console")
        for line in block.splitlines()
    ]
