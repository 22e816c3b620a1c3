"""The gate never passes by accident: what looks like a pass and is none is refused, or fails."""

import json
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

from dynsnap.predictions import ColumnNames, Predictions, write
from tests.cli.helpers import dynsnap, refused, table

SMALL = ()  # files of a few rows, made by hand

RULES = """
[[rule]]
metric = "correctness"
at_least = 0.5
class = "*"
[[rule]]
metric = "correctness"
at_least = 0.1
slice = {{column = "{column}"}}
"""


def judged(folder, column, columns=None, options=()):
    """What a gate judges classes and the values of a slice by, which share their names."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    places = []
    for name in ("old", "new"):
        scores = rng.dirichlet(np.ones(2), 200)
        slices = {column: np.array(["a", "b"])[np.arange(200) // 100]}
        said = Predictions(
            ids=range(200), classes=["a", "b"], scores=scores, truth=truth, slices=slices
        )
        places.append(folder / f"{name}.parquet")
        write(said, places[-1], columns=columns)
    rules = folder / "gate.toml"
    rules.write_text(RULES.format(column=column))
    run = ("gate", *places, "--rules", rules, "--resamples", 20, "--json", "-", *options)
    outcomes = json.loads(dynsnap(*run).stdout)["outcomes"]
    return [(outcome["inputs"], outcome["value"], outcome["status"]) for outcome in outcomes]


@pytest.mark.parametrize("role", ["truth", "label", "id"])
def test_a_slice_that_is_called_like_a_role_is_no_more_than_a_slice(tmp_path, role):
    columns, options = ColumnNames(**{role: "other"}), (f"--{role}-column", "other")
    plain = judged(tmp_path, "region")
    assert judged(tmp_path, role, columns, options) == plain
    assert plain[0][1] != plain[2][1]  # a class and the slice of its name differ


@pytest.mark.parametrize("column", ["frequency", "class", "score", "positions"])
def test_the_name_of_a_slice_does_not_change_what_is_judged(tmp_path, column):
    assert judged(tmp_path, column) == judged(tmp_path, "region")


def weighted(folder, weights):
    """Two files of four inputs, two of which are lost."""
    for name, labels in (("old", "aabb"), ("new", "abab")):
        rows = [f"{i},{t},{s},{w!r}" for i, (t, s, w) in enumerate(zip("aabb", labels, weights))]
        yield table(folder / f"{name}.csv", rows, head="id,truth,label,weight")


@pytest.mark.parametrize("file_type", ["csv", "parquet"])
@pytest.mark.parametrize("weight", [1e308, 1.7e300, 1e51, 5e-324, 1e-300, 1e-51])
def test_weights_whose_sums_or_products_are_no_numbers_are_refused(tmp_path, weight, file_type):
    places = list(weighted(tmp_path, [1.0, 1.0, weight, 1.0]))
    if file_type == "parquet":
        for place in places:
            pq.write_table(csv.read_csv(place), place.with_suffix(".parquet"))
        places = [place.with_suffix(".parquet") for place in places]
    line = refused("gate", *places, "--at-most", "lost=0.1", *SMALL, code=3)
    assert "row 2" in line
    assert f"{weight:.4g}" in line


@given(st.lists(st.just(0.0) | st.floats(1e-50, 1e50), min_size=4, max_size=4).filter(any))
def test_weights_that_are_taken_give_the_share_that_exact_arithmetic_gives(weights):
    exact = [Fraction(each) for each in weights]
    share = float((exact[1] + exact[2]) / sum(exact))
    with tempfile.TemporaryDirectory() as folder:
        places = list(weighted(Path(folder), weights))
        run = ("gate", *places, "--at-most", "lost=0.5", *SMALL, "--resamples", 1, "--json", "-")
        (outcome,) = json.loads(dynsnap(*run).stdout)["outcomes"]
    assert outcome["value"] == pytest.approx(share, rel=1e-12, abs=0)
