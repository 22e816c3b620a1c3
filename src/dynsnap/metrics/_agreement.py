"""Agreement of generations by their labels or their top k classes, and of each with the truth."""

import itertools

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Flags, Floats, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.metrics._ratios import alpha, kappa, mean, relative


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


def fleiss_kappa(labels: Labels, *, weights: AnyArray | None = None) -> float:
    """Agreement of all generations beyond what the pooled label frequencies give by chance.

    `labels` has the shape (generations, inputs). 1 is full agreement, 0 is chance; NaN when only
    one label is in use.

    Example:
        >>> round(fleiss_kappa(np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]])), 3)
        0.657
    """
    labels = _generations(labels)
    return float(kappa(*_observed_and_expected(labels, weights)))


def krippendorff_alpha(labels: Labels, *, weights: AnyArray | None = None) -> float:
    """Krippendorff's α for nominal labels: Fleiss' κ, corrected for few inputs.

    `labels` has the shape (generations, inputs). NaN when only one label is in use. With weights,
    the correction still goes by the number of inputs.

    Example:
        >>> round(krippendorff_alpha(np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]])), 3)
        0.686
    """
    labels = _generations(labels)
    return float(alpha(*_observed_and_expected(labels, weights), values=labels.size))


def ambiguity(labels: Labels, *, weights: AnyArray | None = None) -> float:
    """Share of inputs that not all generations label alike.

    `labels` has the shape (generations, inputs).

    Example:
        >>> ambiguity(np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]]))
        0.25
    """
    labels = _generations(labels)
    return mean((labels != labels[0]).any(axis=0), weights)


def discrepancy(labels: Labels, *, weights: AnyArray | None = None) -> float:
    """The largest churn between any two generations.

    `labels` has the shape (generations, inputs).

    Example:
        >>> discrepancy(np.array([[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 0, 1]]))
        0.5
    """
    pairs = itertools.combinations(_generations(labels), 2)
    return max(churn(old, new, weights=weights) for old, new in pairs)


def _observed_and_expected(labels: AnyArray, weights: AnyArray | None) -> tuple[float, float]:
    """The share of pairs that disagree, and that which the pooled frequencies give by chance."""
    pairs = itertools.combinations(labels, 2)
    observed = float(np.mean([churn(old, new, weights=weights) for old, new in pairs]))
    pooled = label_shares(labels, weights).mean(axis=0)
    return observed, 1 - float((pooled**2).sum())


def _generations(labels: AnyArray) -> AnyArray:
    found = np.asarray(labels)
    if found.ndim != 2 or len(found) < 2:
        raise InputError(
            "`labels` must have the shape (generations, inputs), with at least two generations, "
            f"got {found.shape}."
        )
    _check.labels(labels=found.ravel())
    return found


def majority_classes(rows: AnyArray, *, share: float = 0.9) -> Flags:
    """Which classes are majority classes: the most frequent ones, which cover a share of all rows.

    All others that have rows are minority classes. Equally frequent classes are alike, so balanced
    data has no minority.

    Args:
        rows: How many rows each class has.
        share: What majority classes cover together, at least.

    Example:
        >>> majority_classes(np.array([60, 28, 8, 4, 0])).tolist()
        [True, True, True, False, False]
        >>> majority_classes(np.array([50, 50, 50, 50])).tolist()
        [True, True, True, True]
    """
    rows = np.asarray(rows)
    if not rows.any():
        return np.zeros(len(rows), dtype=bool)
    falling = -np.sort(-rows, kind="stable")
    before = np.cumsum(falling) - falling
    needed = falling[before < share * rows.sum()]
    return np.asarray((rows >= needed[-1]) & (rows > 0))


def top_k_consistency(
    old_scores: Scores, new_scores: Scores, *, k: int, weights: AnyArray | None = None
) -> float:
    """Share of inputs whose k highest classes, old and new, have at least one in common.

    The paper's CCON-K, with ranks 1 to k, so that k = 1 is the consistency. Among equal scores
    the lower class index ranks first. It is 1 whatever the scores when 2k exceeds the classes.

    Example:
        >>> old = np.array([[0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1]])
        >>> new = np.array([[0.3, 0.4, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
        >>> top_k_consistency(old, new, k=2)
        0.5
    """
    old_scores, new_scores = _check.scores(old_scores=old_scores, new_scores=new_scores)
    common = _top(old_scores, k) & _top(new_scores, k)
    return mean(np.any(common, axis=1), weights)


def top_k_accuracy(
    scores: Scores, *, truth: Labels, k: int, weights: AnyArray | None = None
) -> float:
    """Share of inputs whose true class is among the k highest scores. The paper's CACC-K.

    Among equal scores the lower class index ranks first.

    Example:
        >>> scores = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
        >>> top_k_accuracy(scores, truth=np.array([1, 0]), k=2)
        0.5
    """
    (scores,) = _check.scores(scores=scores)
    inputs, classes = scores.shape
    truth = _check.truth(truth, inputs=inputs, classes=classes)
    return mean(_top(scores, k)[np.arange(inputs), truth], weights)


def _top(scores: AnyArray, k: int) -> Flags:
    """Which classes are among the k highest of their row."""
    classes = scores.shape[1]
    if k not in range(1, classes + 1):
        raise InputError(f"`k` must be a whole number from 1 to the {classes} classes, got {k}.")
    # Reversed, a stable sort puts the lower of two equal classes last, that is, first in rank.
    ranked = classes - 1 - np.argsort(scores[:, ::-1], axis=1, kind="stable")[:, ::-1]
    top: Flags = np.zeros(scores.shape, dtype=np.bool_)
    np.put_along_axis(top, ranked[:, :k], True, axis=1)
    return top
