"""Agreement of two generations by their labels, and of each with the truth."""

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Floats, Labels
from dynsnap.metrics._mean import mean, relative
from dynsnap.metrics._ratios import kappa


def consistency(old: Labels, new: Labels, *, weights: AnyArray | None = None) -> float:
    """Share of inputs that two generations label alike, right or wrong.

    The paper's CON. It is symmetric, and 1 exactly when no label changed.

    Example:
        >>> consistency(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 0]))
        0.75
    """
    old, new = _check.labels(old=old, new=new)
    return mean(old == new, weights)


def churn(old: Labels, new: Labels, *, weights: AnyArray | None = None) -> float:
    """Share of inputs whose label changed: one minus the consistency.

    Example:
        >>> churn(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 0]))
        0.25
    """
    old, new = _check.labels(old=old, new=new)
    return mean(old != new, weights)


def accuracy(labels: Labels, *, truth: Labels, weights: AnyArray | None = None) -> float:
    """Share of inputs that one generation labels correctly. The paper's ACC.

    Example:
        >>> accuracy(np.array([0, 1, 2, 2]), truth=np.array([0, 1, 1, 2]))
        0.75
    """
    labels, truth = _check.labels(labels=labels, truth=truth)
    return mean(labels == truth, weights)


def correct_consistency(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> float:
    """Share of inputs that two generations both label correctly.

    The paper's ACC-CON. It never exceeds the accuracy of either generation.

    Example:
        >>> old, new = np.array([0, 1, 2, 2]), np.array([0, 1, 2, 0])
        >>> correct_consistency(old, new, truth=np.array([0, 1, 1, 2]))
        0.5
    """
    old, new, truth = _check.labels(old=old, new=new, truth=truth)
    return mean((old == truth) & (new == truth), weights)


def neutral_churn(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> float:
    """Share of inputs whose label changed from one wrong class to another.

    With what was lost and what was gained it makes up the churn.

    Example:
        >>> old, new = np.array([0, 1, 2, 2]), np.array([0, 1, 0, 0])
        >>> neutral_churn(old, new, truth=np.array([0, 1, 1, 2]))
        0.25
    """
    old, new, truth = _check.labels(old=old, new=new, truth=truth)
    return mean((old != new) & (old != truth) & (new != truth), weights)


def cohen_kappa(old: Labels, new: Labels, *, weights: AnyArray | None = None) -> float:
    """Agreement beyond what the frequencies of the labels give by chance. Cohen's κ.

    1 is full agreement, 0 is chance; NaN when both generations only ever give one and the same
    label, since chance alone then agrees fully.

    Example:
        >>> cohen_kappa(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]))
        0.5
    """
    old, new = _check.labels(old=old, new=new)
    rows = label_shares(np.stack([old, new]), weights)
    return float(kappa(mean(old != new, weights), 1 - (rows[0] * rows[1]).sum()))


def label_shares(labels: AnyArray, weights: AnyArray | None) -> Floats:
    """How often each generation gives each label in use, as (generations, labels in use)."""
    generations, inputs = labels.shape
    known, positions = np.unique(labels, return_inverse=True)
    cells = positions.reshape(labels.shape) + np.arange(generations)[:, None] * len(known)
    each = None if weights is None else np.tile(relative(weights, inputs=inputs), generations)
    counts = np.bincount(cells.ravel(), weights=each, minlength=generations * len(known))
    table = counts.reshape(generations, len(known))
    # Divided by its own sum, not by what the sum should be: a single label then has exactly 1.
    return np.asarray(table / table.sum(axis=1, keepdims=True), dtype=np.float64)
