"""How often the interval of every metric holds the true value, and on which side it misses.

    python benchmarks/coverage.py [--replications 2000] [--resamples 400] [--all]

A population of inputs is made, in which every metric has a known value. Samples are drawn from it,
and each is measured as `dynsnap.compare` measures three generations: the sums of its inputs go
through the same statistics, draws and intervals, many samples at a time. A sample in which a metric
is undefined (0/0) has no interval, and a gate does not judge it; it counts neither way.

Weights are lognormal; "dependent" means that the heavier an input is, the likelier it changes. Of
every metric the table has the coverage in percent for each number of inputs, the lowest over how
often labels change: commonly (20 % of the inputs), rarely (2 %), very rarely (0.2 %). Precision,
recall and F1 are those of the rarest class, 5 % of the inputs. AUROC and average precision are
measured one sample at a time, on `--ranked` samples of each cell; "of a class" is the rarest.
"too low" and "too high" are the largest shares of samples, in any cell, whose interval lies below
the true value and above it. `--all` prints every cell.
"""

if __name__ == "coverage":
    # Other benchmarks have this folder on their path, and numba asks for a package of this name.
    raise ImportError("This is a benchmark, not the package `coverage`.")

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison._readings import estimates, wholes_of
from dynsnap.comparison.intervals import (
    AgreementStatistic,
    BayesianBootstrap,
    ClassStatistic,
    CohenStatistic,
    ConfusionStatistic,
    GenerationStatistic,
    Metrics,
    PairStatistic,
    RankStatistic,
    Sampled,
    Statistic,
    changes,
)
from dynsnap.metrics import catalogue
from dynsnap.metrics._ranking import RankTally
from dynsnap.metrics._tally import Tally
from dynsnap.metrics._tally_layout import BLOCKS, TallyLayout
from dynsnap.predictions import Predictions

CLASSES = 5
POPULATION = 100 * BLOCKS
SIZES = (30, 100, 300, 1000)
FLIPS = {"common": 0.2, "rare": 0.02, "very rare": 0.002}
WEIGHTS = {
    "none": (0.0, 0.0),
    "σ = 1": (1.0, 0.0),
    "σ = 2": (2.0, 0.0),
    "σ = 2, dependent": (2.0, 1.0),
}
OF_A_CLASS = " of a class"
PAIRS = ((0, 1), (0, 2), (1, 2))
_AT_ONCE = 1 << 24  # numbers of rows that are gathered together


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What the tally keeps of every input of a population, before weights.

    Attributes:
        means, gaps, labels: Of each generation.
        pairs: Of each pair: cases and columns.
        ambiguous: Whether not all generations label it alike.
        weights: What it counts for.
        true: Its true class; 1 in that place.
        scores: Of each generation.
    """

    layout: TallyLayout
    means: list[Floats]
    gaps: list[Floats]
    labels: list[Floats]
    pairs: list[Floats]
    ambiguous: Floats
    weights: Floats
    true: Floats
    scores: list[Floats]

    def confusion(self, generation: int) -> list[Floats]:
        """By truth, by label, and where both are the class."""
        return [self.true, self.labels[generation], self.true * self.labels[generation]]


def population(flips: float, sigma: float, dependence: float, *, seed: int = 0) -> Rows:
    """Three generations that change about so many labels; other inputs have the same scores."""
    rng = np.random.default_rng(seed)
    common = flips > 0.1
    heavy = rng.standard_normal(POPULATION)
    true = rng.choice(CLASSES, POPULATION, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    logits = 1.5 * rng.standard_normal((POPULATION, CLASSES))
    logits[np.arange(POPULATION), true] += 3 if common else 5 + 2 * (flips < 0.01)
    generations = [logits]
    for _ in range(2):
        odds = flips / (1 - flips) * np.exp(dependence * heavy)
        touched = rng.random(POPULATION) < odds / (1 + odds)
        moved = logits + 0.5 * common * rng.standard_normal(logits.shape)
        moved[touched] = moved[touched][:, rng.permutation(CLASSES)] if common else -logits[touched]
        generations.append(moved)
    said = []
    for each in generations:
        odds = np.exp(each - each.max(axis=1, keepdims=True))
        said.append(odds / odds.sum(axis=1, keepdims=True))
    return _rows(said, true, np.exp(sigma * heavy))


def _rows(scores: list[Floats], true: AnyArray, weights: Floats) -> Rows:
    layout = TallyLayout(
        rows=BLOCKS,
        classes=CLASSES,
        scored=(True,) * len(scores),
        truth=True,
        pairs=PAIRS,
        top_k=(2,),
        classification=True,
    )
    tallies = []
    for first in range(0, len(true), BLOCKS):
        part = slice(first, first + BLOCKS)
        tally = Tally(layout, compiled=False)  # every row is its own block
        names = [f"c{place}" for place in range(CLASSES)]
        tally.add(
            [
                Predictions(
                    ids=np.arange(BLOCKS), classes=names, scores=each[part], truth=true[part]
                )
                for each in scores
            ],
            start=0,
        )
        tallies.append(tally)
    regular = range(len(scores))

    def gathered(of: list[Floats]) -> Floats:
        return np.concatenate(of)

    return Rows(
        layout=layout,
        means=[gathered([each.generations[g].means for each in tallies]) for g in regular],
        gaps=[gathered([each.generations[g].gaps for each in tallies]) for g in regular],
        labels=[gathered([each.generations[g].labels for each in tallies]) for g in regular],
        pairs=[gathered([each.pair_sums(p) for each in tallies]) for p in range(len(PAIRS))],
        ambiguous=gathered([each.ambiguous for each in tallies]),
        weights=weights,
        true=np.eye(CLASSES)[true],
        scores=scores,
    )


def statistics(rows: Rows) -> Iterator[tuple[str, Statistic, list[Floats]]]:
    """What is measured, and the numbers of each input that it is made of."""
    layout = rows.layout
    cases = [each[:, : len(layout.cases)] for each in rows.pairs]
    for g, when in enumerate(("old", "new")):
        means = GenerationStatistic(layout.generation_columns(g), layout.most_loss(g))
        yield when, means, [rows.means[g], rows.gaps[g]]
        yield when, ConfusionStatistic(), rows.confusion(g)
        rarest = np.stack([each[:, -1] for each in rows.confusion(g)], axis=-1)
        yield f"class, {when}", ClassStatistic(), [rarest]
    yield "pair", PairStatistic(layout.pair_columns(PAIRS[0]), True), [rows.pairs[0]]
    yield "pair", CohenStatistic(True), [cases[0], *rows.labels[:2]]
    ambiguous = np.stack([rows.ambiguous, np.ones(len(rows.ambiguous))], axis=-1)
    agreement = AgreementStatistic(len(PAIRS), True, 10**9)
    yield "all", agreement, [ambiguous, *cases, *rows.labels]


@dataclass(eq=False)
class Held:
    """Of how many samples the interval holds the true value, lies below it, and above it."""

    judged: int = 0
    below: int = 0
    above: int = 0

    def add(self, low: Floats, high: Floats, true: float) -> None:
        """Count some samples; a NaN is one that is not judged."""
        self.judged += int((~np.isnan(low)).sum())
        self.below += int((high < true - 1e-12).sum())
        self.above += int((low > true + 1e-12).sum())

    @property
    def coverage(self) -> float:
        return 1 - (self.below + self.above) / max(self.judged, 1)


def simulate(
    rows: Rows,
    size: int,
    replications: int,
    bootstrap: BayesianBootstrap,
    *,
    weighted: bool,
    blocks: int = BLOCKS,
    ranked: int = 0,
) -> dict[str, Held]:
    """Coverage of every metric in samples of one size, whose sums are kept in so many blocks."""
    rng = np.random.default_rng(size)
    found: dict[str, Held] = {}
    width = max(sum(each.shape[1] for each in parts) for _, _, parts in statistics(rows))
    step = max(1, _AT_ONCE // (max(size, bootstrap.resamples) * width))
    weights = rows.weights if weighted else np.ones(POPULATION)
    truth: dict[str, float] = {}
    older: dict[str, float] = {}
    for kind, statistic, parts in statistics(rows):
        sums = [(weights[:, None] * each).sum(axis=0) for each in parts]
        values = {name: float(value) for name, value in statistic.values(sums).items()}
        (older if kind.endswith("old") else truth).update(values)
    truth |= {f"{name}_change": truth[name] - value for name, value in older.items()}
    truth |= older  # metrics of a generation are those of the old one
    for first in range(0, replications, step):
        chosen = rng.integers(0, POPULATION, (min(step, replications - first), size))
        each = weights[chosen]
        before: list[Sampled] = []
        for kind, statistic, parts in statistics(rows):
            sampled = bootstrap.sampled(
                statistic,
                *(in_blocks(part[chosen] * each[..., None], blocks) for part in parts),
                heaviest=each.max(axis=1),
                inputs=np.full(len(chosen), size),
                order=None,
            )
            if kind.endswith("old"):
                before.append(sampled)
            elif kind.endswith("new"):
                kind, sampled = "change", changes(before.pop(0), sampled)
            of = parts[0][chosen].sum(axis=1) if kind.startswith("class") else None
            made = _intervals(bootstrap, sampled, kind, size, weighted, of)
            for name, (low, high) in made.items():
                if name != "accuracy_change" or kind == "pair":
                    found.setdefault(name, Held()).add(low, high, truth[name])
    return found | _ranked(rows, size, min(ranked, replications), bootstrap, weights)


def _ranked(
    rows: Rows, size: int, replications: int, bootstrap: BayesianBootstrap, weights: Floats
) -> dict[str, Held]:
    """The same of AUROC and average precision: over all classes; and of the rarest class."""
    rng = np.random.default_rng(size)
    found: dict[str, Held] = {}
    if not replications:
        return found
    every = _ranks(rows, np.arange(POPULATION), weights, BayesianBootstrap(resamples=1))
    truth = {name + of: float(value[0]) for of, one in every for name, value in one.values.items()}
    for _ in range(replications):
        chosen = rng.integers(0, POPULATION, size)
        for of, sampled in _ranks(rows, chosen, weights[chosen], bootstrap):
            for name in sampled.values:
                low, high = bootstrap.interval(sampled, name)
                found.setdefault(name + of, Held()).add(low, high, truth[name + of])
    return found


def _ranks(
    rows: Rows, chosen: AnyArray, weights: Floats, bootstrap: BayesianBootstrap
) -> Iterator[tuple[str, Sampled]]:
    """AUROC and average precision of the old generation in one sample, and how they change."""
    size = len(chosen)
    tally = RankTally(size, CLASSES, min(size, BLOCKS), size <= BLOCKS, (True, True))
    true = rows.true[chosen].argmax(axis=1)
    scores = [each[chosen] for each in rows.scores[:2]]
    tally.add(0, np.arange(size, dtype=np.uint64), true, weights, scores)
    heaviest = float(weights.max())
    one = {"heaviest": np.array([heaviest]), "inputs": np.array([size]), "order": None}
    sides = [tally.generation(g, heaviest) for g in range(2)]
    rarest = np.array([CLASSES - 1])
    for of, classes in (("", None), (OF_A_CLASS, rarest)):
        old, new = (
            bootstrap.sampled(
                RankStatistic(ranks, heaviest, classes),
                (ranks.sums if classes is None else ranks.sums[:, classes]).reshape(
                    1, len(ranks.sums), -1
                ),
                **one,
            )
            for ranks in sides
        )
        yield of, old
        yield of, changes(old, new)


def in_blocks(numbers: Floats, blocks: int) -> Floats:
    """Numbers of every input, (samples, inputs, columns), as sums by block."""
    samples, size, columns = numbers.shape
    if size <= blocks:
        return numbers
    room = np.zeros((samples, -(-size // blocks) * blocks, columns))
    room[:, :size] = numbers
    return room.reshape(samples, -1, blocks, columns).sum(axis=1)


def _intervals(
    bootstrap: BayesianBootstrap,
    sampled: Sampled,
    kind: str,
    size: int,
    weighted: bool,
    of: Floats | None,
) -> dict[str, tuple[Floats, Floats]]:
    groups = len(next(iter(sampled.values.values())))
    cases = np.full((groups, 1), size)
    if kind == "pair" and "kept" in sampled.values:
        cases = _cases(sampled.values, size)
    wholes = wholes_of(sampled.values, cases, weighted=weighted)
    if of is not None and not weighted:  # the rarest class: shares of its inputs, and of its labels
        wholes = {"precision": np.rint(of[:, 1]), "recall": np.rint(of[:, 0])}
    made = estimates(bootstrap, sampled, wholes)
    return {
        name: tuple(
            np.array([np.nan if end is None else end for end in ends])
            for ends in zip(*((one[name].low, one[name].high) for one in made), strict=True)
        )
        for name in sampled.values
    }


def _cases(values: Metrics, size: int) -> AnyArray:
    """How many inputs are of each case; only asked for where nothing is weighted."""
    kept, gained, lost, never = (values[name] for name in ("kept", "gained", "lost", "never"))
    other = values["neutral_churn"]
    return np.rint(np.stack([kept, gained, lost, never - other, other], axis=1) * size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=2000, help="samples of each cell")
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--weights", nargs="+", default=list(WEIGHTS), choices=list(WEIGHTS))
    parser.add_argument("--flips", nargs="+", default=list(FLIPS), choices=list(FLIPS))
    parser.add_argument("--ranked", type=int, default=500, help="samples of AUROC in each cell")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="that the sums are kept in")
    parser.add_argument("--all", action="store_true", help="print every cell")
    options = parser.parse_args()
    started = time.perf_counter()
    bootstrap = BayesianBootstrap(confidence=options.confidence, resamples=options.resamples)
    cells: dict[tuple[str, str, int], dict[str, Held]] = {}
    for weights in options.weights:
        for flips in options.flips:
            rows = population(FLIPS[flips], *WEIGHTS[weights])
            for size in options.sizes:
                cells[flips, weights, size] = simulate(
                    rows,
                    size,
                    options.replications,
                    bootstrap,
                    weighted=weights != "none",
                    blocks=options.blocks,
                    ranked=options.ranked,
                )
                print(f"{weights}, {flips}, {size}", file=sys.stderr, flush=True)
    print(
        f"{options.replications:,} samples a cell, {options.resamples:,} resamples, "
        f"nominal {options.confidence:.0%}, {time.perf_counter() - started:.0f} s.\n"
    )
    measured = next(iter(cells.values()))
    wanted = [each for name in catalogue for each in (name, name + OF_A_CLASS)]
    metrics = [name for name in wanted if name in measured]
    if options.all:
        _print_cells(cells, metrics)
    _print_table(cells, metrics, options)


def _print_cells(cells: dict[tuple[str, str, int], dict[str, Held]], metrics: list[str]) -> None:
    print("| metric | flips | weights | inputs | judged | coverage | too low | too high |")
    print("|---|---|---|---|---|---|---|---|")
    for name in metrics:
        for (flips, weights, size), found in cells.items():
            held = found[name]
            judged = max(held.judged, 1)
            print(
                f"| {name} | {flips} | {weights} | {size} | {held.judged} | {held.coverage:.3f} | "
                f"{held.below / judged:.3f} | {held.above / judged:.3f} |"
            )
    print()


def _print_table(
    cells: dict[tuple[str, str, int], dict[str, Held]],
    metrics: list[str],
    options: argparse.Namespace,
) -> None:
    sizes = " · ".join(f"{size:,}" for size in options.sizes)
    print(f"| weights | {' | '.join(options.weights)} | too low | too high |")
    print("|---|" + "---|" * (len(options.weights) + 2))
    print(f"| *inputs* | {' | '.join(f'*{sizes}*' for _ in options.weights)} | | |")
    for name in metrics:
        line = []
        for weights in options.weights:
            lowest = []
            for size in options.sizes:
                held = [cells[flips, weights, size][name] for flips in options.flips]
                shown = [each.coverage for each in held if each.judged]
                lowest.append(f"{100 * min(shown):.1f}" if shown else "–")
            line.append(" · ".join(lowest))
        every = [found[name] for found in cells.values() if found[name].judged]
        line.append(f"{100 * max(each.below / each.judged for each in every):.1f}")
        line.append(f"{100 * max(each.above / each.judged for each in every):.1f}")
        print(f"| `{name}` | {' | '.join(line)} |")


if __name__ == "__main__":
    main()
