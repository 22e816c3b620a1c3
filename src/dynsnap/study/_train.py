"""Ensembles to predict with: the learners themselves, beside their scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynsnap._types import Accuracies, Flags, Positions
from dynsnap.data import Stream
from dynsnap.ensemble import Engine, Method, RoundStore, Trainer, serial
from dynsnap.errors import PlanError
from dynsnap.study._ensembles import Ensemble, trained_as
from dynsnap.study._pending import Price
from dynsnap.study._plan import StudyPlan
from dynsnap.study._rounds import RoundManager, StudyMonitor


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrainedEnsemble:
    """The learners of one ensemble.

    Attributes:
        accuracy: Validation accuracy of each member.
        learners: Each learner once, in the trainer's own format.
        positions: For each member its place among the scores that the learners give together.
        known: Which classes each member was trained on; None where all know the same.
        price: What it took to train.
        rounds: How many rounds it has its members from.
        origins: Of each member the round, the epoch and the generation that it comes from.
    """

    ensemble: Ensemble
    accuracy: Accuracies
    learners: tuple[bytes, ...]
    positions: Positions
    known: Flags | None
    price: Price
    rounds: int = 1
    origins: tuple[tuple[int, int, int], ...] = ()


def check_generations(stream: Stream, generations: Sequence[int]) -> None:
    """Raise unless the stream has all of these generations, counted from 1.

    Example:
        >>> from dynsnap.data import digits_stream
        >>> check_generations(digits_stream(), [1, 3])
    """
    for generation in generations:
        if not 1 <= generation <= len(stream.generations):
            raise PlanError(
                f"There is no generation {generation}: the study has {len(stream.generations)}."
            )


def train_ensembles(
    plan: StudyPlan,
    method: Method,
    generations: Sequence[int],
    *,
    stream: Stream,
    trainer: Trainer,
    store: RoundStore,
    engine: Engine = serial,
    monitor: StudyMonitor | None = None,
    replicate: int = 0,
) -> Iterator[TrainedEnsemble]:
    """Train one method on some generations of a study, and give its learners.

    The store must keep weights. Rounds that it holds are not trained again.
    """
    check_generations(stream, generations)
    manager = RoundManager(trainer, store, monitor, stream, trained_as=trained_as(plan))
    needed = range(1, max(generations) + 1) if method.uses_deployed else generations
    found = manager.grow(
        [
            Ensemble(
                method=method,
                generation=number,
                replicate=replicate,
                seed=plan.seed,
                by_time=plan.data.by_time,
            )
            for number in needed
        ],
        engine=engine,
    )
    of_generation = {ensemble.generation: rounds for ensemble, rounds in found.items()}
    for number in generations:
        rounds = of_generation[number]
        sources = rounds.members.sources
        # A learner that predicts several times with dropout on is several members.
        passes = method.recipe.passes
        snapshots = list(dict.fromkeys((spec, j // passes) for spec, j in sources))
        place = {snapshot: position for position, snapshot in enumerate(snapshots)}
        yield TrainedEnsemble(
            ensemble=rounds.ensemble,
            accuracy=rounds.members.accuracy,
            learners=tuple(manager.rounds.load(spec).weights[at] for spec, at in snapshots),
            positions=np.array(
                [place[spec, j // passes] * passes + j % passes for spec, j in sources]
            ),
            known=rounds.known_classes,
            price=rounds.price(plan.epochs),
            rounds=len({spec for spec, _ in sources}),
            origins=tuple(
                (spec.index, int(manager.rounds.load(spec).epochs[j]), spec.generation)
                for spec, j in sources
            ),
        )
