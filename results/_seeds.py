"""Further seeds of a study: `NAME-2021` beside `NAME` holds more replicates of the same methods."""

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.comparison.intervals import student_quantile
from dynsnap.errors import InputError
from dynsnap.predictions import StudyLabels
from dynsnap.study import (
    MethodLabels,
    Row,
    StudyPlan,
    SweepRow,
    read_study,
    read_sweeps,
    read_table,
)


def folders(folder: Path) -> list[Path]:
    """The folder of a study, and those of its further seeds."""
    return [folder, *sorted(folder.parent.glob(f"{folder.name}-20[0-9][0-9]"))]


def plan_of(folder: Path) -> StudyPlan | None:
    """The study as it was run, with how often each of its methods was repeated."""
    path = folder / "study.toml"
    return read_study(path, stored=True) if path.is_file() else None


def rows_of(folder: Path) -> list[Row]:
    """The table of a study over the replicates of all seeds; nothing if it was not run."""
    return [
        row
        for _, row in _pooled(
            ((row.method, row.combination, row.metric), Part(row, often(row.method)))
            for one, often in _seeds(folder)
            if (one / "table.csv").is_file()
            for row in read_table(one / "table.csv")
        )
    ]


def sweeps_of(folder: Path) -> list[SweepRow]:
    """The sweeps of a study over the replicates of all seeds; nothing if there are none."""
    return [
        SweepRow(sweep=key[0], over=key[1], point=key[2], row=row)
        for key, row in _pooled(
            (
                (one.sweep, one.over, one.point, one.row.metric),
                Part(one.row, often(one.row.method)),
            )
            for path, often in _seeds(folder)
            if (path / "sweeps.csv").is_file()
            for one in read_sweeps(path / "sweeps.csv")
        )
    ]


def times_swept(folder: Path, over: str, point: str, metric: str) -> int:
    """How many replicates of all seeds have this metric of a sweep's point."""
    return sum(
        often(one.row.method)
        for path, often in _seeds(folder)
        if (path / "sweeps.csv").is_file()
        for one in read_sweeps(path / "sweeps.csv")
        if (one.over, one.point, one.row.metric) == (over, point, metric)
    )


def over_runs(each: Sequence[float]) -> tuple[float, float]:
    """The mean of several runs, and half the width of its interval: Student's t, of runs alone."""
    doubt = student_quantile(0.975, len(each) - 1) * statistics.stdev(each) / math.sqrt(len(each))
    return statistics.mean(each), doubt


def labels_of(folder: Path) -> MethodLabels:
    """The labels of a study; those of further seeds are more replicates.

    Raises:
        InputError: A further seed has no labels, or was measured on other inputs: `rows_of` would
            count its replicates, and no difference would.
    """
    first = MethodLabels.read(folder)
    assert first is not None, f"{folder} has no labels"
    test, late = dict(first.test.labels), dict(first.late.labels) if first.late else {}
    for seed in folders(folder)[1:]:
        part = MethodLabels.read(seed)
        if part is None:
            raise InputError(f"{seed.name} has no labels beside its table. Publish them.")
        # By seed and not by place, so that seeds of two studies meet whichever others there are.
        further = 1000 * int(seed.name.rpartition("-")[2])
        for mine, theirs, own in ((test, part.test, first.test), (late, part.late, first.late)):
            if own is None and theirs is None:
                continue
            if own is None or theirs is None or not np.array_equal(own.ids, theirs.ids):
                raise InputError(
                    f"{seed.name} was measured on other inputs than {folder.name}, so it holds no "
                    "further replicates. Give its folder another name."
                )
            codes = _codes(theirs, own)
            mine |= {
                replace(key, replicate=key.replicate + further): codes[said]
                for key, said in theirs.labels.items()
            }
    whole = replace(first.test, labels=test)
    return MethodLabels(whole, replace(first.late, labels=late) if first.late else None)


def _codes(theirs: StudyLabels, own: StudyLabels) -> AnyArray:
    """Their numbers of classes in ours: each study counts them in its own order."""
    codes = np.full(int(max(one.max() for one in [theirs.truth, *theirs.labels.values()])) + 2, -2)
    codes[theirs.truth] = own.truth
    pairs = {*zip(theirs.truth.tolist(), own.truth.tolist(), strict=True)}
    if not len(pairs) == len(np.unique(theirs.truth)) == len(np.unique(own.truth)):
        raise InputError("Two seeds of a study have other true classes for the same inputs.")
    # A class that is no truth here is wrong wherever it is said: a number of its own will do.
    for unknown in np.flatnonzero(codes == -2):
        codes[unknown] = 10_000 + unknown
    codes[-1] = -1
    return codes


def replicates(folder: Path) -> dict[str, int]:
    """How many replicates each method of a study has, all seeds together."""
    found: dict[str, int] = {}
    for one, often in _seeds(folder):
        for method in dict.fromkeys(row.method for row in read_table(one / "table.csv")):
            found[method] = found.get(method, 0) + often(method)
    return found


@dataclass(frozen=True, slots=True)
class Part:
    """A row of one seed, and of how many replicates it is the mean."""

    row: Row
    often: int


def pooled(parts: Sequence[Part]) -> Row:
    """Rows of several seeds as one: mean and standard deviation over all replicates.

    The interval over test inputs is that of one seed alone, so a row of several has none.
    """
    first = parts[0].row
    if len(parts) == 1:
        return first
    often = sum(part.often for part in parts)

    def mean(values: Iterable[float]) -> float:
        return sum(part.often * one for part, one in zip(parts, values, strict=True)) / often

    value = mean(part.row.value for part in parts)
    known = all(part.often == 1 or part.row.spread is not None for part in parts)
    squares = sum(
        (part.often - 1) * (part.row.spread or 0.0) ** 2
        + part.often * (part.row.value - value) ** 2
        for part in parts
    )
    seconds = [part.row.seconds for part in parts if part.row.seconds is not None]
    return replace(
        first,
        value=value,
        low=None,
        high=None,
        cost=mean(part.row.cost for part in parts),
        seconds=mean(seconds) if len(seconds) == len(parts) else None,
        spread=math.sqrt(squares / (often - 1)) if known else None,
    )


def _pooled(rows: Iterable[tuple[tuple[str, ...], Part]]) -> Iterable[tuple[tuple[str, ...], Row]]:
    found: dict[tuple[str, ...], list[Part]] = {}
    for key, part in rows:
        found.setdefault(key, []).append(part)
    return ((key, pooled(parts)) for key, parts in found.items())


def _seeds(folder: Path) -> Iterable[tuple[Path, Callable[[str], int]]]:
    """Every seed's folder, and how often it repeats a method."""
    for one in folders(folder):
        plan = plan_of(one)
        known, usual = ({}, 1) if plan is None else (plan.repeated, plan.replicates)
        yield one, functools.partial(_often, known, usual)


def _often(known: Mapping[str, int], usual: int, method: str) -> int:
    return known.get(method, usual)
