"""Teachers from a run, and the students that they teach."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dynsnap import seeds
from dynsnap.data import Stream
from dynsnap.ensemble import (
    Checkpoints,
    DistillingTrainer,
    Method,
    Round,
    RoundSpec,
    RoundStore,
    Trainer,
    round_key,
)
from dynsnap.errors import FileError
from dynsnap.study._plan import StudyPlan
from dynsnap.study._rounds import StudyMonitor
from dynsnap.study._train import TrainedEnsemble, train_ensembles
from dynsnap.study.distilling._plan import UNTAUGHT, DistillPlan
from dynsnap.study.distilling._teachers import Teacher, lesson, teacher


class School:
    """Teachers from the store, and students that they teach."""

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
        # Its own randomness, and so a name that no other round of the study has.
        self._own = replace(plan, seed=seeds.number(plan.seed, "student"))

    def check(self, replicate: int, generations: Sequence[int]) -> None:
        """Raise unless all teachers of a replicate are there."""
        next(self._ensembles(replicate, self._needed(generations)))

    def taught(
        self, replicate: int, generations: Sequence[int]
    ) -> Iterator[tuple[Teacher, Teacher]]:
        """Each teacher and its student, generation by generation."""
        how = self._how
        before: dict[int, Teacher] = {}
        needed = self._needed(generations)
        for number, made in zip(needed, self._ensembles(replicate, needed), strict=True):
            first = teacher(self._trainer, made, how.combination)
            student = None
            if number in generations or how.second == "student":
                student = self._student(replicate, number, first, before.get(number - 1))
            if student is not None and number in generations:
                yield first, student
            second = first if how.second == "previous" else student
            before = {} if how.second is None or second is None else {number: second}

    def _needed(self, generations: Sequence[int]) -> list[int]:
        """The generations whose ensembles are needed."""
        if self._how.second == "student":  # each stands on the shoulders of the one before
            return list(range(1, max(generations) + 1))
        wanted = set(generations)
        if self._how.second == "previous":
            wanted |= {number - 1 for number in generations if number > 1}
        return sorted(wanted)

    def _ensembles(self, replicate: int, generations: Sequence[int]) -> Iterator[TrainedEnsemble]:
        return train_ensembles(
            self._plan,
            self._how.method,
            generations,
            stream=self._stream,
            trainer=self._trainer,
            store=self._store,
            engine=self._missing,
            replicate=replicate,
        )

    def _missing(self, _: Trainer, specs: Sequence[RoundSpec], /) -> list[Round]:
        raise FileError(
            f"Distilling {self._how.method.name} takes the weights of its members, and the run "
            f'does not hold those of {specs[0]}. Set `keep = "weights"` in [study] and run it, or '
            "make the first replicate's with `dynsnap train` and distil with --replicates 1."
        )

    def _student(
        self, replicate: int, generation: int, first: Teacher, second: Teacher | None
    ) -> Teacher:
        how = self._how
        learnt = lesson(
            self._stream,
            generation,
            first,
            second,
            share=how.share,
            weight=how.weight,
            temperature=how.temperature,
        )
        kept = self._checkpoints
        trainer: Trainer
        trainer = self._trainer.taught(
            learnt, checkpoints=kept and kept(lambda spec: round_key(trainer, spec))
        )
        method = how.student(self._plan.baseline)
        (student,) = self._trained(trainer, method, replicate, [generation])
        return student

    def untaught(self, replicate: int, generations: Sequence[int]) -> list[Teacher]:
        """The twins of students that learn from labels alone, side by side: they need no lesson."""
        method = self._how.student(self._plan.baseline, name=UNTAUGHT)
        return self._trained(self._trainer, method, replicate, generations)

    def _trained(
        self, trainer: Trainer, method: Method, replicate: int, generations: Sequence[int]
    ) -> list[Teacher]:
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
        return [teacher(trainer, made, self._how.combination) for made in ensembles]
