"""Two rows of scores as probabilities: how much of it moved."""

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Scores
from dynsnap.metrics._mean import mean


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
