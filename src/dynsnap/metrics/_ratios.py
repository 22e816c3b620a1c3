"""Metrics that are ratios of shares, from the shares: for one pair, or for many resamples at once.

The tally and the metrics on labels both end here, so a ratio and its rule for 0/0 are written once.
A share of nothing is NaN: it says neither good nor bad, and no rule of a gate can pass on it.
"""

import numpy as np
import numpy.typing as npt

from dynsnap._types import Floats


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
