import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.ensemble import SoftTargets, with_second
from dynsnap.errors import InputError, PlanError
from tests.messages import naming

ROWS = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])


@st.composite
def rows(draw):
    seed = draw(st.integers(0, 1000))
    return np.random.default_rng(seed).dirichlet(np.ones(4), 5)


@given(rows(), st.floats(0.2, 20))
def test_targets_sum_to_one_and_rank_classes_as_the_scores_do(scores, temperature):
    targets = SoftTargets(scores=scores, temperature=temperature).targets
    np.testing.assert_allclose(targets.sum(1), 1, atol=1e-5)
    best = targets.max(axis=1)
    np.testing.assert_allclose(targets[np.arange(5), scores.argmax(1)], best)


def test_a_temperature_of_one_leaves_scores_as_they_are():
    np.testing.assert_allclose(SoftTargets(scores=ROWS).targets, ROWS, atol=1e-7)


def test_rows_of_nan_were_not_asked_about():
    scores = np.vstack([ROWS, np.full((1, 3), np.nan)])
    assert SoftTargets(scores=scores).taught.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight": 0}, "`weight` must be above 0"),
        ({"weight": 1.1}, "`weight` must be above 0 and at most 1, got 1.1"),
        ({"weight": float("nan")}, "`weight`"),
        ({"temperature": 0}, "`temperature` must be positive, got 0"),
        ({"temperature": float("inf")}, "`temperature`"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(PlanError, match=message):
        SoftTargets(scores=ROWS, **settings)


@pytest.mark.parametrize(
    "scores", [ROWS[0], ROWS * 3, -ROWS, np.full((2, 3), np.nan), np.array([[0.5, np.nan]])]
)
def test_scores_that_are_no_rows_of_probabilities_are_refused(scores):
    with pytest.raises(InputError):
        SoftTargets(scores=scores)


@given(rows(), rows(), st.floats(0, 1))
def test_two_teachers_stay_between_their_scores(first, second, share):
    heard = np.array([True, True, True, False, False])
    mixed = with_second(first, second, share=share, heard=heard)
    np.testing.assert_allclose(mixed.sum(1), 1)
    assert (mixed <= np.maximum(first, second) + 1e-12).all()
    np.testing.assert_array_equal(mixed[~heard], first[~heard])


def test_a_share_of_one_is_the_second_teacher_and_of_none_the_first():
    heard, second = np.ones(2, bool), ROWS[::-1]
    np.testing.assert_array_equal(with_second(ROWS, second, share=1.0, heard=heard), second)
    np.testing.assert_array_equal(with_second(ROWS, second, share=0.0, heard=heard), ROWS)


def test_a_share_beyond_the_whole_is_refused():
    with pytest.raises(PlanError, match=naming("`share`", "0", "1", r"1\.5")):
        with_second(ROWS, ROWS, share=1.5, heard=np.ones(2, bool))
