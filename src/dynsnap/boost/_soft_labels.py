"""Distillation for learners that take labels and weights: a row for each class it may be of."""

from dataclasses import replace

import numpy as np

from dynsnap import _check
from dynsnap._types import Flags, Floats, Labels, Positions, Scores
from dynsnap.boost._learner import FitTask
from dynsnap.boost._snapshots import StoredLearner, load, predicted
from dynsnap.ensemble import Distillation
from dynsnap.errors import InputError, PlanError

# Of a row's weight: a copy with less is not worth the time that it takes to train on.
_LEAST = 1e-3


def check_distillation(how: Distillation, *, model: str) -> None:
    """Raise PlanError for ways to distil that weights of rows cannot express."""
    if how.temperature != 1:
        raise PlanError(
            f"{model} has no logits to divide by a temperature in training, but `temperature` is "
            f"{how.temperature!r}. Leave it out: that is for torch modules."
        )
    if how.rows == "wrong":
        raise PlanError(
            f"{model} is given the weights of its rows before training, so `distill_rows` cannot "
            'be "wrong", which asks in every step. Use "all" or "right".'
        )


def taught(
    task: FitTask, how: Distillation, teacher: StoredLearner, places: Positions, *, trust: bool
) -> FitTask:
    """A task whose rows are learned by their labels and by what a stored learner predicts for them.

    Args:
        task: The task, with labels alone; its rows may have weights.
        how: The weight of the teacher's scores, and the rows that they are learned on.
        teacher: The learner, which its library has not read yet.
        places: Where each class that it knows is among the task's; -1 for one that is not there.
        trust: Whether to read a learner that cannot be checked.
    """
    known = np.zeros(len(task.classes) + 1, dtype=bool)
    known[places] = True
    rows = np.flatnonzero(known[:-1][task.labels])
    predict, width = load(teacher, trust=trust)
    if width is not None:
        task.check_fits(width)
    said = np.zeros((len(task.labels), len(task.classes) + 1))
    if len(rows):
        said[np.ix_(rows, places)] = predicted(predict, task.inputs[rows], len(places))
    return taught_by_scores(task, how, said, known[:-1])


def taught_by_scores(task: FitTask, how: Distillation, said: Scores, known: Flags) -> FitTask:
    """A task whose rows are learned by their labels and by a teacher's scores for them.

    Args:
        task: The task, with labels alone.
        how: The weight of the scores, and the rows that they are learned on.
        said: The scores, (rows, classes of the task, and perhaps one more for classes that are
            gone); only those of rows of known classes count.
        known: Which classes of the task the teacher knows.
    """
    said = np.where(known[task.labels][:, None], said, 0.0)
    scores = np.where(known, np.maximum(said[:, : len(known)], 0), 0.0)
    total = scores.sum(axis=1, keepdims=True)
    heard = total[:, 0] > 0
    scores[heard] /= total[heard]
    if how.rows == "right":
        heard &= said.argmax(axis=1) == task.labels
    copied, labels, weights = soft_label_rows(task.labels, scores, weight=how.weight, heard=heard)
    if task.weights is not None:
        weights = weights * task.weights[copied]
    return replace(task, inputs=task.inputs[copied], labels=labels, weights=weights)


def soft_label_rows(
    labels: Labels, scores: Scores, *, weight: float, heard: Flags
) -> tuple[Positions, Labels, Floats]:
    """Rows with soft labels as rows with hard labels: a copy of each for every class, weighted.

    A copy weighs as much as its class in weight · scores + (1 − weight) · label. The copies of a
    row together weigh 1. Those of less than a thousandth are left out, except that of the row's
    own label: learners take it that every class has rows.

    Args:
        labels: The label of each row, as a place among the classes.
        scores: The teacher's probabilities, (rows, classes).
        weight: The weight of the scores, from 0 to 1; labels have the rest.
        heard: The rows whose scores count; the others have their labels alone.

    Returns:
        The row that each copy is of, its label, and its weight.

    Example:
        >>> soft_label_rows(np.array([0, 1]), np.array([[0.6, 0.4], [1.0, 0.0]]), weight=0.5,
        ...                 heard=np.array([True, False]))
        (array([0, 0, 1]), array([0, 1, 1]), array([0.8, 0.2, 1. ]))
    """
    if not 0 <= weight <= 1:
        raise PlanError(f"`weight` must be between 0 and 1, got {weight!r}.")
    if scores.ndim != 2 or not len(labels) == len(scores) == len(heard):
        raise InputError(
            f"{len(labels)} labels and {len(heard)} flags do not fit scores of the shape "
            f"{scores.shape}: there must be one of each for every row."
        )
    if heard.any():
        _check.probabilities(scores=scores[heard])
    part = np.where(heard, weight, 0.0)[:, None]
    own = np.arange(scores.shape[1]) == np.asarray(labels)[:, None]
    target = part * np.where(heard[:, None], scores, 0.0) + (1 - part) * own
    kept = (target >= _LEAST) | own
    target = np.where(kept, target, 0.0)
    target /= target.sum(axis=1, keepdims=True)
    rows, classes = np.nonzero(kept)
    return rows, classes, target[rows, classes]
