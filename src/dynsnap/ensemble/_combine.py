"""Many members' scores into one learner's: votes or averages, weighted or not."""

from typing import Literal, TypeAlias, get_args

import numpy as np

from dynsnap import _check
from dynsnap._types import Accuracies, Floats, MemberScores, Scores
from dynsnap.errors import InputError, PlanError, did_you_mean

Combination: TypeAlias = Literal["majority", "weighted_majority", "average", "weighted_average"]

COMBINATIONS: tuple[Combination, ...] = get_args(Combination)


def combine(scores: MemberScores, *, how: Combination, weights: Accuracies | None = None) -> Scores:
    """One row of scores per input from the rows of all members; every row sums to one.

    "majority" and "weighted_majority" count each member's vote and give the share of the votes
    that each class got; "average" and "weighted_average" average the rows. The weighted ones need
    `weights`, one per member, which the paper sets to the validation accuracies; the others weigh
    every member alike and look at no weights, so that one loop may run over all four.

    Ties go to the lowest class: a member votes for the first of its highest scores, and the label
    of a combined row is the first of its highest scores, as `argmax` has it.

    Example:
        >>> scores = np.array([[[0.6, 0.4]], [[0.4, 0.6]], [[0.1, 0.9]]])
        >>> combine(scores, how="majority").round(2)
        array([[0.33, 0.67]])
        >>> combine(scores, how="weighted_majority", weights=np.array([0.9, 0.3, 0.3])).round(2)
        array([[0.6, 0.4]])
    """
    if how not in COMBINATIONS:
        raise PlanError(f"There is no combination {how!r}. {did_you_mean(str(how), COMBINATIONS)}")
    scores = np.asarray(scores)
    if scores.ndim != 3 or not len(scores) or not scores.shape[2] or scores.dtype.kind not in "fiu":
        raise InputError(
            "`scores` must be numbers as (members, inputs, classes), with at least one member and "
            f"one class, but are {scores.dtype} of the shape {scores.shape}."
        )
    shares = _shares(weights if how.startswith("weighted") else None, how, len(scores))
    combined = np.zeros(scores.shape[1:])
    everyone = np.arange(scores.shape[1])
    # Member by member: the whole array in float64 would take four times the memory of float16.
    for position, share in enumerate(shares):
        rows = scores[position].astype(float)
        _check_rows(rows, position)
        if how.endswith("majority"):
            combined[everyone, rows.argmax(axis=1)] += share
        else:
            rows *= share
            combined += rows
    combined /= combined.sum(axis=1, keepdims=True)
    return combined


def _shares(weights: Accuracies | None, how: str, members: int) -> Floats:
    """What each member counts for; together one."""
    if not how.startswith("weighted"):
        return np.full(members, 1 / members)
    if weights is None:
        raise InputError(
            f'"{how}" needs `weights`, one per member: the paper takes the validation accuracies.'
        )
    relative = _check.weights(weights, of="members", size=members)
    return np.asarray(relative / relative.sum())


def _check_rows(rows: Scores, member: int) -> None:
    sums = rows.sum(axis=1)
    # A NaN fails the comparison; a minus infinity makes the sum fail it.
    near = np.abs(sums - 1) <= _check.SUM_TOLERANCE
    if not near.all():
        worst = int(np.flatnonzero(~near)[0])
        raise InputError(
            f"`scores` must be rows that sum to one, but member {member} gives input {worst} a row "
            f"that sums to {sums[worst]:.6g}. Turn logits into probabilities first (softmax)."
        )
    if rows.size and rows.min() < 0:
        raise InputError(f"`scores` must not be negative, but member {member} gives {rows.min()}.")
