"""The four cases of an input, old to new, the rates that are made of them, and McNemar's test."""

import math
from dataclasses import dataclass

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Labels
from dynsnap.errors import InputError
from dynsnap.metrics._ratios import mean, ratio, relative_negative_flips

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """Shares of the inputs in each of the four cases, old to new. Together they make 1.

    Attributes:
        kept: Right before and right now; the paper's CtoC.
        gained: Wrong before and right now; ItoC, also called the positive flip rate.
        lost: Right before and wrong now; CtoI, also called the negative flip rate. These are the
            ones that destroy trust.
        never: Wrong before and wrong now; ItoI.
    """

    kept: float
    gained: float
    lost: float
    never: float

    @property
    def composite(self) -> float:
        """Kept plus gained minus lost: the new accuracy less what was lost. The paper's Com."""
        return self.kept + self.gained - self.lost


def transitions(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> Transitions:
    """Shares of the inputs that were kept, gained, lost and never right.

    Example:
        >>> import numpy as np
        >>> old, new = np.array([0, 1, 2, 2]), np.array([0, 0, 1, 0])
        >>> transitions(old, new, truth=np.array([0, 1, 1, 1]))
        Transitions(kept=0.25, gained=0.25, lost=0.25, never=0.25)
    """
    old, new, truth = _check.labels(old=old, new=new, truth=truth)
    before, now = old == truth, new == truth
    return Transitions(
        kept=mean(before & now, weights),
        gained=mean(~before & now, weights),
        lost=mean(before & ~now, weights),
        never=mean(~before & ~now, weights),
    )


def negative_flip_rate(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> float:
    """Share of inputs that were right and are wrong now: `lost`, under its usual name (NFR).

    Example:
        >>> import numpy as np
        >>> negative_flip_rate(np.array([0, 1]), np.array([0, 0]), truth=np.array([0, 1]))
        0.5
    """
    return transitions(old, new, truth=truth, weights=weights).lost


def positive_flip_rate(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> float:
    """Share of inputs that were wrong and are right now: `gained`, under its usual name (PFR).

    Example:
        >>> import numpy as np
        >>> positive_flip_rate(np.array([0, 0]), np.array([0, 1]), truth=np.array([0, 1]))
        0.5
    """
    return transitions(old, new, truth=truth, weights=weights).gained


def relative_negative_flip_rate(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> float:
    """Lost, relative to ACC_old · (1 − ACC_new), what two unrelated models would lose.

    NaN when the old generation was never right or the new one never wrong: nothing can be lost.

    Example:
        >>> import numpy as np
        >>> old, new = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0])
        >>> relative_negative_flip_rate(old, new, truth=np.zeros(4, int))
        1.3333333333333333
    """
    four = transitions(old, new, truth=truth, weights=weights)
    return float(relative_negative_flips(four.lost, four.kept + four.lost, four.lost + four.never))


def backward_trust_compatibility(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> float:
    """Of the inputs that were right before, the share that is right now (BTC).

    NaN when nothing was right before.

    Example:
        >>> import numpy as np
        >>> old, new = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0])
        >>> round(backward_trust_compatibility(old, new, truth=np.zeros(4, int)), 3)
        0.667
    """
    four = transitions(old, new, truth=truth, weights=weights)
    return float(ratio(four.kept, four.kept + four.lost))


def backward_error_compatibility(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> float:
    """Of the inputs that are wrong now, the share that was wrong before (BEC).

    NaN when nothing is wrong now.

    Example:
        >>> import numpy as np
        >>> old, new = np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0])
        >>> backward_error_compatibility(old, new, truth=np.zeros(4, int))
        0.5
    """
    four = transitions(old, new, truth=truth, weights=weights)
    return float(ratio(four.never, four.lost + four.never))


def win_loss_ratio(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> float:
    """Inputs gained for each input lost.

    Infinite when something was gained and nothing lost; NaN when nothing was gained or lost.

    Example:
        >>> import numpy as np
        >>> old, new = np.array([1, 1, 0, 0]), np.array([0, 0, 1, 0])
        >>> win_loss_ratio(old, new, truth=np.zeros(4, int))
        2.0
    """
    four = transitions(old, new, truth=truth, weights=weights)
    return float(ratio(four.gained, four.lost))
