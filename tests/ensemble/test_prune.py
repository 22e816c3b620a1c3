import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dynsnap.ensemble import survivors
from dynsnap.errors import InputError, PlanError
from tests.messages import naming

accuracies = hnp.arrays(float, st.integers(1, 12), elements=st.floats(0, 1)) | hnp.arrays(
    float, st.integers(1, 12), elements=st.integers(0, 4).map(lambda tenths: tenths / 10)
)
betas = st.floats(0, 1) | st.just("mean")


@given(accuracies, betas)
def test_every_round_keeps_its_best(accuracy, beta):
    assert accuracy[survivors(accuracy, beta=beta)[0]] == accuracy.max()


@given(accuracies, betas)
def test_survivors_come_best_first_and_equals_by_position(accuracy, beta):
    kept = survivors(accuracy, beta=beta).tolist()
    assert kept == sorted(kept, key=lambda j: (-accuracy[j], j))


@given(accuracies, betas)
def test_whoever_is_as_good_as_a_survivor_survives(accuracy, beta):
    kept = survivors(accuracy, beta=beta)
    assert len(kept) == np.sum(accuracy >= accuracy[kept].min())


@given(accuracies, st.floats(0, 1), st.floats(0, 1))
def test_a_larger_beta_never_keeps_fewer(accuracy, one, other):
    low, high = sorted((one, other))
    few, many = survivors(accuracy, beta=low), survivors(accuracy, beta=high)
    # The bar is computed in floats, so exactly equal bars may differ in their last bit.
    assert len(few) <= len(many) or np.ptp(accuracy) < 1e-9 or high - low < 1e-9


@given(accuracies)
@example(np.full(10, 0.1))  # ten times 0.1 has a mean above 0.1 in floats
@example(np.full(3, 0.7))
def test_beta_one_keeps_everyone_and_equals_all_survive_the_mean(accuracy):
    assert len(survivors(accuracy, beta=1)) == len(accuracy)
    equal = np.full_like(accuracy, accuracy[0])
    assert len(survivors(equal)) == len(equal)


@given(accuracies, st.floats(0, 1))
def test_the_bar_is_the_papers(accuracy, beta):
    bar = (1 - beta) * accuracy.max() + beta * accuracy.min()
    clear = np.abs(accuracy - bar) > 1e-12  # elsewhere rounding decides
    kept = np.isin(np.arange(len(accuracy)), survivors(accuracy, beta=beta))
    assert (kept == (accuracy >= bar))[clear].all()


def test_the_default_keeps_those_at_or_above_the_mean():
    assert survivors(np.array([0.25, 0.5, 0.75, 0.5])).tolist() == [2, 1, 3]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_accuracy_that_is_no_number_is_refused(bad):
    with pytest.raises(InputError, match=naming("`accuracy`", "not finite", str(bad), "diverged")):
        survivors(np.array([0.9, bad]))


@pytest.mark.parametrize("bad", [np.array([]), np.zeros((2, 2))])
def test_accuracies_of_another_shape_are_refused(bad):
    with pytest.raises(
        InputError, match=naming("`accuracy`", "one snapshot", re.escape(str(bad.shape)))
    ):
        survivors(bad)


@pytest.mark.parametrize("beta", [1.5, -0.1, float("nan"), "max"])
def test_beta_outside_the_unit_interval_is_refused(beta):
    with pytest.raises(PlanError, match=naming("`beta`", '"mean"', "0", "1")):
        survivors(np.array([0.5]), beta=beta)
