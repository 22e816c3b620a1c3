"""AUROC and average precision of histograms, beside those of the scores themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dynsnap
from dynsnap.metrics import _ranking
from dynsnap.metrics._ranking import (
    BINS,
    Curve,
    RankTally,
    bins_of,
    curve_of,
    mixed,
    ranks_of,
)
from tests.metrics.test_classification import two_generations


@given(hnp.arrays(np.float64, st.integers(2, 60), elements=st.floats(0, 1)))
def test_bins_keep_the_order_of_the_scores(scores):
    scores = np.sort(scores)
    for kind in (np.float32, np.float64):
        places = bins_of(scores.astype(kind))
        assert (np.diff(places) >= 0).all()
        assert places.min() >= 0
        assert places.max() < BINS


@given(st.data())
def test_a_histogram_is_no_further_off_than_it_says(data):
    rows = data.draw(st.integers(2, 60))
    # Few heights, so that bins hold several of them.
    scores = data.draw(
        hnp.arrays(np.float64, rows, elements=st.floats(0.5, 0.52) | st.floats(0, 1))
    )
    inside = data.draw(hnp.arrays(np.bool_, rows))
    weights = data.draw(hnp.arrays(np.float64, rows, elements=st.integers(1, 3).map(float)))
    exact = ranks_of(curve_of(scores, inside, weights)[0])
    place = bins_of(scores)[:, None] == np.arange(BINS)[::-1]
    curve = Curve(weights @ (place & inside[:, None]), weights @ (place & ~inside[:, None]))
    found, (mean, area, precision) = ranks_of(curve), mixed(curve)
    if np.isnan(exact.auroc):
        assert np.isnan(found.auroc)
        assert np.isnan(mean)
        return
    assert abs(found.auroc - exact.auroc) <= area + 1e-12
    assert abs(mean - exact.average_precision) <= precision + 1e-12


@given(st.data())
def test_influences_sum_to_nothing_and_are_what_a_weight_changes(data):
    count = data.draw(st.integers(2, 12))
    sides = [
        data.draw(hnp.arrays(np.float64, count, elements=st.integers(1, 4).map(float)))
        for _ in range(2)
    ]
    found = ranks_of(Curve(*sides))
    place = data.draw(st.integers(0, count - 1))
    step = 1e-6
    for side, (area, precision) in enumerate(
        (
            (found.auroc_inside, found.precision_inside),
            (found.auroc_outside, found.precision_outside),
        )
    ):
        moved = [each.copy() for each in sides]
        moved[side][place] += step
        after = ranks_of(Curve(*moved))
        assert (after.auroc - found.auroc) / step * sides[side].sum() == pytest.approx(
            area[place], abs=1e-4
        )
        assert (after.average_precision - found.average_precision) / step * sides[
            0
        ].sum() == pytest.approx(precision[place], abs=1e-4)
    assert sides[0] @ found.auroc_inside == pytest.approx(0, abs=1e-9)
    assert sides[1] @ found.auroc_outside == pytest.approx(0, abs=1e-9)
    both = sides[0] @ found.precision_inside + sides[1] @ found.precision_outside
    assert both == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_comparison_of_too_many_rows_is_by_histogram_and_states_its_error(weighted, monkeypatch):
    pair = two_generations(4000, 3, weighted=weighted)
    exact = dynsnap.compare(*pair, resamples=300, metrics=["ranking"])
    monkeypatch.setattr(_ranking, "EXACT_ROWS", 3999)
    rough = dynsnap.compare(*pair, resamples=300, metrics=["ranking"])
    (note,) = (note for note in rough.notes if "histogram" in note)
    bounds = [float(word.strip(".")) for word in note.split() if "e-" in word]
    assert not any("histogram" in note for note in exact.notes)
    for one, other in zip(exact.generations, rough.generations, strict=True):
        for name, estimate in one.metrics.items():
            if name.startswith(("auroc", "average_precision")):
                bound = bounds[name.startswith("average")]
                assert 0 < bound < 0.02
                found = other.metrics[name]
                assert abs(found.value - estimate.value) <= bound, name
                # Intervals are as wide, from a few blocks.
                width = estimate.high - estimate.low
                assert 0.5 * width < found.high - found.low < 2 * width, name


def test_histograms_of_parts_add_up(monkeypatch):
    monkeypatch.setattr(_ranking, "EXACT_ROWS", 10)
    pair = two_generations(500, 3)
    whole, first, rest = (RankTally(500, 3, 32, False, (True, True)) for _ in range(3))
    keys = np.arange(500, dtype=np.uint64)
    for tally, rows in (
        (whole, slice(0, 500)),
        (first, slice(0, 123)),
        (rest, slice(123, 500)),
    ):
        scores = [one.scores[rows] for one in pair]
        tally.add(rows.start, keys[rows], pair[0].truth[rows], None, scores)
    first.merge(rest)
    assert not whole.exact
    np.testing.assert_array_equal(first.fine, whole.fine)
    np.testing.assert_array_equal(first.coarse, whole.coarse)


@pytest.mark.slow
def test_beyond_a_million_rows_the_error_is_small():
    pair = two_generations(1_000_001, 3, kind=np.float32)
    found = dynsnap.compare(*pair, resamples=50, metrics=["ranking"])
    for one, generation in zip(pair, found.generations, strict=True):
        for name in ("auroc", "average_precision"):
            exact = getattr(dynsnap.metrics, name)(one.scores, truth=one.truth)
            assert generation.metrics[name].value == pytest.approx(exact, abs=1e-5)
