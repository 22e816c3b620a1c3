"""The mean over inputs, plain or weighted: the one place that knows about weights."""

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Floats
from dynsnap.errors import InputError


def mean(values: AnyArray, weights: AnyArray | None) -> float:
    """The mean of one value per input."""
    if weights is None:
        return float(np.mean(values, dtype=np.float64))
    each = relative(weights, inputs=len(values))
    # Summed in the same order above and below: the mean of ones is exactly 1.
    return float((each * values).sum() / each.sum())


def relative(weights: AnyArray | None, *, inputs: int) -> Floats:
    """What each input counts for, relative to the one that counts most."""
    if weights is None:
        return np.ones(inputs)
    found = np.asarray(weights)
    if found.shape != (inputs,):
        raise InputError(
            f"`weights` must hold one number for each of {inputs} inputs, got shape {found.shape}."
        )
    _check.finite(weights=found)
    largest = float(found.max())
    if found.min() < 0 or largest == 0:
        raise InputError("`weights` must not be negative, and at least one must be above 0.")
    return np.asarray(found / largest, dtype=np.float64)  # a sum of huge weights would overflow
