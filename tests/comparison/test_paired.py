"""Paired differences over inputs and replicates: against a slow reference, and against chance."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dynsnap.comparison import difference_of_means, paired_difference
from dynsnap.comparison.intervals._paired import student_quantile
from dynsnap.errors import InputError

# From printed tables of Student's t.
TABLE = {
    (0.975, 1): 12.7062,
    (0.975, 2): 4.3027,
    (0.975, 9): 2.2622,
    (0.975, 30): 2.0423,
    (0.975, 120): 1.9799,
    (0.8, 1): 1.3764,
    (0.8, 9): 0.8834,
    (0.995, 5): 4.0321,
    (0.5, 3): 0.0,
}


@pytest.mark.parametrize(("share", "freedom"), TABLE)
def test_quantiles_are_those_of_tables(share, freedom):
    assert student_quantile(share, freedom) == pytest.approx(TABLE[share, freedom], abs=6e-5)


def test_quantiles_fall_with_the_degrees_of_freedom_to_the_normal_one():
    found = [student_quantile(0.975, freedom) for freedom in (1, 1.5, 2.7, 29.9, 30.1, 500, 1e6)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(1.959964, abs=1e-4)


def slow(mine, other):
    """The mean, and the half width of an interval for a share, sum by sum."""
    pairs = zip(mine, other, strict=True)
    each = [[float(a) - float(b) for a, b in zip(*rows, strict=True)] for rows in pairs]
    for place, row in enumerate(each):
        row += [1.0, -1.0] if place == 0 else [0.0, 0.0]
    r, n = len(each), len(each[0])
    mean = sum(map(sum, each)) / (r * n)
    inputs = [sum(row[i] for row in each) / r for i in range(n)]
    rows = [sum(row) / n for row in each]
    a = sum((x - mean) ** 2 for x in inputs) / (n - 1) / n
    if r == 1:
        return mean, lambda share: math.sqrt(a) * student_quantile(share, n - 1)
    b = sum((x - mean) ** 2 for x in rows) / (r - 1) / r
    rest = sum((each[k][i] - inputs[i] - rows[k] + mean) ** 2 for k in range(r) for i in range(n))
    both = rest / ((r - 1) * (n - 1)) / (r * n)
    total = max(a + b - both, a, b)

    def half(share):
        t = a * student_quantile(share, n - 1) + b * student_quantile(share, r - 1)
        return math.sqrt(total) * t / (a + b)

    return mean, half


labels = st.tuples(st.integers(1, 4), st.integers(2, 30)).flatmap(
    lambda shape: st.tuples(arrays(bool, shape), arrays(bool, shape))
)


@settings(max_examples=40)
@given(labels)
def test_the_interval_is_that_of_a_slow_reference(pair):
    mine, other = pair
    found = paired_difference(mine, other)
    mean, half = slow(mine, other)
    value = mine.mean() - other.mean()
    assert found.value == pytest.approx(value)
    assert found.low == pytest.approx(max(-1, min(mean - half(0.975), value)))
    assert found.high == pytest.approx(min(1, max(mean + half(0.975), value)))
    assert found.detectable == pytest.approx(min(1, half(0.975) + half(0.8)))
    assert (found.replicates, found.inputs) == mine.shape


@settings(max_examples=25)
@given(labels)
def test_swapping_the_sides_mirrors_the_interval(pair):
    mine, other = pair
    there, back = paired_difference(mine, other), paired_difference(other, mine)
    mirrored = -there.value, -there.high, -there.low
    assert (back.value, back.low, back.high) == pytest.approx(mirrored)
    assert there.low <= there.value <= there.high
    assert not (there.clearly_above and there.clearly_below)


def test_methods_that_agree_everywhere_may_still_differ_elsewhere():
    right = np.ones((3, 100), bool)
    found = paired_difference(right, right)
    assert found.value == 0 and found.low < 0 < found.high
    assert found.detectable > 0
    # A single replicate, given as one row or as none.
    one, flat = paired_difference(right[:1], right[:1]), paired_difference(right[0], right[0])
    assert one == flat and one.replicates == 1


def test_replicates_that_differ_make_an_interval_wider():
    rng = np.random.default_rng(0)
    other = rng.random((4, 400)) < 0.8
    steady = other | (rng.random((4, 400)) < 0.2)
    shaky = other | (rng.random((4, 400)) < np.array([[0.0], [0.05], [0.3], [0.45]]))
    found = [paired_difference(one, other) for one in (steady, shaky)]
    widths = [one.high - one.low for one in found]
    assert widths[1] > 2 * widths[0]


# The spread of two replicates is hardly known, and here seeds matter more than inputs do.
@pytest.mark.parametrize(("replicates", "inputs"), [(3, 150), (2, 1500)])
def test_nineteen_of_twenty_intervals_hold_the_true_difference(replicates, inputs):
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(150):
        hard = rng.normal(1.5, 1.5, inputs)
        luck = rng.normal(0, 0.15, (2, replicates, 1))
        noise = rng.normal(0, 0.7, (2, replicates, inputs))
        found = paired_difference(*(hard + luck + noise > 0))
        held += found.low <= 0 <= found.high
    assert held >= 138  # 92 %: chance alone gives fewer once in thirty runs at 95 %


@pytest.mark.parametrize(
    ("mine", "other", "found"),
    [
        (np.ones((2, 5)), np.ones((2, 6)), "(2, 6)"),
        (np.ones((2, 1)), np.ones((2, 1)), "two inputs"),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), "(2, 2, 2)"),
        (np.full((1, 4), 1.5), np.ones((1, 4)), "between 0 and 1"),
        (np.full((1, 4), np.nan), np.ones((1, 4)), "between 0 and 1"),
    ],
)
def test_what_cannot_be_compared_is_refused(mine, other, found):
    with pytest.raises(InputError) as error:
        paired_difference(mine, other)
    assert found in str(error.value)
    with pytest.raises(InputError):
        paired_difference(np.ones(4), np.ones(4), confidence=1)


def test_means_of_weeks_are_compared_as_they_are():
    rng = np.random.default_rng(5)
    values = 0.5 + 0.1 * rng.random((3, 40))
    reference = values - 0.02 + 0.01 * rng.normal(size=(3, 40))
    found = difference_of_means(values, reference)
    each = values - reference
    assert found.value == pytest.approx(each.mean())
    assert (found.low + found.high) / 2 == pytest.approx(each.mean()), "nothing is added"
    alone = difference_of_means(values[:1], reference[:1])
    half = student_quantile(0.975, 39) * each[0].std(ddof=1) / np.sqrt(40)
    assert alone.high - alone.value == pytest.approx(half)
    same = difference_of_means(values, values)
    assert (same.low, same.high) == (0, 0)


def test_weeks_that_follow_are_alike_and_count_for_fewer():
    """Of weeks that carry half of the week before, fewer than 80 % of plain intervals hold 0."""
    rng = np.random.default_rng(2)
    held = {0: 0, 3: 0}
    for _ in range(200):
        own = rng.normal(0, 0.02, 46)
        for week in range(1, 46):
            own[week] += 0.5 * own[week - 1]
        for lags in held:
            one = difference_of_means(0.5 + own, np.full(46, 0.5), lags=lags)
            held[lags] += one.low <= 0 <= one.high
    assert held[0] < 155 < 168 < held[3]
    # What docs/evidence.md tells of three replicates: 95 % at a correlation of 0.2, 90 % at 0.45.
    for carried, least, most in ((0.2, 276, 294), (0.45, 255, 282)):
        whole = 0
        for _ in range(300):
            own = rng.normal(0, 0.01, 66)
            for week in range(1, 66):
                own[week] += carried * own[week - 1]
            each = own[20:] + rng.normal(0, 0.004, (3, 46)) + rng.normal(0, 0.001, (3, 1))
            one = difference_of_means(0.5 + each, np.full((3, 46), 0.5), lags=3)
            whole += one.low <= 0 <= one.high
        assert least <= whole <= most
    steady = 0.5 + 0.01 * (-1) ** np.arange(46)  # alternating weeks are no reason to be surer
    plain, serial = (difference_of_means(steady, np.full(46, 0.5), lags=n) for n in (0, 3))
    assert plain == serial
    with pytest.raises(InputError, match="lags"):
        difference_of_means(steady, steady, lags=46)
