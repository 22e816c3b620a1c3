"""How often the intervals of tasks hold the true value: numbers, sets, rankings, graded answers.

    python benchmarks/task_coverage.py [--replications 1000] [--resamples 400] [--sizes 100 1000]

A population of inputs is made for each task, in which every metric has a known value. Samples are
drawn from it, and each is measured by `dynsnap.compare`. Of every metric the table has the coverage
in percent of its intervals at 0.95 confidence for each number of inputs, the lowest over the
populations of the task, and the population in which it is lowest. A sample in which a metric is
undefined (0/0) has no interval and counts neither way. Coverage of "at least 93" is what a gate
may rely on; a metric below it is marked.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import dynsnap
from dynsnap._types import AnyArray, Floats
from dynsnap.predictions import Predictions
from dynsnap.predictions._predictions import trusted
from dynsnap.predictions.tasks import Graded, MultiLabel, Ranking, Regression, Task

POPULATION = 50_000
LEAST = 0.93
LABELS = tuple("abcde")


@dataclass(frozen=True, kw_only=True)
class Population:
    """Two generations of many inputs."""

    task: Task
    name: str
    old: AnyArray
    new: AnyArray
    truth: AnyArray | None = None
    weights: Floats | None = None
    classes: tuple[str, ...] = ()

    def sample(self, rows: AnyArray) -> tuple[Predictions, Predictions]:
        """Both generations of some inputs, which may be the same more than once."""
        return tuple(  # type: ignore[return-value]
            trusted(
                id_column=pa.array(np.arange(len(rows))),
                classes=self.classes,
                labels=np.zeros(len(rows), np.int32),
                truth=None if self.truth is None else self.truth[rows],
                weights=None if self.weights is None else self.weights[rows],
                task=self.task,
                values=each[rows],
            )
            for each in (self.old, self.new)
        )


def numbers(name: str, errors: Callable[[np.random.Generator], Floats], sigma: float) -> Population:
    """Predictions of a number, both off the truth by errors of some kind."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=POPULATION)
    old = truth + errors(rng)
    new = np.where(rng.random(POPULATION) < 0.5, old + 0.5 * errors(rng), truth + errors(rng))
    weights = np.exp(sigma * rng.normal(size=POPULATION)) if sigma else None
    return Population(
        task=Regression(tolerance=0.5),
        name=name,
        old=old[:, None],
        new=new[:, None],
        truth=truth,
        weights=weights,
    )


def sets(task: Task, name: str, flips: float) -> Population:
    """Sets of five labels, of which each is wrong as often."""
    rng = np.random.default_rng(0)
    truth = rng.random((POPULATION, len(LABELS))) < 0.4
    old, new = (truth ^ (rng.random(truth.shape) < flips) for _ in range(2))
    every = [np.sort(np.where(each, np.arange(5), 99), axis=1) for each in (old, new, truth)]
    old, new, truth = (np.where(each == 99, -1, each).astype(np.int32) for each in every)
    if isinstance(task, Ranking):
        old, new = old[:, : task.k], new[:, : task.k]
    return Population(task=task, name=name, old=old, new=new, truth=truth, classes=LABELS)


def grades(name: str, answers: int, sharp: float, *, scores: bool = False) -> Population:
    """Answers that are right with a chance of their input's, a little less often in the new."""
    rng = np.random.default_rng(0)
    chance = rng.beta(sharp, sharp, POPULATION)

    def graded(chance: Floats) -> Floats:
        each = np.repeat(chance[:, None], answers, axis=1)
        if scores:
            return np.round(rng.beta(4 * each + 0.1, 4 * (1 - each) + 0.1), 2)
        return (rng.random(each.shape) < each).astype(float)

    task = Graded(whole=answers == 1 and not scores, repeated=answers > 1)
    return Population(task=task, name=name, old=graded(chance), new=graded(0.95 * chance))


def populations() -> Iterator[Population]:
    """All of them."""
    yield numbers("normal", lambda rng: 0.5 * rng.normal(size=POPULATION), 0)
    yield numbers("exponential", lambda rng: 0.5 * rng.exponential(size=POPULATION), 0)
    yield numbers("t, 5 degrees", lambda rng: 0.5 * rng.standard_t(5, size=POPULATION), 0)
    yield numbers("lognormal", lambda rng: 0.3 * rng.lognormal(size=POPULATION), 0)
    yield numbers("normal, weighted", lambda rng: 0.5 * rng.normal(size=POPULATION), 1.0)
    for flips, name in ((0.1, "common"), (0.005, "rare")):
        yield sets(MultiLabel(), name, flips)
        yield sets(Ranking(k=2), name, flips)
    yield grades("one answer", 1, 0.3)
    yield grades("4 answers", 4, 0.3)
    yield grades("4 answers, noisy", 4, 2.0)
    yield grades("4 scores", 4, 0.5, scores=True)
    yield grades("one score", 1, 0.5, scores=True)


def metrics_of(found: dynsnap.comparison.Comparison) -> dict[str, dynsnap.comparison.Estimate]:
    """Every metric: of the pair, of the newer generation, of the noise floor."""
    pair = found.pairs[0]
    floor = {f"{name} (noise floor)": one for name, one in (pair.noise_floor or {}).items()}
    return {**pair.metrics, **found.generations[-1].metrics, **floor}


def coverage(
    population: Population, size: int, *, replications: int, resamples: int
) -> dict[str, float]:
    """The share of samples whose interval holds the population's value, by metric."""
    true = metrics_of(dynsnap.compare(*population.sample(np.arange(POPULATION)), resamples=40))
    rng = np.random.default_rng(size)
    held: dict[str, list[bool]] = {}
    for replication in range(replications):
        rows = rng.integers(POPULATION, size=size)
        found = dynsnap.compare(*population.sample(rows), resamples=resamples, seed=replication % 7)
        for name, one in metrics_of(found).items():
            if one.low is not None and one.high is not None:
                value = true[name].value
                held.setdefault(name, []).append(one.low - 1e-9 <= value <= one.high + 1e-9)
    return {name: float(np.mean(each)) for name, each in held.items()}


def main() -> None:
    """Print a table for each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000])
    asked = parser.parse_args()
    start = time.perf_counter()
    lowest: dict[tuple[str, str], dict[int, tuple[float, str]]] = {}
    for population in populations():
        for size in asked.sizes:
            found = coverage(
                population, size, replications=asked.replications, resamples=asked.resamples
            )
            worst = min(found, key=lambda name: found[name])
            print(
                f"# {population.task.name}, {population.name}, n = {size}: lowest "
                f"{100 * found[worst]:.1f} ({worst})",
                flush=True,
            )
            for name, share in found.items():
                cell = lowest.setdefault((population.task.name, name), {})
                if size not in cell or share < cell[size][0]:
                    cell[size] = (share, population.name)
    heads = " | ".join(f"n = {size:,} | lowest in" for size in asked.sizes)
    print(f"\n| task | metric | {heads} |\n|---|---|{'---|---|' * len(asked.sizes)}")
    for (task, name), cells in lowest.items():
        said = " | ".join(
            f"{100 * share:.1f}{'' if share >= LEAST else ' (!)'} | {where}"
            for share, where in (cells[size] for size in asked.sizes)
        )
        print(f"| {task} | {name} | {said} |")
    print(f"\n{asked.replications} samples each, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
