"""Predictions over other class names: widened, put in another order, renamed, merged."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from dynsnap._types import Labels, Scores
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._text import check_name, listed, on_one_line, positions_of, shown
from dynsnap.predictions._validate import highest_class


def with_classes(predictions: Predictions, classes: tuple[str, ...]) -> Predictions:
    """The same predictions over other classes, which hold all of its own.

    Scores of new classes are zero. Nothing is copied when the classes are the same.
    """
    if classes == predictions.classes:
        return predictions
    places = positions_of(classes)
    return _moved(predictions, [places[name] for name in predictions.classes], classes)


def check_rename(rename: Mapping[str, str], known: Collection[str], *, where: str) -> None:
    """Raise if a class that is to be renamed does not exist: it may be misspelt."""
    for name in rename:
        if name not in known:
            near = on_one_line(did_you_mean(name, known))
            raise PlanError(f"There is no class {shown(name)} to rename in {where}. {near}")


def renamed(predictions: Predictions, rename: Mapping[str, str]) -> Predictions:
    """The same predictions with some classes called otherwise, all at once.

    Two classes that get one name become one class: their scores are added up, and a note says so.

    Example:
        >>> made = Predictions(ids=[1], classes=["cat", "kitten", "dog"], scores=[[0.3, 0.3, 0.4]])
        >>> merged = renamed(made, {"kitten": "cat"})
        >>> merged.classes, merged.names_of(merged.labels).tolist()
        (('cat', 'dog'), ['cat'])
    """
    if not any(name in rename for name in predictions.classes):
        return predictions
    names = [check_name(rename.get(name, name), kind="class name") for name in predictions.classes]
    classes = tuple(dict.fromkeys(names))
    places = positions_of(classes)
    made = _moved(predictions, [places[name] for name in names], classes)
    if len(classes) == len(names):
        return made
    merged = {
        name: [old for old, new in zip(predictions.classes, names, strict=True) if new == name]
        for name in classes
        if names.count(name) > 1
    }
    notes = [
        f"Renaming made one class {shown(name)} of {listed(old)}; their scores were added up."
        for name, old in merged.items()
    ]
    return changed(made, notes=(*made.notes, *notes))


def _moved(
    predictions: Predictions, places: Sequence[int], classes: tuple[str, ...]
) -> Predictions:
    """Class i becomes class `places[i]` of `classes`."""
    target: Labels = np.array(places, np.int32)
    scores = predictions.scores
    labels = target[predictions.labels]
    if scores is not None:
        moved = _moved_scores(scores, target, len(classes))
        # A label that follows from the scores goes on doing so: ties and merged classes may
        # be decided otherwise now. A label that was decided elsewhere stays as it is.
        orderly = bool((np.diff(target) > 0).all())
        if not orderly and np.array_equal(highest_class(scores), predictions.labels):
            labels = highest_class(moved)
        scores = moved
    truth = None if predictions.truth is None else target[predictions.truth]
    return changed(predictions, classes=classes, labels=labels, scores=scores, truth=truth)


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
