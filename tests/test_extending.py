"""docs/extending.md, followed as it stands: a toy of each kind is added, checked and used."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from dynsnap.data import digits
from tests.cli.studies import dynsnap
from tests.extending import PAGE, files, registries, steps
from tests.trainers.installed import install

ROOT = Path(__file__).parents[1]
SECTIONS = re.findall(r"^## (.+)$", PAGE, flags=re.MULTILINE)
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in PAGE.splitlines()
    if line.startswith("| [")
]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with registries():
        yield tmp_path


def follow(section):
    """Write the files of a section, run its code and its commands; what its code has named."""
    names = {"__name__": "extending"}
    for step in steps(section):
        if step.title is not None:
            Path(step.title).write_text(step.text)
        elif step.language == "python":
            exec(compile(step.text, f"docs/extending.md, {section}", "exec"), names)
        elif step.language == "console":
            for line in step.text.splitlines():
                ended = dynsnap(*line.removeprefix("$ dynsnap ").split())
                assert ended.exit_code == 0, f"{line}: {ended.output}"
    return names


@pytest.mark.parametrize("section", [name for name in SECTIONS if name != "A trainer"])
def test_following_a_section_adds_a_toy_that_its_check_accepts(section):
    names = follow(section)
    assert any(name.startswith("check_") for name in names)


@pytest.mark.slow
def test_following_the_section_on_trainers_adds_a_package(tmp_path, monkeypatch):
    site = tmp_path / "site"
    site.mkdir()
    written = files("A trainer")
    install(site, written["pyproject.toml"], {"dynsnap_toy.py": written["dynsnap_toy.py"]})
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "dynsnap_toy", raising=False)
    np.savez("new.npz", inputs=digits().train.inputs[:20])
    follow("A trainer")
    assert Path("new.parquet").exists()


def test_the_page_has_a_section_for_each_kind_of_extension():
    named = [re.match(r"\[(.+?)\]", row[0])[1] for row in ROWS]
    assert [f"A{name[1:]}" for name in named] == SECTIONS
    assert len(SECTIONS) == 6


@pytest.mark.parametrize("row", ROWS, ids=SECTIONS)
def test_an_extension_in_dynsnap_touches_at_most_three_files_which_exist(row):
    touched = re.findall(r"`([^`]+)`", row[3])
    assert 1 <= len(touched) <= 3
    for path in touched:
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("row", ROWS, ids=SECTIONS)
def test_the_check_of_each_kind_is_part_of_the_kit(row):
    from dynsnap import testing

    assert row[4].strip("`") in testing.__all__
