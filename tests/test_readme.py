"""The front page: its code and commands run, its numbers are those of the results."""

import csv
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import _seeds
from dynsnap.study import frontier, read_table
from tests.cli.helpers import dynsnap
from tests.documents import blocks, tables
from tests.published import (
    RESULTS,
    apart,
    by_replicate,
    classes,
    columns,
    each,
    signed,
    with_seeds,
)

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
    "DynSnap-cyc, never retrained": "never-retrain-dynsnap-cyc",
}


def results():
    """The rows of the one table, each as its cells."""
    (rows,) = tables(README)
    return rows[1:]


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
    values = by_replicate(study, method)
    measured = [f"**{cost_of(study, method):g}**"]
    for one in values.T:
        spread = f" ± {one.std(ddof=1):.1f}" if len(one) > 1 else ""
        measured.append(f"**{one.mean():.1f}**{spread}")
    if method.startswith("never"):  # what is so by definition has no spread
        assert (values[:, [1, 3, 4]] == [100, 0, 0]).all()
        measured[2], measured[4], measured[5] = "**100**", "**0.0**", "**0.0**"
    assert [cell.partition(" / ")[0] for cell in cells] == measured
    printed = [cell.partition("/")[2].strip() for cell in cells]
    if method == "rolling" or method.startswith("never"):  # the paper has no such method
        assert not any(printed)
    else:
        cost, *values = the_paper_s(name, method)
        assert printed == [f"{cost:g}", *(f"{value:.1f}" for value in values), "", ""]


def test_the_test_inputs_and_replicates_of_the_table_are_those_of_the_studies():
    (line,) = (line for line in README.splitlines() if "test images" in line)
    for study, said in (
        ("cifar10", "4,500 test images, 1,000 of the new"),
        ("cifar100", "4,950 and 100"),
    ):
        sizes = [len(columns(RESULTS / f"{study}-paper", one)["truth"]) for one in ("test", "late")]
        assert [int(one.replace(",", "")) for one in re.findall(r"\d[\d,]*", said)] == sizes
        assert said in line
    con, _, lost = by_replicate("cifar10-rolling", "dynsnap-cyc").mean(axis=0)[1:4]
    assert f"the DynSnap-cyc of that one has CON {con:.1f} and lost {lost:.1f}" in line
    paper, other = (by_replicate(f"cifar100-{one}", "dynsnap-cyc") for one in ("paper", "rolling"))
    assert (paper == other).all()  # on CIFAR-100 it is the same
    studies = ("cifar10-paper", "cifar10-full", "cifar10-rolling", "cifar100-paper")
    for study in (*studies, "cifar100-rolling"):
        for folder in _seeds.folders(ROOT / "results" / study):
            about = json.loads((folder / "about.json").read_text())
            assert f"{about['test_inputs']:,}" in line
            # Where GPU time was short, the noise floor's second network was left out.
            short = re.fullmatch(r"cifar100-(paper-2022|rolling-202[12])", folder.name)
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
    mean = f"({rolling.total_cost / 3:.2f} is the mean with the first generation)"
    assert mean in bullet("docs/beyond.md")
    assert {f"{one.cost:g}κ" for one in (rolling, fresh)} <= set(re.findall(r"\d+κ", README))


def bullet(page):
    """The item of the front page that links to this page."""
    (line,) = (one for one in README.splitlines() if one.startswith("* **[") and page in one)
    return line


def test_what_rolling_learns_is_told_on_the_front_page():
    told = bullet("docs/beyond.md")
    value, low, high = apart("cifar100-rolling", "rolling", "dynsnap-cyc")
    assert f"{-value:.2f} points less accurate on CIFAR-100 ({low:+.2f} to {high:+.2f})" in told
    assert high < 0
    one, other = (
        apart(f"cifar10-{study}", "rolling", "dynsnap-cyc") for study in ("distill", "rolling")
    )
    for found, said in (
        (one, "on CIFAR-10 {} in one study ({})"),
        (other, "and not clearly, {}, in the other ({})"),
    ):
        value, low, high = found
        assert said.format(f"{-value:.2f}", f"{low:+.2f} to {high:+.2f}") in told
    assert one[2] < 0 < other[2]
    (one, again), (two, other) = (
        (f"{-value:.1f}", f"({low:+.1f} to {high:+.1f})")
        for value, low, high in (
            apart(f"cifar10-{study}", "rolling", "dynsnap-cyc", ("new",))
            for study in ("distill", "rolling")
        )
    )
    assert f"new class {one} {again} and {two} points fewer are right {other}." in told
    learns = {
        (study, method): all(apart(study, method, "itself", (g,))[1] > 0 for g in (2, 3))
        for study in ("cifar100-rolling", "20news-rolling", "cifar10-rolling", "cifar10-distill")
        for method in ("rolling", "dynsnap-cyc")
    }
    assert learns == {one: not one[0].startswith("cifar10-") for one in learns}
    assert "On CIFAR-100 and 20 Newsgroups rolling learns, and so does a fresh ensemble" in told
    assert "On the old classes of CIFAR-10 neither does." in told
    # It shares the first generation with DynSnap-cyc, which shrinks differences by a third.
    for folder in (
        one for name in ("cifar10", "cifar100") for one in with_seeds(f"{name}-rolling")
    ):
        of = columns(folder, "test")
        for key in (one for one in of if one.startswith("rolling/average/g1/")):
            assert (of[key] == of[key.replace("rolling", "dynsnap-cyc")]).all()
    assert "shares the first with DynSnap-cyc: that shrinks their difference by a third" in README


def test_what_rolling_loses_is_told_on_the_front_page():
    studies = [f"{data}-rolling" for data in ("cifar100", "cifar10", "20news", "digits")]
    shares = []
    for study in (*studies, "cifar10-distill"):
        mine, other = (
            np.mean([*each(study, name, "lost").values()]) for name in ("rolling", "dynsnap-cyc")
        )
        shares.append(100 * mine / other)
    said = f"{min(shares):.0f} to {max(shares):.0f} % of what a fresh ensemble loses, in five"
    assert said in bullet("docs/beyond.md")
    assert max(shares) < 50


def test_what_one_network_learns_is_told_on_the_front_page():
    told, study = bullet("docs/one-network.md"), "cifar100-single"
    second, third = (apart(study, "single", "singlebase", (one,)) for one in (2, 3))
    new = apart(study, "single", "singlebase", ("new",))
    value, _, rest = signed(second).partition(", ")
    assert f"(second generation {value} points, {rest}; third {signed(third)})" in told
    count = len(columns(RESULTS / study, "late")["truth"])
    assert f"On the new class, {count} images, that is open ({signed(new)})" in told
    assert new[1] < -5


def test_what_stabilizing_costs_is_told_on_the_front_page():
    told = bullet("docs/stabilize.md")
    new = [
        apart(f"{name}-rolling", "standing", "dynsnap-cyc", ("new",))
        for name in ("cifar10", "cifar100", "20news")
    ]
    assert all(high < 0 for _, _, high in new)
    first, second, third = (f"{-value:.1f}" for value, _, _ in new)
    assert f"when stabilized (by {first}, {second} and {third} points)" in told


def test_what_one_answer_for_all_flights_gets_right_is_told_on_the_front_page():
    of, told = columns(RESULTS / "flights"), bullet("docs/stabilize.md")
    (period,) = (one for name, one in of.items() if name.endswith("period"))
    weeks = [period == week for week in set(period)]
    often = np.bincount(of["truth"]).argmax()
    assert classes(RESULTS / "flights")[often] == "on time"
    stabilized = [of[f"margin/average/g2/r{r}"] == of["truth"] for r in range(3)]
    means = [
        100 * np.mean([right[week].mean() for right in each for week in weeks])
        for each in (stabilized, [of["truth"] == often])
    ]
    said = '{:.1f} %, where always answering "on time" is right for {:.1f} %'.format(*means)
    assert said in told
    assert "Flights have no new class" in told and "late" not in set(of.get("inputs", ()))


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
