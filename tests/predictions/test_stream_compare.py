"""Comparing files block by block gives the values that comparing them in memory gives."""

import numpy as np
import pytest

from dynsnap.comparison import compare, compare_blocks, to_json
from dynsnap.predictions import Predictions, read, stream, write


def written(folder, name, ids, *, classes, seed, scored=True):
    """Predictions that depend on the id alone, so that their order does not matter."""
    order = np.argsort(ids)
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.full(classes, 0.3), len(ids)).astype(np.float32)[order.argsort()]
    common = np.random.default_rng(0)
    truth, weights, part = (common.integers(0, top, len(ids))[order.argsort()] for top in (3, 5, 4))
    made = Predictions(
        ids=ids,
        classes=[f"class {place}" for place in range(classes)],
        scores=scores if scored else None,
        labels=None if scored else scores.argmax(axis=1),
        truth=truth,
        weights=weights,
        slices={"part": part},
    )
    file = folder / f"{name}.parquet"
    write(made, file)
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "classes", "rows_at_once"),
    [(900, 4, 7), (3000, 3, 1000), pytest.param(150_000, 10, 50_001, marks=pytest.mark.slow)],
)
def test_the_values_are_the_same_to_the_last_bit(rows, classes, rows_at_once, tmp_path):
    ids = np.arange(rows)
    shuffled = np.random.default_rng(1).permutation(rows)
    old = written(tmp_path, "old", ids, classes=classes, seed=2)
    new = written(tmp_path, "new", ids, classes=classes, seed=3)
    moved = written(tmp_path, "moved", shuffled, classes=classes, seed=3)
    labels = written(tmp_path, "labels", shuffled, classes=classes, seed=4, scored=False)
    for files in ([old, new], [old, moved], [new, old, labels], [moved, new]):
        names = [file.stem for file in files]
        in_memory = to_json(compare(*map(read, files), names=names))
        with stream(files, names=names, rows_at_once=rows_at_once) as blocks:
            assert [to_json(each) for each in compare_blocks(blocks)] == [in_memory]
    assert to_json(compare(*files)) == in_memory
