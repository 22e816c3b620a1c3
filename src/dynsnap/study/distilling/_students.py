"""Students: single networks that are trained on the scores of an ensemble beside the labels."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, Scores
from dynsnap.data import Pool, Stream
from dynsnap.ensemble import (
    COMBINATIONS,
    Checkpoints,
    Combination,
    DistillingTrainer,
    EnsemblePlan,
    Method,
    Recipe,
    Round,
    RoundSpec,
    RoundStore,
    SoftTargets,
    Trainer,
    combine,
    round_key,
    with_second,
)
from dynsnap.errors import FileError, PlanError, did_you_mean
from dynsnap.predictions import Predictions
from dynsnap.study._plan import StudyPlan
from dynsnap.study._rounds import StudyMonitor
from dynsnap.study._train import TrainedEnsemble, train_ensembles

SecondTeacher: TypeAlias = Literal["previous", "student"]

SECOND_TEACHERS: tuple[SecondTeacher, ...] = get_args(SecondTeacher)
UNTAUGHT = "untaught"
_PREFIX = "distilled-"
_AT_ONCE = 8192  # inputs; all members' scores of so many are in memory together


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillPlan:
    """How the ensembles of a method become single networks.

    Attributes:
        method: The method whose ensembles teach.
        combination: How their members are combined.
        epochs: Epochs of a student's training.
        weight: The weight of the teachers in the loss; the labels have the rest.
        temperature: How much scores are softened before they are compared.
        second: A second teacher, from the generation before: "previous" for its ensemble,
            "student" for the network that was distilled from it; None for none.
        share: The weight of the second teacher among the two.
        control: Whether each student has a twin that is trained in the same way, but on the labels
            alone: the difference is the effect of teaching.
    """

    method: Method
    combination: Combination = "average"
    epochs: int = 200
    weight: float = 0.5
    temperature: float = 4.0
    second: SecondTeacher | None = None
    share: float = 0.3
    control: bool = False

    def __post_init__(self) -> None:
        if self.combination not in COMBINATIONS:
            raise PlanError(
                f"There is no combination {self.combination!r}. "
                f"{did_you_mean(self.combination, COMBINATIONS)}"
            )
        if self.second is not None and self.second not in SECOND_TEACHERS:
            raise PlanError(
                f"There is no second teacher {self.second!r}. "
                f"{did_you_mean(self.second, SECOND_TEACHERS)}"
            )
        if self.method.stabilized:
            raise PlanError(
                f"The labels of {self.method.name} depend on those of the generation before, which "
                "a network cannot know. Distil the same method without `margin` and `cost_ratio`, "
                "and apply `dynsnap stabilize` to the predictions of its students."
            )
        if not 0 <= self.share <= 1:
            raise PlanError(f"`share` must be between 0 and 1, got {self.share}.")

    @property
    def name(self) -> str:
        """The name of the students in files and tables."""
        second = "" if self.second is None else f"-{self.second}={self.share:g}"
        return f"{_PREFIX}{self.method.name}{second}"

    @property
    def control_name(self) -> str:
        """The name of the students' controls in files; tables call them `untaught`."""
        return control_of(self.name)

    def student(self, baseline: Method, *, name: str | None = None) -> Method:
        """The method of one network that trains as the study's single learner does."""
        return Method(
            name=name or self.name,
            recipe=Recipe(schedule=baseline.recipe.schedule, epochs=self.epochs, snapshots=1),
            plan=EnsemblePlan(size=1, snapshots=1, beta=1.0),
            combinations=(self.combination,),
        )


def control_of(student: str) -> str:
    """The name that the control of a student has in files.

    Example:
        >>> control_of("distilled-dynsnap-cyc")
        'distilled-dynsnap-cyc-teacher=none'
    """
    return f"{student}-teacher=none"


@dataclass(frozen=True, slots=True, eq=False)
class ScoringEnsemble:
    """An ensemble that can score any input: a teacher, or a student of one member.

    Attributes:
        made: Its learners.
        how: How they are combined.
        score: Scores inputs with learners.
    """

    made: TrainedEnsemble
    how: Combination
    score: Callable[[tuple[bytes, ...], AnyArray], AnyArray]

    def scores(self, inputs: AnyArray) -> Scores:
        """One row for each input, in single precision, as files hold them."""
        return np.concatenate(list(self._parts(inputs))).astype(np.float32)

    def _parts(self, inputs: AnyArray) -> Iterator[Scores]:
        made = self.made
        for start in range(0, len(inputs), _AT_ONCE):
            members = self.score(made.learners, inputs[start : start + _AT_ONCE])
            yield combine(
                members[made.positions], how=self.how, weights=made.accuracy, known=made.known
            )

    def predictions(self, pool: Pool) -> Predictions:
        """Its predictions on an evaluation set."""
        return Predictions(
            ids=pool.ids,
            classes=pool.classes,
            scores=self.scores(pool.inputs),
            truth=np.asarray(pool.labels),
            slices=pool.slices,
            positions=True,
        )

    @property
    def name(self) -> str:
        """A hash of everything that decides its scores, the same on every device."""
        found, made = hashlib.sha256(), self.made
        for learner in made.learners:
            found.update(hashlib.sha256(learner).digest())
        known = None if made.known is None else made.known.tolist()
        settings = [self.how, made.positions.tolist(), made.accuracy.tolist(), known]
        found.update(json.dumps(settings).encode())
        return found.hexdigest()


def soft_targets(
    stream: Stream,
    generation: int,
    first: ScoringEnsemble,
    second: ScoringEnsemble | None,
    how: DistillPlan,
) -> SoftTargets:
    """The teachers' scores for the rows of a generation.

    The second teacher is of the generation before. It does not score rows of classes that it was
    never trained on: there the first one teaches alone.
    """
    pool, rows = stream.pool, stream.generations[generation - 1]
    scores = np.full((len(pool), len(pool.classes)), np.nan, np.float32)
    scores[rows] = own = first.scores(pool.inputs[rows])
    name = first.name
    if second is not None:
        seen = np.unique(pool.labels[stream.generations[generation - 2]])
        scores[rows] = with_second(
            own,
            second.scores(pool.inputs[rows]),
            share=how.share,
            heard=np.isin(pool.labels[rows], seen),
        )
        name = f"{name} {second.name} {how.share!r}"
    return SoftTargets(scores=scores, weight=how.weight, temperature=how.temperature, name=name)


class DistillationRunner:
    """Loads teachers from the store of a run, and trains their students."""

    def __init__(
        self,
        plan: StudyPlan,
        how: DistillPlan,
        stream: Stream,
        trainer: DistillingTrainer,
        store: RoundStore,
        checkpoints: Callable[[Callable[[RoundSpec], str]], Checkpoints] | None,
        monitor: StudyMonitor | None,
    ) -> None:
        self._plan, self._how, self._stream = plan, how, stream
        self._trainer, self._store = trainer, store
        self._checkpoints, self._monitor = checkpoints, monitor
        # Another seed, so that no other round of the study has the name of a student's.
        self._own = replace(plan, seed=seeds.number(plan.seed, "student"))

    def check(self, replicate: int, generations: Sequence[int]) -> None:
        """Raise unless the store has all teachers of a replicate."""
        next(self._teachers(replicate, self._needed(generations)))

    def taught(
        self, replicate: int, generations: Sequence[int]
    ) -> Iterator[tuple[ScoringEnsemble, ScoringEnsemble]]:
        """Each teacher and its student, generation by generation."""
        how = self._how
        before: dict[int, ScoringEnsemble] = {}
        needed = self._needed(generations)
        for number, made in zip(needed, self._teachers(replicate, needed), strict=True):
            first = ScoringEnsemble(made, how.combination, self._trainer.score)
            student = None
            if number in generations or how.second == "student":
                student = self._student(replicate, number, first, before.get(number - 1))
            if student is not None and number in generations:
                yield first, student
            second = first if how.second == "previous" else student
            before = {} if how.second is None or second is None else {number: second}

    def untaught(self, replicate: int, generations: Sequence[int]) -> list[ScoringEnsemble]:
        """The twins of students that learn from labels alone, trained side by side."""
        method = self._how.student(self._plan.baseline, name=self._how.control_name)
        return self._trained(self._trainer, method, replicate, generations)

    def _needed(self, generations: Sequence[int]) -> list[int]:
        """The generations whose ensembles are needed."""
        if self._how.second == "student":  # each student needs the one before
            return list(range(1, max(generations) + 1))
        wanted = set(generations)
        if self._how.second == "previous":
            wanted |= {number - 1 for number in generations if number > 1}
        return sorted(wanted)

    def _teachers(self, replicate: int, generations: Sequence[int]) -> Iterator[TrainedEnsemble]:
        return train_ensembles(
            self._plan,
            self._how.method,
            generations,
            stream=self._stream,
            trainer=self._trainer,
            store=self._store,
            engine=self._refuse,
            replicate=replicate,
        )

    def _refuse(self, _: Trainer, specs: Sequence[RoundSpec], /) -> list[Round]:
        raise FileError(
            f"Distilling {self._how.method.name} takes the weights of its members, and the run "
            f'does not hold those of {specs[0]}. Set `keep = "weights"` in [study] and run it, or '
            "make the first replicate's with `dynsnap train` and distil with --replicates 1."
        )

    def _student(
        self,
        replicate: int,
        generation: int,
        first: ScoringEnsemble,
        second: ScoringEnsemble | None,
    ) -> ScoringEnsemble:
        targets = soft_targets(self._stream, generation, first, second, self._how)
        kept = self._checkpoints
        trainer: Trainer
        trainer = self._trainer.taught(
            targets, checkpoints=kept and kept(lambda spec: round_key(trainer, spec))
        )
        method = self._how.student(self._plan.baseline)
        (student,) = self._trained(trainer, method, replicate, [generation])
        return student

    def _trained(
        self, trainer: Trainer, method: Method, replicate: int, generations: Sequence[int]
    ) -> list[ScoringEnsemble]:
        ensembles = train_ensembles(
            self._own,
            method,
            generations,
            stream=self._stream,
            trainer=trainer,
            store=self._store,
            monitor=self._monitor,
            replicate=replicate,
        )
        return [ScoringEnsemble(made, self._how.combination, trainer.score) for made in ensembles]
