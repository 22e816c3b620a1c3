"""Who an ensemble is made of: members of its own rounds, and of rounds of generations before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from dynsnap._types import Accuracies, Flags, Labels, MemberScores, Positions
from dynsnap.data import Stream
from dynsnap.ensemble import Rolling, Round, RoundSpec, best, combine, members
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
        fresh: Gives what is known of the rounds of an ensemble's own generation, which may lack
            scores.
        refreshed: Gives the rounds that trained on carried members of an ensemble.
        stream: The study's data.
    """

    def __init__(
        self,
        load: Callable[[RoundSpec], Round],
        fresh: Callable[[Ensemble], Sequence[Round]],
        refreshed: Callable[[Ensemble], Sequence[Round]],
        stream: Stream,
    ) -> None:
        self._load = load
        self._fresh = fresh
        self._refreshed = refreshed
        self._stream = stream
        self._casts: dict[Ensemble, Cast] = {}

    def of(self, ensemble: Ensemble) -> Cast:
        """The members of an ensemble whose rounds are all there."""
        if ensemble not in self._casts:
            self._casts[ensemble] = self._find(ensemble)
        return self._casts[ensemble]

    def carried(self, ensemble: Ensemble) -> Cast:
        """The members of the generation before that an ensemble carries over, best first."""
        rolling, before = ensemble.method.rolling, ensemble.previous
        assert rolling is not None and before is not None
        old = self.of(before)
        rows, truth = self._judging(ensemble.generation)
        scores = self.scores(old, UNTOUCHED)[:, rows]
        said = scores.argmax(axis=2)
        together = combine(scores, how="average", known=self.heeded(before))
        accuracy = np.mean(said == truth, axis=1)
        agreement = np.mean(said == together.argmax(axis=1), axis=1)
        kept = best(
            accuracy,
            agreement,
            count=rolling.carried(ensemble.method.plan.size),
            rolling=rolling,
        )
        return Cast(tuple(old.who[place] for place in kept.tolist()), accuracy[kept])

    def scores(self, cast: Cast, name: str) -> MemberScores:
        """What the members say about one evaluation set, each round read once."""
        found = [
            self._load(spec).scores[name][[place for _, place in places]]
            for spec, places in groupby(cast.who, key=lambda one: one[0])
        ]
        return np.concatenate(found)

    def heeded(self, ensemble: Ensemble) -> Flags | None:
        """Which classes each member has seen in training; None where nobody asks."""
        rolling = ensemble.method.rolling
        if rolling is None or not rolling.class_aware:
            return None
        generations = [spec.generation for spec, _ in self.of(ensemble).who]
        learned = {number: self._stream.learned(number) for number in set(generations)}
        return np.stack([learned[number] for number in generations])

    def _find(self, ensemble: Ensemble) -> Cast:
        rounds = self._fresh(ensemble)
        rolling, new = ensemble.method.rolling, ensemble.new_members
        fresh = Cast((), np.empty(0))
        if new:
            kept = members(replace(ensemble.method.plan, size=new), rounds)
            fresh = Cast(tuple((rounds[place].spec, j) for place, j in kept.origin), kept.accuracy)
        if rolling is None or ensemble.previous is None:
            return fresh
        old = self._old_hands(ensemble, rolling)
        together = Cast(old.who + fresh.who, np.empty(0))
        rows, truth = self._judging(ensemble.generation)
        said = self.scores(together, UNTOUCHED)[:, rows].argmax(axis=2)
        return replace(together, accuracy=np.mean(said == truth, axis=1))

    def _old_hands(self, ensemble: Ensemble, rolling: Rolling) -> Cast:
        """The members that are carried over, as they are now."""
        if not rolling.refresh:
            return self.carried(ensemble)
        refreshed = self._refreshed(ensemble)
        return Cast(tuple((done.spec, 0) for done in refreshed), np.empty(0))

    def _judging(self, generation: int) -> tuple[Positions, Labels]:
        """The rows that members are judged by in a generation, and their true classes."""
        rows = self._stream.untouched[generation - 1]
        return rows, self._stream.evaluation[UNTOUCHED].labels[rows]
