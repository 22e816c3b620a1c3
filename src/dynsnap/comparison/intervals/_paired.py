"""By how much one way of retraining differs from another: over inputs and over replicates.

Both were measured on the same inputs, and replicate r of one stands beside replicate r of the
other. So the difference of every input in every replicate is known, and its mean has two sources
of doubt: other inputs, and other random numbers. The interval covers both.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.errors import InputError

_POWER = 0.8  # the share of repetitions that would show the smallest detectable difference


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """A mean difference between two methods, as fractions.

    Attributes:
        value: The mean over inputs and replicates.
        low: Lower end of its interval.
        high: Upper end.
        detectable: The smallest difference that such data would have shown to be clear four times
            out of five (the minimum detectable effect at a power of 0.8).
        inputs: How many inputs there are.
        replicates: How many replicates. With one, the interval covers inputs alone.
    """

    value: float
    low: float
    high: float
    detectable: float
    inputs: int
    replicates: int

    @property
    def clearly_below(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.high < 0

    @property
    def clearly_above(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.low > 0


def paired_difference(
    values: AnyArray, reference: AnyArray, *, confidence: float = 0.95
) -> PairedDifference:
    """The mean of `values` minus `reference`, with its interval over inputs and replicates.

    The two-way random effects of a crossed design: the variance of the mean is that of the means
    of inputs, plus that of the means of replicates, minus what both contain. The quantile is that
    of Cochran and Cox (1950): Student's t of the inputs and of the replicates, weighted by their
    variances, which keeps its level with two and three replicates. Two further inputs are counted
    on which one replicate gains and one loses (Bonett and Price, 2012), so that methods which agree
    on all inputs have an interval too.

    Args:
        values: What a method has on every input, between 0 and 1, such as whether it is right:
            of shape (replicates, inputs), or (inputs,) of a single replicate.
        reference: The same of the method that it is held against.
        confidence: The coverage of the interval.

    Raises:
        InputError: The shapes differ, there are fewer than two inputs, or a value is not between
            0 and 1.

    Example:
        >>> old = [[1, 1, 0, 1] * 25, [1, 0, 1, 1] * 25]
        >>> new = [[1, 1, 1, 1] * 25, [1, 1, 1, 1] * 25]
        >>> found = paired_difference(new, old)
        >>> found.value, found.clearly_above
        (0.25, True)
    """
    each = _differences(values, reference)
    if not 0 < confidence < 1:
        raise InputError(f"`confidence` must lie between 0 and 1, got {confidence}.")
    further = np.zeros((len(each), 2))
    further[0] = 1, -1
    return _found(each, np.concatenate([each, further], axis=1), confidence)


def difference_of_means(
    values: AnyArray, reference: AnyArray, *, confidence: float = 0.95, lags: int = 0
) -> PairedDifference:
    """As `paired_difference`, of units that are means of many inputs, such as weeks.

    Inputs of one week share their weather, so that weeks are the units: a value is the mean over
    the inputs of a week. Nothing is added to such means.

    Args:
        values: What a method has in every unit, of shape (replicates, units) or (units,).
        reference: The same of the method that it is held against.
        confidence: The coverage of the interval.
        lags: For units in the order of time, how many later ones a unit may be alike to: the
            variance over units is that of Newey and West (1987). It is never made smaller.

    Example:
        >>> found = difference_of_means([[0.6, 0.5, 0.7]], [[0.5, 0.4, 0.5]])
        >>> round(found.value, 4), round(found.low, 4), found.inputs
        (0.1333, -0.0101, 3)
    """
    each = _differences(values, reference)
    if not 0 < confidence < 1:
        raise InputError(f"`confidence` must lie between 0 and 1, got {confidence}.")
    if not 0 <= lags < each.shape[1]:
        raise InputError(f"`lags` must be at least 0 and below the number of units, got {lags}.")
    return _found(each, each, confidence, lags)


def _found(each: Floats, smoothed: Floats, confidence: float, lags: int = 0) -> PairedDifference:
    replicates, inputs = each.shape
    doubt = _doubt(smoothed, lags)
    beyond = doubt.half_width((1 + confidence) / 2)
    centre = float(smoothed.mean())
    value = float(each.mean())
    return PairedDifference(
        value=value,
        low=max(-1.0, min(centre - beyond, value)),
        high=min(1.0, max(centre + beyond, value)),
        detectable=min(1.0, beyond + doubt.half_width(_POWER)),
        inputs=inputs,
        replicates=replicates,
    )


def _differences(values: AnyArray, reference: AnyArray) -> Floats:
    found = [np.atleast_2d(np.asarray(side, float)) for side in (values, reference)]
    mine, other = found
    if mine.shape != other.shape or mine.ndim != 2:
        raise InputError(
            "Both methods need a value for each replicate and each input, in one order: the shapes "
            f"are {mine.shape} and {other.shape}."
        )
    if mine.shape[0] < 1 or mine.shape[1] < 2:
        raise InputError(
            f"A paired difference needs at least two inputs, and {mine.shape[1]} are there."
        )
    for side in found:
        if not ((side >= 0) & (side <= 1)).all():
            raise InputError("Values must lie between 0 and 1, such as whether a label is right.")
    each: Floats = mine - other
    return each


@dataclass(frozen=True, slots=True, kw_only=True)
class _Doubt:
    """What a mean of a crossed design may be off by.

    Attributes:
        variance: The variance of the mean.
        sources: Inputs and, where there are several, replicates: the variance of their means, and
            its degrees of freedom.
    """

    variance: float
    sources: tuple[tuple[float, int], ...]

    def half_width(self, share: float) -> float:
        """The quantile of the mean's error.

        Satterthwaite's degrees of freedom would be many whenever few replicates happen to be alike,
        so that too few intervals of two replicates would hold the truth (decision 18).
        """
        whole = sum(variance for variance, _ in self.sources)
        if not whole:
            return 0.0
        weighted = sum(
            variance * student_quantile(share, freedom) for variance, freedom in self.sources
        )
        return weighted / whole * math.sqrt(self.variance)


def _doubt(each: Floats, lags: int) -> _Doubt:
    replicates, inputs = each.shape
    by_input = float(each.mean(axis=0).var(ddof=1)) / inputs * _serial(each.mean(axis=0), lags)
    if replicates == 1:
        return _Doubt(variance=by_input, sources=((by_input, inputs - 1),))
    by_replicate = float(each.mean(axis=1).var(ddof=1)) / replicates
    rest = each - each.mean(axis=0) - each.mean(axis=1, keepdims=True) + each.mean()
    both = float((rest**2).sum()) / ((replicates - 1) * (inputs - 1)) / each.size
    return _Doubt(
        variance=max(by_input + by_replicate - both, by_input, by_replicate),
        sources=((by_input, inputs - 1), (by_replicate, replicates - 1)),
    )


def _serial(means: Floats, lags: int) -> float:
    """How many times larger the variance of a mean is because units that follow are alike."""
    rest = means - means.mean()
    whole = float(rest @ rest)
    if not whole:
        return 1.0
    alike = [float(rest[lag:] @ rest[:-lag]) / whole for lag in range(1, lags + 1)]
    weighted = [(1 - lag / (lags + 1)) * one for lag, one in enumerate(alike, 1)]
    return max(1.0, 1 + 2 * sum(weighted))


@functools.lru_cache(maxsize=4096)
def student_quantile(share: float, freedom: float) -> float:
    """The value below which this share of Student's t distribution lies.

    Args:
        share: At least 0.5.
        freedom: Degrees of freedom, at least 1.

    Example:
        >>> round(student_quantile(0.975, 2), 4), round(student_quantile(0.975, 1e6), 4)
        (4.3027, 1.96)
    """
    # With t = √ν·tan(angle) the density is that of cos^(ν-1): bounded, and it falls with the angle.
    # So Newton's steps from 0 never go too far.
    whole = math.log(math.pi) / 2 + math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2)
    angle = 0.0
    for _ in range(60):
        at = angle * (_NODES + 1) / 2
        below = 0.5 + float(_density(at, freedom, whole) @ _WEIGHTS) * angle / 2
        step = (share - below) / float(_density(np.array(angle), freedom, whole))
        angle += step
        if step < 1e-12:
            break
    return math.sqrt(freedom) * math.tan(angle)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def _density(angle: Floats, freedom: float, whole: float) -> Floats:
    found: Floats = np.exp((freedom - 1) * np.log(np.cos(angle)) - whole)
    return found
