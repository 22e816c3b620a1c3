"""The exact interval of a share of inputs that all count the same."""

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison.intervals._beta import beta_quantile


def clopper_pearson(
    cases: AnyArray, inputs: AnyArray, *, confidence: float
) -> tuple[Floats, Floats]:
    """Both ends of the exact binomial interval; from 0 to 1 of no inputs.

    Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934). Each end errs in at most half of the share that `confidence`
    leaves, whatever the share is and however few inputs there are; and one case more never lowers
    either. Wilson's interval, which is shorter, errs in 16 % where cases are rare.

    Args:
        cases: How many inputs are cases.
        inputs: Of how many.
        confidence: The level.

    Example:
        >>> low, high = clopper_pearson(np.array([0, 3]), np.array([30, 30]), confidence=0.95)
        >>> low.round(4).tolist(), high.round(4).tolist()
        ([0.0, 0.0211], [0.1157, 0.2653])
    """
    tail = (1 - confidence) / 2
    some, others = np.asarray(cases, np.float64), np.asarray(inputs - cases, np.float64)
    low, high = np.zeros(some.shape), np.ones(some.shape)
    any_case, any_other = some > 0, others > 0
    low[any_case] = beta_quantile(tail, some[any_case], others[any_case] + 1)
    high[any_other] = beta_quantile(1 - tail, some[any_other] + 1, others[any_other])
    return low, high
