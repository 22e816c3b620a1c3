"""Who an ensemble is made of: members of its own rounds, and of rounds of generations before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from dynsnap._types import Accuracies, Flags, Labels, MemberScores, Positions
from dynsnap.data import Stream
from dynsnap.ensemble import Round, RoundSpec, Size, best, judged, members
from dynsnap.errors import PlanError
from dynsnap.study._ensemble import Ensemble

UNTOUCHED = "untouched"


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """The members of an ensemble.

    Attributes:
        who: Of each, the round that it comes from and its place there.
        accuracy: Of each, on its round's validation rows; where members are carried over, of all
            of them on rows that no member was ever trained on.
    """

    who: tuple[tuple[RoundSpec, int], ...]
    accuracy: Accuracies

    def __len__(self) -> int:
        return len(self.who)


def check_judges(stream: Stream) -> None:
    """Raise unless members of any generation can be judged by this data."""
    if not stream.untouched:
        raise PlanError(
            "A rolling ensemble judges members of any generation by rows that none was ever "
            "trained on, and this data has no such rows: set `untouched` in [data.growth], such "
            "as 0.5 of the validation rows."
        )


class Casting:
    """Finds out who plays in which ensemble, from rounds that are trained already.

    Args:
        load: Gives a round with its scores.
        grown: Gives what is known of the rounds of an ensemble's own generation, which may lack
            scores.
        refreshed: Gives the rounds that trained on carried members of an ensemble.
        stream: The study's data.
    """

    def __init__(
        self,
        load: Callable[[RoundSpec], Round],
        grown: Callable[[Ensemble], Sequence[Round]],
        refreshed: Callable[[Ensemble], Sequence[Round]],
        stream: Stream,
    ) -> None:
        self._load = load
        self._grown = grown
        self._refreshed = refreshed
        self._stream = stream
        self._casts: dict[Ensemble, Cast] = {}
        self._carried: dict[Ensemble, Cast] = {}
        self._parents: dict[Ensemble, list[tuple[RoundSpec, int]]] = {}
        self._born: dict[RoundSpec, int] = {}  # of rounds that trained on a member: its generation

    def of(self, ensemble: Ensemble) -> Cast:
        """The members of an ensemble whose rounds are all there."""
        if ensemble not in self._casts:
            self._casts[ensemble] = self._find(ensemble)
        return self._casts[ensemble]

    def carried(self, ensemble: Ensemble) -> Cast:
        """The members of the generation before that an ensemble carries over, best first.

        The rounds for its first new members must be there too.
        """
        if ensemble not in self._carried:
            self._carried[ensemble] = self._carry(ensemble)
        return self._carried[ensemble]

    def parents(self, ensemble: Ensemble) -> list[tuple[RoundSpec, int]]:
        """The members of the generation before that new rounds go on from: the best of each round.

        The best round comes first. Members of one round are much alike, and so would be what is
        made of them.
        """
        if ensemble not in self._parents:
            self._parents[ensemble] = self._best_of_each(ensemble)
        return self._parents[ensemble]

    def scores(self, cast: Cast, name: str) -> MemberScores:
        """What the members say about one evaluation set, each round read once."""
        found = [
            self._load(spec).scores[name][[place for _, place in places]]
            for spec, places in groupby(cast.who, key=lambda one: one[0])
        ]
        return np.concatenate(found)

    def heeded(self, ensemble: Ensemble) -> Flags | None:
        """Which classes each member has learned; None where nobody asks.

        A few epochs on top are too few to learn a class: a member that was trained on knows what it
        knew when it was new.
        """
        rolling = ensemble.method.rolling
        if rolling is None or not rolling.class_aware:
            return None
        who = self.of(ensemble).who
        generations = [self._born.get(spec, spec.generation) for spec, _ in who]
        learned = {number: self._stream.learned(number) for number in set(generations)}
        return np.stack([learned[number] for number in generations])

    def _find(self, ensemble: Ensemble) -> Cast:
        rolling, size = ensemble.method.rolling, ensemble.method.plan.size
        if rolling is None or ensemble.previous is None:
            return self._fresh(ensemble, size)
        assert size != "auto"
        old = self.carried(ensemble)
        if rolling.refresh:
            refreshed = [done.spec for done in self._refreshed(ensemble)]
            for spec, (parent, _) in zip(refreshed, old.who, strict=True):
                self._born[spec] = self._born.get(parent, parent.generation)
            old = Cast(tuple((spec, 0) for spec in refreshed), old.accuracy)
        together = Cast(old.who + self._fresh(ensemble, size - len(old)).who, np.empty(0))
        return replace(together, accuracy=self._judged(together, ensemble.generation))

    def _fresh(self, ensemble: Ensemble, count: Size) -> Cast:
        """So many members of an ensemble's own rounds."""
        if not count:
            return Cast((), np.empty(0))
        rounds = self._grown(ensemble)
        kept = members(replace(ensemble.plan, size=count), rounds)
        return Cast(tuple((rounds[place].spec, j) for place, j in kept.origin), kept.accuracy)

    def _carry(self, ensemble: Ensemble) -> Cast:
        rolling, before, size = (
            ensemble.method.rolling,
            ensemble.previous,
            ensemble.method.plan.size,
        )
        assert rolling is not None and before is not None and size != "auto"
        old = self.of(before)
        rows, truth = self._judging(ensemble.generation)
        scores = self.scores(old, UNTOUCHED)[:, rows]
        first = self._fresh(ensemble, ensemble.new_members)
        new = self.scores(first, UNTOUCHED)[:, rows] if len(first) else None
        accuracy, agreement, bars = judged(scores, truth, known=self.heeded(before), new=new)
        kept = best(accuracy, agreement, count=rolling.carried(size), rolling=rolling, new=bars)
        return Cast(tuple(old.who[place] for place in kept.tolist()), accuracy[kept])

    def _best_of_each(self, ensemble: Ensemble) -> list[tuple[RoundSpec, int]]:
        assert ensemble.previous is not None
        old = self.of(ensemble.previous)
        accuracy = self._judged(old, ensemble.generation)
        best_of: dict[RoundSpec, int] = {}
        for position in np.argsort(-accuracy, kind="stable").tolist():
            spec, place = old.who[position]
            best_of.setdefault(spec, place)
        return list(best_of.items())

    def _judged(self, cast: Cast, generation: int) -> Accuracies:
        """The accuracy of each member on the rows that members are judged by in a generation."""
        rows, truth = self._judging(generation)
        said = self.scores(cast, UNTOUCHED)[:, rows].argmax(axis=2)
        return np.asarray(np.mean(said == truth, axis=1))

    def _judging(self, generation: int) -> tuple[Positions, Labels]:
        """The rows that members are judged by in a generation, and their true classes."""
        rows = self._stream.untouched[generation - 1]
        return rows, self._stream.evaluation[UNTOUCHED].labels[rows]
