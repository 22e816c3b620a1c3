"""Files that are stored for long: smaller, and still the same predictions."""

import numpy as np
import pytest

from dynsnap.predictions import Predictions, read, write


@pytest.mark.parametrize("ending", ["parquet", "arrow", "npz"])
@pytest.mark.parametrize("classes", [5, 120])
def test_a_compact_file_keeps_labels_and_three_digits_of_scores(ending, classes, tmp_path):
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.full(classes, 0.2), 300).astype(np.float32)
    made = Predictions(
        ids=np.arange(300),
        classes=[f"c{number}" for number in range(classes)],
        scores=scores,
        truth=rng.integers(0, classes, 300),
        slices={"week": rng.integers(1, 4, 300).astype(str)},
    )
    usual, compact = tmp_path / f"usual.{ending}", tmp_path / f"compact.{ending}"
    write(made, usual)
    write(made, compact, compact=True)
    again = read(compact)
    assert compact.stat().st_size < usual.stat().st_size
    np.testing.assert_array_equal(again.labels, made.labels)
    np.testing.assert_array_equal(again.truth, made.truth)
    np.testing.assert_allclose(again.scores, scores, atol=4e-4)
    assert again.slices.keys() == {"week"}
