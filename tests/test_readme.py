"""The front page says what is so: its code runs, its commands exist, its numbers were measured."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("row", "method"),
    [
        ("a single network, retrained", "singlebase"),
        ("the same data, trained twice (noise floor)", "noise-floor"),
        ("**DynSnap-cyc, averaged**", "dynsnap-cyc"),
        ("bagging of 20 networks, averaged", "extbagging"),
    ],
)
def test_the_numbers_on_the_front_page_are_those_of_the_demo(row, method):
    (line,) = (line for line in README.splitlines() if line.startswith(f"| {row} |"))
    shown = [cell.strip(" *κ") for cell in line.strip("|").split("|")[1:]]
    with (ROOT / "results/digits/table.csv").open(newline="") as file:
        found = {
            cells["metric"]: cells
            for cells in csv.DictReader(file)
            if (cells["method"], cells["combination"]) == (method, "average")
        }
    metrics = ("accuracy", "consistency", "correct_consistency")
    expected = [f"{100 * float(found[metric]['value']):.1f}" for metric in metrics]
    cost = f"{float(found['accuracy']['cost']):.1f}".removesuffix(".0")
    assert shown == [cost, *expected]


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
