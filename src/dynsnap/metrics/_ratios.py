"""Means over inputs, plain or weighted, and metrics that are ratios of shares."""

import numpy as np
import numpy.typing as npt

from dynsnap import _check
from dynsnap._types import AnyArray, Floats


def mean(values: AnyArray, weights: AnyArray | None) -> float:
    """The mean of one value per input."""
    if weights is None:
        return float(np.mean(values, dtype=np.float64))
    each = relative(weights, inputs=len(values))
    # Summed in the same order above and below: the mean of ones is exactly 1.
    return float((each * values).sum() / each.sum())


def relative(weights: AnyArray | None, *, inputs: int) -> Floats:
    """What each input counts for, relative to the one that counts most."""
    return np.ones(inputs) if weights is None else _check.weights(weights, of="inputs", size=inputs)


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """`part / whole`; NaN for 0/0, and infinite for something over nothing.

    Example:
        >>> ratio([1.0, 0.0, 1.0], [2.0, 0.0, 0.0])
        array([0.5, nan, inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.true_divide(part, whole, dtype=np.float64)


def relative_negative_flips(
    lost: npt.ArrayLike, right_before: npt.ArrayLike, wrong_now: npt.ArrayLike
) -> Floats:
    """Lost, relative to what two unrelated models would lose.

    `wrong_now` is asked for, not the new accuracy: one minus a rounded share is seldom exactly 0.
    """
    return ratio(lost, np.multiply(right_before, wrong_now))


def kappa(observed: npt.ArrayLike, expected: npt.ArrayLike) -> Floats:
    """Agreement beyond chance, from the observed *dis*agreement and that expected by chance.

    NaN when only one label is in use: chance then leaves nothing to disagree on.
    """
    return np.asarray(1.0 - ratio(observed, expected))


def alpha(observed: npt.ArrayLike, expected: npt.ArrayLike, *, values: int) -> Floats:
    """Krippendorff's alpha, from Fleiss' two disagreements and the number of labels in all."""
    return np.asarray(1.0 - ratio(observed, expected) * ((values - 1) / values))
