"""Whether a retrain lost and gained inputs in a way that chance does not explain."""

import math

import numpy as np

from dynsnap import _check
from dynsnap._types import Labels
from dynsnap.errors import InputError

_EXACT_UP_TO = 1_000_000  # inputs lost or gained; beyond, log-gamma itself runs out of digits


def mcnemar(old: Labels, new: Labels, *, truth: Labels) -> float:
    """The p-value of McNemar's test that losing and gaining an input are equally likely.

    Exact and two-sided: twice the smaller tail of a fair coin tossed once per input lost or
    gained, at most 1. Beyond a million such inputs, the normal approximation with a continuity
    correction. It counts inputs, so it takes no weights.

    Example:
        >>> old, new = np.array([0, 0, 0, 0, 0, 1]), np.array([1, 1, 1, 1, 1, 1])
        >>> mcnemar(old, new, truth=np.zeros(6, int))
        0.0625
    """
    old, new, truth = _check.labels(old=old, new=new, truth=truth)
    before, now = old == truth, new == truth
    return mcnemar_of_counts(
        lost=int(np.count_nonzero(before & ~now)), gained=int(np.count_nonzero(~before & now))
    )


def mcnemar_of_counts(*, lost: int, gained: int) -> float:
    """The p-value of McNemar's test from the two counts; 1 when nothing was lost or gained.

    Example:
        >>> mcnemar_of_counts(lost=5, gained=0)
        0.0625
    """
    if lost < 0 or gained < 0:
        raise InputError(f"Counts cannot be negative, got lost={lost} and gained={gained}.")
    flips, fewer = lost + gained, min(lost, gained)
    if flips > _EXACT_UP_TO:
        return math.erfc(max(flips - 2 * fewer - 1, 0) / math.sqrt(2 * flips))
    first = math.lgamma(flips + 1) - math.lgamma(fewer + 1) - math.lgamma(flips - fewer + 1)
    # From C(n, k) down to C(n, 0): each is k / (n − k + 1) times the one before. Beyond so many
    # of them (each 20 standard deviations and more away from the first) they are all 0 here.
    k = np.arange(fewer, max(fewer - 20 * math.isqrt(flips) - 20, 0), -1)
    below = np.cumsum(np.log(k / (flips - k + 1)))
    tail = math.exp(first - flips * math.log(2)) * (1 + float(np.exp(below).sum()))
    return min(1.0, 2 * tail)
