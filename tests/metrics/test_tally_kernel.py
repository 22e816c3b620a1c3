import numpy as np
import pytest
from numpy.polynomial import polynomial

from dynsnap.metrics import _kernel_compiled as kernel
from dynsnap.metrics import _kernel_rows as divergence
from dynsnap.metrics import jensen_shannon
from dynsnap.metrics._tally import Tally
from dynsnap.metrics._tally_layout import BLOCKS, BLOCKS_OF_MANY, FEWEST, MANY, TallyLayout
from dynsnap.predictions import Predictions


def test_the_polynomials_are_as_near_as_they_say():
    z = np.linspace(1e-9, (np.sqrt(2) - 1) / (np.sqrt(2) + 1), 5000).astype(np.longdouble)
    found = polynomial.polyval(z**2, np.array(divergence.ATANH, np.longdouble))
    assert np.abs(found - 2 * np.arctanh(z) / z).max() < 1e-15
    w = np.linspace(1e-9, 1, 5000).astype(np.longdouble)
    found = polynomial.polyval(2 * w - 1, np.array(divergence.GROWTH, np.longdouble))
    assert np.abs(found - (1 + w) * np.log1p(w) / w).max() < 6e-14


@pytest.mark.slow  # which compiles the kernel for double precision; single is in `make test`
@pytest.mark.parametrize(
    "rows",
    [
        [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]],
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        [[1.0, 0.0, 0.0], [1 - 2e-8, 1e-8, 1e-8]],
        [[0.25, 0.25, 0.5], [0.25 + 1e-7, 0.25 - 1e-7, 0.5]],
        [[1 - 1e-30, 1e-30, 0.0], [1 - 1e-12, 0.0, 1e-12]],
        [[1 - 1e-300, 1e-300, 0.0], [0.0, 1e-310, 1.0]],
        [[0.9, 0.05, 0.05], [0.1, 0.2, 0.7]],
    ],
)
def test_the_compiled_divergence_is_exact_on_awkward_rows(rows):
    old, new = (np.array([row]) for row in rows)
    pair = [Predictions(ids=[0], classes=list("abc"), scores=each) for each in (old, new)]
    tally = Tally(TallyLayout(rows=1, classes=3, scored=(True, True), truth=False), compiled=True)
    tally.add(pair, start=0)
    place = len(tally.layout.cases) + tally.layout.pair_columns((0, 1)).index("jensen_shannon")
    found = tally.pair_sums(0).sum(axis=0)[place]
    assert found == pytest.approx(jensen_shannon(old, new), rel=1e-9, abs=1e-13)


def test_the_stamp_covers_every_file_that_the_pass_is_compiled_from():
    # Otherwise a change in one of them would leave old machine code in use.
    parts = [each for each in vars(kernel).values() if hasattr(each, "py_func")]
    parts += [each for each in vars(kernel.rows_of).values() if hasattr(each, "py_func")]
    used = {each.py_func.__module__ for each in parts} - {kernel.__name__}
    stamped = {module.__name__ for module in kernel.SOURCES}
    assert len(parts) > 15
    assert used <= stamped


def layout(**changes):
    return TallyLayout(
        **({"rows": 500, "classes": 10, "scored": (True, True), "truth": True} | changes)
    )


def test_each_row_is_its_own_block_while_they_are_few():
    assert layout(rows=500).blocks == 500
    assert layout(rows=BLOCKS).exact
    assert not layout(rows=BLOCKS + 1).exact
    assert layout(rows=MANY + 1).blocks == BLOCKS_OF_MANY


def test_memory_is_bounded_however_many_classes_there_are():
    for classes in (10, 1000, 10_000):
        wide = layout(rows=10**8, classes=classes)
        assert wide.cell_count * 13 * 8 < 40e6
        assert wide.label_blocks * classes * 8 * 2 < 40e6
        assert all(grouping.blocks >= FEWEST for grouping in wide.groupings)


@pytest.mark.parametrize("rows", [1, 127, 128, 129, 70_000])
def test_the_ends_of_tiles_and_chunks_lose_no_row(rows):
    labels = np.arange(rows) % 3
    pair = [
        Predictions(ids=np.arange(rows), classes=list("abc"), labels=each, truth=labels)
        for each in (labels, np.zeros(rows, int))
    ]
    tally = Tally(layout(rows=rows, classes=3, scored=(False, False)), compiled=True)
    tally.add(pair, start=0)
    counts = tally.case_counts(0, tally.layout.groupings[0]).sum(axis=0)
    kept = np.count_nonzero(labels == 0)
    assert counts.tolist() == [kept, 0, rows - kept, 0, 0]
    assert tally.generations[1].labels.sum() == rows
