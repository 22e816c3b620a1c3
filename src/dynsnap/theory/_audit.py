"""The theorems on the members of two real ensembles, and what the theorems do not say."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynsnap._types import AnyArray, Labels, MemberScores
from dynsnap.metrics import accuracy, consistency, correct_consistency
from dynsnap.theory._bound import Bound, Range, correct_consistency_bounds
from dynsnap.theory._distance_bounds import (
    centroid_correctness_bound,
    centroid_distance_bound,
    ensemble_correct_distance_bound,
    ensemble_distance_bound,
    leave_out_bound,
    leave_out_correct_bound,
)
from dynsnap.theory._leave_one_out import MemberEffects, average_labels, leave_one_out
from dynsnap.theory._members import Truth, check_members, shares

HONEST = (
    "The theorems bound distances between scores, not labels: an ensemble's consistency and "
    "correct consistency may lie below the mean of its members', nothing proves that it beats its "
    "best member, and no theorem bounds how likely one more member is to help."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleVsMembers:
    """The ensemble beside its members, in one metric of the pair of generations.

    Attributes:
        metric: "accuracy" (the mean of both generations), "consistency" or "correct_consistency".
        ensemble: Of the two ensembles.
        mean_member: The mean over the members, each beside its next generation.
        best_member: The highest of these.
        best_position: Which member that is, counted from 0.
    """

    metric: str
    ensemble: float
    mean_member: float
    best_member: float
    best_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Both sides of every theorem on the members of two generations.

    Attributes:
        bounds: Theorems 1 to 4 and the two on a single ensemble, as far as they apply.
        accuracy_bounds: Theorem 5; None without true classes.
        standings: The ensemble beside the mean and the best of its members.
        effects: What each member does for correct-consistency; None without true classes, or
            with fewer than two members that count.
        honest: What the theorems do not say.
        notes: What was left out and why, one sentence each.
    """

    members: int
    inputs: int
    classes: int
    order: float
    bounds: tuple[Bound, ...]
    accuracy_bounds: Range | None
    standings: tuple[EnsembleVsMembers, ...]
    effects: MemberEffects | None
    honest: str
    notes: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether every theorem holds on these members, but for rounding."""
        return all(bound.holds for bound in self.bounds) and (
            self.accuracy_bounds is None or self.accuracy_bounds.holds
        )


def audit(
    old: MemberScores,
    new: MemberScores,
    *,
    truth: Truth | None = None,
    order: float = 2,
    weights: AnyArray | None = None,
    seed: int = 0,
) -> Audit:
    """Compute both sides of every theorem on the members of two generations of an ensemble.

    The theorems pair member j of one generation with member j of the other, so both need as many.
    `truth` holds class positions of shape (inputs,), or true vectors of shape (inputs, classes)
    for a regression. `weights`, one per member and the same in both generations, makes it about
    the weighted average. `seed` is that of the bootstrap behind the members' effects.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> old, new = rng.dirichlet([1.0, 1.0, 1.0], (2, 5, 100))  # 5 members, 100 inputs
        >>> found = audit(old, new, truth=rng.integers(0, 3, 100))
        >>> found.holds, [bound.name for bound in found.bounds[:4]]
        (True, ['T1', 'T2', 'T3', 'T4'])
    """
    old, new = check_members(old=old, new=new)
    members, inputs, classes = old.shape
    each = shares(weights, members=members)
    labels = None if truth is None or np.ndim(truth) != 1 or classes == 1 else np.asarray(truth)
    before, now = average_labels(old, each), average_labels(new, each)
    return Audit(
        members=members,
        inputs=inputs,
        classes=classes,
        order=order,
        bounds=tuple(_bounds(old, new, truth, order, weights)),
        accuracy_bounds=(
            None if labels is None else correct_consistency_bounds(before, now, truth=labels)
        ),
        standings=() if classes == 1 else _versus_members(old, new, before, now, labels),
        effects=(
            None
            if labels is None or np.count_nonzero(each) < 2
            else leave_one_out(old, new, truth=labels, weights=weights, seed=seed)
        ),
        honest=HONEST,
        notes=(*_notes(old.shape, truth, weights), *(_raw(old, new) if labels is not None else ())),
    )


def _bounds(
    old: AnyArray, new: AnyArray, truth: Truth | None, order: float, weights: AnyArray | None
) -> Iterator[Bound]:
    leaves_out = len(old) > 1 and weights is None
    yield ensemble_distance_bound(old, new, order=order, weights=weights)
    if leaves_out:
        yield leave_out_bound(old, new, order=order)
    if truth is None:
        return
    yield ensemble_correct_distance_bound(old, new, truth=truth, order=order, weights=weights)
    if leaves_out:
        yield leave_out_correct_bound(old, new, truth=truth, order=order)
    for name, scores in {"old": old, "new": new}.items():
        far = centroid_distance_bound(scores, truth=truth, order=order, weights=weights)
        yield replace(far, name=f"{far.name}, {name}")
        near = centroid_correctness_bound(scores, truth=truth, weights=weights)
        yield replace(near, name=f"{near.name}, {name}")


def _versus_members(
    old: AnyArray, new: AnyArray, before: Labels, now: Labels, truth: Labels | None
) -> tuple[EnsembleVsMembers, ...]:
    whole = _measured(before, now, truth)
    single = [
        _measured(a.argmax(axis=1), b.argmax(axis=1), truth) for a, b in zip(old, new, strict=True)
    ]
    found = []
    for metric, value in whole.items():
        members = np.array([one[metric] for one in single])
        found.append(
            EnsembleVsMembers(
                metric=metric,
                ensemble=value,
                mean_member=float(members.mean()),
                best_member=float(members.max()),
                best_position=int(members.argmax()),
            )
        )
    return tuple(found)


def _measured(old: Labels, new: Labels, truth: Labels | None) -> dict[str, float]:
    if truth is None:
        return {"consistency": consistency(old, new)}
    return {
        "accuracy": (accuracy(old, truth=truth) + accuracy(new, truth=truth)) / 2,
        "consistency": consistency(old, new),
        "correct_consistency": correct_consistency(old, new, truth=truth),
    }


def _notes(shape: tuple[int, ...], truth: Truth | None, weights: AnyArray | None) -> Iterator[str]:
    members, _, classes = shape
    if members == 1:
        yield "T2, T4 and the effects of members need at least two members."
    elif weights is not None:
        yield "T2 and T4 are left out: they are false for weighted averages."
    if truth is None:
        yield "T3, T4, T5 and all about accuracy are left out: there is no truth."
    if classes == 1:
        yield "A single output has no classes: consistency and accuracy are left out."
    elif truth is not None and np.ndim(truth) != 1:
        yield "T5 and accuracy need true classes, not true vectors: they are left out."


def _raw(old: AnyArray, new: AnyArray) -> Iterator[str]:
    """Theorems hold for any vectors, but between logits and true classes distances mean little."""
    for name, scores in {"old": old, "new": new}.items():
        if scores.min() < 0 or abs(scores.sum(axis=2) - 1).max() > 0.01:
            yield (
                f"The scores of the {name} members are not probabilities, which distances and "
                "correctness assume. If they are logits, apply softmax first."
            )
