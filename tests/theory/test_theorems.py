"""Each theorem as a law, both sides against a direct computation, and what is false beside it."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.errors import InputError
from dynsnap.metrics import accuracy, consistency, correct_consistency, correctness
from dynsnap.theory import (
    Bound,
    audit,
    centroid_correctness_bound,
    centroid_distance_bound,
    correct_consistency_bounds,
    ensemble_correct_distance_bound,
    ensemble_distance_bound,
    leave_out_bound,
    leave_out_correct_bound,
    reweighted_distance_bound,
)
from tests.messages import naming
from tests.strategies import scored_pairs, three_labellings
from tests.theory.members import ORDERS, correct, distance, member_weights, pairs

CLOSE = {"rel": 1e-9, "abs": 1e-9}


def mean(scores, weights=None):
    return np.average(scores, axis=0, weights=weights)


@given(pairs(), ORDERS)
def test_theorem_1_holds_for_every_norm(drawn, order):
    old, new, _ = drawn
    bound = ensemble_distance_bound(old, new, order=order)
    assert bound.holds
    assert bound.lefts == pytest.approx(distance(mean(old), mean(new), order), **CLOSE)
    assert bound.rights == pytest.approx(distance(old, new, order).mean(axis=0), **CLOSE)


@given(pairs(min_members=2), ORDERS, st.data())
def test_theorem_2_holds_for_any_number_left_out(drawn, order, data):
    old, new, _ = drawn
    leave = data.draw(st.integers(1, len(old) - 1))
    bound = leave_out_bound(old, new, leave=leave, order=order)
    assert bound.holds
    subsets = list(itertools.combinations(range(len(old)), len(old) - leave))
    smaller = [distance(mean(old[list(kept)]), mean(new[list(kept)]), order) for kept in subsets]
    assert bound.lefts == pytest.approx(distance(mean(old), mean(new), order), **CLOSE)
    assert bound.rights == pytest.approx(np.mean(smaller, axis=0), **CLOSE)


@given(pairs(), ORDERS)
def test_theorem_3_holds_for_every_norm(drawn, order):
    old, new, right = drawn
    bound = ensemble_correct_distance_bound(old, new, truth=right, order=order)
    assert bound.holds
    assert bound.lefts == pytest.approx(correct(mean(old), mean(new), right, order), **CLOSE)
    assert bound.rights == pytest.approx(correct(old, new, right, order).mean(axis=0), **CLOSE)


@given(pairs(min_members=2), ORDERS, st.data())
def test_theorem_4_holds_for_any_number_left_out(drawn, order, data):
    old, new, right = drawn
    leave = data.draw(st.integers(1, len(old) - 1))
    bound = leave_out_correct_bound(old, new, truth=right, leave=leave, order=order)
    assert bound.holds
    subsets = list(itertools.combinations(range(len(old)), len(old) - leave))
    smaller = [
        correct(mean(old[list(kept)]), mean(new[list(kept)]), right, order) for kept in subsets
    ]
    assert bound.rights == pytest.approx(np.mean(smaller, axis=0), **CLOSE)
    assert bound.lefts == pytest.approx(correct(mean(old), mean(new), right, order), **CLOSE)


@given(three_labellings())
def test_theorem_5_holds(labels):
    old, new, truth = labels
    found = correct_consistency_bounds(old, new, truth=truth)
    a, b = accuracy(old, truth=truth), accuracy(new, truth=truth)
    assert found.holds
    assert (found.low, found.high) == (max(a + b - 1, 0), min(a, b))
    assert found.value == correct_consistency(old, new, truth=truth)


def test_both_ends_of_theorem_5_occur():
    truth = np.zeros(4, int)
    half, other = np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])
    apart = correct_consistency_bounds(half, other, truth=truth)
    alike = correct_consistency_bounds(half, half, truth=truth)
    assert apart.value == apart.low == 0
    assert alike.value == alike.high == 0.5


@given(pairs(), ORDERS)
def test_an_ensemble_is_no_farther_from_the_truth_than_its_members(drawn, order):
    scores, _, right = drawn
    bound = centroid_distance_bound(scores, truth=right, order=order)
    assert bound.holds
    assert bound.lefts == pytest.approx(distance(mean(scores), right, order), **CLOSE)
    assert bound.rights == pytest.approx(distance(scores, right, order).mean(axis=0), **CLOSE)


@given(scored_pairs())
def test_an_ensemble_is_at_least_as_correct_as_its_members_on_average(pair):
    first, second, truth = pair
    bound = centroid_correctness_bound(np.stack([first, second]), truth=truth)
    each = [correctness(scores, truth=truth) for scores in (first, second)]
    assert bound.holds
    assert bound.left == pytest.approx(np.mean(each))
    assert bound.right == pytest.approx(correctness((first + second) / 2, truth=truth))


# Weighted averages.


@given(pairs(), ORDERS, st.data())
def test_weighted_averages_are_bounded_by_the_weighted_mean(drawn, order, data):
    old, new, right = drawn
    weights = data.draw(member_weights(len(old)))
    bound = ensemble_distance_bound(old, new, order=order, weights=weights)
    assert bound.holds
    expected = distance(mean(old, weights), mean(new, weights), order)
    assert bound.lefts == pytest.approx(expected, **CLOSE)
    assert bound.rights == pytest.approx(mean(distance(old, new, order), weights), **CLOSE)
    t3 = ensemble_correct_distance_bound(old, new, truth=right, order=order, weights=weights)
    assert t3.holds
    assert t3.rights == pytest.approx(mean(correct(old, new, right, order), weights), **CLOSE)
    assert centroid_distance_bound(old, truth=right, order=order, weights=weights).holds
    assert centroid_correctness_bound(old, truth=right, weights=weights).holds


def test_the_plain_mean_does_not_bound_a_weighted_average():
    old = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])
    new = np.array([[[0.0, 1.0]], [[0.5, 0.5]]])  # only the first member moves, and it counts most
    weighted = ensemble_distance_bound(old, new, weights=np.array([0.9, 0.1]))
    plain = ensemble_distance_bound(old, new)
    assert weighted.holds
    assert weighted.left > plain.right
    assert not Bound(name="", claim="", lefts=weighted.lefts, rights=plain.rights).holds


@given(pairs(), ORDERS, st.data())
def test_weights_that_differ_are_bounded_by_the_weighted_vectors(drawn, order, data):
    old, new, _ = drawn
    w, v = data.draw(member_weights(len(old))), data.draw(member_weights(len(old)))
    bound = reweighted_distance_bound(old, new, old_weights=w, new_weights=v, order=order)
    assert bound.holds
    expected = distance(mean(old, w), mean(new, v), order)
    assert bound.lefts == pytest.approx(expected, **CLOSE)
    scaled = [
        distance(a * wj, b * vj, order)
        for a, b, wj, vj in zip(old, new, w / w.sum(), v / v.sum(), strict=True)
    ]
    assert bound.rights == pytest.approx(np.sum(scaled, axis=0), **CLOSE)


def test_members_that_did_not_move_may_still_move_an_ensemble_whose_weights_change():
    same = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    weights = {"old_weights": np.array([0.9, 0.1]), "new_weights": np.array([0.1, 0.9])}
    assert reweighted_distance_bound(same, same, **weights).left > 1
    assert ensemble_distance_bound(same, same).right == 0


def test_theorem_2_is_false_for_normalised_weights():
    move = np.array([[[1.0]], [[0.0]]])  # what each of two members moves by
    weights = np.array([0.9, 0.1])
    whole = distance(mean(move, weights), 0, 2)
    smaller = [distance(move[j], 0, 2) for j in (0, 1)]  # one member left: its weight is 1
    assert whole > np.mean(smaller)
    found = audit(move, np.zeros_like(move), weights=weights)
    assert [bound.name for bound in found.bounds] == ["T1"]
    assert any(re.search(naming("T2", "T4", "weighted"), note) for note in found.notes)


# What the theorems do not say.


def test_an_ensemble_may_be_less_consistent_than_each_of_its_members():
    old = np.array([[[0.6, 0.4]], [[0.1, 0.9]]])
    new = np.array([[[0.9, 0.1]], [[0.4, 0.6]]])
    for a, b in zip(old, new, strict=True):
        assert consistency(a.argmax(axis=1), b.argmax(axis=1)) == 1
    assert consistency(mean(old).argmax(axis=1), mean(new).argmax(axis=1)) == 0
    found = audit(old, new)
    (standing,) = found.standings
    assert (standing.metric, standing.ensemble, standing.mean_member) == ("consistency", 0, 1)
    assert found.holds  # the distances are as the theorems say


def test_an_ensemble_may_be_less_correct_consistent_than_its_members_on_average():
    members = np.array([[[0.51, 0.49]], [[0.51, 0.49]], [[0.0, 1.0]]])
    found = audit(members, members, truth=np.array([0]))
    standing = {one.metric: one for one in found.standings}["correct_consistency"]
    assert standing.ensemble == 0
    assert standing.mean_member == pytest.approx(2 / 3)
    assert (standing.best_member, standing.best_position) == (1, 0)
    assert found.holds


def test_the_theorems_are_false_below_order_1_and_such_orders_are_refused():
    moves = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    half = (np.abs(mean(moves)) ** 0.5).sum() ** 2  # "order 1/2" of the mean move
    assert half > np.mean((np.abs(moves) ** 0.5).sum(axis=-1) ** 2)
    still, truth = np.zeros_like(moves), np.array([0])
    for order in (0.5, 0, -1, math.nan):
        for call in (
            lambda order=order: ensemble_distance_bound(moves, still, order=order),
            lambda order=order: leave_out_bound(moves, still, order=order),
            lambda order=order: ensemble_correct_distance_bound(
                moves, still, truth=truth, order=order
            ),
            lambda order=order: leave_out_correct_bound(moves, still, truth=truth, order=order),
            lambda order=order: centroid_distance_bound(moves, truth=truth, order=order),
            lambda order=order: audit(moves, still, order=order),
        ):
            with pytest.raises(InputError, match=naming("`order`", "1")):
                call()


# Regression, and vectors of any size.


def test_the_theorems_are_about_regressions_too():
    rng = np.random.default_rng(3)
    old, new = rng.normal(size=(2, 7, 50, 1))
    right = rng.normal(size=(50, 1))
    found = audit(old, new, truth=right)
    assert found.holds
    assert [bound.name for bound in found.bounds][:4] == ["T1", "T2", "T3", "T4"]
    assert found.standings == ()
    assert found.effects is None
    assert found.accuracy_bounds is None
    assert any("single output" in note for note in found.notes)
    assert found.bounds[0].left == pytest.approx(np.abs(mean(old) - mean(new)).mean())


@pytest.mark.parametrize("size", [1e-150, 1e12, 1e150])
def test_members_that_did_not_move_give_exactly_0_however_large(size):
    scores = np.random.default_rng(1).normal(size=(6, 5, 3)) * size
    bound = ensemble_distance_bound(scores, scores)
    assert (bound.left, bound.right, bound.slack, bound.holds) == (0, 0, 0, True)
    moved = ensemble_distance_bound(scores, scores[::-1])
    assert moved.left == pytest.approx(0, abs=1e-12 * size)
    assert moved.holds


# The bound itself.


def test_a_bound_names_the_input_with_the_least_room():
    bound = Bound(
        name="", claim="", lefts=np.array([0.0, 1.0, 2.0]), rights=np.array([0.5, 1.1, 2.1])
    )
    assert bound.worst == 2  # as little room as input 1, but for rounding, and farther left
    assert bound.slack == pytest.approx(0.7 / 3)
    assert bound.holds


def test_a_false_claim_is_seen_and_mere_rounding_is_not():
    def bound(left, right):
        return Bound(name="", claim="", lefts=np.array([left]), rights=np.array([right]))

    assert not bound(1.0, 0.999).holds
    assert bound(1.0, 1 - 1e-12).holds
    assert bound(1.0, 1 - 1e-12).slack == 0
    assert bound(1e6, 1e6 - 1e-5).holds


# What is refused.


def test_members_of_another_shape_are_refused_by_name():
    five, three = np.zeros((5, 4, 2)), np.zeros((3, 4, 2))
    with pytest.raises(InputError, match=naming("`old`", "5", "`new`", "3")):
        ensemble_distance_bound(five, three)
    with pytest.raises(InputError, match=naming("`old`", r"\(4, 2\)")):
        ensemble_distance_bound(five, np.zeros((5, 4, 3)))
    with pytest.raises(
        InputError, match=naming(r"\(members, inputs, classes\)", r"\(4, 2\)", "None")
    ):
        ensemble_distance_bound(five[0], five[0])
    with pytest.raises(InputError, match="none of them 0"):
        ensemble_distance_bound(np.zeros((5, 0, 2)), np.zeros((5, 0, 2)))
    with pytest.raises(InputError, match=naming("`new`", "nan", r"\(0, 0, 0\)")):
        ensemble_distance_bound(five, np.full((5, 4, 2), np.nan))


def test_truth_and_weights_of_another_shape_are_refused():
    scores = np.zeros((2, 4, 3))
    with pytest.raises(InputError, match=naming("shape", r"\(4, 3\)")):
        centroid_distance_bound(scores, truth=np.zeros((4, 2)))
    with pytest.raises(InputError, match="one class position"):
        centroid_distance_bound(scores, truth=np.zeros(3, int))
    with pytest.raises(InputError, match="between 0 and 2"):
        centroid_distance_bound(scores, truth=np.full(4, 3))
    with pytest.raises(InputError, match=naming("`weights`", "2 members", r"\(4,\)")):
        ensemble_distance_bound(scores, scores, weights=np.ones(4))


def test_leaving_out_all_or_too_many_ways_is_refused():
    scores = np.zeros((4, 1, 1))
    for leave in (0, 4, -1, 1.5):
        with pytest.raises(InputError, match=naming("`leave`", "1", "3")):
            leave_out_bound(scores, scores, leave=leave)
    with pytest.raises(InputError, match=naming("2 members", "got 1")):
        leave_out_bound(scores[:1], scores[:1])
    many = np.zeros((40, 1, 1))
    with pytest.raises(InputError, match=naming("137,846,528,820", "`leave`")):
        leave_out_bound(many, many, leave=20)
