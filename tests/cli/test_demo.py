"""The demo itself takes a while, so small copies of its study stand in for most of it."""

import csv

import pytest

from dynsnap import study
from dynsnap.cli import _execute
from tests.cli.studies import dynsnap
from tests.documents import smaller

LESS = {
    "replicates = 3\nresamples = 500": "replicates = 2\nresamples = 2",
    "epochs = 20": "epochs = 4",
}
FEW = '\n[methods]\nmembers = 2\nsnapshots = 2\nnames = ["snapshot"]\ncombinations = ["average"]\n'


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Puts the demo's study with less of everything in the demo's place, and some lines more."""
    path = tmp_path / "digits.toml"

    def put(more=FEW, replicates=2):
        less = {old: new.replace("= 2\n", f"= {replicates}\n") for old, new in LESS.items()}
        path.write_text(smaller(_execute.shipped()["digits"].read_text(), less) + more)
        monkeypatch.setattr(_execute, "shipped", lambda: {"digits": path})
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return put


def test_the_demo_is_the_papers_study_of_the_digits():
    plan = study.read_study(_execute.find_study("digits"))
    assert len(plan.methods) == 6
    assert len(plan.combinations) == 4
    assert {method.plan.size for method in plan.methods} == {1, 20}
    assert plan.method("dynsnap-cyc").recipe.snapshots == 10
    stream, _ = study.open_stream(plan.data)
    assert len(stream.generations) == 3


@pytest.mark.slow
def test_the_demo_measures_all_methods_and_combinations(small):
    folder = small("\n[methods]\nmembers = 2\nsnapshots = 2\n", replicates=1)
    ended = dynsnap("demo", "--out", "kept")
    assert ended.exit_code == 0, ended.stderr
    with (folder / "kept/table.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    methods = {line["method"] for line in lines}
    assert methods >= {"singlebase", "extbagging", "mcdropout", "snapshot", "noise-floor"}
    assert methods >= {"dynsnap-cyc", "dynsnap-step", "never-retrain"}
    assert len(list((folder / "kept/predictions").glob("*.parquet"))) == 6 * 4 * 3


@pytest.mark.slow
def test_the_demo_keeps_everything_where_it_is_told(small):
    folder = small()
    ended = dynsnap("demo", "--out", "kept")
    assert ended.exit_code == 0, ended.stderr
    with (folder / "kept/table.csv").open(newline="") as file:
        methods = {line["method"] for line in csv.DictReader(file)}
    assert methods == {"snapshot", "noise-floor", "never-retrain"}
    assert len(list((folder / "kept/predictions").glob("snapshot-*.parquet"))) == 3 * 2
    assert (folder / "kept/predictions/snapshot-average-g3-r1.parquet").exists()
    again = dynsnap("demo", "--out", "kept")
    assert "(0 of them now)" in again.stdout


@pytest.mark.slow
def test_the_demo_leaves_nothing_behind_unless_told(small):
    folder = small()
    ended = dynsnap("demo", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert "SingleBase trained twice" in ended.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["digits.toml"]


def test_a_demo_that_is_stopped_says_that_nothing_was_kept(small):
    small()
    ended = dynsnap("demo", "-q", "--time-budget", "0.01")
    assert ended.exit_code == 4
    assert "Nothing was kept" in ended.stderr
    assert "dynsnap demo --out DIR" in ended.stderr


@pytest.mark.slow
def test_the_demo_ends_with_a_page_and_two_commands_on_two_screens(small):
    folder = small()
    ended = dynsnap("demo", "--out", "kept")
    assert ended.exit_code == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert len(lines) <= 2 * 40
    page = next(line for line in lines if line.endswith("kept/report.html")).split()[-1]
    assert (folder / page).read_text().startswith("<!doctype html>")
    commands = [line.split() for line in lines[-2:]]
    assert [words[:3] for words in commands] == [
        ["dynsnap", "report", "kept"],
        ["dynsnap", "size", "kept"],
    ]
