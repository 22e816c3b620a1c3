"""Every round that a study needs, a wave at a time: all ensembles of the study ask together."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np

from dynsnap.data import Stream
from dynsnap.ensemble import (
    Engine,
    Monitor,
    NamingStore,
    Round,
    RoundSpec,
    RoundStore,
    Size,
    Trainer,
    beginning,
    round_key,
    train_rounds,
)
from dynsnap.errors import FileError
from dynsnap.study._cast import Casting, check_judges
from dynsnap.study._ensemble import Ensemble

More: TypeAlias = Callable[[], Sequence[RoundSpec]]


class StudyMonitor(Monitor, Protocol):
    """Is told how a study goes, beside how each training goes."""

    def wave_begins(self, specs: Sequence[RoundSpec], /, *, found: int) -> None:
        """So many rounds were found in the store since the last wave, and these will be trained."""
        ...

    def round_done(self, done: Round, /) -> None: ...

    def measured(self, method: str, combination: str, /) -> None:
        """The rows of the table for this method and combination are there."""
        ...


class Ledger:
    """Which rounds each ensemble is made of. Their scores and weights stay in the store.

    What is held in memory does not grow with the data: accuracies and times only.

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
        self.grown: dict[Ensemble, list[Round]] = {}
        self._refreshed: dict[Ensemble, list[Round]] = {}
        self._decided: dict[tuple[Ensemble, int], int] = {}
        self._stream = stream
        self.trained_as = trained_as

    @cached_property
    def casting(self) -> Casting:
        """Who plays in which ensemble: for ensembles that are grown."""
        assert self._stream is not None, "hand in the data"
        return Casting(self.load, self.grown.__getitem__, self._refreshed.__getitem__, self._stream)

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
        self._begin(ensembles)
        while specs := self._outstanding(seed, ahead):
            fresh = train_rounds(
                specs,
                self._trainer,
                engine=lambda _, asked: self.spread(
                    engine, asked, self._asking(asked, seed, ahead)
                ),
                store=self,
            )
            self.heads.update((head.spec, head) for head in fresh)

    def gather(self, ensembles: Sequence[Ensemble], *, seed: int) -> None:
        """Fill ensembles with stored rounds alone.

        Those that lack some are not among the grown afterwards; `missing` has the rounds that they
        are certain to need.
        """
        self._begin(ensembles)
        missing: dict[RoundSpec, None] = {}
        while specs := [one for one in self._outstanding(seed, 0) if one not in missing]:
            for spec in specs:
                head = self.get(round_key(self._trainer, spec), spec)
                if head is None:
                    missing[spec] = None
                else:
                    self.heads[spec] = head
        for ensemble in [one for one in self.grown if not self._complete(one)]:
            del self.grown[ensemble]
        self.missing = tuple(missing)

    def has(self, ensembles: Sequence[Ensemble]) -> bool:
        """Whether all rounds of these ensembles are there."""
        return all(ensemble in self.grown for ensemble in ensembles)

    def _begin(self, ensembles: Sequence[Ensemble]) -> None:
        if self._stream is not None and any(ensemble.previous for ensemble in ensembles):
            check_judges(self._stream)
        self.grown.clear()
        self.grown.update((ensemble, []) for ensemble in ensembles)

    def rounds(self, ensemble: Ensemble) -> list[Round]:
        """The heads of the rounds that were trained for an ensemble in its own generation."""
        return self._own_rounds(ensemble) + self._refreshed.get(ensemble, [])

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

    def _lacking(self, specs: Sequence[RoundSpec]) -> list[RoundSpec]:
        """What is to be trained so that all of these rounds are there."""
        return [whole for whole in map(self.trained_as, specs) if whole not in self.heads]

    def _own_rounds(self, ensemble: Ensemble) -> list[Round]:
        grown = self.grown[ensemble]
        return grown[: ensemble.rounds_used(grown, self._new_members(ensemble))]

    def _asking(self, asked: Sequence[RoundSpec], seed: int, ahead: int) -> More:
        """What ensembles want by now, beside what was asked for: each round once."""
        ordered = set(asked)

        def more() -> list[RoundSpec]:
            fresh: list[RoundSpec] = []
            concerned = self._concerned()
            while new := [
                spec for spec in self._outstanding(seed, ahead, concerned) if spec not in ordered
            ]:
                ordered.update(new)
                fresh += [
                    spec for spec in new if self.get(round_key(self._trainer, spec), spec) is None
                ]
            if fresh:
                self._begin_wave(fresh)
            return fresh

        return more

    def _concerned(self) -> list[Ensemble]:
        """The ensembles that may want something else since the latest rounds are there."""
        # Not by the whole recipe: the latest may be longer rounds, whose beginnings were wanted.
        found = {(one.recipe.schedule, one.generation, one.replicate) for one in self._latest}
        self._latest.clear()
        return [
            one
            for one in self.grown
            if one.method.rolling
            or (one.method.recipe.schedule, one.generation, one.replicate) in found
        ]

    def _begin_wave(self, specs: Sequence[RoundSpec]) -> None:
        if self._monitor is not None:
            self._monitor.wave_begins(specs, found=self._found)
            self._found = 0

    def _outstanding(
        self, seed: int, ahead: int, ensembles: Sequence[Ensemble] | None = None
    ) -> list[RoundSpec]:
        """What all ensembles, or these, want and nobody has trained yet, each round once."""
        missing: dict[RoundSpec, None] = {}
        for ensemble in self.grown if ensembles is None else ensembles:
            rounds = self.grown[ensemble]
            while more := self._wanted(ensemble, rounds):
                have = len(rounds)
                if ensemble.goes_on and not self._complete(ensemble.earlier[-1]):
                    break  # it is not known from whom
                specs = [self._spec(ensemble, have + i, seed) for i in range(more)]
                lacking = self._lacking(specs)
                if lacking:
                    early = [
                        self._spec(ensemble, have + more + i, seed)
                        for i in range(ahead if ensemble.open_ended else 0)
                    ]
                    missing.update(dict.fromkeys(lacking + self._lacking(early)))
                    break
                rounds.extend(beginning(self.heads[self.trained_as(one)], one) for one in specs)
            missing.update(dict.fromkeys(self._to_refresh(ensemble, seed)))
        return list(missing)

    def _spec(self, ensemble: Ensemble, index: int, seed: int) -> RoundSpec:
        if not ensemble.goes_on:
            return ensemble.spec(index, seed=seed)
        parents = self.casting.parents(ensemble)
        return ensemble.spec(index, seed=seed, parent=self._name(*parents[index % len(parents)]))

    def _to_refresh(self, ensemble: Ensemble, seed: int) -> list[RoundSpec]:
        """The carried members of an ensemble that are yet to be trained on, if known by now."""
        rolling, before = ensemble.method.rolling, ensemble.previous
        if rolling is None or before is None or not rolling.refresh:
            return []
        if ensemble in self._refreshed or not self._complete(before):
            return []
        if ensemble.wanted(self.grown[ensemble], ensemble.new_members):
            return []
        specs = [
            ensemble.refreshing(self._name(*member), seed=seed)
            for member in self.casting.carried(ensemble).who
        ]
        lacking = [spec for spec in specs if spec not in self.heads]
        if not lacking:
            self._refreshed[ensemble] = [self.heads[spec] for spec in specs]
        return lacking

    def _name(self, spec: RoundSpec, place: int) -> str:
        """What a stored member is called."""
        return f"{self._key(self.trained_as(spec))}/{place}"

    def _key(self, spec: RoundSpec) -> str:
        """What a stored round is called, also where another machine has named it."""
        named = self._store.key_of(spec) if isinstance(self._store, NamingStore) else None
        return named or round_key(self._trainer, spec)

    def _complete(self, ensemble: Ensemble) -> bool:
        """Whether all rounds of an ensemble are there, and of those that it carries over from."""
        before, rolling = ensemble.previous, ensemble.method.rolling
        if before is not None and not self._complete(before):
            return False
        waits = before is not None and rolling is not None and rolling.refresh
        if waits and ensemble not in self._refreshed:
            return False
        return not self._wanted(ensemble, self.grown[ensemble])

    def _wanted(self, ensemble: Ensemble, rounds: Sequence[Round]) -> int:
        """How many more rounds an ensemble is certain to need."""
        if not ensemble.method.plan.automatic:
            return ensemble.wanted(rounds, self._new_members(ensemble))
        known = (ensemble, len(rounds))
        if known not in self._decided:  # by what the rounds say, which is in the store
            loaded = [self.load(head.spec) for head in rounds]
            self._decided[known] = ensemble.wanted(loaded, ensemble.new_members)
        return self._decided[known]

    def _new_members(self, ensemble: Ensemble) -> Size:
        """How many members must come from an ensemble's own rounds, as far as is known by now."""
        least, before = ensemble.new_members, ensemble.previous
        if before is None or not least or ensemble.method.plan.size == "auto":
            return least
        if ensemble.wanted(self.grown[ensemble], least) or not self._complete(before):
            return least
        # The first new members are there, so that those to be carried over can be held to them.
        return ensemble.method.plan.size - len(self.casting.carried(ensemble))


def _head(done: Round) -> Round:
    return dataclasses.replace(done, scores={}, weights=(), curve=np.empty(0))
