"""Tables of a study as CSV: no cell is a formula, and what cannot be was not measured."""

import csv
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import study
from dynsnap.errors import FileError
from dynsnap.study import Row
from dynsnap.study._cells import plain, safe
from dynsnap.study._table import write_rows
from tests.cli.helpers import dynsnap, refused

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
texts = st.text(st.sampled_from("=+-@\t\r\n'|aé1. ") | st.characters(codec="utf-8"), max_size=12)


@given(texts)
def test_no_text_starts_as_a_formula_does_and_all_are_read_back(text):
    cell = safe(text)
    assert plain(cell) == text
    if cell.startswith(FORMULA):
        assert float(cell) == float(text)  # a number is no formula


@given(st.floats(allow_nan=False) | st.integers())
def test_numbers_stay_numbers(number):
    assert safe(number) is number


def row(**changes):
    usual = {"method": "singlebase", "combination": "average", "metric": "accuracy"}
    return Row(**{**usual, "value": 0.5, "low": 0.4, "high": 0.6, "cost": 1.0, **changes})


def test_names_that_a_spreadsheet_would_run_are_written_as_text_and_read_as_they_were(tmp_path):
    rows = [row(method=name) for name in ("=A1", "-x", "'=A1", "plain")]
    rows.append(row(metric="composite", value=-0.25, low=-0.5))
    write_rows(tmp_path / "table.csv", rows)
    with (tmp_path / "table.csv").open(newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert "'=A1" in cells
    assert "-0.25" in cells
    assert not any(cell.startswith(FORMULA) and not _is_number(cell) for cell in cells)
    assert study.read_table(tmp_path / "table.csv") == rows


def _is_number(cell):
    return set(cell) <= set(string.digits + "-.e")


def finished(folder, rows):
    """A folder of results, as far as a report needs one."""
    folder.mkdir(exist_ok=True)
    write_rows(folder / "table.csv", rows)
    return folder


SOUND = [
    row(method=method, metric=metric)
    for method in ("singlebase", "dynsnap-cyc")
    for metric in ("accuracy", "consistency", "correct_consistency")
]


@pytest.mark.parametrize(
    "changes",
    [
        {"metric": "consistency", "value": float("nan")},
        {"metric": "correct_consistency", "value": float("-inf")},
        {"metric": "accuracy", "low": float("nan")},
        {"metric": "consistency", "cost": float("inf")},
        {"metric": "consistency", "cost": 1e308},
        {"metric": "retrain_cost", "value": float("inf")},
        {"metric": "lost_1_2", "value": -0.5},
        {"seconds": float("nan")},
        {"spread": -1.0},
        {"combination": "both"},
        {"method": ""},
    ],
    ids=str,
)
def test_a_table_with_what_no_study_measures_is_refused_by_name(tmp_path, changes):
    folder = finished(tmp_path / "run", [*SOUND, row(**changes)])
    said = refused("report", folder, code=3)
    assert "table.csv" in said
    named = [key for key in changes if key not in ("metric", "combination", "method")]
    for key in named:
        assert key in said
        assert repr(changes[key]) in said


def test_ratios_may_be_undefined_or_infinite(tmp_path):
    rows = [*SOUND, row(metric="win_loss_ratio", value=float("inf"), low=None, high=None)]
    folder = finished(tmp_path / "run", rows)
    assert dynsnap("report", folder, "-q").exit_code == 0


@pytest.mark.parametrize(
    "content",
    ["", "method\n", "a,b\n1\n", "method,method\na,b\n", '"', "a\x00b,c\n", "a" * 200_000 + "\n"],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, content):
    folder = finished(tmp_path / "run", SOUND)
    (folder / "table.csv").write_text(content)
    assert "table.csv" in refused("report", folder, code=3)


def test_a_table_that_lacks_a_metric_is_shown_as_far_as_it_goes(tmp_path):
    folder = finished(tmp_path / "run", [one for one in SOUND if one.metric == "accuracy"])
    write_rows(
        folder / "sweeps.csv",
        [row(metric="lost")],
        sweep=["members"],
        over=["members"],
        point=["2"],
    )
    result = dynsnap("report", folder)
    assert result.exit_code == 0, result.output
    assert "singlebase" in result.stdout


def test_what_a_run_says_about_itself_may_be_anything(tmp_path):
    folder = finished(tmp_path / "run", SOUND)
    for about in ("[" * 100_000, "1" * 5000, json.dumps({"training_rows": {"a": [1], "b": "x"}})):
        (folder / "about.json").write_text(about)
        result = dynsnap("report", folder)
        assert result.exit_code == 0, result.output
        assert "about.json" in result.stdout


def test_reading_a_table_raises_only_what_dynsnap_raises(tmp_path):
    with pytest.raises(FileError, match="table"):
        study.read_table(tmp_path / "table.csv")
    (tmp_path / "table.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="damaged"):
        study.read_table(tmp_path / "table.csv")
