"""Methods that are added to published results are as if they had been in the run."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.helpers import dynsnap

ROOT = Path(__file__).parents[1]
STUDY = """
[study]
name = "small"
seed = 1

[data]
source = "digits"

[model]
name = "mlp"
hidden = [4]

[training]
epochs = 4

[methods]
names = [{names}]
combinations = ["average", "majority"]
members = 4
snapshots = 2
"""


def published(folder, *names):
    study = folder / "study.toml"
    folder.mkdir()
    study.write_text(STUDY.format(names=", ".join(f'"{name}"' for name in names)))
    for words in (
        ["run", study, "--out", folder / "run"],
        ["publish", folder / "run", folder / "kept", "--no-scores"],
    ):
        ended = dynsnap(*words)
        assert ended.exit_code == 0, ended.output
    return folder / "run", folder / "kept"


def add(run, kept):
    return subprocess.run(
        [sys.executable, ROOT / "results/add_methods.py", run, kept],
        capture_output=True,
        text=True,
        check=False,
    )


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rows_of(folder):
    """Values and intervals by method, combination and metric, but for what a clock measured."""
    lines = (folder / "table.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines]
    return {tuple(row[:3]): row[3:6] for row in rows if row[2] != "seconds"}


@pytest.mark.slow
def test_added_methods_are_as_if_they_had_been_in_the_run(tmp_path):
    _, kept = published(tmp_path / "one", "singlebase", "snapshot")
    run, _ = published(tmp_path / "two", "singlebase", "extbagging")
    _, whole = published(tmp_path / "three", "singlebase", "snapshot", "extbagging")
    before = json.loads((kept / "about.json").read_text())
    ended = add(run, kept)
    assert ended.returncode == 0, ended.stderr
    found, expected = (pq.read_table(one / "labels.parquet") for one in (kept, whole))
    assert set(found.column_names) == set(expected.column_names)
    for name in expected.column_names:
        assert found.column(name).to_pylist() == expected.column(name).to_pylist(), name
    found, expected = (rows_of(one) for one in (kept, whole))
    assert found == expected
    about, more = (json.loads((one / "about.json").read_text()) for one in (kept, run))
    assert about["rounds"] == before["rounds"] + more["rounds"]
    assert about["inputs_per_second"] == about["training_inputs"] / about["training_seconds"]
    assert add(run, kept).returncode == 1  # nothing is left to be added
    assert json.loads((kept / "about.json").read_text()) == about


@pytest.mark.slow
def test_a_noise_floor_that_was_measured_with_another_learner_is_not_added(tmp_path):
    bare, kept = published(tmp_path / "one", "singlebase")
    run, _ = published(tmp_path / "two", "singlebase", "extbagging")
    shutil.rmtree(bare / "predictions/twin")
    rows = (bare / "table.csv").read_text().splitlines()
    others = [row for row in rows if not row.startswith("noise-floor,")]
    assert len(others) < len(rows)
    (bare / "table.csv").write_text("\n".join([*others, ""]))
    assert dynsnap("publish", bare, kept, "--no-scores").exit_code == 0
    ended = add(run, kept)
    assert ended.returncode == 0 and ended.stdout.endswith(": extbagging.\n"), ended.stderr
    assert {row[0] for row in rows_of(kept)} >= {"singlebase", "extbagging"}
    assert "noise-floor" not in {row[0] for row in rows_of(kept)}
    assert not any("twin/" in name for name in pq.read_table(kept / "labels.parquet").column_names)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A run of two methods, and results of one."""
    folder = tmp_path_factory.mktemp("pair")
    _, kept = published(folder / "one", "singlebase")
    run, _ = published(folder / "two", "singlebase", "extbagging")
    return run, kept


def edited(path, old, new):
    text = path.read_text()
    assert old in text, path
    path.write_text(text.replace(old, new))


def without(name):
    return lambda run: [path.unlink() for path in run.rglob(name)]


def in_study(old, new):
    return lambda run: edited(run / "study.toml", old, new)


def in_about(old, new):
    return lambda run: edited(run / "about.json", old, new)


def raised(method, metric):
    """A row of the table with another value than its predictions have."""

    def change(run):
        rows = [line.split(",") for line in (run / "table.csv").read_text().splitlines()]
        (row,) = (one for one in rows if one[:3] == [method, "average", metric])
        row[3] = str((float(row[3]) + 0.125) % 1)
        (run / "table.csv").write_text("\n".join([*map(",".join, rows), ""]))

    return change


def twice(run):
    text = (run / "table.csv").read_text()
    (run / "table.csv").write_text(text + text.splitlines()[-1] + "\n")


HOLDOUT = "[data.growth]\nselection_holdout = 0.1\n\n[model]"
REFUSED = {
    "Another seed": in_study("seed = 1", "seed = 2"),
    "Another study": in_study('"small"', '"other"'),
    "Another model": in_study("hidden = [4]", "hidden = [8]"),
    "Another training": in_study("epochs = 4", "epochs = 2"),
    "Another data: ": in_study("[data]", "[data]\nsubsample = 0.5"),
    "selection_holdout": in_study("[model]", HOLDOUT),
    "Another replicates": in_study("seed = 1", "seed = 1\nreplicates = 2"),
    "Another singlebase in both study files": in_study("snapshots = 2", "snapshots = 4"),
    "Another device": in_about('"device": "', '"device": "other '),
    "Another generations": in_about('"generations": [', '"generations": [1, '),
    "has no rounds": in_about('"rounds"', '"wheels"'),
    "has no training_inputs": in_about('"training_inputs": ', '"training_inputs": "1", "x": '),
    "has the accuracy": raised("extbagging", "accuracy"),
    "has the consistency": raised("extbagging", "consistency"),
    "has the correct_consistency": raised("extbagging", "correct_consistency"),
    "has a row twice": twice,
    "Another combinations": without("*-majority-*.parquet"),
    "of the 6 predictions of extbagging on test": without("predictions/extbagging-average-g2.*"),
    "predictions of extbagging on late": without("late/extbagging-average-g3.parquet"),
    "Another kinds of inputs": lambda run: shutil.rmtree(run / "predictions/late"),
    "no study.toml": lambda run: (run / "study.toml").unlink(),
}


@pytest.mark.slow
@pytest.mark.parametrize("said", REFUSED)
def test_what_does_not_belong_together_is_refused_and_nothing_is_written(pair, tmp_path, said):
    run, kept = (shutil.copytree(one, tmp_path / one.name) for one in pair)
    REFUSED[said](run)
    before = contents(kept)
    ended = add(run, kept)
    assert ended.returncode == 1 and said in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr and contents(kept) == before


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["accuracy", "consistency"])
def test_published_results_whose_table_is_not_of_their_labels_take_no_more(pair, tmp_path, metric):
    run, kept = (shutil.copytree(one, tmp_path / one.name) for one in pair)
    raised("singlebase", metric)(kept)
    assert f"has the {metric}" in add(run, kept).stderr


@pytest.mark.slow
def test_files_that_would_lack_the_new_methods_are_not_left_behind(pair, tmp_path):
    run, kept = (shutil.copytree(one, tmp_path / one.name) for one in pair)
    (kept / "replicates.csv").write_text("method\n")
    assert "would lack the new methods" in add(run, kept).stderr


@pytest.mark.slow
def test_a_noise_floor_comes_with_the_learner_that_it_was_measured_with(tmp_path):
    _, kept = published(tmp_path / "one", "extbagging")
    run, _ = published(tmp_path / "two", "singlebase", "extbagging")
    own = {row[0] for row in rows_of(kept)}
    ended = add(run, kept)
    assert ended.returncode == 0, ended.stderr
    added = {row[0] for row in rows_of(kept)} - own
    names = pq.read_table(kept / "labels.parquet").column_names
    assert ("noise-floor" in added) == ("noise-floor" not in own)
    assert "singlebase" in added and any(name.startswith("twin/singlebase/") for name in names)
