"""Where generations have different values in a slice column, a comparison says so."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import compare
from dynsnap.comparison import Settings, compare_blocks
from dynsnap.predictions import Predictions, stream, write

VALUES = st.sampled_from(["day", "night", "", None])
COLUMNS = st.integers(1, 12).flatmap(
    lambda rows: st.lists(st.lists(VALUES, min_size=rows, max_size=rows), min_size=2, max_size=3)
)


def generations(columns, order=None):
    """A generation for each column, which has it as its slice "light"."""
    made = []
    for number, column in enumerate(columns):
        ids = np.arange(len(column))
        rows = ids if order is None or not number else order
        made.append(
            Predictions(
                ids=ids[rows],
                classes=["a", "b"],
                labels=(ids % 2)[rows],
                slices={"light": [column[row] for row in rows]},
            )
        )
    return made


def found(comparison):
    notes = [note for note in comparison.notes if "slice column" in note]
    counts = [re.search(r'"light" for ([\d,]+) of', note)[1] for note in notes]
    return [int(count.replace(",", "")) for count in counts]


def differing(columns):
    """Inputs that some later generation has another value for than the first, if both have one."""
    first, *others = columns
    rows = [
        row
        for row, value in enumerate(first)
        if value and any(other[row] and other[row] != value for other in others)
    ]
    return [len(rows)] if rows else []


@given(COLUMNS, st.randoms(use_true_random=False))
def test_inputs_with_different_values_are_counted(columns, random):
    order = list(range(len(columns[0])))
    random.shuffle(order)
    made = generations(columns, np.array(order))
    assert found(compare(*made, resamples=20)) == differing(columns)


def test_files_say_the_same_whoever_counts_them(tmp_path):
    rows = 3000
    rng = np.random.default_rng(0)
    columns = [["dark" if dark else "light" for dark in rng.random(rows) < 0.5] for _ in "ab"]
    files = [tmp_path / "old.parquet", tmp_path / "new.parquet"]
    for made, path in zip(generations(columns, rng.permutation(rows)), files, strict=True):
        write(made, path)
    expected = differing(columns)
    assert expected[0] > 1000
    assert found(compare(*files)) == expected
    for parallel in (None, map):
        with stream(files, rows_at_once=300, rows_in_part=900) as blocks:
            (one,) = compare_blocks(blocks, Settings(resamples=20), parallel=parallel)
            assert found(one) == expected
