"""One network to serve: a student for each ensemble, taught by what the ensemble says."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynsnap import predictions
from dynsnap.data import Stream
from dynsnap.ensemble import Checkpoints, DistillingTrainer, RoundSpec, RoundStore, Trainer, cost
from dynsnap.errors import PlanError
from dynsnap.study._ensembles import generations_of
from dynsnap.study._plan import StudyPlan
from dynsnap.study._predictions import PredictionPaths
from dynsnap.study._rounds import StudyMonitor
from dynsnap.study._table import Row
from dynsnap.study._train import TrainedEnsemble, check_generations
from dynsnap.study.distilling._distilled import Remains, Said, remains, table_of
from dynsnap.study.distilling._plan import UNTAUGHT, DistillPlan
from dynsnap.study.distilling._school import School
from dynsnap.study.distilling._teachers import Teacher


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Distilled:
    """What distilling has made and found.

    Attributes:
        how: How it was done.
        generations: Of which generations.
        replicates: How many replicates.
        students: The networks of the first replicate, one for each generation.
        rows: What was measured of the teacher, the student, its control and, where the run has
            it, the single learner, as in a study's table. Costs are of all that a learner takes: a
            student takes its teacher.
        networks: How many networks answer for one input, by the learner's name.
        remains: What is left of the ensemble's gains over the single learner and the control.
        predictions: The students' prediction files.
    """

    how: DistillPlan
    generations: tuple[int, ...]
    replicates: int
    students: tuple[TrainedEnsemble, ...]
    rows: tuple[Row, ...]
    networks: Mapping[str, int]
    remains: tuple[Remains, ...]
    predictions: tuple[Path, ...]


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
    """Train one network for each ensemble of a finished run, and measure what is left of it.

    Nothing but students is trained: the ensembles must lie in the store with their weights.

    Args:
        plan: The study that was run.
        how: How to distil.
        generations: Of which generations, counted from 1.
        stream: The study's data.
        trainer: Trains on that stream, and can teach.
        store: Keeps rounds with weights; a student that it holds is not trained again.
        folder: The run's folder: predictions go to `folder / "predictions"`.
        checkpoints: Makes the keeper of unfinished rounds from a way to name them.
        monitor: Is told how it goes; hand the same one to the trainer.
        replicates: How many replicates of the study; all unless said otherwise.
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
    school = School(plan, how, stream, trainer, store, checkpoints, monitor)
    for replicate in range(count):
        school.check(replicate, asked)
    paths = PredictionPaths(folder / "predictions", max(map(plan.replicates_of, plan.methods)))
    students: list[TrainedEnsemble] = []
    files: list[Path] = []
    said: list[list[Said]] = []
    for replicate in range(count):
        pairs = list(school.taught(replicate, asked))
        teachers, line = [first for first, _ in pairs], [student for _, student in pairs]
        students += [student.made for student in line] if replicate == 0 else []
        for student in line:
            files += _write(student, stream, paths)
        many = _said(how.method.name, teachers, stream)
        here = [many, _said(how.name, line, stream, teacher=many)]
        if how.control:
            here.append(_said(UNTAUGHT, school.untaught(replicate, asked), stream))
        # Where the single learner teaches, it is there already.
        alone = how.method.name == plan.baseline.name
        single = None if alone else _single(plan, how, paths, asked, replicate)
        said.append(here if single is None else [*here, single])
    rows = table_of(said, how.combination, generations=asked, resamples=plan.resamples)
    return Distilled(
        how=how,
        generations=tuple(asked),
        replicates=count,
        students=tuple(students),
        rows=tuple(rows),
        networks={one.name: one.networks for one in said[0]},
        remains=tuple(
            remains(
                rows,
                over=(plan.baseline.name, UNTAUGHT),
                student=how.name,
                teacher=how.method.name,
            )
        ),
        predictions=tuple(files),
    )


def _said(
    name: str, line: Sequence[Teacher], stream: Stream, *, teacher: Said | None = None
) -> Said:
    """What a learner of one replicate says, generation by generation."""
    late = stream.evaluation.get("late")
    prices = [one.made.price for one in line]
    kappa, seconds = np.mean([(price.kappa, price.seconds) for price in prices], axis=0).tolist()
    if teacher is not None:
        kappa, seconds = kappa + teacher.cost, seconds + (teacher.seconds or 0)
    return Said(
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
) -> Said | None:
    """What the run's single learner says; None where the run has no such predictions."""
    every = generations_of(plan, plan.baseline, max(generations), replicate)
    line = [one for one in every if one.generation in generations]
    files = [paths.path(one, how.combination) for one in line]
    if not all(path.is_file() for path in files):
        return None
    late = paths.path(line[-1], how.combination, late=True)
    return Said(
        name=plan.baseline.name,
        networks=1,
        cost=cost(plan.baseline.recipe, rounds=1, epochs=plan.epochs),
        test=[predictions.read(path) for path in files],
        late=predictions.read(late) if late.is_file() else None,
    )


def _write(student: Teacher, stream: Stream, paths: PredictionPaths) -> Iterator[Path]:
    """Write what a student says about the evaluation sets, as the run writes what ensembles say."""
    for name in ("test", "late"):
        pool = stream.evaluation.get(name)
        if pool is None or not len(pool):
            continue
        path = paths.path(student.made.ensemble, student.how, late=name == "late")
        path.parent.mkdir(parents=True, exist_ok=True)
        predictions.write(student.predictions(pool), path)
        yield path
