"""What each member does for correct-consistency: measured, with an interval, on these inputs."""

from dataclasses import dataclass

import numpy as np

from dynsnap import _check, seeds
from dynsnap._types import AnyArray, Flags, Floats, Labels, MemberScores
from dynsnap.errors import InputError
from dynsnap.theory._members import check_members, shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The change of correct-consistency that a member brings, with its bootstrap interval.

    Above 0, the ensembles are better with it than without.
    """

    change: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberEffects:
    """Correct-consistency with all members, and what leaving each of them out takes away.

    Attributes:
        whole: Correct-consistency of the two ensembles with all their members.
        members: The effect of each member.
        mean: The mean of these effects, with an interval of its own.
        confidence: The level of the intervals.
        resamples: How many bootstrap resamples of the inputs they come from.
    """

    whole: float
    members: tuple[Effect, ...]
    mean: Effect
    confidence: float
    resamples: int


def leave_one_out(
    old: MemberScores,
    new: MemberScores,
    *,
    truth: Labels,
    weights: AnyArray | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> MemberEffects:
    """How correct-consistency changes when a member is left out of both ensembles.

    This stands in for the paper's corollary, which promises a gain with a probability that it does
    not establish. The ensembles average their members' scores, with `weights` (one per member) if
    given. The intervals are percentiles over resamples of the inputs: they say how far the effect
    depends on which inputs were measured, not on how the members were trained.

    Example:
        >>> old = np.array([[[0.9, 0.1]], [[0.4, 0.6]], [[0.4, 0.6]]])  # three members, one input
        >>> found = leave_one_out(old, old, truth=np.array([0]))
        >>> found.whole, [effect.change for effect in found.members]
        (1.0, [1.0, 0.0, 0.0])
    """
    old, new = check_members(old=old, new=new)
    members, inputs, classes = old.shape
    if members < 2:
        raise InputError("Leaving a member out needs at least 2 members, got 1.")
    if not 0 < confidence < 1 or resamples < 1:
        raise InputError(
            "`confidence` must lie between 0 and 1 and `resamples` be at least 1, "
            f"got {confidence} and {resamples}."
        )
    truth = _check.truth(truth, inputs=inputs, classes=classes)
    each = shares(weights, members=members)
    if np.count_nonzero(each) < 2:
        raise InputError("At least two members must have a weight above 0: nothing else is left.")

    def kept(without: int | None) -> Flags:
        left = np.where(np.arange(members) == without, 0.0, each)
        return np.asarray(
            (average_labels(old, left) == truth) & (average_labels(new, left) == truth)
        )

    def effect(steps: AnyArray, scale: int, *name: int | str) -> Effect:
        # The mean of a resample depends only on how often it draws each value, and there are
        # few: drawing those counts is the bootstrap, without drawing rows.
        values, counts = np.unique(steps, return_counts=True)
        rng = seeds.generator(seed, "leave one out", *name)
        means = rng.multinomial(inputs, counts / inputs, size=resamples) @ values / inputs / scale
        low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
        return Effect(change=float(steps.mean()) / scale, low=float(low), high=float(high))

    whole = kept(None)
    total = np.zeros(inputs, dtype=np.int64)
    effects = []
    for j in range(members):
        steps = whole.astype(np.int64) - kept(j)
        total += steps
        effects.append(effect(steps, 1, "member", j))
    return MemberEffects(
        whole=float(whole.mean()),
        members=tuple(effects),
        mean=effect(total, members, "mean"),
        confidence=confidence,
        resamples=resamples,
    )


def average_labels(scores: AnyArray, each: Floats) -> Labels:
    """The labels of the ensemble that averages its members so; ties go to the lowest class."""
    together = np.zeros(scores.shape[1:])
    for j in np.flatnonzero(each):
        together += each[j] * scores[j]
    return np.asarray(together.argmax(axis=1))
