"""Intervals by weighing the inputs at random, together with one that was not seen.

In every draw each input (or block of inputs) gets a weight from the exponential distribution: the
Bayesian bootstrap, Rubin, Annals of Statistics 9 (1981). Alone it has no width where all inputs are
alike, as a bootstrap that draws with replacement has none. So one more input is weighed with the
others, one that might have come next: as bad as an input can be for the low end, as good as it can
be for the high end, and as heavy as the heaviest.

The mean of any values in a known range then has Gaffke's bounds, Mathematical Methods of Statistics
14 (2005); see Learned-Miller and Thomas, "A new confidence interval for the mean of a bounded
random variable" (2019). For two values they are Clopper and Pearson's and proved; for others it is
a conjecture, to which simulations have found no exception, that they hold their level however few
inputs there are. `benchmarks/coverage.py` measures it for every metric, with weights and without.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, Floats
from dynsnap.errors import PlanError
from dynsnap.metrics import metric

Metrics: TypeAlias = Mapping[str, Floats]  # by name

MOST_RESAMPLES = 100_000  # every draw of every block is in memory: some 3 GB
_AT_ONCE = 1 << 21  # numbers that are resampled together, about 16 MB

# Multiplications that OpenBLAS leaves to one thread, and columns of which these are taken.
_ONE_THREAD = 1 << 19
_ACROSS = 64


class Ends(NamedTuple):
    """Metrics of every draw, (resamples, groups), with the unseen input at its worst and best."""

    low: Metrics
    high: Metrics


class Statistic(Protocol):
    """Metrics as functions of sums over inputs, and what one more input can do to them."""

    def values(self, sums: Sequence[Floats]) -> Metrics:
        """The metrics of sums (groups, columns)."""

    def ends(self, drawn: Sequence[Floats], extra: Floats, observed: Sequence[Floats]) -> Ends:
        """The metrics of every draw with one more input.

        Args:
            drawn: The sums of every draw, (resamples, groups, columns).
            extra: The weight of the further input in every draw, (resamples, groups).
            observed: The sums as they are, (groups, columns).
        """


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Metrics of some groups of inputs, as they are and as draws make them.

    Attributes:
        values: Of each metric, (groups,).
        ends: Of each metric, at its lowest and highest in every draw; none without draws.
    """

    values: Metrics
    ends: Ends


@dataclass(frozen=True, kw_only=True)
class BayesianBootstrap:
    """How intervals are made.

    Attributes:
        confidence: The level of every interval.
        resamples: How many times the inputs are weighed.
        seed: Names the draws: the same ones for all metrics and pairs, which are therefore paired.
    """

    confidence: float = 0.95
    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise PlanError(f"`confidence` must lie between 0 and 1, got {self.confidence:g}.")
        if not 1 <= self.resamples <= MOST_RESAMPLES:
            raise PlanError(
                f"`resamples` must be between 1 and {MOST_RESAMPLES:,}, got {self.resamples:,}. "
                "Intervals hardly change beyond some thousands."
            )

    @property
    def shortage(self) -> str:
        """Why these draws give no interval of this level; empty where they do."""
        if self._rank:
            return ""
        return (
            f"{self.resamples:,} resamples are too few for a confidence of {self.confidence:g}, "
            f"which takes at least {math.ceil(2 / (1 - self.confidence) - 1e-6) - 1:,}"
        )

    def sampled(
        self,
        statistic: Statistic,
        *sums: Floats,
        heaviest: Floats,
        inputs: AnyArray,
        order: AnyArray | None,
    ) -> Sampled:
        """A statistic of sums (groups, blocks, columns): of all blocks, and of draws of them.

        Args:
            statistic: The metrics.
            sums: What they are made of.
            heaviest: The largest weight of an input in each group, (groups,).
            inputs: How many inputs each group has, (groups,).
            order: Where each input is its own block, the blocks in an order that does not depend
                on that of the inputs.
        """
        observed = [each.sum(axis=1) for each in sums]
        values = statistic.values(observed)
        if self.shortage:
            return Sampled(values, Ends({}, {}))
        blocks = sums[0].shape[1]
        extra, draws = _draws(blocks, self.resamples, self.seed)
        if order is not None and len(order) == blocks:
            sums = tuple(each[:, order] for each in sums)
        ends = statistic.ends(_resampled(draws, sums), extra[:, None] * heaviest, observed)
        few = inputs > blocks
        if few.any():  # blocks of several inputs: the spread is known as well as there are blocks
            wider = np.where(few, self._student(blocks), 1.0)
            ends = Ends(*(_widened(side, values, wider) for side in ends))
        return Sampled(values, ends)

    def groups_at_once(self, columns: int) -> int:
        """How many groups may be resampled together, so that memory stays bounded."""
        return max(1, _AT_ONCE // (columns * self.resamples))

    def interval(
        self, sampled: Sampled, name: str, *, limits: tuple[float, float] | None = None
    ) -> tuple[Floats, Floats]:
        """Both ends of a metric's interval, (groups,); NaN without draws.

        Args:
            sampled: The metric, among others.
            name: Its name.
            limits: What it lies between, where that is not the range of the metric itself.
        """
        values = sampled.values[name]
        if self.shortage:
            return np.full(values.shape, np.nan), np.full(values.shape, np.nan)
        least, most = limits or metric(name).range
        first, last = self._rank - 1, self.resamples - self._rank
        low = np.partition(sampled.ends.low[name].T, first, axis=-1)[:, first]
        high = np.partition(sampled.ends.high[name].T, last, axis=-1)[:, last]
        return np.clip(low, least, most), np.clip(high, least, most)

    @property
    def _rank(self) -> int:
        """Which draw an end is, from outside: beyond the r-th of B lie r of B + 1 further ones."""
        return int((self.resamples + 1) * (1 - self.confidence) / 2 + 1e-9)

    def _student(self, blocks: int) -> float:
        """How much wider than by draws an interval is whose spread comes from so few blocks.

        Student's t beside the normal distribution (Cornish and Fisher's expansion), and weights
        from the exponential distribution understate the variance by (K − 1)/(K + 1).
        """
        z, free = NormalDist().inv_cdf((1 + self.confidence) / 2), blocks - 1
        t = 1 + (z**2 + 1) / (4 * free) + (5 * z**4 + 16 * z**2 + 3) / (96 * free**2)
        return t * math.sqrt((blocks + 1) / free)


def _widened(samples: Metrics, values: Metrics, factor: Floats) -> dict[str, Floats]:
    """Metrics of every draw, so many times as far from their values where these are finite."""
    found = {}
    for name, each in samples.items():
        centre = np.where(np.isfinite(values[name]), values[name], 0)
        stretch = np.where(np.isfinite(values[name]), factor, 1)
        found[name] = centre + stretch * (each - centre)
    return found


def _resampled(draws: Floats, sums: Sequence[Floats]) -> list[Floats]:
    """Sums (groups, blocks, columns) of every draw, as (resamples, groups, columns)."""
    groups, blocks = sums[0].shape[:2]
    # Column by column, so that what is computed with one column runs through memory in one go.
    flat = [each.transpose(1, 2, 0).reshape(blocks, -1) for each in sums]
    ends = np.cumsum([each.shape[1] for each in flat])[:-1]
    drawn = np.split(_product(draws, np.concatenate(flat, axis=1)), ends, axis=1)
    return [each.reshape(len(draws), -1, groups).transpose(0, 2, 1) for each in drawn]


def _product(draws: Floats, sums: Floats) -> Floats:
    """The matrix product, in pieces that BLAS takes on one thread.

    A second thread would wait busily for longer than the whole product takes.
    """
    product = np.empty((len(draws), sums.shape[1]))
    down = max(1, _ONE_THREAD // (_ACROSS * len(sums)))
    for column in range(0, sums.shape[1], _ACROSS):
        across = slice(column, column + _ACROSS)
        for row in range(0, len(draws), down):
            product[row : row + down, across] = draws[row : row + down] @ sums[:, across]
    return product


@lru_cache(maxsize=4)
def _draws(blocks: int, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """The weights of the unseen input, (resamples,), and of each block, (resamples, blocks)."""
    rng = seeds.generator(seed, "bayesian bootstrap", blocks)
    return rng.exponential(size=resamples), rng.exponential(size=(resamples, blocks))
