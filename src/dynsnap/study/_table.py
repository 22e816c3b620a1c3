"""The paper's table: every method and combination measured from its prediction files."""

import csv
import io
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from dynsnap import _files, predictions
from dynsnap.comparison import Estimate, compare
from dynsnap.data import Stream
from dynsnap.ensemble import Combination
from dynsnap.predictions import Predictions
from dynsnap.study._cells import damaged, needed, number, read_cells, safe, words
from dynsnap.study._ensemble import Ensemble
from dynsnap.study._plan import StudyPlan
from dynsnap.study._views import Answers, Price, Shelf, generations_of, noise_floor, price
from dynsnap.study._waves import Ledger

Read = TypeVar("Read")

NOISE_FLOOR = "noise-floor"
NEVER_RETRAIN = "never-retrain"

# Votes are one-hot rows of each member, and their correlations only repeat the consistency.
_NOT_OF_VOTES = ("pearson", "cosine")
_TRANSITIONS = ("kept", "gained", "lost", "never", "composite")
_FEW = 4  # generations, whose pairs are all told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a study's table.

    Attributes:
        metric: A name of the catalogue; "accuracy_1" for the accuracy of generation 1 alone, and so
            on; "lost_1_2" for the transition from generation 1 to generation 2 alone, and so on;
            "late_accuracy" for the accuracy of the last generation on the classes that arrive
            late, "seconds" for the training time of one generation, "retrain_cost" for the cost
            (κ) of a generation that is not the first, "members_1" for the number of members in
            generation 1, and so on.
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
    """One line of a study's sweeps: a point, and what the table says of it."""

    sweep: str
    over: str
    point: str
    row: Row


def table(
    plan: StudyPlan, ledger: Ledger, stream: Stream, shelf: Shelf
) -> Iterator[tuple[int, list[Row]]]:
    """The rows of each replicate, method by method: the replicate's number and its rows."""
    count = len(stream.generations)
    has_late = len(stream.evaluation.get("late", ())) > 0
    for replicate in range(max(map(plan.replicates_of, plan.methods))):
        for method in plan.methods:
            if replicate >= plan.replicates_of(method):
                continue
            line = generations_of(plan, method, count, replicate)
            if not ledger.has(line):
                continue
            spent = price(plan, ledger, line)
            counts = {
                f"members_{one.generation}": Estimate(float(len(ledger.casting.of(one))))
                for one in line
            }
            for how in plan.combinations:
                said = [predictions.read(shelf.path(one, how)) for one in line]
                found = _measured(plan, said, how, each=True)
                if has_late:
                    found["late_accuracy"] = _accuracy(plan, shelf.path(line[-1], how, late=True))
                found["retrain_cost"] = Estimate(price(plan, ledger, line[1:]).kappa)
                yield replicate, _rows(method.name, how, found | counts, spent)
        for how in plan.combinations if replicate < plan.replicates else ():
            if ledger.has(noise_floor(plan, replicate)):
                yield replicate, _noise_floor_rows(plan, ledger, shelf, how, replicate)
            for method in plan.kept_methods:
                first = Ensemble(method=method, generation=1, replicate=replicate)
                if not ledger.has([first]):
                    continue
                said = [predictions.read(shelf.path(first, how))] * count
                found = _measured(plan, said, how, each=True)
                if has_late:
                    found["late_accuracy"] = _accuracy(plan, shelf.path(first, how, late=True))
                found["retrain_cost"] = Estimate(0.0)
                spent = price(plan, ledger, [first])
                shared = Price(spent.kappa / count, spent.seconds / count)
                name = NEVER_RETRAIN
                if method != plan.baseline:
                    name = f"{NEVER_RETRAIN}-{method.name}"
                yield replicate, _rows(name, how, found, shared)


def sweep_rows(plan: StudyPlan, ledger: Ledger, stream: Stream) -> Iterator[SweepRow]:
    """Every point of every sweep, replicates averaged."""
    test = {"test": stream.evaluation["test"]}
    answers = Answers(ledger)
    for sweep in plan.sweeps:
        how = sweep.combination
        for point, method in sweep.points:
            runs = []
            for replicate in range(plan.replicates):
                line = generations_of(plan, method, len(stream.generations), replicate)
                if not ledger.has(line):
                    continue
                said = [next(answers.views(one, test, [how]))[2] for one in line]
                found = _measured(plan, said, how)
                runs.append(_rows(method.name, how, found, price(plan, ledger, line)))
            for row in averaged(runs):
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


def _noise_floor_rows(
    plan: StudyPlan, ledger: Ledger, shelf: Shelf, how: Combination, replicate: int
) -> list[Row]:
    pair = noise_floor(plan, replicate)
    said = [predictions.read(shelf.path(one, how)) for one in pair]
    return _rows(NOISE_FLOOR, how, _measured(plan, said, how), price(plan, ledger, pair[1:]))


def _measured(
    plan: StudyPlan, said: Sequence[Predictions], how: Combination, *, each: bool = False
) -> dict[str, Estimate]:
    """The averages over generations and pairs; and, if asked for, what each of them adds.

    That is each generation's accuracy, and the transitions of each pair: of all pairs where there
    are few, else of each generation and the next.
    """
    names = [f"{position}" for position in range(1, len(said) + 1)]
    compared = compare(*said, names=names, resamples=plan.resamples)
    found = dict(compared.averages)
    if how.endswith("majority"):
        found = {name: value for name, value in found.items() if name not in _NOT_OF_VOTES}
    if each:
        for generation in compared.generations:
            found[f"accuracy_{generation.name}"] = generation.metrics["accuracy"]
        for pair in compared.pairs:
            if len(said) <= _FEW or int(pair.new) == int(pair.old) + 1:
                for name in _TRANSITIONS:
                    found[f"{name}_{pair.old}_{pair.new}"] = pair.metrics[name]
    return found


def _accuracy(plan: StudyPlan, path: Path) -> Estimate:
    """The accuracy in one file, with its interval."""
    said = predictions.read(path)
    compared = compare(said, said, names=["once", "again"], resamples=plan.resamples)
    return compared.generations[0].metrics["accuracy"]


def _rows(method: str, how: Combination, found: Mapping[str, Estimate], spent: Price) -> list[Row]:
    measured = {**found, "seconds": Estimate(spent.seconds)}
    return [
        Row(
            method=method,
            combination=how,
            metric=metric,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            cost=spent.kappa,
            seconds=spent.seconds,
        )
        for metric, estimate in measured.items()
    ]


def _spread(values: Sequence[float]) -> float | None:
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    return statistics.stdev(values)


def _mean(values: Iterable[Any]) -> Any:
    """The mean, or None where any is missing."""
    found = list(values)
    return None if None in found else sum(found) / len(found)
