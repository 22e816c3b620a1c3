"""What fitting leaves behind: plain values, so that saving is writing them down."""

from dataclasses import dataclass

import numpy as np

from dynsnap._types import Accuracies, Positions
from dynsnap.ensemble import Method, Round, cost, members
from dynsnap.estimator._backends import Backend


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One learner of an ensemble.

    Attributes:
        round: The round that it comes from, counted from 0.
        epoch: The epoch of that round that it was taken after, counted from 0.
        accuracy: Its accuracy on that round's validation rows.
        learner: Which of the stored learners it is, counted from 0.
        attempt: Which of the passes with dropout on; 0 without dropout.
    """

    round: int
    epoch: int
    accuracy: float
    learner: int
    attempt: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Fitted:
    """An ensemble of one generation.

    Attributes:
        learners: The stored learners, each once.
        passes: Members that each learner gives; more than 1 with dropout left on.
    """

    backend: Backend
    members: tuple[Member, ...]
    learners: tuple[bytes, ...]
    passes: int
    rounds: int
    cost: float
    seed: int
    generation: int

    @property
    def accuracies(self) -> Accuracies:
        """Validation accuracy of each member."""
        return np.array([member.accuracy for member in self.members])

    @property
    def places(self) -> Positions:
        """Where each member stands among the scores of all learners and passes."""
        return np.array([one.learner * self.passes + one.attempt for one in self.members])


def fitted(
    method: Method,
    rounds: tuple[Round, ...],
    *,
    backend: Backend,
    epochs: int,
    seed: int,
    generation: int,
) -> Fitted:
    """The ensemble that a method makes of its rounds."""
    passes = method.recipe.passes
    kept = members(method.plan, rounds)
    sources = dict.fromkeys((at, position // passes) for at, position in kept.origin)
    place = {source: number for number, source in enumerate(sources)}
    return Fitted(
        backend=backend,
        members=tuple(
            Member(
                round=at,
                epoch=int(rounds[at].epochs[position]),
                accuracy=float(rounds[at].accuracy[position]),
                learner=place[at, position // passes],
                attempt=position % passes,
            )
            for at, position in kept.origin
        ),
        learners=tuple(rounds[at].weights[snapshot] for at, snapshot in sources),
        passes=passes,
        rounds=len(rounds),
        cost=cost(method.recipe, rounds=len(rounds), epochs=epochs),
        seed=seed,
        generation=generation,
    )
