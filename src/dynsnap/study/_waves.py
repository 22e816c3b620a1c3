"""Every round that a study needs, a wave at a time: all ensembles of the study ask together."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from dynsnap.data import Stream
from dynsnap.ensemble import (
    Engine,
    NamingStore,
    Round,
    RoundSpec,
    RoundStore,
    Trainer,
    beginning,
    round_key,
    train_rounds,
)
from dynsnap.errors import FileError
from dynsnap.study._cast import Casting
from dynsnap.study._ensemble import Ensemble
from dynsnap.study._monitor import StudyMonitor
from dynsnap.study._wants import Wants

More: TypeAlias = Callable[[], Sequence[RoundSpec]]


class Ledger:
    """Has rounds trained and stored, and knows which of them each ensemble is made of.

    Scores and weights stay in the store. What is held in memory does not grow with the data:
    accuracies and times only.

    Attributes:
        trained_as: Says of a round which one is trained and stored for it: itself, unless it is the
            beginning of a longer one.
        heads: What is known of the rounds that are stored.
    """

    def __init__(
        self,
        trainer: Trainer,
        store: RoundStore,
        monitor: StudyMonitor | None,
        stream: Stream | None = None,
        *,
        trained_as: Callable[[RoundSpec], RoundSpec] = lambda spec: spec,
    ) -> None:
        self._trainer = trainer
        self._store = store
        self._monitor = monitor
        self._found = 0
        self._latest: list[RoundSpec] = []
        self.trained = 0
        self.missing: tuple[RoundSpec, ...] = ()
        self.heads: dict[RoundSpec, Round] = {}
        self.trained_as = trained_as
        self._wants = Wants(self.heads, self.load, self._name, trained_as, stream)

    @property
    def grown(self) -> dict[Ensemble, list[Round]]:
        """Every ensemble, with what is known of the rounds of its own generation."""
        return self._wants.grown

    @property
    def casting(self) -> Casting:
        """Who plays in which ensemble: for ensembles that are grown."""
        return self._wants.casting

    def get(self, key: str, spec: RoundSpec, /) -> Round | None:
        """What is known of a stored round: with `put`, this is what `train_rounds` asks for."""
        done = self._store.get(key, spec)
        if done is None:
            return None
        self._found += 1
        self.heads[spec] = _head(done)
        return self.heads[spec]

    def put(self, key: str, done: Round, /) -> None:
        """Nothing is left to do: `spread` has stored the round already."""

    def spread(
        self, engine: Engine, specs: Sequence[RoundSpec], more: More | None = None
    ) -> Iterator[Round]:
        """Have the rounds trained, store each as it comes, and pass on what is known of it.

        Args:
            engine: Trains them.
            specs: The rounds.
            more: Further rounds that are wanted by now. An engine that takes more is handed it, and
                what it gives of those is only stored.
        """
        self._begin_wave(specs)
        asking = {"more": more} if more is not None and getattr(engine, "takes_more", False) else {}
        asked = set(specs)
        for done in engine(self._trainer, specs, **asking):
            self._store.put(round_key(self._trainer, done.spec), done)
            self.trained += 1
            if self._monitor is not None:
                self._monitor.round_done(done)
            self.heads[done.spec] = _head(done)
            self._latest.append(done.spec)
            if done.spec in asked:
                yield self.heads[done.spec]

    def grow(
        self, ensembles: Sequence[Ensemble], *, engine: Engine, seed: int, ahead: int = 0
    ) -> None:
        """Train until every ensemble is full, `ahead` rounds before it is certain to need them."""
        self._wants.begin(ensembles)
        while specs := self._wants.outstanding(seed=seed, ahead=ahead):
            train_rounds(
                specs,
                self._trainer,
                engine=lambda _, asked: self.spread(
                    engine, asked, self._asking(asked, seed, ahead)
                ),
                store=self,
            )

    def gather(self, ensembles: Sequence[Ensemble], *, seed: int) -> None:
        """Fill ensembles with stored rounds alone.

        Those that lack some are not among the grown afterwards; `missing` has the rounds that they
        are certain to need.
        """
        self._wants.begin(ensembles)
        missing: dict[RoundSpec, None] = {}
        while specs := [one for one in self._wants.outstanding(seed=seed) if one not in missing]:
            missing.update(dict.fromkeys(self._not_stored(specs)))
        for ensemble in [one for one in self.grown if not self._wants.complete(one)]:
            del self.grown[ensemble]
        self.missing = tuple(missing)

    def has(self, ensembles: Sequence[Ensemble]) -> bool:
        """Whether all rounds of these ensembles are there."""
        return all(ensemble in self.grown for ensemble in ensembles)

    def rounds(self, ensemble: Ensemble) -> list[Round]:
        """The heads of the rounds that were trained for an ensemble in its own generation."""
        return self._wants.rounds(ensemble)

    def specs(self, ensemble: Ensemble) -> list[RoundSpec]:
        """The names of the rounds that were trained for an ensemble in its own generation."""
        return [head.spec for head in self.rounds(ensemble)]

    def load(self, spec: RoundSpec) -> Round:
        """A round with its scores, from the store: never from memory, so that a resumed study sees
        exactly what one in a single go does."""
        whole = self.trained_as(spec)
        done = self._store.get(round_key(self._trainer, whole), whole)
        if done is None:
            raise FileError(f"{whole} was removed or damaged while the study ran. Run it again.")
        return beginning(done, spec)

    def _asking(self, asked: Sequence[RoundSpec], seed: int, ahead: int) -> More:
        """What ensembles want by now, beside what was asked for: each round once."""
        ordered = set(asked)

        def more() -> list[RoundSpec]:
            fresh: list[RoundSpec] = []
            concerned = self._wants.concerned(self._latest)
            self._latest.clear()
            asking = partial(self._wants.outstanding, seed=seed, ahead=ahead, ensembles=concerned)
            while new := [spec for spec in asking() if spec not in ordered]:
                ordered.update(new)
                fresh += self._not_stored(new)
            if fresh:
                self._begin_wave(fresh)
            return fresh

        return more

    def _begin_wave(self, specs: Sequence[RoundSpec]) -> None:
        if self._monitor is not None:
            self._monitor.wave_begins(specs, found=self._found)
            self._found = 0

    def _not_stored(self, specs: Sequence[RoundSpec]) -> list[RoundSpec]:
        """Those of the rounds that the store lacks; what is known of the others is noted."""
        return [one for one in specs if self.get(round_key(self._trainer, one), one) is None]

    def _name(self, spec: RoundSpec, place: int) -> str:
        """What a stored member is called."""
        return f"{self._key(self.trained_as(spec))}/{place}"

    def _key(self, spec: RoundSpec) -> str:
        """What a stored round is called, also where another machine has named it."""
        named = self._store.key_of(spec) if isinstance(self._store, NamingStore) else None
        return named or round_key(self._trainer, spec)


def _head(done: Round) -> Round:
    return dataclasses.replace(done, scores={}, weights=(), curve=np.empty(0))
