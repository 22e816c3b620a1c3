"""Members of the generation before: which are carried over into the next ensemble, and how."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Floats, Labels, MemberScores
from dynsnap.ensemble import Rolling, best, judged
from dynsnap.errors import InputError
from dynsnap.estimator._fitted import Fitted, FittedEnsemble


def roll(
    rolling: Rolling,
    size: int,
    before: FittedEnsemble,
    *,
    inputs: Any,
    truth: Labels,
    weights: Floats | None,
    classes: AnyArray,
    train_new: Callable[[int], tuple[Fitted, MemberScores]],
) -> Fitted:
    """An ensemble of the best members of the one before, and of new ones.

    Args:
        rolling: How members are carried over.
        size: How many members there are in all.
        before: The estimator before.
        inputs: Rows that no member was ever trained on.
        truth: Their classes.
        weights: How much each counts; None where all count 1.
        classes: All classes by now.
        train_new: An ensemble of so many new members, and their scores on those rows. The first of
            many are the same as of few, and are not trained again.
    """
    old = _widened(before, classes)
    scores = np.zeros((len(old.members), len(inputs), len(classes)))
    scores[:, :, list(class_places(before, classes))] = before._open()(inputs)[old.places]
    count = rolling.carried(size)
    new, said = train_new(size - count) if count < size else (None, None)
    known = old.known(len(classes))
    accuracy, agreement, bars = judged(scores, truth, known=known, new=said, weights=weights)
    kept = best(accuracy, agreement, count=count, rolling=rolling, new=bars)
    if len(kept) < count:
        new, _ = train_new(size - len(kept))
    return _joined(old, kept.tolist(), accuracy, new, classes=len(classes))


def check_can_be_carried(before: FittedEnsemble, *, backend: str, selection_holdout: float) -> None:
    """Raise unless members of an estimator can be carried over into one with these settings."""
    made = before._found()
    if made.backend != backend:
        raise InputError(
            f"The last generation was made with a model of another kind ({made.backend}) than "
            f"`model` ({backend}): its members cannot be carried over. Start anew with `fit`."
        )
    if made.heard:
        raise InputError(
            "The last generation comes from a study in which not all members know all classes: its "
            "members cannot be carried over. Start anew with `fit`."
        )
    if made.passes > 1:
        raise InputError(
            "Members of mcdropout cannot be carried over: they are one network. Start anew with "
            "`fit`."
        )
    if made.selection_holdout < selection_holdout:
        raise InputError(
            f"The last generation held {made.selection_holdout:.0%} of the rows out for selection, "
            f"and `selection_holdout` asks for {selection_holdout:.0%} now: it was trained on some "
            "of those. Lower `selection_holdout`, or start anew with `fit`."
        )


def class_places(before: FittedEnsemble, classes: AnyArray) -> tuple[int, ...]:
    """Where the classes of the estimator before are among all classes by now."""
    place = {label: position for position, label in enumerate(classes.tolist())}
    for label in before.classes_.tolist():
        if label not in place:
            raise InputError(
                f"The last generation knows the class {label!r}, of which there are no rows any "
                "more. Pass all data so far, or start anew with `fit`."
            )
    return tuple(place[label] for label in before.classes_.tolist())


def _widened(before: FittedEnsemble, classes: AnyArray) -> Fitted:
    """The ensemble before, its columns counted among all classes by now."""
    old, places = before._found(), class_places(before, classes)
    columns = old.learned or (tuple(range(len(before.classes_))),) * len(old.learners)
    return dataclasses.replace(
        old, learned=tuple(tuple(places[at] for at in each) for each in columns)
    )


def _joined(
    old: Fitted, kept: list[int], accuracy: AnyArray, new: Fitted | None, *, classes: int
) -> Fitted:
    """Some members of the old ensemble, then all of the new one, each learner once."""
    used = sorted({old.members[place].learner for place in kept})
    carried = tuple(
        dataclasses.replace(
            old.members[place],
            accuracy=float(accuracy[place]),
            learner=used.index(old.members[place].learner),
        )
        for place in kept
    )
    columns = tuple(old.learned[learner] for learner in used)
    learners = tuple(old.learners[learner] for learner in used)
    if new is None:
        return dataclasses.replace(
            old,
            members=carried,
            learners=learners,
            learned=columns,
            rounds=0,
            cost=0.0,
            history=(),
            generation=old.generation + 1,
        )
    fresh = tuple(
        dataclasses.replace(member, learner=member.learner + len(used)) for member in new.members
    )
    return dataclasses.replace(
        new,
        members=carried + fresh,
        learners=learners + new.learners,
        learned=columns + (tuple(range(classes)),) * len(new.learners),
    )
