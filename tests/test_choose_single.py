"""results/choose_single.py: the rule, and the table of docs/one-network.md."""

import csv
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "results" / "choose_single.py"


@pytest.fixture
def choose(tmp_path, monkeypatch):
    loaded = importlib.util.spec_from_file_location("choose_single", SCRIPT)
    module = importlib.util.module_from_spec(loaded)
    monkeypatch.setitem(sys.modules, "choose_single", module)
    loaded.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def held_out(folder, **methods):
    """A study whose methods have these (cost, last accuracy, lost, accuracy on the new class)."""
    folder.mkdir()
    with (folder / "heldout.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(
            ["method", "retrain_cost", "replicate", "ACC 1", "ACC 2", "lost", "new class"]
        )
        for name, (cost, last, lost, new) in methods.items():
            for replicate, noise in enumerate((-0.01, 0.0, 0.01)):
                own = noise if name == "singlebase" else 0.5 * noise
                values = [last + own, lost + own / 10, new + own]
                rows.writerow([name.replace("_", "-"), cost, replicate, 0.8, *values])


def test_the_one_that_loses_least_is_chosen_of_those_that_keep_accuracy_and_new_classes(
    choose, tmp_path
):
    fresh = (1, 0.9, 0.04, 0.9)
    held_out(
        tmp_path / "digits-single",
        singlebase=fresh,
        single=(1, 0.9, 0.02, 0.9),
        single_warm=(1, 0.9, 0.03, 0.9),
        single_distill=(2, 0.9, 0.001, 0.9),
        single_quarter=(1, 0.9, 0.002, 0.5),
        single_right=(1, 0.8, 0.003, 0.9),
        single_wrong=(1, 0.9, 0.004, 0.9),
    )
    held_out(
        tmp_path / "20news-single",
        singlebase=fresh,
        **dict.fromkeys(
            ("single", "single_distill", "single_quarter", "single_right"), (1, 0.9, 0.02, 0.9)
        ),
        single_warm=(1, 0.9, 0.03, 0.9),
    )
    *table, _, verdict = choose.lines()
    assert "`single` loses least" in verdict
    assert "cifar10-single" in verdict
    names = [line.split("|")[1].strip(" `") for line in table[2:]]
    assert "single-wrong" not in names, "it is not in every study"
    reasons = {
        name: line.split("|")[-2].strip() for name, line in zip(names, table[2:], strict=True)
    }
    assert reasons["single"] == reasons["single-warm"] == ""
    assert "digits-single: 2κ" in reasons["single-distill"]
    assert "digits-single: new class" in reasons["single-quarter"]
    assert "digits-single: ACC 3" in reasons["single-right"]


def test_the_table_has_the_spread_over_replicates(choose, tmp_path):
    held_out(tmp_path / "digits-single", singlebase=(1, 0.9, 0.04, 0.9), single=(1, 0.9, 0.02, 0.8))
    (row,) = (line for line in choose.lines() if line.startswith("| `single` |"))
    # Half of -1, 0 and 1 points, and a tenth of that.
    assert "| 2.0 ± 0.1 | 90.0 ± 0.5 | 80.0 ± 0.5 |" in row


def test_the_page_has_the_choice_that_the_results_give():
    found = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
