"""Modules and files that documents and package docstrings name in backticks exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dynsnap"
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PACKAGES = [init for init in sorted(SOURCE.rglob("__init__.py")) if init.parent != SOURCE]


def quoted(text):
    return re.findall(
        r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    )


def is_there(word):
    """Whether a module or package such as `study._pending` or `metrics._tally*` exists."""
    *rooms, last = word.removeprefix("dynsnap.").removesuffix(".py").split(".")
    found = [*SOURCE.rglob("/".join([*rooms, f"{last}.py"]))]
    return bool(found or [*SOURCE.rglob("/".join([*rooms, last, "__init__.py"]))])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_and_files_that_a_page_names_exist(page):
    for word in quoted(page.read_text(encoding="utf-8")):
        # A bare `_name` may be the end of anything: only one behind its room is a module.
        if re.fullmatch(r"([a-z_]+\.)+_[a-z][a-z_]*(\*|\.py)?", word):
            assert is_there(word), word
        elif re.fullmatch(r"(src|tests|benchmarks|results|examples|docs)/[\w./-]+\.py", word):
            assert (ROOT / word).is_file(), word


def test_every_room_of_the_layers_exists_and_none_is_missing():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    layers = page.partition("## Layers")[2].split("```")[1]
    # A line is rooms, then what they are, behind two spaces or more.
    words = " ".join(re.split(r"\s{2,}", line)[0] for line in layers.strip().splitlines())
    named = set(re.findall(r"[a-z_]+", re.sub(r"\(.*?\)", "", words)))
    rooms = {path.stem for path in SOURCE.glob("*.py")} | {
        path.parent.name for path in SOURCE.glob("*/__init__.py")
    }
    assert named == rooms - {"__init__", "__main__"}


@pytest.mark.parametrize("init", PACKAGES, ids=lambda init: init.parent.name)
def test_modules_that_a_package_names_are_in_it(init):
    for word in quoted(ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""):
        if re.fullmatch(r"_[a-z_]+", word):
            assert (init.parent / f"{word}.py").is_file(), word
