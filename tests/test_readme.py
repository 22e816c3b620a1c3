"""The front page says what is so: its code runs, its commands exist, its numbers were measured."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dynsnap.ensemble import METHODS
from dynsnap.study import frontier, read_table

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
ROLLING = ROOT / "results/cifar100-rolling/table.csv"


def ours(method, study="cifar10-paper"):
    """Cost and the three metrics, as shipped results have them."""
    found = {
        row.metric: row
        for row in read_table(ROOT / "results" / study / "table.csv")
        if (row.method, row.combination) == (method, "average")
    }
    return [found["accuracy"].cost, *(100 * found[metric].value for metric in METRICS)]


def the_paper_s(method, data):
    """The same, as the paper prints it."""
    with (ROOT / "results/paper.csv").open(newline="") as file:
        found = {
            line["metric"]: float(line["value"])
            for line in csv.DictReader(file)
            if (line["data"], line["method"], line["pair"]) == (data, method, "")
            and line["combination"] in ("average", "")
        }
    return [found["cost"], *(100 * found[metric] for metric in METRICS)]


def shown(data, row):
    """The numbers of a row of the table about some data: ours, and the paper's where there are."""
    _, _, about = README.partition(f"\n| {data}, ")
    line = next(line for line in about.splitlines() if f"| {row} |" in line)
    cells = line.partition(f"| {row} |")[2].strip(" |").split("|")
    numbers = [cell.replace("κ", "").replace("*", "").split("/") for cell in cells]
    return [[float(value) for value in cell] for cell in numbers]


@pytest.mark.parametrize(
    ("data", "row", "method"),
    [
        ("CIFAR-10", "a single network, retrained", "singlebase"),
        ("CIFAR-10", "DynSnap-cyc, averaged", "dynsnap-cyc"),
        ("CIFAR-10", "bagging, averaged", "extbagging"),
        ("CIFAR-100", "a single network, retrained", "singlebase"),
        ("CIFAR-100", "one training, its snapshots averaged", "snapshot"),
        ("CIFAR-100", "DynSnap-cyc, averaged", "dynsnap-cyc"),
        ("CIFAR-100", "bagging, averaged", "extbagging"),
    ],
)
def test_the_numbers_on_the_front_page_were_measured(data, row, method):
    name = data.lower().replace("-", "")
    both = zip(ours(method, f"{name}-paper"), the_paper_s(method, name), strict=True)
    assert shown(data, row) == [[round(mine, 1), round(theirs, 1)] for mine, theirs in both]


def test_what_the_front_page_says_of_rolling_ensembles_was_measured():
    known = ours("rolling", "cifar100-rolling")
    cost, *values = ([value] for (value,) in shown("CIFAR-100", "rolling, averaged"))
    assert cost == [round(known[0], 2)]
    assert values == [[round(value, 1)] for value in known[1:]]
    found = {one.method: one for one in frontier(read_table(ROLLING))}
    fresh, rolling = found["dynsnap-cyc"], found["rolling"]
    lost = (
        f"{100 * rolling.lost.value:.1f} % of the answers instead of {100 * fresh.lost.value:.1f} %"
    )
    assert f"{lost} on CIFAR-100" in " ".join(README.split())
    assert (rolling.cost, fresh.cost, rolling.qualifies) == (1, 3, True)
    assert rolling.accuracies[-1].value >= fresh.accuracies[-1].value


def test_the_front_page_says_what_was_not_reached_on_cifar_100():
    about = json.loads((ROOT / "results/cifar100-paper/about.json").read_text())
    assert about["rounds_missing"] == 0
    trained = {row.method for row in read_table(ROOT / "results/cifar100-paper/table.csv")}
    assert set(METHODS) <= trained
    text = " ".join(README.split())
    gap = ours("singlebase", "cifar100-paper")[2] - the_paper_s("singlebase", "cifar100")[2]
    off = (
        f"CON of its single network is {gap:.1f} points above the paper's, where 1.0 were aimed at"
    )
    assert (off in text) == (abs(gap) > 1)


def test_standing_answers_took_no_accuracy_from_ensembles_that_start_afresh():
    text = " ".join(README.split())
    assert (
        "lost no accuracy by it in the mean of any of four studies, and up to 5 points on a" in text
    )
    late = []
    for study in ("digits", "20news", "cifar10", "cifar100"):
        rows = frontier(read_table(ROOT / "results" / f"{study}-rolling/table.csv"))
        found = {one.method: one for one in rows}
        fresh, standing = found["dynsnap-cyc"], found["standing"]
        assert standing.accuracy.value >= fresh.accuracy.value
        late.append(100 * (fresh.late.value - standing.late.value))
    assert max(late) == pytest.approx(5)


def test_what_the_front_page_says_of_the_first_generation_was_measured():
    rows = frontier(read_table(ROOT / "results/cifar10-rolling/table.csv"))
    found = {one.method: one for one in rows}
    fresh, rolling = found["dynsnap-cyc"], found["rolling-bagging-refresh"]
    costs = [3 * one.accuracy.cost - 2 * one.retrain.value for one in (rolling, fresh)]
    said = "first generation of {:.0f}κ instead of {:.0f}κ".format(*costs)
    assert said in " ".join(README.split())


def test_what_the_front_page_says_of_chance_was_measured():
    said = []
    for study, name in (("cifar10-paper", "CIFAR-10"), ("cifar100-paper", "CIFAR-100")):
        floor, ensemble = (100 - ours(of, study)[2] for of in ("noise-floor", "dynsnap-cyc"))
        said.append(f"{floor:.0f} % ({name})")
        assert ensemble <= floor / 2
    assert f"changes its mind on {' and '.join(said)} of those\nthat it is shown" in README


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
