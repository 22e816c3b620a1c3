"""The front page: its code and commands run, its numbers are those of the results."""

import csv
import json
import re
import shlex
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

import _seeds
from dynsnap.study import frontier, read_table
from tests.cli.helpers import dynsnap
from tests.documents import blocks, tables
from tests.published import columns, with_seeds

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line.removeprefix("$ "))
    for block in blocks(README, "console")
    for line in block.splitlines()
]
METRICS = ("accuracy", "consistency", "correct_consistency")
# Where bagging has the paper's 20 members, and what the paper has not; all else: "paper".
STUDIES = {("CIFAR-10", "bagging"): "full"} | {
    (data, "rolling (new here)"): "rolling" for data in ("CIFAR-10", "CIFAR-100")
}
METHODS = {
    "single network": "singlebase",
    "DynSnap-cyc": "dynsnap-cyc",
    "bagging": "extbagging",
    "rolling (new here)": "rolling",
}


def results():
    """The rows of the one table, each as its cells."""
    (rows,) = tables(README)
    return rows[1:]


def ours(study, method):
    """The three metrics and what is lost per retrain, in percent, by replicate of all seeds."""
    found = []
    for folder in with_seeds(study):
        of = columns(folder, "test")
        for key in (one for one in of if one.startswith(f"{method}/average/g1/")):
            said = [of[key.replace("/g1/", f"/g{number}/")] for number in (1, 2, 3)]
            right = [one == of["truth"] for one in said]
            same = [np.mean(one == other) for one, other in combinations(said, 2)]
            both = [np.mean(one & other) for one, other in combinations(right, 2)]
            lost = [np.mean(one & ~other) for one, other in pairwise(right)]
            found.append([100 * np.mean(one) for one in (right, same, both, lost)])
    return np.array(found)


def cost_of(study, method):
    """Trainings from scratch per generation, over the replicates of all seeds."""
    (cost,) = {
        round(row.cost, 2)
        for row in _seeds.rows_of(ROOT / "results" / study)
        if (row.method, row.combination, row.metric) == (method, "average", "accuracy")
    }
    return cost


def the_paper_s(data, method):
    """The same as the paper prints it; it does not print what is lost."""
    with (ROOT / "results/paper.csv").open(newline="") as file:
        found = {
            line["metric"]: float(line["value"])
            for line in csv.DictReader(file)
            if (line["data"], line["method"], line["pair"]) == (data, method, "")
            and line["combination"] in ("average", "")
        }
    return [found["cost"], *(100 * found[metric] for metric in METRICS)]


def test_the_front_page_is_one_screen():
    assert len(README.splitlines()) <= 60


class Half:
    """A classifier of two classes that is right on half of two inputs."""

    classes_ = (0, 1)

    def __init__(self, label):
        self.label = label

    def predict_proba(self, X):
        return [[0.9, 0.1], [0.8, 0.2]] if self.label else [[0.2, 0.8], [0.1, 0.9]]


@pytest.mark.slow
def test_the_python_on_the_front_page_runs(tmp_path, monkeypatch):
    start, code = blocks(README, "python")
    deployed, retrained = (Half(place) for place in range(2))
    given = {"ids": [1, 2], "X": None, "y": [0, 1], "deployed": deployed, "retrained": retrained}
    monkeypatch.chdir(tmp_path)
    exec(compile(start, "README.md", "exec"), given)
    assert (tmp_path / "page.html").read_text().startswith("<!")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 0.8 < float(done.stdout) <= 1


def test_the_commands_on_the_front_page_run(tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    ours = [arguments for program, *arguments in COMMANDS if program == "dynsnap"]
    assert {arguments[0] for arguments in ours} == {"compare", "demo", "gate"}
    for arguments in ours:
        if arguments[0] == "demo":  # which trains for minutes: tests/project runs it
            continue
        ended = dynsnap(*arguments)
        assert ended.exit_code == 0, ended.output
    assert (tmp_path / "page.html").exists()


def test_the_make_targets_of_the_front_page_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    asked = re.findall(r"`make ([a-z-]+)`", README)
    assert asked
    assert set(asked) <= set(targets)


@pytest.mark.parametrize("row", results(), ids=lambda row: " ".join(row[:2]))
def test_a_row_of_the_table_has_the_measured_numbers(row):
    data, label, *cells = row
    name, method = data.lower().replace("-", ""), METHODS[label]
    study = f"{name}-{STUDIES.get((data, label), 'paper')}"
    values = ours(study, method)
    measured = [f"**{cost_of(study, method):g}**"]
    for each in values.T:
        spread = f" ± {each.std(ddof=1):.1f}" if len(each) > 1 else ""
        measured.append(f"**{each.mean():.1f}**{spread}")
    assert [cell.partition(" / ")[0] for cell in cells] == measured
    printed = [cell.partition("/")[2].strip() for cell in cells]
    if method == "rolling":  # the paper has no such method
        assert not any(printed)
    else:
        cost, *values = the_paper_s(name, method)
        assert printed == [f"{cost:g}", *(f"{value:.1f}" for value in values), ""]


def test_the_test_inputs_and_replicates_of_the_table_are_those_of_the_studies():
    (line,) = (line for line in README.splitlines() if "test images" in line)
    studies = ("cifar10-paper", "cifar10-full", "cifar10-rolling", "cifar100-paper")
    for study in (*studies, "cifar100-rolling"):
        for folder in _seeds.folders(ROOT / "results" / study):
            about = json.loads((folder / "about.json").read_text())
            assert f"{about['test_inputs']:,}" in line
            # Where GPU time was short, the noise floor's second network was left out.
            short = re.fullmatch(r"cifar100-(paper|rolling)-202[12]", folder.name)
            assert about["rounds_missing"] == bool(short)
    often = [_seeds.replicates(ROOT / f"results/{name}-paper") for name in ("cifar10", "cifar100")]
    many, few = ([one[name] for name in ("dynsnap-cyc", "singlebase")] for one in often)
    full = _seeds.replicates(ROOT / "results/cifar10-full")["extbagging"]
    bagging = often[1]["extbagging"]  # of fewer members; on CIFAR-10 that of the full study
    assert [int(one) for one in re.findall(r"n = (\d+)", line)] == [*many, full, *few, bagging]
    for name, (n, _) in (("cifar10", many), ("cifar100", few)):
        assert _seeds.replicates(ROOT / f"results/{name}-rolling")["rolling"] == n


def test_what_the_front_page_claims_of_rolling_ensembles_was_measured():
    found = {
        one.method: one for one in frontier(read_table(ROOT / "results/cifar100-rolling/table.csv"))
    }
    fresh, rolling = found["dynsnap-cyc"], found["rolling"]
    assert (rolling.cost, fresh.cost) == (1, 3)
    assert {f"{one.cost:g}κ" for one in (rolling, fresh)} <= set(re.findall(r"\d+κ", README))


def test_links_of_the_documentation_lead_somewhere():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 8
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", page.read_text())
        if not target.startswith("http") and not leads(page, target, anchor)
    ]
    assert not broken


def leads(page, target, anchor):
    """Whether a file is there, and has the heading that a link names."""
    there = (page.parent / target) if target else page
    if not there.exists():
        return False
    headings = re.findall(r"^#+ (.*)$", there.read_text(), flags=re.M) if anchor else []
    slugs = {re.sub(r"[^\w -]", "", one.lower()).strip().replace(" ", "-") for one in headings}
    return not anchor or anchor[1:] in slugs
