"""Evidence that is looked at daily: false alarms over a year, and how soon a change is found."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.errors import PlanError
from dynsnap.watch import ALL, Counts, Evidence, judge, mean_interval, shares

DAYS, ROWS, LIMIT = 365, 120, 0.05


def rates(kind, days=DAYS):
    """Rates that are never above the limit: at it, or up to it and back."""
    at = np.arange(days)
    return np.full(days, LIMIT) if kind == "at" else LIMIT * (0.5 + 0.5 * np.sin(at / 9) ** 2)


def ever(counts, limit=LIMIT):
    evidence = Evidence(limit)
    for each in counts:
        evidence.add(rows=ROWS, differing=int(each))
    return evidence.peak >= 20


def simulated(kind, years):
    rng = np.random.default_rng(7)
    return rng.binomial(ROWS, rates(kind), size=(years, DAYS))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["at", "below"])
def test_a_year_of_daily_looks_has_at_most_five_percent_false_alarms(kind):
    years = 300
    found = sum(map(ever, simulated(kind, years)))
    assert found / years <= 0.05
    # A test of each day, at the same level, rings in nearly every year.
    if kind == "at":
        z = (simulated(kind, years) - ROWS * LIMIT) / math.sqrt(ROWS * LIMIT * (1 - LIMIT))
        assert (z.max(axis=1) > 1.645).mean() > 0.9


def test_false_alarms_are_rare_in_a_few_years():
    assert sum(map(ever, simulated("at", 20))) <= 1


@pytest.mark.slow
def test_the_interval_of_the_mean_holds_on_all_days_together():
    years, misses = 300, 0
    truth = np.cumsum(rates("below")) / np.arange(1, DAYS + 1)
    for year in np.cumsum(simulated("below", years), axis=1):
        bounds = [mean_interval(ROWS * (at + 1), int(k), alpha=0.05) for at, k in enumerate(year)]
        misses += any(
            not low <= mean <= high for (low, high), mean in zip(bounds, truth, strict=True)
        )
    assert misses / years <= 0.05


@pytest.mark.slow
def test_many_slices_together_have_at_most_five_percent_false_alarms():
    rng, years, alarms = np.random.default_rng(1), 120, 0
    for _ in range(years):
        counts = Counts()
        for day in range(60):
            each = rng.binomial(ROWS, LIMIT, size=12)
            name = f"2024-{1 + day // 28:02}-{1 + day % 28:02}"
            counts.add(ALL, name, 12 * ROWS, int(each.sum()))
            for at, differing in enumerate(each[: 6 + 6 * (day > 20)]):  # some appear later
                counts.add(("region", str(at)), name, ROWS, int(differing))
        alarms += bool(judge(counts, limit=LIMIT).alarms)
    assert alarms / years <= 0.05


@pytest.mark.parametrize("day", [0, 30, 300])
def test_a_change_is_found_within_days_whenever_it_comes(day):
    rng = np.random.default_rng(3)
    evidence = Evidence(LIMIT)
    for at in range(day + 14):
        rate = 0.03 if at < day else 0.12
        evidence.add(rows=300, differing=int(rng.binomial(300, rate)))
        if at < day:
            assert evidence.value < 20
        if evidence.value >= 20:
            break
    assert evidence.value >= 20
    assert at - day <= 5


@given(
    st.lists(st.tuples(st.integers(0, 500), st.floats(0, 1)), min_size=1, max_size=12),
    st.floats(0.01, 0.9),
)
def test_evidence_is_the_mean_of_products_over_bets_and_first_days(days, rate):
    """Against the definition, written out."""
    counts = [(rows, int(rows * share)) for rows, share in days]
    evidence = Evidence(rate)
    odds = math.log(rate / (1 - rate)) + np.linspace(0.05, 4.0, 24)
    bets = 1 / (1 + np.exp(-odds))
    for end, (rows, differing) in enumerate(counts, 1):
        evidence.add(rows=rows, differing=differing)
        logs, weights = [], []
        for first in range(1, end + 1):
            n = sum(each[0] for each in counts[first - 1 : end])
            k = sum(each[1] for each in counts[first - 1 : end])
            for bet in bets:
                product = k * math.log(bet / rate) + (n - k) * math.log((1 - bet) / (1 - rate))
                logs.append(product)
                weights.append(1 / (first * (first + 1)) / len(bets))
        slow = sum(w * math.exp(min(one, 690)) for one, w in zip(logs, weights, strict=True))
        slow += 1 - sum(weights)
        if slow < 1e290:
            assert evidence.value == pytest.approx(slow, rel=1e-6)
        assert evidence.peak >= evidence.value


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30), st.floats(0.001, 0.5))
def test_shares_of_slices_never_exceed_the_whole(appeared, alpha):
    found = shares(appeared, alpha)
    assert sum(found) <= alpha * (1 + 1e-9)
    assert all(share > 0 for share in found)
    later = [*appeared, max(appeared) + 1]
    assert shares(later, alpha)[:-1] == found  # who comes later takes from nobody before


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(0.001, 0.5))
def test_intervals_hold_the_rate_and_narrow_with_rows(rows, share, alpha):
    k = int(rows * share)
    low, high = mean_interval(rows, k, alpha=alpha)
    assert 0 <= low <= k / rows <= high <= 1
    wide = mean_interval(rows, k, alpha=alpha / 2)
    assert wide[0] <= low and wide[1] >= high


@pytest.mark.parametrize("rate", [0.0, 1.0, -1.0, float("nan")])
def test_limits_that_are_none_are_refused(rate):
    with pytest.raises(PlanError):
        Evidence(rate)


@pytest.mark.parametrize("limit", [1e-300, 5e-324, 1e-12])
def test_the_smallest_limits_and_shares_have_an_answer(limit):
    evidence = Evidence(limit)
    evidence.add(rows=1000, differing=30)
    assert evidence.value > 1e20 and np.isfinite(evidence.value)
    low, high = mean_interval(1000, 30, alpha=limit)
    assert 0 <= low < 0.03 < high <= 1
