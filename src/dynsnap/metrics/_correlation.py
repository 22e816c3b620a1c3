"""Two rows of scores as directions: Pearson's correlation and the cosine, averaged over inputs."""

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Floats, Scores
from dynsnap.metrics._mean import mean


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
