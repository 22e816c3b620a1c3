"""Predictions over other class names: widened, put in another order, renamed, merged."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynsnap._types import Labels, Scores
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._text import (
    check_name,
    listed,
    on_one_line,
    positions_of,
    refuse_too_many,
    shown,
)
from dynsnap.predictions._validate import highest_class

if TYPE_CHECKING:
    from dynsnap.predictions.tasks import Task


def union_of(
    every: Sequence[tuple[str, ...]], rename: Mapping[str, str], *, task: "Task | None" = None
) -> tuple[str, ...]:
    """All classes of some generations under their new names, those of the first in front."""
    check_rename(rename, {name for each in every for name in each}, where="any generation")
    union = tuple(dict.fromkeys(name for each in every for name in _new_names(each, rename)))
    if task is None or task.per_label:
        refuse_too_many(len(union), where="all generations together")
    return union


def check_rename(rename: Mapping[str, str], known: Collection[str], *, where: str) -> None:
    """Raise if a class that is to be renamed does not exist: it may be misspelt."""
    for name in rename:
        if name not in known:
            near = on_one_line(did_you_mean(name, known))
            raise PlanError(f"There is no class {shown(name)} to rename in {where}. {near}")


def renamed(predictions: Predictions, rename: Mapping[str, str]) -> Predictions:
    """The same predictions with some classes called otherwise, all at once.

    Two classes that get one name become one class: their scores are added up, and a note states it.

    Example:
        >>> made = Predictions(ids=[1], classes=["cat", "kitten", "dog"], scores=[[0.3, 0.3, 0.4]])
        >>> merged = renamed(made, {"kitten": "cat"})
        >>> merged.classes, merged.names_of(merged.labels).tolist()
        (('cat', 'dog'), ['cat'])
    """
    own = predictions.classes
    classes = tuple(dict.fromkeys(_new_names(own, rename)))
    follow = reorders(own, classes, rename) and labels_follow(predictions)
    return with_classes(predictions, classes, rename=rename, follow=follow)


def with_classes(
    predictions: Predictions, classes: tuple[str, ...], *, rename: Mapping[str, str], follow: bool
) -> Predictions:
    """The same predictions over other classes, which hold all of its own under their new names.

    Scores of new classes are zero. Nothing is copied when the classes are the same.

    Args:
        follow: Whether labels are found anew from the scores; see `labels_follow`.
    """
    own = predictions.classes
    names = _new_names(own, rename)
    if names == own == classes:
        return predictions
    target = _targets(names, classes)
    if predictions.task is not None:
        move, truth = predictions.task.moved, predictions.truth
        assert predictions.values is not None
        return changed(
            predictions,
            classes=classes,
            values=move(predictions.values, target),
            truth=None if truth is None else move(truth, target),
        )
    labels = target[predictions.labels]
    scores = predictions.scores
    if scores is not None:
        scores = _moved_scores(scores, target, len(classes))
        labels = highest_class(scores) if follow else labels
    return changed(
        predictions,
        classes=classes,
        labels=labels,
        scores=scores,
        # The last place is for inputs without truth, which have -1.
        truth=None if predictions.truth is None else np.append(target, -1)[predictions.truth],
        notes=(*predictions.notes, *_merging_notes(own, names)),
    )


def reorders(own: tuple[str, ...], classes: tuple[str, ...], rename: Mapping[str, str]) -> bool:
    """Whether some classes change places or become one: ties may be decided otherwise then."""
    return not (np.diff(_targets(_new_names(own, rename), classes)) > 0).all()


def labels_follow(predictions: Predictions) -> bool:
    """Whether every label is the class with the highest score.

    Such labels go on following the scores when classes change. Labels that were decided elsewhere
    stay as they are.
    """
    scores = predictions.scores
    return scores is not None and np.array_equal(highest_class(scores), predictions.labels)


def _new_names(own: tuple[str, ...], rename: Mapping[str, str]) -> tuple[str, ...]:
    if not any(name in rename for name in own):
        return own
    return tuple(check_name(rename.get(name, name), kind="class name") for name in own)


def _targets(names: tuple[str, ...], classes: tuple[str, ...]) -> Labels:
    """Where each of the names stands among the classes."""
    places = positions_of(classes)
    return np.array([places[name] for name in names], np.int32)


def _merging_notes(own: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    merged: dict[str, list[str]] = {}
    for old, new in zip(own, names, strict=True):
        merged.setdefault(new, []).append(old)
    return [
        f"Renaming made one class {shown(name)} of {listed(old)}; their scores were added up."
        for name, old in merged.items()
        if len(old) > 1
    ]


def _moved_scores(scores: Scores, target: Labels, width: int) -> Scores:
    if len(target) == width and (np.diff(target) == 1).all():
        return scores  # only names have changed
    moved = np.zeros((len(scores), width), scores.dtype)
    if len(set(target.tolist())) == len(target):
        moved[:, target] = scores
    else:
        for column, place in enumerate(target):
            moved[:, place] += scores[:, column]
    return moved
