"""When docs/reproduction.md calls a difference of runs clear, and by which word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import _seeds
from _reproduction import runs, studies
from dynsnap.comparison import PairedDifference
from dynsnap.study import Row


@pytest.mark.parametrize(
    ("value", "low", "high", "replicates", "word"),
    [
        (-0.0099, -0.016, -0.004, 1, studies.BY_INPUTS),
        (0.005, 0.001, 0.009, 1, studies.BY_INPUTS),
        (0.005, 0.001, 0.009, 3, "higher"),
        (-0.012, -0.02, -0.004, 1, "lower"),
        (0.005, -0.001, 0.011, 1, studies.UNCLEAR),
    ],
)
def test_what_one_replicate_shows_within_a_point_is_neither_clear_nor_unclear(
    value, low, high, replicates, word
):
    one = PairedDifference(
        value=value, low=low, high=high, detectable=0.01, inputs=9, replicates=replicates
    )
    assert studies.clear_word(one) == word


def of_run(value, spread=None):
    """A row of one seed."""
    return Row(
        method="one",
        combination="average",
        metric="accuracy",
        value=value,
        cost=1.0,
        spread=spread,
    )


@pytest.mark.parametrize(
    ("gap", "spread", "n", "word"),
    [
        (0.02, 0.01, 2, studies.UNCLEAR),
        (0.02, 0.01, 3, studies.UNCLEAR),  # twice the standard deviation is not enough of three
        (0.04, 0.01, 3, "higher"),
        (-0.02, 0.01, 10, "lower"),
        (0.009, None, 1, studies.UNCLEAR),
        (0.02, None, 1, "higher"),
    ],
)
def test_sweeps_are_compared_by_students_t_over_replicates(gap, spread, n, word):
    one, other = (of_run(value, spread) for value in (0.5 + gap, 0.5))
    assert studies.worded(100 * gap, studies.doubt_of(one, other, n)) == word


@given(
    each=st.lists(
        st.tuples(st.floats(0.2, 0.8), st.floats(-0.1, 0.1)),
        min_size=2,
        max_size=6,
        unique_by=lambda both: round(both[1], 4),
    )
)
def test_runs_of_the_same_rounds_are_paired(each):
    gaps = np.array([gap for _, gap in each])
    found = runs.gap(
        [
            (_seeds.Part(of_run(luck + gap), 1), _seeds.Part(of_run(luck), 1))
            for luck, gap in each  # what a run's rounds are good for serves both
        ]
    )
    low, high = 100 * np.array(stats.ttest_1samp(gaps, 0).confidence_interval())
    assert found.over == f"{len(each)} runs" and found.n == len(each)
    assert found.value == pytest.approx(100 * gaps.mean(), abs=1e-9)
    assert found.value - found.doubt == pytest.approx(low, abs=1e-6)
    assert found.value + found.doubt == pytest.approx(high, abs=1e-6)


def test_a_seed_that_has_the_mean_of_several_replicates_cannot_be_paired():
    one, other = (_seeds.Part(of_run(value, 0.01), 3) for value in (0.54, 0.5))
    found = runs.gap([(one, other)])
    assert found.n == 3 and found.word == "higher"
    assert found.doubt == studies.doubt_of(one.row, other.row, 3)
    low, high = found.value - found.doubt, found.value + found.doubt
    assert f"({low:+.2f} to {high:+.2f} over 3 replicates, not paired, higher)" in str(found)


@pytest.mark.parametrize("often", [(1,), (3,), (3, 7), (1, 7)])
def test_without_a_deviation_over_replicates_no_interval_is_told(often):
    sides = [tuple(_seeds.Part(of_run(value), many) for value in (0.54, 0.5)) for many in often]
    found = runs.gap(sides)
    assert found.n == sum(often) and found.doubt == studies.DOUBT
    assert str(found) == f"+4.00 (n = {sum(often)}, higher)"
