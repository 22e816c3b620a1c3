"""The demo itself takes a while, so a small copy of its study stands in for most of it."""

import csv

import pytest

from dynsnap import study
from dynsnap.cli import _execute
from tests.cli.studies import dynsnap


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The demo's study with less of everything, in the demo's place."""
    text = _execute.shipped()["digits"].read_text()
    text = text.replace("replicates = 3\nresamples = 500", "replicates = 2\nresamples = 2").replace(
        "epochs = 20", "epochs = 8"
    )
    path = tmp_path / "digits.toml"
    path.write_text(text + "\n[methods]\nmembers = 2\nsnapshots = 2\n")
    monkeypatch.setattr(_execute, "shipped", lambda: {"digits": path})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_demo_is_the_papers_study_of_the_digits():
    plan = study.read_study(_execute.find_study("digits"))
    assert len(plan.methods) == 6
    assert len(plan.combinations) == 4
    assert {method.plan.size for method in plan.methods} == {1, 20}
    assert plan.method("dynsnap-cyc").recipe.snapshots == 10
    stream, _ = study.open_stream(plan.data)
    assert len(stream.generations) == 3


def test_the_demo_keeps_everything_where_it_is_told(small):
    ended = dynsnap("demo", "--out", "kept")
    assert ended.exit_code == 0, ended.stderr
    with (small / "kept/table.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    methods = {line["method"] for line in lines}
    assert methods >= {"singlebase", "extbagging", "mcdropout", "snapshot", "noise-floor"}
    assert methods >= {"dynsnap-cyc", "dynsnap-step", "never-retrain"}
    assert len(list((small / "kept/predictions").glob("*.parquet"))) == 6 * 4 * 3 * 2
    assert (small / "kept/predictions/snapshot-average-g3-r1.parquet").exists()
    again = dynsnap("demo", "--out", "kept")
    assert "(0 of them now)" in again.stdout


def test_the_demo_leaves_nothing_behind_unless_told(small):
    ended = dynsnap("demo", "-q")
    assert ended.exit_code == 0, ended.stderr
    assert "SingleBase trained twice" in ended.stdout
    assert sorted(path.name for path in small.iterdir()) == ["digits.toml"]


def test_a_demo_that_is_stopped_says_that_nothing_was_kept(small):
    ended = dynsnap("demo", "-q", "--time-budget", "0.01")
    assert ended.exit_code == 4
    assert "Nothing was kept" in ended.stderr
    assert "dynsnap demo --out DIR" in ended.stderr
