"""Every round that a study needs, a wave at a time: all ensembles of the study ask together."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dynsnap.ensemble import (
    Engine,
    Method,
    Monitor,
    Round,
    RoundSpec,
    RoundStore,
    Trainer,
    round_key,
    rounds_used,
    train_rounds,
    wanted,
)
from dynsnap.errors import FileError


class StudyMonitor(Monitor, Protocol):
    """Is told how a study goes, beside how each training goes."""

    def wave_begins(self, specs: Sequence[RoundSpec], /, *, found: int) -> None:
        """So many rounds were found in the store since the last wave, and these will be trained."""
        ...

    def round_done(self, done: Round, /) -> None: ...

    def measured(self, method: str, combination: str, /) -> None:
        """The rows of the table for this method and combination are there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble:
    """One ensemble of a study: a method in one generation of one replicate.

    Attributes:
        twin: 1 for the learner that measures the noise floor.
        offset: The index of its first round: single learners may be rounds of the same replicate.
    """

    method: Method
    generation: int
    replicate: int = 0
    twin: int = 0
    offset: int = 0

    @property
    def number(self) -> int:
        """Which repetition of its method it belongs to."""
        return self.replicate + self.offset

    def spec(self, index: int, *, seed: int) -> RoundSpec:
        """The ensemble's round of this index."""
        return RoundSpec(
            recipe=self.method.recipe,
            generation=self.generation,
            replicate=self.replicate,
            index=self.offset + index,
            seed=seed,
            twin=self.twin,
        )


class Ledger:
    """Which rounds each ensemble is made of. Their scores and weights stay in the store.

    What is held in memory does not grow with the data: accuracies and times only.
    """

    def __init__(self, trainer: Trainer, store: RoundStore, monitor: StudyMonitor | None) -> None:
        self._trainer = trainer
        self._store = store
        self._monitor = monitor
        self._found = 0
        self.trained = 0
        self.heads: dict[RoundSpec, Round] = {}
        self.grown: dict[Ensemble, list[Round]] = {}

    def get(self, key: str, spec: RoundSpec, /) -> Round | None:
        """What is known of a stored round: with `put`, this is what `train_rounds` asks for."""
        done = self._store.get(key, spec)
        if done is None:
            return None
        self._found += 1
        return _head(done)

    def put(self, key: str, done: Round, /) -> None:
        """Nothing is left to do: `spread` has stored the round already."""

    def spread(self, engine: Engine, specs: Sequence[RoundSpec]) -> Iterator[Round]:
        """Have the rounds trained, store each as it comes, and pass on what is known of it."""
        if self._monitor is not None:
            self._monitor.wave_begins(specs, found=self._found)
            self._found = 0
        for done in engine(self._trainer, specs):
            self._store.put(round_key(self._trainer, done.spec), done)
            self.trained += 1
            if self._monitor is not None:
                self._monitor.round_done(done)
            yield _head(done)

    def grow(
        self, ensembles: Sequence[Ensemble], *, engine: Engine, seed: int, ahead: int = 0
    ) -> None:
        """Train until every ensemble is full, `ahead` rounds before it is certain to need them."""
        self.grown = {ensemble: [] for ensemble in ensembles}
        while specs := self._outstanding(seed, ahead):
            fresh = train_rounds(
                specs,
                self._trainer,
                engine=lambda _, asked: self.spread(engine, asked),
                store=self,
            )
            self.heads.update((head.spec, head) for head in fresh)

    def rounds(self, ensemble: Ensemble) -> list[Round]:
        """The heads of the rounds that an ensemble takes members from."""
        grown = self.grown[ensemble]
        return grown[: rounds_used(ensemble.method.plan, grown)]

    def specs(self, ensemble: Ensemble) -> list[RoundSpec]:
        """The names of the rounds that an ensemble takes members from."""
        return [head.spec for head in self.rounds(ensemble)]

    def load(self, spec: RoundSpec) -> Round:
        """A round with its scores, from the store: never from memory, so that a resumed study sees
        exactly what one in a single go does."""
        done = self._store.get(round_key(self._trainer, spec), spec)
        if done is None:
            raise FileError(f"{spec} was removed or damaged while the study ran. Run it again.")
        return done

    def _outstanding(self, seed: int, ahead: int) -> list[RoundSpec]:
        """What all ensembles want and nobody has trained yet, each round once."""
        missing: dict[RoundSpec, None] = {}
        for ensemble, rounds in self.grown.items():
            while more := wanted(ensemble.method.plan, rounds):
                have = len(rounds)
                specs = [ensemble.spec(have + i, seed=seed) for i in range(more)]
                lacking = [spec for spec in specs if spec not in self.heads]
                if lacking:
                    # Only pruning leaves it open how many rounds it takes.
                    open_ended = ensemble.method.plan.beta != 1 and not ensemble.method.plan.top
                    early = [
                        ensemble.spec(have + more + i, seed=seed)
                        for i in range(ahead if open_ended else 0)
                    ]
                    lacking += [spec for spec in early if spec not in self.heads]
                    missing.update(dict.fromkeys(lacking))
                    break
                rounds.extend(self.heads[spec] for spec in specs)
        return list(missing)


def _head(done: Round) -> Round:
    return dataclasses.replace(done, scores={}, weights=(), curve=np.empty(0))
