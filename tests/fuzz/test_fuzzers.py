"""Every fuzzer on a few cases; by hand on many: `python -m tests.fuzz.NAME --count 100000`."""

import json
import subprocess
import sys

import pytest

from tests.fuzz import harness, predictions, rules, run_folders, studies
from tests.fuzz.harness import Attempt

FUZZERS = {
    "predictions": (predictions.case, 50),
    "rules": (rules.case, 50),
    "run_folders": (run_folders.case, 25),
    "studies": (studies.case, 30),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZERS)
def test_a_broken_file_ends_in_a_result_or_in_one_line(name):
    tried(name, *FUZZERS[name], seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZERS)
def test_many_broken_files_end_in_a_result_or_in_one_line(name):
    case, count = FUZZERS[name]
    tried(name, case, 10 * count, seed=1)


def tried(name, case, count, seed):
    found = harness.run(name, case, count, seed)
    assert found.failures == []
    assert found.cases == count
    assert len(found.broken) > 5  # in many ways
    assert json.loads(json.dumps(found.to_json()))["cases"] == count


def test_a_process_of_its_own_counts_the_same():
    apart = harness.run_apart("rules", 3, 0, begin=2)
    assert apart.to_json() == harness.run("rules", rules.case, 3, 0, begin=2).to_json()


def test_case_n_is_the_same_whatever_came_before():
    def case(rng, folder):
        return Attempt(str(rng.random()), [])

    one = harness.run("made", case, 5, seed=3)
    rest = harness.run("made", case, 2, seed=3, begin=3)
    assert set(rest.broken) < set(one.broken)
    assert len(one.broken) == 5


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(5)", "exit code 5"),
        ("print('Traceback (most recent call last)')", "Traceback"),
        ("raise SystemExit(3)", "no line says why"),
        ("raise MemoryError", "memory"),
    ],
)
def test_the_harness_sees_what_it_is_there_to_see(monkeypatch, fault, told):
    import click

    from dynsnap.cli import cli

    group = type(cli)("dynsnap")
    group.add_command(click.Command("work", callback=lambda: exec(fault)))
    monkeypatch.setattr(harness, "cli", group)
    found = harness.run("made", lambda rng, folder: Attempt("it", [["work"]]), 1, seed=0)
    assert told in found.failures[0]["what"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "few"), [("kills", "--count"), ("threads", "--calls")])
def test_signals_and_threads_are_tried_and_counted(name, few, tmp_path):
    counts = tmp_path / "counts.json"
    done = subprocess.run(
        [sys.executable, "-m", f"tests.fuzz.{name}", few, "5", "--json", counts], check=False
    )
    found = json.loads(counts.read_text())
    assert done.returncode == 0 and found["failures"] == []
    assert sum(found["ended"].values()) == found["cases"] > 0
