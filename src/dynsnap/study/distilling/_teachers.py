"""Ensembles as teachers: what they say about rows that a student will train on."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dynsnap._types import AnyArray, Scores
from dynsnap.data import Pool, Stream
from dynsnap.ensemble import Combination, Lesson, Trainer, combine, with_second
from dynsnap.predictions import Predictions
from dynsnap.study._train import TrainedEnsemble

_AT_ONCE = 8192  # inputs; all members' scores of so many are in memory together


@dataclass(frozen=True, slots=True, eq=False)
class Teacher:
    """An ensemble that can be asked about any input.

    Attributes:
        made: Its learners.
        how: How they are combined.
        score: What runs them.
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
        """What it says about an evaluation set."""
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
        """A hash of all that decides what it says, whatever device it says it on."""
        found, made = hashlib.sha256(), self.made
        for learner in made.learners:
            found.update(hashlib.sha256(learner).digest())
        known = None if made.known is None else made.known.tolist()
        settings = [self.how, made.positions.tolist(), made.accuracy.tolist(), known]
        found.update(json.dumps(settings).encode())
        return found.hexdigest()


def teacher(trainer: Trainer, made: TrainedEnsemble, how: Combination) -> Teacher:
    """An ensemble as a teacher, run by the trainer that made it."""
    return Teacher(made, how, trainer.score)


def lesson(
    stream: Stream,
    generation: int,
    first: Teacher,
    second: Teacher | None,
    *,
    share: float,
    weight: float,
    temperature: float,
) -> Lesson:
    """What a student of a generation is taught about the rows of that generation.

    The second teacher is of the generation before, and has no say on rows of classes that it has
    never seen: there the first one teaches alone.
    """
    pool, rows = stream.pool, stream.generations[generation - 1]
    scores = np.full((len(pool), len(pool.classes)), np.nan, np.float32)
    scores[rows] = said = first.scores(pool.inputs[rows])
    name = first.name
    if second is not None:
        seen = np.unique(pool.labels[stream.generations[generation - 2]])
        scores[rows] = with_second(
            said,
            second.scores(pool.inputs[rows]),
            share=share,
            heard=np.isin(pool.labels[rows], seen),
        )
        name = f"{name} {second.name} {share!r}"
    return Lesson(scores=scores, weight=weight, temperature=temperature, name=name)
