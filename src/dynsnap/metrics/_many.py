"""Agreement of all generations at once."""

import itertools

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Labels
from dynsnap.errors import InputError
from dynsnap.metrics._agreement import churn, label_shares
from dynsnap.metrics._mean import mean
from dynsnap.metrics._ratios import alpha, kappa


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
