"""A published study by time, week by week: what each retrain does to the week that follows it.

Everything is computed from published labels, so that a reader can recompute it with numpy.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from _measured import line, with_spread
from dynsnap._types import AnyArray, Floats
from dynsnap.comparison import PairedDifference, difference_of_means, paired_difference
from dynsnap.predictions import read, stored
from dynsnap.study import read_table

FRESH, NEVER, FLOOR = "singlebase", "never-retrain", "noise floor"
# Trained from scratch each time, so that what is deployed does not matter.
FROM_SCRATCH = (FRESH, "every-4", "every-13", NEVER)


@dataclass(frozen=True, eq=False)
class Weeks:
    """Shares of each week's inputs, before and after its retrain: arrays of replicates by weeks.

    Attributes:
        names: The day of each retrain.
        old: Right before the retrain.
        new: Right after it.
        agree: Labelled alike.
        lost: Right before, wrong after.
        gained: Wrong before, right after.
    """

    names: tuple[str, ...]
    old: Floats
    new: Floats
    agree: Floats
    lost: Floats
    gained: Floats

    @property
    def replicates(self) -> int:
        """How often it was repeated."""
        return len(self.old)


class WeeklyStudy:
    """One folder of results.

    Args:
        folder: The folder, with `labels.parquet` and `table.csv`.
    """

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self._labels: dict[str, dict[int, tuple[AnyArray, AnyArray]]] = defaultdict(dict)
        found: dict[tuple[str, int], dict[int, AnyArray]] = defaultdict(dict)
        for key, place in stored(folder).items():
            said = read(place)
            method = FLOOR if key.kind == "twin" else key.method
            found[method, key.replicate][key.generation] = said.labels
            self.truth, self._classes = np.asarray(said.truth), said.classes
            period = said.slices["period"]
        for (method, replicate), sides in sorted(found.items()):
            self._labels[method][replicate] = sides[1], sides[2]
        # A twin, or else the next replicate, has learned from the same rows with another seed.
        after = {replicate: new for replicate, (_, new) in self._labels[FRESH].items()}
        for replicate, new in after.items():
            other = self._labels[FLOOR].get(replicate)
            same = after[(replicate + 1) % len(after)] if other is None else other[1]
            self._labels[FLOOR][replicate] = new, same
        values = [str(value) for value in period.values]
        self.names = tuple(sorted(values))
        self.rows = [np.asarray(period.codes) == values.index(name) for name in self.names]
        rows = read_table(folder / "table.csv")
        self._cost = {row.method: row.cost for row in rows if row.metric == "accuracy"}

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of the study, and the noise floor."""
        return tuple(self._labels)

    @cached_property
    def _weeks(self) -> dict[str, Weeks]:
        return {method: self._measured(method) for method in self.methods}

    def weeks(self, method: str) -> Weeks:
        """A method, week by week."""
        return self._weeks[method]

    def _measured(self, method: str) -> Weeks:
        columns = []
        for old, new in self._labels[method].values():
            before, after = old == self.truth, new == self.truth
            flags = (before, after, old == new, before & ~after, ~before & after)
            columns.append([[float(one[week].mean()) for week in self.rows] for one in flags])
        return Weeks(self.names, *np.array(columns).transpose(1, 0, 2))

    @property
    def constant(self) -> tuple[str, float]:
        """The most frequent class, and how often it is right: the mean over weeks."""
        code, right = self._constant
        return self._classes[code], float(right.mean())

    @cached_property
    def _constant(self) -> tuple[int, Floats]:
        code = int(np.bincount(self.truth).argmax())
        return code, np.array([(self.truth[week] == code).mean() for week in self.rows])

    def cost(self, method: str) -> float:
        """Trainings from scratch (κ) of all generations, the first included."""
        return self._cost[method] * (len(self.names) + 1)

    def minus(
        self, method: str, reference: str, metric: str, *, confidence: float = 0.95
    ) -> PairedDifference:
        """The mean over weeks of a method minus that of a reference, week by week.

        The interval is over weeks and replicates: inputs of one week share their weather, and weeks
        that follow share models and season.
        """
        mine, other = (getattr(self.weeks(name), metric) for name in (method, reference))
        count = min(len(mine), len(other))
        return difference_of_means(
            mine[:count], other[:count], confidence=confidence, lags=self._lags
        )

    def minus_constant(self, method: str) -> PairedDifference:
        """The accuracy of a method minus that of always answering the most frequent class."""
        own = self.weeks(method).new
        return difference_of_means(
            own, np.broadcast_to(self._constant[1], own.shape), lags=self._lags
        )

    def minus_old(self, method: str) -> PairedDifference:
        """After each retrain minus before it, on the week that follows."""
        own = self.weeks(method)
        return difference_of_means(own.new, own.old, lags=self._lags)

    @property
    def _lags(self) -> int:
        """For how many weeks a week may tell: the rule of Newey and West (1994)."""
        return int(4 * (len(self.names) / 100) ** (2 / 9))

    def strongest(self, method: str) -> str:
        """The most accurate of the methods from scratch that cost no more than this one in all.

        It is chosen on the rows that are reported, which favours the reference.
        """
        most = self.cost(method) + 1e-9
        others = [name for name in FROM_SCRATCH if name in self.methods and name != method]
        affordable = [name for name in others if self.cost(name) <= most] or [NEVER]
        return max(affordable, key=lambda name: float(self.weeks(name).new.mean()))

    def below(self, method: str) -> list[str]:
        """The references that a method is clearly less accurate than."""
        references = dict.fromkeys([FRESH, self.strongest(method), NEVER])
        return [
            name
            for name in references
            if name != method and self.minus(method, name, "new").clearly_below
        ]

    def clear_weeks(self, method: str) -> tuple[int, int]:
        """In how many weeks the retrain is clearly better, and clearly worse, than none.

        The interval of a week is over its inputs and the replicates.
        """
        better = worse = 0
        for week in self.rows:
            sides = [
                [one[side][week] == self.truth[week] for one in self._labels[method].values()]
                for side in (1, 0)
            ]
            one = paired_difference(*map(np.array, sides))
            better, worse = better + one.clearly_above, worse + one.clearly_below
        return better, worse


@cache
def weekly_study(folder: Path) -> WeeklyStudy:
    """A folder of results, read once."""
    return WeeklyStudy(folder)


def spread(values: Floats, places: int = 2) -> str:
    """The mean over weeks in percent, with its standard deviation over replicates."""
    each = 100 * values.mean(axis=1)
    return with_spread(each.mean(), each.std(ddof=1) if len(each) > 1 else None, places)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(map(line, lines))
