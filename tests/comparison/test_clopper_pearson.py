import numpy as np
import pytest
from scipy import stats

from dynsnap.comparison.intervals import clopper_pearson
from dynsnap.comparison.intervals._clopper_pearson import beta_quantile


@pytest.mark.parametrize("level", [1e-6, 0.0005, 0.025, 0.5, 0.9, 0.975, 1 - 1e-6])
def test_the_quantiles_of_the_beta_distribution_are_those_of_scipy(level):
    rng = np.random.default_rng(0)
    a = np.concatenate([np.arange(1, 60), 10 ** rng.uniform(0, 8, 300).round(1)]).round()
    b = np.concatenate([np.arange(60, 1, -1), 10 ** rng.uniform(0, 8, 300).round(1)]).round()
    found, expected = beta_quantile(level, a, b), stats.beta.ppf(level, a, b)
    width = stats.beta.ppf(0.975, a, b) - stats.beta.ppf(0.025, a, b)
    few = np.minimum(a, b) <= 500
    assert np.abs(found - expected)[few] == pytest.approx(0, abs=1e-6 * expected[few].max())
    assert (np.abs(found / expected - 1)[few] < 2e-6).all()
    assert (np.abs(found - expected)[~few] < 4e-4 * width[~few]).all()


@pytest.mark.parametrize(
    ("cases", "inputs"), [(0, 1), (1, 1), (0, 30), (3, 30), (29, 30), (7, 900)]
)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_the_interval_of_a_share_is_the_exact_binomial_one(cases, inputs, confidence):
    low, high = clopper_pearson(np.array([cases]), np.array([inputs]), confidence=confidence)
    test = stats.binomtest(cases, inputs).proportion_ci(confidence, method="exact")
    assert (low[0], high[0]) == pytest.approx((test.low, test.high), rel=1e-6)


def test_a_share_of_no_inputs_may_be_anything():
    low, high = clopper_pearson(np.array([0]), np.array([0]), confidence=0.95)
    assert (low[0], high[0]) == (0, 1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("cases", "inputs"), [(2, 1), (9, 3), (1, 0), (-1, 5), (-1, 0)])
def test_what_is_no_share_has_no_interval_and_changes_none_beside_it(cases, inputs):
    low, high = clopper_pearson(np.array([cases, 3]), np.array([inputs, 30]), confidence=0.95)
    assert np.isnan([low[0], high[0]]).all()
    alone = clopper_pearson(np.array([3]), np.array([30]), confidence=0.95)
    assert (low[1], high[1]) == (alone[0][0], alone[1][0])


@pytest.mark.parametrize("inputs", [1, 40, 1000, 5000])
def test_one_case_more_raises_both_ends(inputs):
    low, high = clopper_pearson(np.arange(inputs + 1), np.full(inputs + 1, inputs), confidence=0.95)
    assert (np.diff(low) > 0).all()
    assert (np.diff(high) > 0).all()


@pytest.mark.parametrize("share", [0.0001, 0.004, 0.02, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("inputs", [30, 200])
def test_neither_end_errs_more_often_than_half_of_what_the_level_leaves(share, inputs):
    cases = np.arange(inputs + 1)
    low, high = clopper_pearson(cases, np.full(inputs + 1, inputs), confidence=0.95)
    chance = stats.binom.pmf(cases, inputs, share)
    assert chance[low > share].sum() <= 0.025
    assert chance[high < share].sum() <= 0.025
