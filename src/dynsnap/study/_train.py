"""Ensembles to predict with: the learners themselves, not only what they say."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynsnap._types import Accuracies, Positions
from dynsnap.data import Stream
from dynsnap.ensemble import Engine, Method, RoundStore, Trainer, members, serial
from dynsnap.errors import PlanError
from dynsnap.study._plan import StudyPlan
from dynsnap.study._views import Price, price
from dynsnap.study._waves import Ensemble, Ledger, StudyMonitor


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrainedEnsemble:
    """The learners of one ensemble.

    Attributes:
        accuracy: Validation accuracy of each member.
        learners: Each learner once, in the trainer's own format.
        positions: For each member its place among the scores that the learners give together.
        price: What it took to train.
    """

    ensemble: Ensemble
    accuracy: Accuracies
    learners: tuple[bytes, ...]
    positions: Positions
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
) -> Iterator[TrainedEnsemble]:
    """Train one method on some generations of a study, and hand out its learners.

    The store must keep weights. Rounds that it holds are not trained again.
    """
    check_generations(stream, generations)
    ledger = Ledger(trainer, store, monitor)
    ensembles = [Ensemble(method=method, generation=number) for number in generations]
    ledger.grow(ensembles, engine=engine, seed=plan.seed)
    for ensemble in ensembles:
        rounds = [ledger.load(spec) for spec in ledger.specs(ensemble)]
        kept = members(method.plan, rounds)
        # A learner that predicts several times with dropout on is several members.
        passes = method.recipe.passes
        found = list(dict.fromkeys((place, j // passes) for place, j in kept.origin))
        yield TrainedEnsemble(
            ensemble=ensemble,
            accuracy=kept.accuracy,
            learners=tuple(rounds[place].weights[snapshot] for place, snapshot in found),
            positions=np.array(
                [
                    found.index((place, j // passes)) * passes + j % passes
                    for place, j in kept.origin
                ]
            ),
            price=price(plan, ledger, [ensemble]),
        )
