"""Ensembles to predict with: the learners themselves, not only what they say."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynsnap._types import Accuracies, Flags, Positions
from dynsnap.data import Stream
from dynsnap.ensemble import Engine, Method, RoundStore, Trainer, serial
from dynsnap.errors import PlanError
from dynsnap.study._ensemble import Ensemble
from dynsnap.study._monitor import StudyMonitor
from dynsnap.study._plan import StudyPlan
from dynsnap.study._prefixes import trained_as
from dynsnap.study._views import Price, price
from dynsnap.study._waves import Ledger


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrainedEnsemble:
    """The learners of one ensemble.

    Attributes:
        accuracy: Validation accuracy of each member.
        learners: Each learner once, in the trainer's own format.
        positions: For each member its place among the scores that the learners give together.
        known: Which classes each member has seen in training; None where all know the same.
        price: What it took to train.
    """

    ensemble: Ensemble
    accuracy: Accuracies
    learners: tuple[bytes, ...]
    positions: Positions
    known: Flags | None
    price: Price


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
    """Train one method on some generations of a study, and hand out its learners.

    The store must keep weights. Rounds that it holds are not trained again.
    """
    check_generations(stream, generations)
    ledger = Ledger(trainer, store, monitor, stream, trained_as=trained_as(plan))
    ensembles = [
        Ensemble(method=method, generation=number, replicate=replicate) for number in generations
    ]
    # What is carried over has to be there first.
    needed = range(1, max(generations) + 1) if method.rolling is not None else generations
    ledger.grow(
        [Ensemble(method=method, generation=number, replicate=replicate) for number in needed],
        engine=engine,
        seed=plan.seed,
    )
    for ensemble in ensembles:
        cast = ledger.casting.of(ensemble)
        # A learner that predicts several times with dropout on is several members.
        passes = method.recipe.passes
        found = list(dict.fromkeys((spec, j // passes) for spec, j in cast.who))
        place = {source: position for position, source in enumerate(found)}
        yield TrainedEnsemble(
            ensemble=ensemble,
            accuracy=cast.accuracy,
            learners=tuple(ledger.load(spec).weights[snapshot] for spec, snapshot in found),
            positions=np.array(
                [place[spec, j // passes] * passes + j % passes for spec, j in cast.who]
            ),
            known=ledger.casting.heeded(ensemble),
            price=price(plan, ledger, [ensemble]),
        )
