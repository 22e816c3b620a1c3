"""Run a study: train what is missing, then measure everything from files."""

import itertools
from dataclasses import dataclass
from pathlib import Path

from dynsnap import _files
from dynsnap.data import Stream
from dynsnap.ensemble import Engine, RoundSpec, RoundStore, Trainer, serial
from dynsnap.errors import FileError, PlanError
from dynsnap.study._inputs import INPUTS, write_inputs
from dynsnap.study._missing import missing_rounds
from dynsnap.study._monitor import StudyMonitor
from dynsnap.study._plan import StudyPlan
from dynsnap.study._prefixes import trained_as
from dynsnap.study._table import Row, SweepRow, averaged, sweep_rows, table, write_rows
from dynsnap.study._views import Shelf, ensembles_of, generations_of, write_predictions
from dynsnap.study._waves import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """What a study found.

    Attributes:
        rows: The table, as in `table.csv`.
        sweeps: Every point of every sweep, as in `sweeps.csv`.
        predictions: The prediction files, as they were written.
        rounds: How many rounds the study is made of.
        trained: How many of them were trained just now, and not found.
        seconds: Training time of all rounds together.
        missing: Rounds that are certain to be needed and were not there, where nothing was to be
            trained: the ensembles that need them are left out.
    """

    rows: tuple[Row, ...]
    sweeps: tuple[SweepRow, ...]
    predictions: tuple[Path, ...]
    rounds: int
    trained: int
    seconds: float
    missing: tuple[RoundSpec, ...] = ()

    def value(self, method: str, metric: str, combination: str = "average") -> Row:
        """One row of the table."""
        for row in self.rows:
            if (row.method, row.metric, row.combination) == (method, metric, combination):
                return row
        raise KeyError((method, metric, combination))


def run(
    plan: StudyPlan,
    *,
    stream: Stream,
    trainer: Trainer,
    store: RoundStore,
    folder: Path,
    engine: Engine = serial,
    monitor: StudyMonitor | None = None,
    training: bool = True,
) -> StudyResult:
    """Train every round that the study needs and the store lacks, then measure.

    All rounds that any ensemble of the study wants are handed to the engine together; when they
    are there, those that want more ask again. Ensembles are views of the stored rounds. What they
    say goes to `folder / "predictions"`, and the table in `folder / "table.csv"` is computed from
    those files as they were written.

    Args:
        plan: The study.
        stream: Its data, of at least two generations.
        trainer: Trains on that stream.
        store: Keeps rounds; what it holds already is not trained again.
        folder: Where predictions and tables go.
        engine: Spreads the rounds.
        monitor: Is told how it goes; hand the same one to the trainer.
        training: Whether to train what is missing. Else only ensembles whose rounds are all in the
            store are measured.
    """
    if len(stream.generations) < 2:
        raise PlanError("A study compares generations, and this one has only one: let it grow.")
    ledger = Ledger(trainer, store, monitor, stream, trained_as=trained_as(plan))
    ensembles = ensembles_of(plan, len(stream.generations))
    if training:
        ledger.grow(ensembles, engine=engine, seed=plan.seed, ahead=plan.ahead)
    else:
        ledger.gather(ensembles, seed=plan.seed)
        lines = [
            generations_of(plan, method, len(stream.generations), number)
            for method in plan.methods
            for number in range(plan.replicates_of(method))
        ]
        if not any(map(ledger.has, lines)):
            raise FileError(
                f"Not one method of {plan.name} has all of its rounds in {folder}: "
                f"{missing_rounds(len(ledger.missing))}, such as {ledger.missing[0]}."
            )
    shelf = Shelf(folder / "predictions", max(map(plan.replicates_of, plan.methods)))
    files = tuple(write_predictions(plan, ledger, stream, shelf))
    shelf.sweep_up(files)
    replicates: dict[int, list[Row]] = {}
    for replicate, rows in table(plan, ledger, stream, shelf):
        replicates.setdefault(replicate, []).extend(rows)
        if monitor is not None:
            monitor.measured(rows[0].method, rows[0].combination)
    rows = averaged(list(replicates.values()))
    points = tuple(sweep_rows(plan, ledger, stream))
    with _files.together():
        for name in (INPUTS, "replicates.csv", "sweeps.csv"):  # of another study in this folder
            _files.remove(folder / name)
        write_inputs(plan, stream, shelf, folder / INPUTS)
        write_rows(folder / "table.csv", rows)
        if len(replicates) > 1:
            each = [(number, row) for number, found in replicates.items() for row in found]
            write_rows(
                folder / "replicates.csv",
                [row for _, row in each],
                replicate=[number for number, _ in each],
            )
        if points:
            write_rows(
                folder / "sweeps.csv",
                [point.row for point in points],
                sweep=[point.sweep for point in points],
                over=[point.over for point in points],
                point=[point.point for point in points],
            )
    needed = itertools.chain.from_iterable(map(ledger.specs, ledger.grown))
    used = set(map(ledger.trained_as, needed))
    return StudyResult(
        rows=tuple(rows),
        sweeps=points,
        predictions=files,
        rounds=len(used),
        trained=ledger.trained,
        seconds=sum(ledger.heads[spec].seconds for spec in used),
        missing=ledger.missing,
    )
