"""Theorems 1 to 4: an ensemble moves no farther than its members do on average.

All of them are the triangle inequality for the mean of some vectors, so they hold for every norm
(Minkowski orders from 1 to infinity) and for any real vectors: probabilities, logits, and the
single number of a regression alike. Vectors are subtracted before they are averaged: members that
did not move then give exactly 0, however large their scores are.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from dynsnap._types import AnyArray, Floats, MemberScores
from dynsnap.errors import InputError
from dynsnap.metrics import distances
from dynsnap.theory._bound import Bound
from dynsnap.theory._members import Truth, check_members, shares, target

# Each member's vector, computed when asked for: all of them at once may not fit.
Vectors: TypeAlias = Callable[[int], Floats]
Sides: TypeAlias = tuple[Floats, Floats]  # left and right, for each input

_MOST_SUBSETS = 20_000  # each is a pass over all inputs and classes


def ensemble_distance_bound(
    old: MemberScores, new: MemberScores, *, order: float = 2, weights: AnyArray | None = None
) -> Bound:
    """Theorem 1: two ensembles are no farther apart than their members are on average.

    With `weights` (one per member, the same in both generations, divided by their sum) both the
    ensembles and the average on the right are weighted: the plain average would be wrong.

    Example:
        >>> old = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])  # two members, one input
        >>> new = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
        >>> bound = ensemble_distance_bound(old, new, order=1)
        >>> bound.left, bound.right, bound.holds
        (0.0, 2.0, True)
    """
    old, new = check_members(old=old, new=new)
    sides = _mean(_moves(old, new), shares(weights, members=len(old)), order)
    return _bound("T1", f"d(o, õ) ≤ {_of(weights)} of d(s, s̃) over the members", sides)


def ensemble_correct_distance_bound(
    old: MemberScores,
    new: MemberScores,
    *,
    truth: Truth,
    order: float = 2,
    weights: AnyArray | None = None,
) -> Bound:
    """Theorem 3: the correct distance of two ensembles is at most the mean of their members'.

    The correct distance is d(s, s̃) + d(s, r) + d(s̃, r). `truth` holds class positions of shape
    (inputs,), or the true vectors of shape (inputs, classes).

    Example:
        >>> old = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
        >>> bound = ensemble_correct_distance_bound(old, old, truth=np.array([0]), order=1)
        >>> bound.left, bound.right
        (2.0, 2.0)
    """
    old, new = check_members(old=old, new=new)
    each = shares(weights, members=len(old))
    sides = _added(_mean(part, each, order) for part in _correct(old, new, truth))
    claim = f"d(o, õ) + d(o, r) + d(õ, r) ≤ {_of(weights)} of the same over the members"
    return _bound("T3", claim, sides)


def reweighted_distance_bound(
    old: MemberScores,
    new: MemberScores,
    *,
    old_weights: AnyArray,
    new_weights: AnyArray,
    order: float = 2,
) -> Bound:
    """Weighted averages whose weights differ between the generations.

    The right side is then the sum of d(w s, w̃ s̃): members that did not move at all may still move
    the ensemble. Weights are divided by their sum.

    Example:
        >>> same = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
        >>> bound = reweighted_distance_bound(
        ...     same, same, old_weights=np.array([1, 1]), new_weights=np.array([3, 1]), order=1)
        >>> bound.left, bound.right
        (0.5, 0.5)
    """
    old, new = check_members(old=old, new=new)
    before, now = shares(old_weights, members=len(old)), shares(new_weights, members=len(old))

    def vectors(j: int) -> Floats:
        return np.asarray(before[j] * old[j].astype(np.float64) - now[j] * new[j])

    claim = "d(o, õ) ≤ the sum of d(w s, w̃ s̃) over the members"
    return _bound("T1, weights that differ", claim, _mean(vectors, np.ones(len(old)), order))


def centroid_distance_bound(
    scores: MemberScores, *, truth: Truth, order: float = 2, weights: AnyArray | None = None
) -> Bound:
    """An ensemble is no farther from the truth than its members are on average.

    Example:
        >>> scores = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
        >>> bound = centroid_distance_bound(scores, truth=np.array([0]), order=1)
        >>> bound.left, bound.right
        (1.0, 1.0)
    """
    (scores,) = check_members(scores=scores)
    each = shares(weights, members=len(scores))
    sides = _mean(_errors(scores, target(truth, like=scores)), each, order)
    return _bound("centroid", f"d(o, r) ≤ {_of(weights)} of d(s, r) over the members", sides)


def centroid_correctness_bound(
    scores: MemberScores, *, truth: Truth, weights: AnyArray | None = None
) -> Bound:
    """The mean correctness of the members is at most the correctness of their ensemble.

    Example:
        >>> scores = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
        >>> bound = centroid_correctness_bound(scores, truth=np.array([0]))
        >>> round(bound.left, 3), round(bound.right, 3)
        (0.5, 0.5)
    """
    far = centroid_distance_bound(scores, truth=truth, order=2, weights=weights)
    sides = 1 - far.rights / math.sqrt(2), 1 - far.lefts / math.sqrt(2)
    claim = f"{_of(weights)} of the members' correctness ≤ the correctness of the ensemble"
    return _bound("correctness", claim, sides)


def leave_out_bound(
    old: MemberScores, new: MemberScores, *, leave: int = 1, order: float = 2
) -> Bound:
    """Theorem 2: two ensembles are no farther apart than their smaller versions are on average.

    The smaller versions are all those with `leave` members left out, the same in both generations.
    It does not cover weighted averages: with normalised weights it is false.

    Example:
        >>> old = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]])
        >>> new = np.array([[[0.0, 1.0]], [[0.0, 1.0]], [[1.0, 0.0]]])
        >>> bound = leave_out_bound(old, new, order=1)
        >>> bound.left, round(bound.right, 3)
        (0.0, 0.667)
    """
    old, new = check_members(old=old, new=new)
    sides = _left_out(_moves(old, new), members=len(old), leave=leave, order=order)
    return _bound("T2", f"d(o, õ) ≤ {_smaller(leave)}", sides)


def leave_out_correct_bound(
    old: MemberScores, new: MemberScores, *, truth: Truth, leave: int = 1, order: float = 2
) -> Bound:
    """Theorem 4: theorem 2 for the correct distance.

    Example:
        >>> old = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]])
        >>> bound = leave_out_correct_bound(old, old, truth=np.array([0]), order=1)
        >>> round(bound.left, 3), round(bound.right, 3)
        (2.667, 2.667)
    """
    old, new = check_members(old=old, new=new)
    sides = _added(
        _left_out(part, members=len(old), leave=leave, order=order)
        for part in _correct(old, new, truth)
    )
    return _bound("T4", f"d(o, õ) + d(o, r) + d(õ, r) ≤ {_smaller(leave)}", sides)


def _moves(old: AnyArray, new: AnyArray) -> Vectors:
    return lambda j: np.subtract(old[j], new[j], dtype=np.float64)


def _errors(scores: AnyArray, right: Floats) -> Vectors:
    return lambda j: np.subtract(scores[j], right, dtype=np.float64)


def _correct(old: AnyArray, new: AnyArray, truth: Truth) -> tuple[Vectors, ...]:
    """What the correct distance adds up: the move, and the errors before and after it."""
    right = target(truth, like=old)
    return _moves(old, new), _errors(old, right), _errors(new, right)


def _mean(vectors: Vectors, each: Floats, order: float) -> Sides:
    """The length of the weighted sum of the vectors, and the weighted sum of their lengths."""
    together, lengths = np.zeros(1), np.zeros(1)
    for j, share in enumerate(each):
        vector = share * vectors(j)
        together = together + vector
        lengths = lengths + _lengths(vector, order)
    return _lengths(together, order), lengths


def _left_out(vectors: Vectors, *, members: int, leave: int, order: float) -> Sides:
    """The length of the mean of all vectors, and the mean over all smaller sets of the same."""
    if leave not in range(1, members):
        raise InputError(
            f"`leave` must be a whole number from 1 to {members - 1}, got {leave}: of {members} "
            "members at least one is left out and one kept."
            if members > 1
            else "Leaving a member out needs at least 2 members, got 1."
        )
    subsets = math.comb(members, leave)
    if subsets > _MOST_SUBSETS:
        raise InputError(
            f"Leaving {leave} of {members} members out gives {subsets:,} ensembles, more than "
            f"{_MOST_SUBSETS:,}: choose a smaller `leave`."
        )
    total = sum((vectors(j) for j in range(members)), np.zeros(1))
    lengths = np.zeros(len(total))
    for gone in itertools.combinations(range(members), leave):
        rest = total - sum((vectors(j) for j in gone), np.zeros(1))
        lengths += _lengths(rest / (members - leave), order)
    return _lengths(total / members, order), lengths / subsets


def _lengths(vectors: Floats, order: float) -> Floats:
    return distances(vectors, np.zeros(vectors.shape), order=order)


def _added(parts: Iterable[Sides]) -> Sides:
    lefts, rights = zip(*parts, strict=True)
    return np.sum(lefts, axis=0), np.sum(rights, axis=0)


def _bound(name: str, claim: str, sides: Sides) -> Bound:
    return Bound(name=name, claim=claim, lefts=sides[0], rights=sides[1])


def _of(weights: AnyArray | None) -> str:
    return "the mean" if weights is None else "the weighted mean"


def _smaller(leave: int) -> str:
    left_out = "1 member" if leave == 1 else f"{leave} members"
    return f"the mean of the same over all ensembles less {left_out}"
