"""Ensembles of the same rounds, held against each other run by run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from _reproduction.studies import Points, by_sweep, doubt_of, worded
from _seeds import Part, folders, over_runs, plan_of, pooled
from dynsnap.study import FRESH, Row, read_sweeps, read_table

Rows = Mapping[str, Row]
"""By metric."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What two ensembles differ by, in points.

    Attributes:
        value: The difference.
        doubt: What it has to exceed to be clear.
        n: How many replicates it is of.
        over: What the doubt is over, as pages tell it; empty for one replicate, which has none.
    """

    value: float
    doubt: float
    n: int
    over: str

    @property
    def word(self) -> str:
        return worded(self.value, self.doubt)

    @property
    def bounds(self) -> str:
        """Its interval; one replicate has none."""
        low, high = self.value - self.doubt, self.value + self.doubt
        return f"{low:+.2f} to {high:+.2f}" if self.over else ""

    def __str__(self) -> str:
        about = f"{self.bounds} over {self.over}" if self.over else f"n = {self.n}"
        return f"{self.value:+.2f} ({about}, {self.word})"


def gap(sides: Sequence[tuple[Part, Part]]) -> Gap:
    """The difference of two ensembles, by the seeds that have both.

    A run's rounds serve both ensembles, and good rounds make both better: so the runs are paired.
    A seed of several replicates stores their mean alone, and cannot be.
    """
    each = [100 * (mine.row.value - other.row.value) for mine, other in sides]
    n = sum(mine.often for mine, _ in sides)
    if n == len(sides) > 1:
        return Gap(*over_runs(each), n=n, over=f"{n} runs")
    one, two = (pooled([both[side] for both in sides]) for side in (0, 1))
    known = n > 1 and None not in (one.spread, two.spread)
    over = f"{n} replicates, not paired" if known else ""
    return Gap(100 * (one.value - two.value), doubt_of(one, two, n), n=n, over=over)


@dataclass(frozen=True, slots=True, eq=False)
class Seed:
    """One seed of a study.

    Attributes:
        folder: Its folder.
        often: How many replicates its sweeps are the mean of.
        sweeps: The rows of each point.
    """

    folder: Path
    often: int
    sweeps: Mapping[str, Points]

    def swept(self, name: str, point: str) -> Rows | None:
        """A point of a sweep."""
        points = self.sweeps.get(name, {})
        return next((rows for (_, at), rows in points.items() if at == point), None)

    def method(self, name: str) -> Rows | None:
        """A method of the study, by average."""
        rows = [
            row
            for row in read_table(self.folder / "table.csv")
            if (row.method, row.combination) == (name, "average")
        ]
        return {row.metric: row for row in rows} or None


def seeds_of(folder: Path) -> tuple[Seed, ...]:
    """The seeds of a study that have sweeps."""
    found = []
    for one in folders(folder):
        if (one / "sweeps.csv").is_file():
            plan = plan_of(one)
            often = 1 if plan is None else plan.repeated.get(FRESH, plan.replicates)
            found.append(Seed(one, often, by_sweep(read_sweeps(one / "sweeps.csv"))))
    return tuple(found)


Side = Callable[[Seed], Rows | None]


def swept(name: str, point: int | str) -> Side:
    """A point of a sweep."""
    return lambda seed: seed.swept(name, str(point))


def method(name: str) -> Side:
    """A method of the study."""
    return lambda seed: seed.method(name)


def difference(seeds: Iterable[Seed], mine: Side, other: Side, metric: str) -> Gap | None:
    """One ensemble minus another, over the seeds that have both; None where none has."""
    sides = []
    for seed in seeds:
        one, two = mine(seed), other(seed)
        if one is not None and two is not None:
            sides.append((Part(one[metric], seed.often), Part(two[metric], seed.often)))
    return gap(sides) if sides else None
