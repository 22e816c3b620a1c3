"""Run a study: train the missing rounds, write predictions, and measure them from their files."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynsnap import _files, data
from dynsnap.comparison import Comparison, compare
from dynsnap.data import Pool, Stream
from dynsnap.ensemble import Engine, RoundSpec, RoundStore, Trainer, serial
from dynsnap.errors import FileError, PlanError
from dynsnap.study._ensembles import distinct, series_of, trained_as, trained_inputs
from dynsnap.study._plan import StudyPlan
from dynsnap.study._predictions import (
    MethodRun,
    PredictionPaths,
    method_runs,
    point_runs,
    write_predictions,
)
from dynsnap.study._rounds import RoundManager, StudyMonitor, missing_rounds
from dynsnap.study._table import Row, SweepRow, averaged, sweep_rows, table, write_rows

INPUTS = "inputs.npz"
SHOWN = 200  # lost inputs of each retrain, and as many that change again and again


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """The results of a study.

    Attributes:
        rows: The table, as in `table.csv`.
        sweeps: Every point of every sweep, as in `sweeps.csv`.
        predictions: The prediction files, in the order in which they were written.
        rounds: How many rounds the study is made of.
        trained: How many of them were trained now; the others were in the store.
        seconds: Training time of all rounds together, by their own clocks: steps and validation.
            Rounds that train side by side share the time.
        inputs: How many inputs they were trained on, epoch by epoch.
        missing: With `training=False`, the rounds that are certain to be needed and were not in the
            store. The ensembles that need them are left out.
    """

    rows: tuple[Row, ...]
    sweeps: tuple[SweepRow, ...]
    predictions: tuple[Path, ...]
    rounds: int
    trained: int
    seconds: float
    inputs: int
    missing: tuple[RoundSpec, ...] = ()

    @property
    def inputs_per_second(self) -> float | None:
        """The speed of training in one process, None where no round has a clock."""
        return self.inputs / self.seconds if self.seconds else None

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

    The engine gets all rounds that any ensemble of the study needs together; when they are done, it
    gets the rounds that turn out to be needed next. Ensembles are views of the stored rounds. Their
    predictions go to `folder / "predictions"`, and the table in `folder / "table.csv"` is computed
    from these files.

    Args:
        plan: The study.
        stream: Its data, of at least two generations.
        trainer: Trains on that stream.
        store: Keeps rounds; rounds that it holds are not trained again.
        folder: Where predictions and tables go.
        engine: Distributes the rounds over workers.
        monitor: Receives the progress; pass the same one to the trainer.
        training: Whether to train missing rounds. Otherwise only ensembles whose rounds are all in
            the store are measured.
    """
    if len(stream.generations) < 2:
        raise PlanError(
            "A study compares generations, and its data has only one: set [data.growth]."
        )
    series = series_of(plan, len(stream.generations))
    manager = RoundManager(trainer, store, monitor, stream, trained_as=trained_as(plan))
    missing: tuple[RoundSpec, ...] = ()
    if training:
        ensembles = manager.grow(distinct(series), engine=engine, ahead=plan.ahead)
    else:
        ensembles, missing = manager.gather(distinct(series))
    paths = PredictionPaths(folder / "predictions", max(map(plan.replicates_of, plan.methods)))
    runs = method_runs(series, ensembles, stream, paths, epochs=plan.epochs)
    if not any(one.series.kind == "method" for one in runs):
        raise FileError(
            f"No method of {plan.name} has all of its rounds in {folder}: "
            f"{missing_rounds(len(missing))}, such as {missing[0]}."
        )
    files = tuple(write_predictions(series, ensembles, stream, paths))
    paths.remove_stale(files)
    points = point_runs(series, ensembles, stream, epochs=plan.epochs)
    replicates: dict[int, list[Row]] = {}
    for replicate, block in table(runs, resamples=plan.resamples):
        replicates.setdefault(replicate, []).extend(block)
        if monitor is not None:
            monitor.measured(block[0].method, block[0].combination)
    sweeps = tuple(sweep_rows(points, resamples=plan.resamples))
    used = dict.fromkeys(
        manager.rounds.trained_as(done.spec) for one in ensembles.values() for done in one.rounds
    )
    rows = tuple(averaged(list(replicates.values())))
    with _files.together():
        write_inputs(runs, stream.evaluation["test"], folder / INPUTS)
        _write_tables(folder, rows, replicates, sweeps)
    return StudyResult(
        rows=rows,
        sweeps=sweeps,
        predictions=files,
        rounds=len(used),
        trained=manager.trained,
        seconds=sum(manager.rounds.heads[spec].seconds for spec in used),
        inputs=trained_inputs(used, stream),
        missing=missing,
    )


def _write_tables(
    folder: Path,
    rows: Iterable[Row],
    replicates: dict[int, list[Row]],
    sweeps: tuple[SweepRow, ...],
) -> None:
    """Write the tables of a study: the averages of its replicates, each replicate, the sweeps."""
    for name in ("replicates.csv", "sweeps.csv"):  # of another study in this folder
        _files.remove(folder / name)
    write_rows(folder / "table.csv", tuple(rows))
    if len(replicates) > 1:
        each = [(number, row) for number, found in replicates.items() for row in found]
        write_rows(
            folder / "replicates.csv",
            [row for _, row in each],
            replicate=[number for number, _ in each],
        )
    if sweeps:
        write_rows(
            folder / "sweeps.csv",
            [point.row for point in sweeps],
            sweep=[point.sweep for point in sweeps],
            over=[point.over for point in sweeps],
            point=[point.point for point in sweeps],
        )


def shown_ids(found: Comparison) -> set[str]:
    """The ids of the inputs that a page shows of a comparison."""
    lost = {one.id for pair in found.pairs for one in pair.flipped[:SHOWN]}
    return lost | {one.id for one in found.unstable[:SHOWN]}


def write_inputs(runs: Iterable[MethodRun], test: Pool, path: Path) -> None:
    """Keep small versions of the test inputs that methods lost, so that a page needs no data.

    Of the first replicate. Images are shrunk and texts cut: a few megabytes, whatever the data.
    """
    _files.remove(path)  # of another study in this folder
    if not data.excerpts(test.inputs[:1], test.ids[:1]):
        return  # inputs that cannot be shown, such as numbers
    wanted: set[str] = set()
    for one in runs:
        if one.series.kind == "method" and one.series.replicate == 0:
            how = "average" if "average" in one.test else next(iter(one.test))
            found = one.predictions(how)  # by time there are two: before and after each retrain
            names = [str(place) for place in range(1, len(found) + 1)]
            wanted |= shown_ids(compare(*found, names=names, resamples=1, metrics=()))
    ids = test.ids.astype(str)
    rows = np.flatnonzero(np.isin(ids, list(wanted)))
    if len(rows):
        data.write_excerpts(path, data.excerpts(test.inputs[rows], ids[rows]))
