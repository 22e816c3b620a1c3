"""The two formulas, and the measurement that stands in for the corollary."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynsnap.errors import InputError
from dynsnap.metrics import correct_consistency
from dynsnap.theory import epsilon, leave_one_out, upsilon
from tests.messages import naming
from tests.theory.members import member_weights

unit = st.integers(0, 100).map(lambda n: n / 100)


@given(unit, unit)
def test_epsilon_is_the_formula_of_the_paper(a, more):
    a_plus = a + more * (1 - a)
    assume(a < 1)
    expected = (a_plus - a) / (1 - a) + 0.5 * (1 - a_plus) / (1 - a)
    assert epsilon(a=a, a_plus=a_plus) == pytest.approx(expected)


def test_epsilon_at_the_top_is_1():
    assert epsilon(a=1, a_plus=1) == 1
    assert epsilon(a=0.3, a_plus=1) == 1


@given(st.tuples(unit, unit, unit, unit).map(sorted), st.booleans())
def test_upsilon_is_the_chance_that_the_larger_is_no_worse(ends, overlap):
    low, second, third, high = ends
    b, c_plus = low, high
    b_plus, c = (second, third) if overlap else (third, second)
    assume(b < c and b_plus < c_plus)
    grid = (np.arange(400) + 0.5) / 400
    smaller = b + grid * (c - b)
    larger = b_plus + grid * (c_plus - b_plus)
    # Ranks instead of the full table: how many of `larger` lie below each of `smaller`.
    below = np.searchsorted(larger, smaller).mean() / 400
    found = upsilon(b=b, b_plus=b_plus, c=c, c_plus=c_plus)
    assert 0.5 - 1e-12 <= found <= 1
    assert found == pytest.approx(1 - below, abs=0.01)


@pytest.mark.parametrize(
    "ends",
    [
        {"b": 0.5, "b_plus": 0.4, "c": 0.6, "c_plus": 0.7},
        {"b": 0.1, "b_plus": 0.4, "c": 0.9, "c_plus": 0.7},
        {"b": 0.5, "b_plus": 0.6, "c": 0.4, "c_plus": 0.7},
        {"b": -0.1, "b_plus": 0.6, "c": 0.4, "c_plus": 0.7},
        {"b": 0.1, "b_plus": 0.2, "c": 0.4, "c_plus": 1.2},
        {"b": float("nan"), "b_plus": 0.2, "c": 0.4, "c_plus": 0.5},
    ],
)
def test_ends_that_contradict_each_other_are_refused(ends):
    with pytest.raises(InputError, match="0 ≤ b ≤ b_plus"):
        upsilon(**ends)


@st.composite
def classified(draw):
    seed = draw(st.integers(0, 10_000))
    members, inputs, classes = draw(st.tuples(*[st.integers(2, 6)] * 3))
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(classes), (2, members, inputs))
    return scores[0], scores[1], rng.integers(0, classes, inputs)


@given(classified(), st.data())
def test_effects_are_what_recomputing_without_each_member_gives(drawn, data):
    old, new, truth = drawn
    members = len(old)
    weights = data.draw(st.none() | member_weights(members).filter(lambda w: (w > 0).sum() > 1))

    def acc_con(kept):
        w = None if weights is None else weights[kept]
        labels = [
            np.average(scores[kept], axis=0, weights=w).argmax(axis=1) for scores in (old, new)
        ]
        return correct_consistency(*labels, truth=truth)

    found = leave_one_out(old, new, truth=truth, weights=weights, resamples=50)
    everyone = np.arange(members)
    assert found.whole == pytest.approx(acc_con(everyone))
    changes = [found.whole - acc_con(np.delete(everyone, j)) for j in everyone]
    assert [effect.change for effect in found.members] == pytest.approx(changes)
    assert found.mean.change == pytest.approx(np.mean(changes))
    for effect in (*found.members, found.mean):
        assert effect.low <= effect.high


def test_the_interval_is_that_of_resampled_inputs():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 300)
    scores = rng.dirichlet(np.ones(3), (2, 4, 300)) + 0.4 * np.eye(3)[truth]
    found = leave_one_out(*scores, truth=truth, resamples=4000)

    def kept(members):
        right = [scores[g][members].mean(axis=0).argmax(axis=1) == truth for g in (0, 1)]
        return right[0] & right[1]

    for j in range(4):
        steps = kept([0, 1, 2, 3]).astype(int) - kept([i for i in range(4) if i != j])
        means = rng.choice(steps, (4000, 300)).mean(axis=1)
        expected = np.quantile(means, [0.025, 0.975])
        effect = found.members[j]
        assert (effect.low, effect.high) == pytest.approx(expected, abs=0.008)
        assert effect.low < effect.change < effect.high


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    scores = rng.dirichlet(np.ones(3), (2, 4, 200))
    first, again = (leave_one_out(*scores, truth=truth, seed=1) for _ in range(2))
    other = leave_one_out(*scores, truth=truth, seed=2)
    assert first == again
    assert first.mean != other.mean
    assert first.mean.change == other.mean.change


def test_a_narrower_confidence_gives_a_narrower_interval():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    scores = rng.dirichlet(np.ones(3), (2, 4, 200))
    wide, narrow = (leave_one_out(*scores, truth=truth, confidence=level) for level in (0.95, 0.5))
    assert wide.mean.low < narrow.mean.low < narrow.mean.high < wide.mean.high


def test_members_that_agree_have_no_effect():
    same = np.repeat(np.array([[[0.7, 0.3], [0.2, 0.8]]]), 3, axis=0)
    found = leave_one_out(same, same, truth=np.array([0, 1]))
    assert found.whole == 1
    assert {(e.change, e.low, e.high) for e in (*found.members, found.mean)} == {(0, 0, 0)}


def test_a_single_member_cannot_be_left_out():
    scores, truth = np.full((2, 3, 2), 0.5), np.zeros(3, int)
    with pytest.raises(InputError, match="at least 2 members"):
        leave_one_out(scores[:1], scores[:1], truth=truth)
    with pytest.raises(InputError, match=naming("two members", "weight", "0")):
        leave_one_out(scores, scores, truth=truth, weights=np.array([1, 0]))
    for wrong in ({"confidence": 1.0}, {"confidence": 0}, {"resamples": 0}):
        with pytest.raises(InputError, match=naming("`confidence`", "0", "1")):
            leave_one_out(scores, scores, truth=truth, **wrong)
