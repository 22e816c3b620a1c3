"""Getting the rounds that a study needs: from the store, or trained by an engine."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dynsnap.data import Stream
from dynsnap.ensemble import (
    Engine,
    Monitor,
    NamingStore,
    Round,
    RoundSpec,
    RoundStore,
    Trainer,
    beginning,
    received,
    round_key,
)
from dynsnap.errors import FileError
from dynsnap.study._ensembles import Ensemble, TrainedAs
from dynsnap.study._pending import EnsembleRounds, PendingRounds


class StudyMonitor(Monitor, Protocol):
    """Receives the progress of a study, beside that of each training."""

    def wave_begins(self, specs: Sequence[RoundSpec], /, *, found: int) -> None:
        """These rounds will be trained; so many were in the store since the last wave."""
        ...

    def round_done(self, done: Round, /) -> None: ...

    def measured(self, method: str, combination: str, /) -> None:
        """The table has its rows for this method and combination."""
        ...


class KnownRounds:
    """The rounds that a study has in its store.

    Scores and weights stay in the store. Memory does not grow with the data: it holds accuracies
    and times only.

    Attributes:
        trained_as: The round that is trained and stored for a round: itself, unless it is the
            beginning of a longer one.
        heads: The stored rounds without their scores and weights.
    """

    def __init__(self, trainer: Trainer, store: RoundStore, trained_as: TrainedAs) -> None:
        self._trainer = trainer
        self._store = store
        self.trained_as = trained_as
        self.heads: dict[RoundSpec, Round] = {}

    def find(self, spec: RoundSpec) -> bool:
        """Look for a round in the store; whether it is there."""
        done = self._store.get(round_key(self._trainer, spec), spec)
        if done is not None:
            self.heads[spec] = _head(done)
        return done is not None

    def add(self, done: Round) -> None:
        """Store a round that was just trained."""
        self._store.put(round_key(self._trainer, done.spec), done)
        self.heads[done.spec] = _head(done)

    def head(self, spec: RoundSpec, /) -> Round:
        """An available round without its scores and weights."""
        return beginning(self.heads[self.trained_as(spec)], spec)

    def missing(self, specs: Sequence[RoundSpec], /) -> list[RoundSpec]:
        """The rounds to train so that all of these are available."""
        return [whole for whole in map(self.trained_as, specs) if whole not in self.heads]

    def load(self, spec: RoundSpec, /) -> Round:
        """A round with its scores, from the store: never from memory, so that a resumed study reads
        exactly what an uninterrupted one does."""
        whole = self.trained_as(spec)
        done = self._store.get(round_key(self._trainer, whole), whole)
        if done is None:
            raise FileError(f"{whole} was removed or damaged while the study ran. Run it again.")
        return beginning(done, spec)

    def member_key(self, spec: RoundSpec, place: int, /) -> str:
        """The key of a stored member, also where another machine has stored its round."""
        whole = self.trained_as(spec)
        named = self._store.key_of(whole) if isinstance(self._store, NamingStore) else None
        return f"{named or round_key(self._trainer, whole)}/{place}"


class RoundManager:
    """Gets the rounds of ensembles: from the store where it has them, else from an engine.

    Attributes:
        rounds: The rounds that it has got so far.
        trained: How many of them it had trained.
    """

    def __init__(
        self,
        trainer: Trainer,
        store: RoundStore,
        monitor: StudyMonitor | None = None,
        stream: Stream | None = None,
        *,
        trained_as: TrainedAs = lambda spec: spec,
    ) -> None:
        self._trainer = trainer
        self._monitor = monitor
        self._stream = stream
        self._found = 0
        self.rounds = KnownRounds(trainer, store, trained_as)
        self.trained = 0

    def grow(
        self, ensembles: Sequence[Ensemble], *, engine: Engine, ahead: int = 0
    ) -> Mapping[Ensemble, EnsembleRounds]:
        """Train until every ensemble is complete.

        Args:
            ensembles: The ensembles.
            engine: Trains the rounds that the store lacks.
            ahead: Rounds that each ensemble may train before it is certain to need them.
        """
        pending = PendingRounds(ensembles, self.rounds, self._stream)
        while specs := pending.outstanding(ahead=ahead):
            if missing := self._not_stored(specs):
                self.train(missing, engine=engine, pending=pending, ahead=ahead)
        return pending.ensembles

    def gather(
        self, ensembles: Sequence[Ensemble]
    ) -> tuple[Mapping[Ensemble, EnsembleRounds], tuple[RoundSpec, ...]]:
        """Complete ensembles from the store alone, and the rounds that the others lack."""
        pending = PendingRounds(ensembles, self.rounds, self._stream)
        missing: dict[RoundSpec, None] = {}
        while specs := [one for one in pending.outstanding() if one not in missing]:
            missing.update(dict.fromkeys(self._not_stored(specs)))
        return pending.complete, tuple(missing)

    def train(
        self,
        specs: Sequence[RoundSpec],
        *,
        engine: Engine,
        pending: PendingRounds | None = None,
        ahead: int = 0,
    ) -> None:
        """Train rounds, and store each as soon as it is done.

        Args:
            specs: The rounds.
            engine: Trains them.
            pending: An engine with `takes_more` also gets the rounds that turn out to be needed
                while it works, so that no ensemble waits for the rounds of another.
            ahead: As in `grow`.
        """
        asked, latest = dict.fromkeys(specs), list[RoundSpec]()

        def more() -> list[RoundSpec]:
            """The rounds that are needed by now and were not asked for before."""
            assert pending is not None
            affected, fresh = pending.affected_by(latest), list[RoundSpec]()
            latest.clear()
            while new := [
                spec
                for spec in pending.outstanding(ahead=ahead, among=affected)
                if spec not in asked
            ]:
                missing = self._not_stored(new)
                asked.update(dict.fromkeys(missing))
                fresh += missing
            if fresh:
                self._begin_wave(fresh)
            return fresh

        takes_more = pending is not None and getattr(engine, "takes_more", False)
        options: dict[str, Any] = {"more": more} if takes_more else {}
        self._begin_wave(specs)
        for done in received(engine(self._trainer, specs, **options), asked):
            self.rounds.add(done)
            self.trained += 1
            if self._monitor is not None:
                self._monitor.round_done(done)
            latest.append(done.spec)

    def _begin_wave(self, specs: Sequence[RoundSpec]) -> None:
        if self._monitor is not None:
            self._monitor.wave_begins(specs, found=self._found)
            self._found = 0

    def _not_stored(self, specs: Sequence[RoundSpec]) -> list[RoundSpec]:
        """Those of the rounds that the store lacks."""
        missing = [spec for spec in specs if not self.rounds.find(spec)]
        self._found += len(specs) - len(missing)
        return missing


def missing_rounds(count: int, *, more: bool = False) -> str:
    """How many rounds are missing, as a clause; `more` right behind how many there are.

    Examples:
        >>> missing_rounds(1), missing_rounds(1200)
        ('1 round is missing', '1,200 rounds are missing')
        >>> f"12 rounds of training ({missing_rounds(4, more=True)})"
        '12 rounds of training (4 more are missing)'
    """
    what = "more" if more else "round" if count == 1 else "rounds"
    return f"{count:,} {what} {'is' if count == 1 else 'are'} missing"


def _head(done: Round) -> Round:
    return dataclasses.replace(done, scores={}, weights=(), curve=np.empty(0), selection_curve=None)
