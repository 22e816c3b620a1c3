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
seed = {seed}

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


def published(folder, *names, seed=1):
    study = folder / "study.toml"
    folder.mkdir()
    study.write_text(STUDY.format(seed=seed, names=", ".join(f'"{name}"' for name in names)))
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
    without, kept = published(tmp_path / "one", "singlebase")
    run, _ = published(tmp_path / "two", "singlebase", "extbagging")
    shutil.rmtree(without / "predictions/twin")
    rows = (without / "table.csv").read_text().splitlines()
    others = [row for row in rows if not row.startswith("noise-floor,")]
    assert len(others) < len(rows)
    (without / "table.csv").write_text("\n".join([*others, ""]))
    assert dynsnap("publish", without, kept, "--no-scores").exit_code == 0
    ended = add(run, kept)
    assert ended.returncode == 0 and ended.stdout.endswith(": extbagging.\n"), ended.stderr
    assert {row[0] for row in rows_of(kept)} >= {"singlebase", "extbagging"}
    assert "noise-floor" not in {row[0] for row in rows_of(kept)}
    assert not any("twin/" in name for name in pq.read_table(kept / "labels.parquet").column_names)


@pytest.mark.slow
def test_what_does_not_belong_together_is_refused_and_nothing_is_written(tmp_path):
    _, kept = published(tmp_path / "one", "singlebase")
    run, _ = published(tmp_path / "two", "singlebase", "extbagging")
    other, _ = published(tmp_path / "three", "singlebase", "extbagging", seed=2)
    before = contents(kept)
    refused = {
        "Another seed": lambda: add(other, kept),
        "no study.toml": lambda: add(tmp_path, kept),
    }
    (run / "predictions/extbagging-average-g2.parquet").rename(tmp_path / "aside.parquet")
    refused["5 of the 6 predictions of extbagging"] = lambda: add(run, kept)
    for said, done in refused.items():
        ended = done()
        assert ended.returncode == 1 and said in ended.stderr and "Traceback" not in ended.stderr
        assert contents(kept) == before
    (tmp_path / "aside.parquet").rename(run / "predictions/extbagging-average-g2.parquet")
    (kept / "replicates.csv").write_text("method\n")
    assert "would lack the new methods" in add(run, kept).stderr
