"""The mean over inputs, plain or weighted: the one place that knows about weights."""

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Floats
from dynsnap.errors import InputError


def mean(values: AnyArray, weights: AnyArray | None) -> float:
    """The mean of one value per input."""
    if weights is None:
        return float(np.mean(values, dtype=np.float64))
    return float(shares(weights, inputs=len(values)) @ values)


def shares(weights: AnyArray | None, *, inputs: int) -> Floats:
    """What each input counts for; together 1."""
    if weights is None:
        return np.full(inputs, 1 / inputs)
    found = np.asarray(weights)
    if found.shape != (inputs,):
        raise InputError(
            f"`weights` must hold one number for each of {inputs} inputs, got shape {found.shape}."
        )
    _check.finite(weights=found)
    # Scaled first, so that the sum of huge weights cannot overflow.
    largest = float(found.max())
    if found.min() < 0 or largest == 0:
        raise InputError("`weights` must not be negative, and at least one must be above 0.")
    scaled = found / largest
    return np.asarray(scaled / scaled.sum(), dtype=np.float64)
