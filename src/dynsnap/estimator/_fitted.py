"""What fitting leaves behind: plain values, so that saving is writing them down."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynsnap._types import Accuracies, AnyArray, Flags, MemberScores, Positions
from dynsnap.ensemble import Members, Method, Round, cost
from dynsnap.trainers import ScoreMembers


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One learner of an ensemble.

    Attributes:
        round: The round that it comes from, counted from 0.
        epoch: The epoch of that round that it was taken after, counted from 0.
        accuracy: Its accuracy on that round's validation rows.
        learner: Which of the stored learners it is, counted from 0.
        attempt: Which of the passes with dropout on; 0 without dropout.
        generation: Which generation it was trained for.
    """

    round: int
    epoch: int
    accuracy: float
    learner: int
    attempt: int = 0
    generation: int = 1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Fitted:
    """An ensemble of one generation.

    Attributes:
        backend: The name of the trainer that it comes from.
        learners: The stored learners, each once.
        passes: Members that each learner gives; more than 1 with dropout left on.
        learned: Of each learner, the classes that it knows: the positions of its scores among the
            classes of the ensemble. Empty where all learners know all classes.
        selection_holdout: Share of the rows that no learner was trained on, by their content.
    """

    backend: str
    members: tuple[Member, ...]
    learners: tuple[bytes, ...]
    passes: int
    rounds: int
    cost: float
    seed: int
    generation: int
    learned: tuple[tuple[int, ...], ...] = ()
    selection_holdout: float = 0.0

    @property
    def accuracies(self) -> Accuracies:
        """Validation accuracy of each member."""
        return np.array([member.accuracy for member in self.members])

    @property
    def places(self) -> Positions:
        """Where each member stands among the scores of all learners and passes."""
        return np.array([one.learner * self.passes + one.attempt for one in self.members])

    def known(self, classes: int) -> Flags | None:
        """Which classes each member has seen in training; None where all have seen all."""
        if not self.learned:
            return None
        flags = np.zeros((len(self.members), classes), dtype=bool)
        for row, member in zip(flags, self.members, strict=True):
            row[list(self.learned[member.learner])] = True
        return flags

    def scoring(
        self, classes: int, opened: Callable[[Sequence[bytes], int], ScoreMembers]
    ) -> ScoreMembers:
        """What scores inputs with all learners, given what opens those of one number of classes."""
        if not self.learned:
            return opened(self.learners, classes)
        # Learners of one generation have the same classes, and are opened together.
        groups: dict[tuple[int, ...], list[int]] = {}
        for place, columns in enumerate(self.learned):
            groups.setdefault(columns, []).append(place)
        parts = [
            (places, list(columns), opened([self.learners[at] for at in places], len(columns)))
            for columns, places in groups.items()
        ]

        def score(inputs: AnyArray) -> MemberScores:
            scores = np.zeros((len(self.learners), len(inputs), classes), np.float32)
            for places, columns, score_part in parts:
                scores[np.ix_(places, range(len(inputs)), columns)] = score_part(inputs)
            return scores

        return score


def fitted(
    method: Method,
    rounds: tuple[Round, ...],
    kept: Members,
    *,
    backend: str,
    epochs: int,
    seed: int,
    generation: int,
) -> Fitted:
    """The ensemble of those members that a method keeps of its rounds."""
    passes = method.recipe.passes
    sources = dict.fromkeys((at, position // passes) for at, position in kept.origin)
    place = {source: number for number, source in enumerate(sources)}
    return Fitted(
        backend=backend,
        members=tuple(
            Member(
                round=at,
                epoch=int(rounds[at].epochs[position]),
                accuracy=float(judged),
                learner=place[at, position // passes],
                attempt=position % passes,
                generation=generation,
            )
            for (at, position), judged in zip(kept.origin, kept.accuracy, strict=True)
        ),
        learners=tuple(rounds[at].weights[snapshot] for at, snapshot in sources),
        passes=passes,
        rounds=len(rounds),
        cost=cost(method.recipe, rounds=len(rounds), epochs=epochs),
        seed=seed,
        generation=generation,
    )
