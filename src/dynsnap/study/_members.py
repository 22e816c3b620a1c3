"""Which members an ensemble has: of its own rounds, and carried over from the generation before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol, TypeAlias

import numpy as np

from dynsnap import gate
from dynsnap._types import Accuracies, Flags, Labels, MemberScores, Positions
from dynsnap.data import SELECTION_SET, Stream
from dynsnap.ensemble import Rolling, Round, RoundSpec, Size, best, judged, members
from dynsnap.errors import PlanError
from dynsnap.study._ensembles import Ensemble

Source: TypeAlias = tuple[RoundSpec, int]  # a round, and the place of a member in it


class RoundReader(Protocol):
    """The rounds that are available, as far as decisions about ensembles need them."""

    def head(self, spec: RoundSpec, /) -> Round:
        """An available round without its scores and weights."""
        ...

    def missing(self, specs: Sequence[RoundSpec], /) -> list[RoundSpec]:
        """The rounds to train so that all of these are available."""
        ...

    def load(self, spec: RoundSpec, /) -> Round:
        """An available round with its scores."""
        ...

    def member_key(self, spec: RoundSpec, place: int, /) -> str:
        """The key of a stored member, from its round and its place there."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SelectedMembers:
    """The members of an ensemble.

    Attributes:
        sources: Of each, the round that it comes from and its place there.
        accuracy: Of each, on its round's validation rows; where members are carried over, of all
            of them on rows that no member was ever trained on.
        learned: Of each, the generation whose classes it has learned. A few epochs of fine-tuning
            are too few to learn a class, so they do not change it.
    """

    sources: tuple[Source, ...]
    accuracy: Accuracies
    learned: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sources)


def check_selection_holdout(stream: Stream) -> None:
    """Raise unless the data has rows to compare members of all generations on."""
    if not stream.selection_holdout:
        raise PlanError(
            "A rolling ensemble, `interpolate` and `cost_ratio` compare networks of two generations"
            " on rows that none was ever trained on, and this data has no such rows: set "
            "`selection_holdout` in [data.growth], such as 0.5 of the validation rows."
        )


def check_gates(ensembles: Iterable[Ensemble], stream: Stream) -> None:
    """Raise where a gate would have fewer rows than it can judge, before anything is trained."""
    for one in ensembles:
        if not (one.method.gate and one.earlier):
            continue
        rows = len(stream.selection_holdout[one.generation - 1])
        if rows < gate.MIN_COUNT:
            raise PlanError(
                f"The gate of {one.method.name!r} cannot judge generation {one.generation}: the "
                f"selection holdout has {rows} rows by then, and a gate needs {gate.MIN_COUNT}. "
                "Set a larger `selection_holdout` in [data.growth]."
            )


class MemberSelector:
    """Selects members from rounds that are available.

    Args:
        rounds: The available rounds.
        stream: The study's data; needed where members are carried over.
    """

    def __init__(self, rounds: RoundReader, stream: Stream | None = None) -> None:
        self._rounds = rounds
        self._stream = stream

    def new(self, ensemble: Ensemble, rounds: Sequence[Round], count: Size) -> SelectedMembers:
        """So many members of an ensemble's own rounds; scores are not needed."""
        if not count:
            return SelectedMembers((), np.empty(0), ())
        found = members(replace(ensemble.plan, size=count), rounds)
        sources = tuple((rounds[position].spec, place) for position, place in found.origin)
        return SelectedMembers(sources, found.accuracy, (ensemble.generation,) * len(sources))

    def carried(
        self, ensemble: Ensemble, old: SelectedMembers, new: SelectedMembers
    ) -> SelectedMembers:
        """The members that an ensemble carries over, best first.

        Args:
            ensemble: The ensemble.
            old: The members of the generation before.
            new: The first new members; an old member that lags behind them is not carried over.
        """
        rolling, size = ensemble.method.rolling, ensemble.method.plan.size
        assert rolling is not None and size != "auto"
        rows, truth = self._untouched(ensemble.generation)
        accuracy, agreement, bars = judged(
            self.scores(old, SELECTION_SET)[:, rows],
            truth,
            known=self.known_classes(rolling, old),
            new=self.scores(new, SELECTION_SET)[:, rows] if len(new) else None,
        )
        kept = best(accuracy, agreement, count=rolling.carried(size), rolling=rolling, new=bars)
        return SelectedMembers(
            tuple(old.sources[place] for place in kept.tolist()),
            accuracy[kept],
            tuple(old.learned[place] for place in kept.tolist()),
        )

    def together(
        self, ensemble: Ensemble, old: SelectedMembers, new: SelectedMembers
    ) -> SelectedMembers:
        """The members of an ensemble that carries some over."""
        found = SelectedMembers(old.sources + new.sources, np.empty(0), old.learned + new.learned)
        return replace(found, accuracy=self._accuracy(found, ensemble.generation))

    def parents(self, ensemble: Ensemble, old: SelectedMembers) -> list[Source]:
        """The old members that an ensemble's rounds start from: the best of each old round.

        The best round comes first. Members of one round are much alike, and so are rounds that
        start from them.
        """
        accuracy = self._accuracy(old, ensemble.generation)
        best_of: dict[RoundSpec, int] = {}
        for position in np.argsort(-accuracy, kind="stable").tolist():
            spec, place = old.sources[position]
            best_of.setdefault(spec, place)
        return list(best_of.items())

    def scores(self, selected: SelectedMembers, name: str) -> MemberScores:
        """The members' scores on one evaluation set; each round is read once."""
        found = [
            self._rounds.load(spec).scores[name][[place for _, place in places]]
            for spec, places in groupby(selected.sources, key=lambda source: source[0])
        ]
        return np.concatenate(found)

    def known_classes(self, rolling: Rolling | None, selected: SelectedMembers) -> Flags | None:
        """Which classes each member has learned; None where the method does not ask."""
        if rolling is None or not rolling.class_aware:
            return None
        assert self._stream is not None, "hand in the data"
        learned = {number: self._stream.learned(number) for number in set(selected.learned)}
        return np.stack([learned[number] for number in selected.learned])

    def _accuracy(self, selected: SelectedMembers, generation: int) -> Accuracies:
        """The accuracy of each member on the selection holdout of a generation."""
        rows, truth = self._untouched(generation)
        labels = self.scores(selected, SELECTION_SET)[:, rows].argmax(axis=2)
        return np.asarray(np.mean(labels == truth, axis=1))

    def _untouched(self, generation: int) -> tuple[Positions, Labels]:
        """The selection holdout of a generation, and their true classes."""
        assert self._stream is not None, "hand in the data"
        rows = self._stream.selection_holdout[generation - 1]
        return rows, self._stream.evaluation[SELECTION_SET].labels[rows]
