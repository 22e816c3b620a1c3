"""How far apart two rows of scores lie, and how far each lies from the truth."""

import math

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Floats, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.metrics._mean import mean


def distances(old_scores: Scores, new_scores: Scores, *, order: float = 2) -> Floats:
    """The Minkowski distance of the two rows of each input, for any real vectors.

    Example:
        >>> distances(np.array([[3.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 4.0], [1.0, 1.0]]))
        array([5., 0.])
    """
    old_scores, new_scores = _check.scores(old_scores=old_scores, new_scores=new_scores)
    _check_order(order)
    return lengths(np.subtract(old_scores, new_scores, dtype=np.float64), order=order)


def minkowski(
    old_scores: Scores, new_scores: Scores, *, order: float = 2, weights: AnyArray | None = None
) -> float:
    """Mean over the inputs of the Minkowski distance between the two rows of scores.

    The paper's distance; its order is 2. Rows need not sum to one, so that the outputs of a
    regression (one column) can be compared too. `order` may be any number from 1 to infinity.

    Example:
        >>> old, new = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.5, 0.5]])
        >>> minkowski(old, new, order=1)
        1.0
    """
    return mean(distances(old_scores, new_scores, order=order), weights)


def correct_distance(
    old_scores: Scores,
    new_scores: Scores,
    *,
    truth: Labels,
    order: float = 2,
    weights: AnyArray | None = None,
) -> float:
    """Mean distance of the two rows from each other plus that of each from the true class.

    Example:
        >>> old, new = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
        >>> correct_distance(old, new, truth=np.array([0]), order=1)
        4.0
    """
    between = distances(old_scores, new_scores, order=order)
    target = one_hot(truth, like=np.asarray(old_scores))
    return mean(
        between
        + distances(old_scores, target, order=order)
        + distances(new_scores, target, order=order),
        weights,
    )


def correctness(scores: Scores, *, truth: Labels, weights: AnyArray | None = None) -> float:
    """How near the scores are to the truth, from 0 (all on one wrong class) to 1.

    The paper's corr: the mean of (√2 − d) / √2, with d the Euclidean distance to the true class.

    Example:
        >>> correctness(np.array([[1.0, 0.0], [0.5, 0.5]]), truth=np.array([0, 0]))
        0.75
    """
    (scores,) = _check.probabilities(scores=scores)
    target = one_hot(truth, like=scores)
    return mean(1 - distances(scores, target, order=2) / math.sqrt(2), weights)


def one_hot(truth: Labels, *, like: AnyArray) -> Floats:
    """Rows with all weight on the true class, in the shape of the scores."""
    inputs, classes = like.shape
    rows = np.zeros((inputs, classes))
    rows[np.arange(inputs), _check.truth(truth, inputs=inputs, classes=classes)] = 1
    return rows


def lengths(rows: Floats, *, order: float) -> Floats:
    """The norm of each row, over the last axis."""
    size = np.abs(rows)
    if order == 1:
        return np.asarray(size.sum(axis=-1))
    largest = size.max(axis=-1)
    if math.isinf(order):
        return np.asarray(largest)
    # Relative to the largest entry: a high power of a small difference would be 0 on its own.
    size /= np.where(largest > 0, largest, 1)[..., None]
    size **= order
    return np.asarray(largest * size.sum(axis=-1) ** (1 / order))


def _check_order(order: float) -> None:
    if not order >= 1:  # NaN fails this too
        raise InputError(
            f"`order` must be at least 1, got {order}: below 1 it is no distance "
            "(the triangle inequality fails, and the theorems with it)."
        )
