"""The gate never passes by accident: what looks like a pass and is none is refused, or fails."""

import json

import numpy as np
import pytest

from dynsnap.predictions import ColumnNames, Predictions, write
from tests.cli.helpers import dynsnap

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
