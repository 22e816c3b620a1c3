"""Metrics of two rows of scores: distance, correlation, divergence, calibration."""

import math

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Floats, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.metrics._kernel import brier_scale, surprises
from dynsnap.metrics._ratios import mean, relative


def expected_calibration_error(
    scores: Scores, *, truth: Labels, bins: int = 15, weights: AnyArray | None = None
) -> float:
    """Mean gap between confidence and accuracy, over bins of equal width.

    The confidence of an input is its highest score, and it is right when the class of that score
    (the lowest, among equals) is the true one. Bin b of B holds confidences above b/B and up to
    (b+1)/B; each bin counts with its share of the inputs.

    Example:
        >>> scores = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
        >>> round(expected_calibration_error(scores, truth=np.array([0, 0, 0, 0])), 3)
        0.325
    """
    (scores,) = _check.probabilities(scores=scores)
    inputs, classes = scores.shape
    truth = _check.truth(truth, inputs=inputs, classes=classes)
    if not bins >= 1 or bins % 1:  # NaN fails this too
        raise InputError(f"`bins` must be a whole number of at least 1, got {bins}.")
    confidence = scores.max(axis=1).astype(np.float64)
    right = scores.argmax(axis=1) == truth
    place = np.clip(np.ceil(confidence * bins).astype(np.intp) - 1, 0, bins - 1)
    each = relative(weights, inputs=inputs)
    # A bin's share times the gap of its means is the gap of its sums.
    gaps = np.bincount(place, weights=each * (right - confidence), minlength=bins)
    return float(np.abs(gaps).sum() / each.sum())


def pearson(old_scores: Scores, new_scores: Scores, *, weights: AnyArray | None = None) -> float:
    """Mean over the inputs of Pearson's correlation between the two rows of scores.

    A row whose scores are all equal has no correlation: two such rows count as 1 (they rank the
    classes alike: not at all), one such row counts as 0. For one-hot rows of p ≥ 2 classes the
    mean is (p · CON − 1) / (p − 1).

    Example:
        >>> old = np.array([[0.8, 0.2], [0.6, 0.4], [0.5, 0.5]])
        >>> new = np.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
        >>> round(pearson(old, new), 4)  # 1, -1, and 1 by the rule for constant rows
        0.3333
    """
    old_scores, new_scores = _check.scores(old_scores=old_scores, new_scores=new_scores)
    return mean(_cosines(_centred(old_scores), _centred(new_scores)), weights)


def cosine(old_scores: Scores, new_scores: Scores, *, weights: AnyArray | None = None) -> float:
    """Mean over the inputs of the cosine of the two rows of scores.

    A row of zeros has no direction: two such rows count as 1, one such row counts as 0. For
    one-hot rows the mean is the consistency.

    Example:
        >>> old = np.array([[0.8, 0.2], [0.5, 0.5]])
        >>> new = np.array([[0.8, 0.2], [1.0, 0.0]])
        >>> round(cosine(old, new), 4)
        0.8536
    """
    old_scores, new_scores = _check.scores(old_scores=old_scores, new_scores=new_scores)
    return mean(_cosines(_scaled(old_scores), _scaled(new_scores)), weights)


def _centred(rows: AnyArray) -> Floats:
    exact = rows.astype(np.float64)
    # From the first score, not from zero: a row of equal scores then centres to exact zeros, where
    # the mean of, say, three times 0.1 would leave a rounding error with a direction of its own.
    shifted = _scaled(exact - exact[:, :1])
    return np.asarray(shifted - shifted.mean(axis=1, keepdims=True))


def _scaled(rows: AnyArray) -> Floats:
    """Each row divided by its largest entry: squares of tiny or huge scores keep their digits."""
    exact = rows.astype(np.float64)
    largest = np.abs(exact).max(axis=1, keepdims=True)
    return np.asarray(exact / np.where(largest > 0, largest, 1))


def _cosines(old: Floats, new: Floats) -> Floats:
    lengths = np.linalg.norm(old, axis=1), np.linalg.norm(new, axis=1)
    product = lengths[0] * lengths[1]
    alike = np.clip(np.einsum("ij,ij->i", old, new) / np.where(product > 0, product, 1), -1.0, 1.0)
    return np.where((lengths[0] == 0) & (lengths[1] == 0), 1.0, alike)


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


def log_loss(scores: Scores, *, truth: Labels, weights: AnyArray | None = None) -> float:
    """Mean negative natural logarithm of the score of the true class.

    As in scikit-learn, a score counts as no nearer to 0 or 1 than the rounding error of its type
    (1.2e-7 in single precision, 2.2e-16 in double): one input adds at most 15.9 or 36.0.

    Example:
        >>> round(log_loss(np.array([[0.5, 0.5], [0.1, 0.9]]), truth=np.array([0, 1])), 4)
        0.3993
    """
    (scores,) = _check.probabilities(scores=scores)
    inputs, classes = scores.shape
    truth = _check.truth(truth, inputs=inputs, classes=classes)
    return mean(surprises(scores, truth), weights)


def brier(scores: Scores, *, truth: Labels, weights: AnyArray | None = None) -> float:
    """Mean squared distance of the scores from the true class; half of it with two classes.

    As in scikit-learn: from 0 to 1 with two classes, to 2 with more.

    Example:
        >>> round(brier(np.array([[0.5, 0.5], [0.1, 0.9]]), truth=np.array([0, 1])), 4)
        0.13
    """
    (scores,) = _check.probabilities(scores=scores)
    apart = scores.astype(np.float64) - one_hot(truth, like=scores)
    return mean(np.einsum("ij,ij->i", apart, apart) * brier_scale(scores.shape[1]), weights)


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


def prediction_difference(
    old_scores: Scores, new_scores: Scores, *, weights: AnyArray | None = None
) -> float:
    """Mean total variation: half the sum of the absolute differences of the two rows.

    0 when no score moved, 1 when all of it moved to other classes.

    Example:
        >>> old, new = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.5, 0.5]])
        >>> prediction_difference(old, new)
        0.5
    """
    old_scores, new_scores = _check.probabilities(old_scores=old_scores, new_scores=new_scores)
    moved = np.abs(np.subtract(old_scores, new_scores, dtype=np.float64))
    return mean(moved.sum(axis=1) / 2, weights)


def jensen_shannon(
    old_scores: Scores, new_scores: Scores, *, weights: AnyArray | None = None
) -> float:
    """Mean Jensen-Shannon divergence of the two rows, with logarithms of base 2.

    In bits, so that it lies between 0 (the same rows) and 1 (rows with no class in common). It is
    the divergence, not its square root.

    Example:
        >>> old, new = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.5, 0.5]])
        >>> jensen_shannon(old, new)
        0.5
    """
    old_scores, new_scores = _check.probabilities(old_scores=old_scores, new_scores=new_scores)
    old, new = old_scores.astype(np.float64), new_scores.astype(np.float64)
    middle = (old + new) / 2
    divergence = _relative_entropy(old, middle) + _relative_entropy(new, middle)
    # No class contributes less than nothing; only rounding does.
    return mean(np.maximum(divergence.sum(axis=1) / 2, 0), weights)


def _relative_entropy(rows: AnyArray, middle: AnyArray) -> AnyArray:
    """Each class's share of the relative entropy in bits; 0 log 0 is 0."""
    used = rows > 0
    return np.where(used, rows * np.log2(np.where(used, rows / np.where(used, middle, 1), 1)), 0)
