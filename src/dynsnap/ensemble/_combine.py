"""Combine the scores of many members: votes or averages, weighted or not."""

from typing import Literal, TypeAlias, get_args

import numpy as np

from dynsnap import _check
from dynsnap._types import Accuracies, Flags, Floats, MemberScores, Positions, Scores
from dynsnap.errors import InputError, PlanError, did_you_mean

Combination: TypeAlias = Literal["majority", "weighted_majority", "average", "weighted_average"]

COMBINATIONS: tuple[Combination, ...] = get_args(Combination)


def combine(
    scores: MemberScores,
    *,
    how: Combination,
    weights: Accuracies | None = None,
    known: Flags | None = None,
) -> Scores:
    """One row of scores per input from the rows of all members; every row sums to one.

    "majority" and "weighted_majority" count each member's vote and give the share of the votes
    that each class got; "average" and "weighted_average" average the rows. The weighted ones need
    `weights`, one per member, which the paper sets to the validation accuracies; the others ignore
    `weights`, so that one loop may run over all four.

    Ties go to the lowest class: a member votes for the first of its highest scores, and the label
    of a combined row is the first of its highest scores, as `argmax` has it.

    Members of earlier generations may lack a class: `known`, as (members, classes), is False where
    a member was never trained on the class. Such a member does not vote against the class. Its
    scores hold given that the input is of none of the classes that it lacks; how likely that is
    follows from the members that know them.

    Example:
        >>> scores = np.array([[[0.6, 0.4]], [[0.4, 0.6]], [[0.1, 0.9]]])
        >>> combine(scores, how="majority").round(2)
        array([[0.33, 0.67]])
        >>> combine(scores, how="weighted_majority", weights=np.array([0.9, 0.3, 0.3])).round(2)
        array([[0.6, 0.4]])
        >>> scores = np.array([[[1.0, 0.0]], [[0.2, 0.8]]])
        >>> combine(scores, how="average", known=np.array([[True, False], [True, True]]))
        array([[0.2, 0.8]])
    """
    if how not in COMBINATIONS:
        raise PlanError(f"There is no combination {how!r}. {did_you_mean(str(how), COMBINATIONS)}")
    scores = np.asarray(scores)
    if scores.ndim != 3 or not len(scores) or not scores.shape[2] or scores.dtype.kind not in "fiu":
        raise InputError(
            "`scores` must be numbers as (members, inputs, classes), with at least one member and "
            f"one class, but are {scores.dtype} of the shape {scores.shape}."
        )
    shares = member_shares(weights, how, len(scores))
    patterns, pattern_of = known_patterns(known, len(scores), scores.shape[2])
    sums = np.zeros((len(patterns), *scores.shape[1:]))
    # Member by member: the whole array in float64 would take four times the memory of float16.
    for position, share in enumerate(shares):
        rows = scores[position].astype(float)
        check_scores(rows, f"member {position}")
        if not patterns[pattern_of[position]].all():
            _leave_out(rows, patterns[pattern_of[position]])
        if how.endswith("majority"):
            sums[pattern_of[position], np.arange(len(rows)), rows.argmax(axis=1)] += share
        else:
            rows *= share
            sums[pattern_of[position]] += rows
    combined: Scores = sums[0] if len(sums) == 1 else _pooled(sums, patterns)
    combined /= combined.sum(axis=1, keepdims=True)
    return combined


def known_patterns(known: Flags | None, members: int, classes: int) -> tuple[Flags, Positions]:
    """The distinct sets of classes that members know, and which one each member has."""
    if known is None:
        return np.ones((1, classes), dtype=bool), np.zeros(members, dtype=np.intp)
    known = np.asarray(known)
    if known.shape != (members, classes) or known.dtype != bool:
        raise InputError(
            f"`known` must be true or false for {members} members and {classes} classes, but is "
            f"{known.dtype} of the shape {known.shape}."
        )
    if not known.any(axis=1).all():
        raise InputError("`known` leaves a member without any class that it knows.")
    # For a class that no member knows, there is no other member to fill it in.
    patterns, pattern_of = np.unique(known | ~known.any(axis=0), axis=0, return_inverse=True)
    return patterns, pattern_of.reshape(-1)  # NumPy 2.0 alone gives it a second axis


def _leave_out(rows: Scores, known: Flags) -> None:
    """Condition a member's scores on the input being of a class that it knows."""
    rows[:, ~known] = 0
    sums = rows.sum(axis=1, keepdims=True)
    # A member with all its mass on classes that it lacks is undecided about the rest.
    rows[:, known] += np.where(sums > 0, 0, 1)
    rows /= rows.sum(axis=1, keepdims=True)


def _pooled(sums: Floats, patterns: Flags) -> Scores:
    """The sum over all members; classes that some lack are filled in by those that know them."""
    weights = sums.sum(axis=2, keepdims=True)
    knows = patterns[:, None, :]
    asked = (weights * knows).sum(axis=0)
    likely = (sums * knows).sum(axis=0) / np.where(asked > 0, asked, 1)
    combined = np.zeros(sums.shape[1:])
    for rows, known, weight in zip(sums, patterns, weights, strict=True):
        unknown = np.where(known, 0, likely)
        # Shares of several classes, each from other members, may add up to more than one.
        unknown /= np.maximum(1, unknown.sum(axis=1, keepdims=True))
        combined += rows * (1 - unknown.sum(axis=1, keepdims=True)) + weight * unknown
    return combined


def member_shares(weights: Accuracies | None, how: str, members: int) -> Floats:
    """The weight of each member; together one."""
    if not how.startswith("weighted"):
        return np.full(members, 1 / members)
    if weights is None:
        raise InputError(
            f'"{how}" needs `weights`, one per member: the paper takes the validation accuracies.'
        )
    relative = _check.weights(weights, of="members", size=members)
    return np.asarray(relative / relative.sum())


def check_scores(rows: Scores, whose: str) -> None:
    """Raise InputError unless every row holds probabilities.

    Args:
        rows: Scores, (inputs, classes).
        whose: What to call their source, as in "member 3".
    """
    sums = rows.sum(axis=1)
    # A NaN fails the comparison; a minus infinity makes the sum fail it.
    near = np.abs(sums - 1) <= _check.SUM_TOLERANCE
    if not near.all():
        worst = int(np.flatnonzero(~near)[0])
        raise InputError(
            f"`scores` must be rows that sum to one, but {whose} gives input {worst} a row "
            f"that sums to {sums[worst]:.6g}. Turn logits into probabilities first (softmax)."
        )
    if rows.size and rows.min() < 0:
        raise InputError(f"`scores` must not be negative, but {whose} gives {rows.min()}.")
