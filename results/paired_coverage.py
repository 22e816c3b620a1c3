"""How often the intervals of docs/evidence.md hold the true difference: on simulated studies.

python results/paired_coverage.py                # writes results/paired_coverage.json, in minutes
python results/paired_coverage.py --studies 200  # a quick look, on the terminal alone

Each world is like a published study: an input is right if the sum of its difficulty, of what the
method makes of it, of the seed's luck on all inputs, of what the run keeps from one generation to
the next, and of chance is above 0. How much each of them matters is taken from the labels. In such
a world the true difference between two methods, over new inputs and new seeds, is known. Many
studies are drawn from it, and measured and judged by the functions that write the page.
"""

import argparse
import functools
import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent
sys.path.insert(0, str(RESULTS))

from _seeds import labels_of  # noqa: E402  it lies beside this file
from _verdicts import of_intervals  # noqa: E402
from dynsnap._types import AnyArray, Floats  # noqa: E402
from dynsnap.predictions import PredictionKey, StudyLabels  # noqa: E402
from dynsnap.study import MethodLabels  # noqa: E402

FOUND = RESULTS / "paired_coverage.json"
# A study, a method and a reference: from hardly any effect of the seed to little else.
LIKE = (
    ("20news", "dynsnap-cyc", "singlebase"),
    ("20news-single", "single", "single-long"),
    ("cifar10-paper", "dynsnap-cyc", "singlebase"),
    ("digits-rolling", "rolling", "dynsnap-cyc"),
    ("digits-single", "single", "singlebase"),
)
REPLICATES = (1, 2, 3, 10)
WORSE = (0.005, 0.01, 0.02)
METRICS = ("consistency", "lost", "accuracy_2", "accuracy_3")
_NORMAL = statistics.NormalDist()
_GRID = np.linspace(-8, 8, 1601)
_DENSITY = np.exp(-(_GRID**2) / 2)
_DENSITY /= _DENSITY.sum()


def _below(at: Floats) -> Floats:
    """The normal distribution."""
    return np.array([0.5 * math.erfc(-one / math.sqrt(2)) for one in at])


def both_right(one: float, other: float, correlation: float) -> float:
    """How often two normal numbers of variance 1 around these means are both above 0."""
    shared, own = math.sqrt(correlation), math.sqrt(1 - correlation)
    sides = [_below((mean + shared * _GRID) / own) for mean in (one, other)]
    return float(_DENSITY @ (sides[0] * sides[1]))


def _correlation(one: float, other: float, right: float) -> float:
    """The correlation with which two are both right so often."""
    low, high = 0.0, 0.999
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if both_right(one, other, middle) < right else (low, middle)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A method of a world; shares are of a variance of 1.

    Attributes:
        mean: The mean over inputs and seeds.
        method: What the method makes of an input, whatever the seed.
        seed: The luck of a seed in one generation, on all inputs.
        run: What a run keeps of an input from generation to generation.
    """

    mean: float
    method: float
    seed: float
    run: float


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Two methods on inputs of a difficulty that they share."""

    inputs: int
    difficulty: float
    sides: tuple[Side, Side]

    def truth(self, metric: str) -> float:
        """The true difference, over all inputs and seeds."""
        mine, other = (self._value(side, metric) for side in self.sides)
        return mine - other

    def _value(self, side: Side, metric: str) -> float:
        right = _NORMAL.cdf(side.mean)
        if metric.startswith("accuracy"):
            return right
        kept = both_right(side.mean, side.mean, self.difficulty + side.method + side.run)
        return right - kept if metric == "lost" else 1 - 2 * (right - kept)

    def worse_by(self, gap: float) -> "World":
        """Two methods that are alike but for this: the first is so much less accurate."""
        other = self.sides[1]
        mean = _NORMAL.inv_cdf(_NORMAL.cdf(other.mean) - gap)
        return replace(self, sides=(replace(other, mean=mean), other))

    def study(self, replicates: int, rng: np.random.Generator) -> MethodLabels:
        """One study: three generations of both methods, with so many seeds."""

        def drawn(share: float, *shape: int) -> AnyArray:
            return math.sqrt(share) * rng.standard_normal(shape, dtype=np.float32)

        hard = drawn(self.difficulty, self.inputs)
        labels = {}
        for name, side in zip(("method", "reference"), self.sides, strict=True):
            rest = 1 - self.difficulty - side.method - side.seed - side.run
            total = side.mean + hard + drawn(side.method, self.inputs)
            total = total + drawn(side.run, replicates, 1, self.inputs)
            total = total + drawn(side.seed, replicates, 3, 1)
            right = total + drawn(rest, replicates, 3, self.inputs) > 0
            for r in range(replicates):
                for g in range(3):
                    labels[PredictionKey("test", name, "average", g + 1, r)] = right[r, g] + 0
        ids = np.arange(self.inputs)
        return MethodLabels(StudyLabels(ids=ids, truth=np.ones(self.inputs, int), labels=labels))


def world_like(study: str, method: str, reference: str) -> World:
    """A world with the accuracy, the agreement and the spread of a published study."""
    labels = labels_of(RESULTS / study)
    each = [
        np.stack([list(labels.values(name, f"accuracy_{g}").values()) for g in (2, 3)])
        for name in (method, reference)
    ]
    means = [_NORMAL.inv_cdf(float(one.mean())) for one in each]
    between = [
        _correlation(m, m, _of_two_runs(one, one)) for m, one in zip(means, each, strict=True)
    ]
    difficulty = min(_correlation(means[0], means[1], _of_two_runs(each[0], each[1])), *between)
    sides = []
    for mean, same, one in zip(means, between, each, strict=True):
        within = _correlation(mean, mean, float((one[0] & one[1]).mean()))
        luck = float(np.mean([_seed_variance(right) for right in one]))
        seed = max(luck, 0) / _NORMAL.pdf(mean) ** 2
        run = min(max(within - same, 0), 1 - same - seed)
        sides.append(Side(mean=mean, method=same - difficulty, seed=seed, run=run))
    inputs = each[0].shape[2]
    return World(inputs=inputs, difficulty=difficulty, sides=(sides[0], sides[1]))


def _of_two_runs(one: AnyArray, other: AnyArray) -> float:
    """How often two runs with different seeds are both right."""
    pairs = permutations(range(min(one.shape[1], other.shape[1])), 2)
    shares = [float((one[:, a] & other[:, b]).mean()) for a, b in pairs]
    return statistics.mean(shares)


def _seed_variance(right: AnyArray) -> float:
    """The variance of accuracy over seeds, beyond what chance on single inputs makes of it."""
    replicates, inputs = right.shape
    rest = right - right.mean(axis=0) - right.mean(axis=1, keepdims=True) + right.mean()
    chance = float((rest**2).sum()) / ((replicates - 1) * (inputs - 1)) / inputs
    over_seeds = float(right.mean(axis=1).var(ddof=1))
    return over_seeds - chance


def held(world: World, replicates: int, studies: int, *, seed: int = 0) -> dict[str, float]:
    """Of simulated studies, the share whose interval holds the true difference."""
    truth = {metric: world.truth(metric) for metric in METRICS}
    count = Counter[str]()
    for labels in _studies(world, replicates, studies, seed):
        for metric, true in truth.items():
            one = labels.difference("method", "reference", metric)
            assert one is not None
            count[metric] += one.low <= true <= one.high
    return {metric: count[metric] / studies for metric in METRICS}


def judged(world: World, replicates: int, studies: int, *, seed: int = 0) -> dict[str, float]:
    """Of simulated studies, the share with each verdict; and the smallest detectable difference."""
    count = Counter[str]()
    detectable = []
    for labels in _studies(world, replicates, studies, seed):
        lost, *later = (
            labels.difference("method", "reference", metric)
            for metric in ("lost", "accuracy_2", "accuracy_3")
        )
        assert lost is not None
        found = [one for one in later if one is not None]
        count[of_intervals([lost], "lower")] += 1
        count[of_intervals(found, "no harm")] += 1
        detectable.append(max(one.detectable for one in found))
    shares = {said: number / studies for said, number in sorted(count.items())}
    return shares | {"detectable": statistics.median(detectable)}


def _studies(world: World, replicates: int, studies: int, seed: int) -> Iterator[MethodLabels]:
    rng = np.random.default_rng([seed, replicates])
    return (world.study(replicates, rng) for _ in range(studies))


def simulated(studies: int, say: Callable[[str], None]) -> Iterator[dict[str, object]]:
    """Coverage, false verdicts and missed losses in every world, for every number of replicates.

    Verdicts are counted on half as many studies as coverage.
    """
    for names in LIKE:
        world = world_like(*names)
        equal = world.worse_by(0.0)
        for replicates in REPLICATES:
            of = functools.partial(judged, replicates=replicates, studies=studies // 2)
            alike = of(equal)
            unseen = alike["detectable"]
            found = {
                "like": names,
                "world": asdict(world),
                "replicates": replicates,
                "studies": studies,
                "held": held(world, replicates, studies),
                "equal": alike,
                "worse": {str(gap): of(world.worse_by(gap)) for gap in (*WORSE, unseen)},
            }
            say(json.dumps({key: found[key] for key in found if key != "world"}))
            yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, help="that measure coverage; 1,000 unless given")
    asked = parser.parse_args().studies
    found = list(simulated(asked or 1000, functools.partial(print, flush=True)))
    if asked is None:
        FOUND.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
