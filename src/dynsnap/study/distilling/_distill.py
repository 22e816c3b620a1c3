"""Distil the ensembles of a run into single networks, and measure how much of the gain is left."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dynsnap import _files, predictions
from dynsnap.comparison import Estimate, compare
from dynsnap.data import Stream
from dynsnap.ensemble import (
    Checkpoints,
    Combination,
    DistillingTrainer,
    RoundSpec,
    RoundStore,
    Trainer,
    cost,
)
from dynsnap.errors import PlanError
from dynsnap.predictions import Predictions
from dynsnap.study._ensembles import generations_of
from dynsnap.study._plan import StudyPlan
from dynsnap.study._predictions import PredictionPaths
from dynsnap.study._rounds import StudyMonitor
from dynsnap.study._table import Row, accuracy, averaged
from dynsnap.study._train import TrainedEnsemble, check_generations
from dynsnap.study.distilling._students import (
    UNTAUGHT,
    DistillationRunner,
    DistillPlan,
    ScoringEnsemble,
)

# The metrics that a student should keep of its teacher.
KEPT = ("accuracy", "consistency", "correct_consistency")
_PAIRS = ("consistency", "correct_consistency", "gained", "lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedGain:
    """How much of an ensemble's gain over a single learner is left in a student.

    Attributes:
        over: The single learner.
        metric: The metric.
        single: The single learner's value.
        student: The student's.
        teacher: The ensemble's.
    """

    over: str
    metric: str
    single: float
    student: float
    teacher: float

    @property
    def share(self) -> float | None:
        """The student's share of the gain; None where the ensemble gains nothing.

        Example:
            >>> found = {"single": 0.8, "student": 0.85, "teacher": 0.9}
            >>> RetainedGain(over="singlebase", metric="accuracy", **found).share
            0.5
        """
        gain = self.teacher - self.single
        return round((self.student - self.single) / gain, 6) if gain > 0 else None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Distilled:
    """Students, and their metrics beside their teachers'.

    Attributes:
        how: The plan.
        generations: The generations.
        replicates: How many replicates.
        students: The networks of the first replicate, one for each generation.
        rows: Metrics of the teacher, the student, its control and, where the run has it, the
            single learner, as in a study's table. A student's cost includes its teacher.
        networks: How many networks score one input, by the learner's name.
        retained: How much is left of the ensemble's gains over the single learner and the control.
        predictions: The prediction files of the students and their controls.
    """

    how: DistillPlan
    generations: tuple[int, ...]
    replicates: int
    students: tuple[TrainedEnsemble, ...]
    rows: tuple[Row, ...]
    networks: Mapping[str, int]
    retained: tuple[RetainedGain, ...]
    predictions: tuple[Path, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LearnerPredictions:
    """The predictions of one learner in one replicate.

    Attributes:
        name: Its name in the table.
        networks: How many networks score one input.
        cost: Trainings from scratch (κ) that one generation takes; a student's include its teacher.
        test: Its predictions on the test set, generation by generation.
        seconds: The time that these trainings took, where it is known.
        late: The predictions of its last generation on the classes that are new in a later one.
        teacher: For a student, the predictions of its teacher on the test set.
    """

    name: str
    networks: int
    cost: float
    test: Sequence[Predictions]
    seconds: float | None = None
    late: Predictions | None = None
    teacher: Sequence[Predictions] = field(default_factory=tuple)


def distill(
    plan: StudyPlan,
    how: DistillPlan,
    generations: Sequence[int],
    *,
    stream: Stream,
    trainer: Trainer,
    store: RoundStore,
    folder: Path,
    checkpoints: Callable[[Callable[[RoundSpec], str]], Checkpoints] | None = None,
    monitor: StudyMonitor | None = None,
    replicates: int | None = None,
) -> Distilled:
    """Train one network for each ensemble of a finished run, and measure it.

    Only students are trained: the store must hold the ensembles with their weights.

    Args:
        plan: The study that was run.
        how: How to distil.
        generations: The generations, counted from 1.
        stream: The study's data.
        trainer: Trains on that stream, and can teach.
        store: Keeps rounds with weights; a student that it holds is not trained again.
        folder: The run's folder: predictions go to `folder / "predictions"`.
        checkpoints: Makes the store of unfinished rounds from a function that names them.
        monitor: Receives the progress; pass the same one to the trainer.
        replicates: How many replicates of the study; all by default.
    """
    check_generations(stream, generations)
    if not isinstance(trainer, DistillingTrainer):
        raise PlanError(
            "Only networks can be distilled: boosted trees and scikit-learn's classifiers learn "
            "from labels, not from scores."
        )
    count = plan.replicates if replicates is None else replicates
    if not 1 <= count <= plan.replicates:
        raise PlanError(f"There are no {count} replicates: the study has {plan.replicates}.")
    asked = sorted(set(generations))
    runner = DistillationRunner(plan, how, stream, trainer, store, checkpoints, monitor)
    for replicate in range(count):
        runner.check(replicate, asked)
    paths = PredictionPaths(folder / "predictions", max(map(plan.replicates_of, plan.methods)))
    students: list[TrainedEnsemble] = []
    files: list[Path] = []
    measured: list[list[LearnerPredictions]] = []
    for replicate in range(count):
        pairs = list(runner.taught(replicate, asked))
        teachers, line = [first for first, _ in pairs], [student for _, student in pairs]
        students += [student.made for student in line] if replicate == 0 else []
        for student in line:
            _remove_control(student, how, paths)
            files += _write(student, stream, paths)
        many = _said(how.method.name, teachers, stream)
        here = [many, _said(how.name, line, stream, teacher=many)]
        if how.control:
            controls = runner.untaught(replicate, asked)
            for control in controls:
                files += _write(control, stream, paths)
            here.append(_said(UNTAUGHT, controls, stream))
        # Where the single learner teaches, it is measured already.
        alone = how.method.name == plan.baseline.name
        single = None if alone else _single(plan, how, paths, asked, replicate)
        measured.append(here if single is None else [*here, single])
    rows = table_of(measured, how.combination, generations=asked, resamples=plan.resamples)
    return Distilled(
        how=how,
        generations=tuple(asked),
        replicates=count,
        students=tuple(students),
        rows=tuple(rows),
        networks={one.name: one.networks for one in measured[0]},
        retained=tuple(
            retained_gains(
                rows,
                over=(plan.baseline.name, UNTAUGHT),
                student=how.name,
                teacher=how.method.name,
            )
        ),
        predictions=tuple(files),
    )


def _said(
    name: str,
    line: Sequence[ScoringEnsemble],
    stream: Stream,
    *,
    teacher: LearnerPredictions | None = None,
) -> LearnerPredictions:
    """The predictions of a learner of one replicate, generation by generation."""
    late = stream.evaluation.get("late")
    prices = [one.made.price for one in line]
    kappa, seconds = np.mean([(price.kappa, price.seconds) for price in prices], axis=0).tolist()
    if teacher is not None:
        kappa, seconds = kappa + teacher.cost, seconds + (teacher.seconds or 0)
    return LearnerPredictions(
        name=name,
        networks=len(line[0].made.positions),
        cost=kappa,
        seconds=seconds,
        test=[one.predictions(stream.evaluation["test"]) for one in line],
        late=line[-1].predictions(late) if late else None,
        teacher=() if teacher is None else teacher.test,
    )


def _single(
    plan: StudyPlan,
    how: DistillPlan,
    paths: PredictionPaths,
    generations: Sequence[int],
    replicate: int,
) -> LearnerPredictions | None:
    """The predictions of the run's single learner; None where the run has none."""
    every = generations_of(plan, plan.baseline, max(generations), replicate)
    line = [one for one in every if one.generation in generations]
    files = [paths.path(one, how.combination) for one in line]
    if not all(path.is_file() for path in files):
        return None
    late = paths.path(line[-1], how.combination, late=True)
    return LearnerPredictions(
        name=plan.baseline.name,
        networks=1,
        cost=cost(plan.baseline.recipe, rounds=1, epochs=plan.epochs),
        test=[predictions.read(path) for path in files],
        late=predictions.read(late) if late.is_file() else None,
    )


def _remove_control(student: ScoringEnsemble, how: DistillPlan, paths: PredictionPaths) -> None:
    """Remove the predictions of a student's control: they are of the student that it replaces."""
    of = student.made.ensemble
    twin = replace(of, method=replace(of.method, name=how.control_name))
    for late in (False, True):
        _files.remove(paths.path(twin, student.how, late=late))


def _write(student: ScoringEnsemble, stream: Stream, paths: PredictionPaths) -> Iterator[Path]:
    """Write the predictions of a student or control, as the run writes those of ensembles."""
    for name in ("test", "late"):
        pool = stream.evaluation.get(name)
        if pool is None or not len(pool):
            continue
        path = paths.path(student.made.ensemble, student.how, late=name == "late")
        path.parent.mkdir(parents=True, exist_ok=True)
        predictions.write(student.predictions(pool), path)
        yield path


def table_of(
    replicates: Sequence[Sequence[LearnerPredictions]],
    how: Combination,
    *,
    generations: Sequence[int],
    resamples: int,
) -> list[Row]:
    """The rows of all learners, replicates averaged."""
    return averaged(
        [
            [
                row
                for learner in learners
                for row in rows_of(learner, how, generations=generations, resamples=resamples)
            ]
            for learners in replicates
        ]
    )


def rows_of(
    learner: LearnerPredictions, how: Combination, *, generations: Sequence[int], resamples: int
) -> list[Row]:
    """A learner's rows of the table, in one replicate.

    Generation metrics are averaged over generations and pair metrics over pairs; "accuracy_1" and
    so on are of one generation, "late_accuracy" of the last, "fidelity" is the share of test
    inputs that a student labels as its teacher does.
    """
    found: dict[str, Estimate] = {}
    several = len(learner.test) > 1
    names = [str(number) for number in (generations if several else [*generations, "again"])]
    compared = compare(
        *(learner.test if several else [*learner.test, *learner.test]),
        names=names,
        resamples=resamples,
        metrics=(),
    )
    found["accuracy"] = compared.averages["accuracy"]
    for generation in compared.generations[: len(learner.test)]:
        found[f"accuracy_{generation.name}"] = generation.metrics["accuracy"]
    if several:
        found |= {metric: compared.averages[metric] for metric in _PAIRS}
    if learner.late is not None:
        found["late_accuracy"] = accuracy(learner.late, resamples=resamples)
    if learner.teacher:
        alike = [
            np.mean(own.labels == other.labels)
            for own, other in zip(learner.test, learner.teacher, strict=True)
        ]
        found["fidelity"] = Estimate(float(np.mean(alike)))
    if learner.seconds is not None:
        found["seconds"] = Estimate(learner.seconds)
    return [
        Row(
            method=learner.name,
            combination=how,
            metric=metric,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            cost=learner.cost,
        )
        for metric, estimate in found.items()
    ]


def retained_gains(
    rows: Sequence[Row], *, over: Sequence[str], student: str, teacher: str
) -> list[RetainedGain]:
    """What is left of the gains over some single learners, where all were measured."""
    value = {(row.method, row.metric): row.value for row in rows}
    return [
        RetainedGain(
            over=single,
            metric=metric,
            single=value[single, metric],
            student=value[student, metric],
            teacher=value[teacher, metric],
        )
        for single in over
        for metric in KEPT
        if all((name, metric) in value for name in (single, student, teacher))
    ]
