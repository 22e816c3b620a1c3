"""The paper's table: every method and combination, measured from prediction files."""

import csv
import io
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from dynsnap import _files
from dynsnap.comparison import Estimate, InMemory, Settings, compare, compare_blocks
from dynsnap.ensemble import Combination
from dynsnap.predictions import Predictions, align
from dynsnap.study._cells import damaged, needed, number, read_cells, safe, words
from dynsnap.study._predictions import MethodRun

Read = TypeVar("Read")

# Votes are one-hot rows of each member, and their correlations only repeat the consistency.
_NOT_OF_VOTES = ("pearson", "cosine")
_NOT_TABLED = ("accuracy_change",)  # the accuracy of every generation has a row
_TRANSITIONS = ("kept", "gained", "lost", "never", "composite")
_FEW = 4  # generations up to which every pair has rows of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a study's table.

    Attributes:
        metric: A name of the catalogue; "accuracy_1" for the accuracy of generation 1 alone, and so
            on; "lost_1_2" for the transition from generation 1 to generation 2 alone, and so on;
            "late_accuracy" for the accuracy of the last generation on classes that are new in a
            later generation, "seconds" for the training time of one generation, "retrain_cost" for
            the cost (κ) of a generation that is not the first, "members_1" for the number of
            members in generation 1, and so on.
        value: Generation metrics averaged over generations, pair metrics over pairs, replicates
            last. Fractions.
        low: Lower bound of the interval over test inputs, None where there is none.
        high: Its upper bound.
        cost: Trainings from scratch (κ) that one generation takes.
        seconds: The time that these take; None in tables of older versions.
        spread: Standard deviation of the value over replicates, None of a single one.
    """

    method: str
    combination: str
    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    cost: float
    seconds: float | None = None
    spread: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow:
    """One line of a study's sweeps: a point, and a row of the table for it."""

    sweep: str
    over: str
    point: str
    row: Row


def table(runs: Sequence[MethodRun], *, resamples: int) -> Iterator[tuple[int, list[Row]]]:
    """The rows of each replicate, method by method: the replicate's number and its rows.

    Args:
        runs: The series that are complete.
        resamples: How many resamples of the test inputs the intervals come from.
    """
    for replicate in sorted({run.series.replicate for run in runs}):
        found = [run for run in runs if run.series.replicate == replicate]
        methods = [run for run in found if run.series.kind == "method"]
        references = [run for run in found if run.series.kind != "method"]
        blocks = [(run, how) for run in methods for how in run.test]
        # The references of one combination stand together.
        combinations = dict.fromkeys(how for run in references for how in run.test)
        blocks += [(run, how) for how in combinations for run in references]
        for run, how in blocks:
            yield replicate, _block(run, how, resamples)


def sweep_rows(runs: Iterable[MethodRun], *, resamples: int) -> Iterator[SweepRow]:
    """Every point of every sweep, replicates averaged; runs of one point follow each other."""
    for _, found in groupby(runs, key=lambda run: run.series.name):
        replicates = list(found)
        sweep, point = replicates[0].series.sweep, replicates[0].series.point
        assert sweep is not None
        rows = [_block(run, sweep.combination, resamples) for run in replicates]
        for row in averaged(rows):
            yield SweepRow(sweep=sweep.name, over=sweep.over, point=point, row=row)


def averaged(replicates: Sequence[Sequence[Row]]) -> list[Row]:
    """The rows of several replicates as one.

    Bounds are averaged too: all replicates are measured on the same inputs, so their intervals
    move together, and an average of them is as wide as any one.
    """
    together: dict[tuple[str, str, str], list[Row]] = {}
    for rows in replicates:
        for row in rows:
            together.setdefault((row.method, row.combination, row.metric), []).append(row)
    return [
        replace(
            rows[0],
            value=_mean(row.value for row in rows),
            low=_mean(row.low for row in rows),
            high=_mean(row.high for row in rows),
            cost=_mean(row.cost for row in rows),
            seconds=_mean(row.seconds for row in rows),
            spread=_spread([row.value for row in rows]),
        )
        for rows in together.values()
    ]


def accuracy(generation: Predictions, *, resamples: int) -> Estimate:
    """The accuracy of one generation, with its interval.

    It may be on new classes, none of which the generation names: what never learned is right in no
    case, and that is no mistake.
    """
    twice = InMemory(align(generation, generation))
    (compared,) = compare_blocks(
        twice, Settings(resamples=resamples, metrics=(), known_classes=True)
    )
    return compared.generations[0].metrics["accuracy"]


def write_rows(path: Path, rows: Sequence[Row], **more: Sequence[Any]) -> None:
    """Write rows as CSV, with further columns in front; no text in it is a formula."""
    names = [field.name for field in fields(Row)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*more, *names])
    for position, row in enumerate(rows):
        extra = [column[position] for column in more.values()]
        cells = [getattr(row, name) for name in names]
        writer.writerow(map(safe, [*extra, *("" if cell is None else cell for cell in cells)]))
    _files.write_text(path, text.getvalue())


def read_table(path: Path) -> list[Row]:
    """Rows as `write_rows` has written them.

    Raises:
        FileError: The file cannot be read, or holds what no study has measured.
    """
    return _read(path, _row)


def read_sweeps(path: Path) -> list[SweepRow]:
    """Every point of every sweep, from `sweeps.csv`."""
    return _read(
        path,
        lambda cells: SweepRow(
            sweep=cells["sweep"], over=cells["over"], point=cells["point"], row=_row(cells)
        ),
    )


def read_replicates(path: Path) -> dict[str, int]:
    """How many replicates of each method `replicates.csv` has.

    There is no such file where every method has one.
    """
    if not path.is_file():
        return {}
    found = dict.fromkeys(_read(path, lambda cells: (cells["method"], cells["replicate"])))
    return dict(Counter(method for method, _ in found))


def _read(path: Path, read: Callable[[dict[str, str]], Read]) -> list[Read]:
    rows = read_cells(path)
    try:
        return [read(cells) for cells in rows]
    except (KeyError, ValueError) as error:
        missing = isinstance(error, KeyError)
        raise damaged(path, f"it has no column {error}" if missing else str(error)) from error


def _row(cells: dict[str, str]) -> Row:
    method, combination, metric = words(cells)
    return Row(
        method=method,
        combination=combination,
        metric=metric,
        value=needed(cells, "value"),
        low=number(cells, "low"),
        high=number(cells, "high"),
        cost=needed(cells, "cost"),
        # Tables of older versions have neither.
        seconds=number(cells, "seconds"),
        spread=number(cells, "spread"),
    )


def _block(run: MethodRun, how: Combination, resamples: int) -> list[Row]:
    """The rows of a series for one combination."""
    series = run.series
    found = _measured(
        run.predictions(how), how, resamples=resamples, each=run.retrain_cost is not None
    )
    if (late := run.on_new_classes(how)) is not None:
        found["late_accuracy"] = accuracy(late, resamples=resamples)
    if run.retrain_cost is not None:
        found["retrain_cost"] = Estimate(run.retrain_cost)
    for generation, members in enumerate(run.members, 1):
        found[f"members_{generation}"] = Estimate(float(members))
    found["seconds"] = Estimate(run.price.seconds)
    return [
        Row(
            method=series.name,
            combination=how,
            metric=metric,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            cost=run.price.kappa,
            seconds=run.price.seconds,
        )
        for metric, estimate in found.items()
    ]


def _measured(
    generations: Sequence[Predictions], how: Combination, *, resamples: int, each: bool
) -> dict[str, Estimate]:
    """The averages over generations and pairs; with `each`, also the values of each of them.

    That is each generation's accuracy, and the transitions of each pair: of all pairs where there
    are few, else of each generation and the next.
    """
    names = [f"{position}" for position in range(1, len(generations) + 1)]
    compared = compare(*generations, names=names, resamples=resamples, metrics=())
    found = {name: value for name, value in compared.averages.items() if name not in _NOT_TABLED}
    if how.endswith("majority"):
        found = {name: value for name, value in found.items() if name not in _NOT_OF_VOTES}
    if each:
        for generation in compared.generations:
            found[f"accuracy_{generation.name}"] = generation.metrics["accuracy"]
        for pair in compared.pairs:
            if len(generations) <= _FEW or int(pair.new) == int(pair.old) + 1:
                for name in _TRANSITIONS:
                    found[f"{name}_{pair.old}_{pair.new}"] = pair.metrics[name]
    return found


def _spread(values: Sequence[float]) -> float | None:
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    return statistics.stdev(values)


def _mean(values: Iterable[Any]) -> Any:
    """The mean, or None where any is missing."""
    found = list(values)
    return None if None in found else sum(found) / len(found)
