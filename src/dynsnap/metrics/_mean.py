"""The mean over inputs, plain or weighted: the one place that knows about weights."""

import numpy as np

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
