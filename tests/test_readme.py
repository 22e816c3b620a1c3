"""The front page says what is so: its code runs, its commands exist, its numbers were measured."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dynsnap.study import read_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.S)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_python_on_the_front_page_runs(number):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[number]], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_there_is_python_on_the_front_page():
    assert len(BLOCKS) == 2


def test_the_make_targets_of_the_front_page_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    asked = re.findall(r"^\$ make ([a-z-]+)", README, flags=re.M)
    assert asked == ["demo", "test"]
    assert set(asked) <= set(targets)


METRICS = ("accuracy", "consistency", "correct_consistency")


def ours(method):
    """Cost and the three metrics, as the shipped results of CIFAR-10 have them."""
    found = {
        row.metric: row
        for row in read_table(ROOT / "results/cifar10-paper/table.csv")
        if (row.method, row.combination) == (method, "average")
    }
    return [found["accuracy"].cost, *(100 * found[metric].value for metric in METRICS)]


def the_paper_s(method):
    """The same, as the paper prints it."""
    with (ROOT / "results/paper.csv").open(newline="") as file:
        found = {
            line["metric"]: float(line["value"])
            for line in csv.DictReader(file)
            if (line["data"], line["method"], line["pair"]) == ("cifar10", method, "")
            and line["combination"] in ("average", "")
        }
    return [found["cost"], *(100 * found[metric] for metric in METRICS)]


@pytest.mark.parametrize(
    ("row", "method"),
    [
        ("a single network, retrained", "singlebase"),
        ("DynSnap-cyc, averaged", "dynsnap-cyc"),
        ("bagging, averaged", "extbagging"),
    ],
)
def test_the_numbers_on_the_front_page_are_those_of_cifar_10(row, method):
    (line,) = (line for line in README.splitlines() if line.startswith(f"| {row} |"))
    shown = [cell.replace("κ", "").replace("*", "").split("/") for cell in line.split("|")[2:-1]]
    assert [[float(value) for value in cell] for cell in shown] == [
        [round(mine, 1), round(theirs, 1)]
        for mine, theirs in zip(ours(method), the_paper_s(method), strict=True)
    ]


def test_what_the_front_page_says_of_chance_was_measured():
    floor, ensemble = 100 - ours("noise-floor")[2], 100 - ours("dynsnap-cyc")[2]
    assert f"changes its mind on {floor:.0f} % of\nthe images" in README
    assert ensemble <= floor / 2


def test_links_of_the_documentation_lead_somewhere():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 8
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text())
        if not target.startswith("http") and not (page.parent / target).exists()
    ]
    assert not broken
