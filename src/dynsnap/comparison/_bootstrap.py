"""Intervals by drawing blocks of rows with replacement: no row is copied or looked at again."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, Floats
from dynsnap.comparison._results import Estimate
from dynsnap.errors import PlanError

Metrics: TypeAlias = Mapping[str, Floats]  # by name
Formula: TypeAlias = Callable[..., Metrics]

MOST_RESAMPLES = 100_000  # every draw of every block is in memory: some 3 GB
_AT_ONCE = 1 << 21  # numbers that are resampled together, about 16 MB

# Multiplications that OpenBLAS leaves to one thread, and columns of which these are taken.
_ONE_THREAD = 1 << 19
_ACROSS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Metrics of some groups of inputs, as they are and as resampling makes them.

    Attributes:
        values: Of each metric, (groups,).
        samples: Of each metric, (resamples, groups).
    """

    values: Metrics
    samples: Metrics


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """How intervals are made.

    Attributes:
        confidence: The level of every interval.
        resamples: How many times blocks are drawn.
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

    def sampled(self, formula: Formula, *sums: Floats) -> Sampled:
        """A formula of sums (groups, blocks, columns): of all blocks, and of draws of them."""
        draws = _draws(sums[0].shape[1], self.resamples, self.seed)
        values = formula(*(each.sum(axis=1) for each in sums))
        return Sampled(values, formula(*_resampled(draws, sums)))

    def groups_at_once(self, columns: int) -> int:
        """How many groups may be resampled together, so that memory stays bounded."""
        return max(1, _AT_ONCE // (columns * self.resamples))

    def estimates(
        self, sampled: Sampled, *, wholes: Mapping[str, AnyArray]
    ) -> list[dict[str, Estimate]]:
        """Values with their intervals, for each group.

        Args:
            sampled: The metrics.
            wholes: For metrics that are a share of inputs: of how many, (groups,).
        """
        groups = len(next(iter(sampled.values.values()), ()))
        found: list[dict[str, Estimate]] = [{} for _ in range(groups)]
        for name, values in sampled.values.items():
            low, high = self._bounds(sampled.samples[name])
            if name in wholes:
                low, high = self._widened(values, low, high, wholes[name])
            # What has a floor at zero, as calibration error has, is larger in most resamples.
            low, high = np.minimum(low, values), np.maximum(high, values)
            each = zip(found, values.tolist(), low.tolist(), high.tolist(), strict=True)
            for metrics, value, *ends in each:
                none = any(map(math.isnan, (value, *ends)))
                metrics[name] = Estimate(value) if none else Estimate(value, *ends)
        return found

    def _bounds(self, samples: Floats) -> tuple[Floats, Floats]:
        """The percentiles of each group; NaN where fewer than half of the draws give a value."""
        ordered = np.sort(samples.T, axis=-1)  # NaN comes last
        defined = np.count_nonzero(~np.isnan(ordered), axis=-1)
        tail = (1 - self.confidence) / 2
        # Outwards to the next draw: between a number and infinity there is nothing in between.
        first = np.floor(tail * (defined - 1)).astype(np.intp)
        last = np.ceil((1 - tail) * (defined - 1)).astype(np.intp)
        ends = np.take_along_axis(ordered, np.maximum(np.stack([first, last], -1), 0), -1)
        ends[2 * defined < len(samples)] = np.nan
        return ends[:, 0], ends[:, 1]

    def _widened(
        self, values: Floats, low: Floats, high: Floats, wholes: AnyArray
    ) -> tuple[Floats, Floats]:
        """Resampling gives too little room where few inputs (or all but a few) are cases, and
        none where none is. A share's ends are at least those of Wilson's interval, and those of
        the exact one for none or all; so one case more never lowers the upper end."""
        tail = (1 - self.confidence) / 2
        size = np.maximum(wholes, 1)
        z = NormalDist().inv_cdf(1 - tail)
        centre = (values + z**2 / (2 * size)) / (1 + z**2 / size)
        within = (
            np.sqrt(values * (1 - values) / size + (z / (2 * size)) ** 2) * z / (1 + z**2 / size)
        )
        reach = 1 - tail ** (1 / size)
        low = np.minimum(low, np.where(values == 1, 1 - reach, centre - within))
        high = np.maximum(high, np.where(values == 0, reach, centre + within))
        return np.clip(low, 0, 1), np.clip(high, 0, 1)


def _resampled(draws: Floats, sums: Sequence[Floats]) -> list[Floats]:
    """Sums (groups, blocks, columns) of every draw, as (resamples, groups, columns)."""
    groups, blocks = sums[0].shape[:2]
    flat = [each.transpose(1, 0, 2).reshape(blocks, -1) for each in sums]
    ends = np.cumsum([each.shape[1] for each in flat])[:-1]
    drawn = np.split(_product(draws, np.concatenate(flat, axis=1)), ends, axis=1)
    return [each.reshape(len(draws), groups, -1) for each in drawn]


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
def _draws(blocks: int, resamples: int, seed: int) -> Floats:
    """How often each block is drawn in each resample, as (resamples, blocks)."""
    rng = seeds.generator(seed, "bootstrap", blocks)
    drawn = rng.integers(0, blocks, (resamples, blocks))
    cells = drawn + np.arange(resamples)[:, None] * blocks
    counts = np.bincount(cells.ravel(), minlength=resamples * blocks)
    return counts.reshape(resamples, blocks).astype(np.float64)
