"""What training, storing and scheduling rounds must provide; and the simplest of each.

Only values cross these interfaces: the algorithm never handles a module, an optimiser or a device.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from dynsnap._types import AnyArray, MemberScores
from dynsnap.ensemble._rounds import Round, RoundSpec


class Trainer(Protocol):
    """Trains rounds, each seeded by its spec alone.

    A trainer gets many rounds at once, so that one device may train them side by side. It yields
    them in any order as they finish. How a round is computed follows from its spec, never from how
    many are pending.
    """

    @property
    def fingerprint(self) -> str:
        """Text that changes whenever data, model or optimiser would change a round."""
        ...

    def train(self, specs: Sequence[RoundSpec], /) -> Iterable[Round]: ...

    def score(self, weights: Sequence[bytes], inputs: AnyArray, /) -> MemberScores:
        """Scores of stored learners on inputs in the form that the stream's pool has."""
        ...


class Monitor(Protocol):
    """Receives the progress of training, and may request a stop at the next safe place."""

    def epoch_done(self, spec: RoundSpec, epoch: int, accuracy: float, /) -> None: ...

    def stopping(self) -> bool:
        """Whether to stop, called after every epoch: save a checkpoint and raise Interrupted."""
        ...


class Checkpoints(Protocol):
    """Keeps the state of unfinished rounds, so that a long one need not start over."""

    def load(self, spec: RoundSpec, /) -> bytes | None: ...

    def save(self, spec: RoundSpec, state: bytes, /) -> None: ...

    def drop(self, spec: RoundSpec, /) -> None: ...


class Engine(Protocol):
    """Distributes rounds over workers and yields them as they finish."""

    def __call__(self, trainer: Trainer, specs: Sequence[RoundSpec], /) -> Iterable[Round]: ...


class RoundStore(Protocol):
    """Keeps finished rounds under their keys."""

    def get(self, key: str, spec: RoundSpec, /) -> Round | None: ...

    def put(self, key: str, done: Round, /) -> None: ...


@runtime_checkable
class NamingStore(RoundStore, Protocol):
    """A store that finds rounds by their specs, also under the key of another machine."""

    def key_of(self, spec: RoundSpec, /) -> str | None:
        """The key under which a round was stored, None where it is not there."""
        ...


def serial(trainer: Trainer, specs: Sequence[RoundSpec], /) -> Iterable[Round]:
    """The engine of one process, without workers."""
    return trainer.train(specs)


def round_key(trainer: Trainer, spec: RoundSpec) -> str:
    """The address of a round: a hash of everything that can change it."""
    text = f"{trainer.fingerprint}\n{spec.canonical()}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class NoTrainer:
    """A trainer for code that needs one but must not train."""

    fingerprint = ""

    def train(self, specs: Sequence[RoundSpec], /) -> Iterable[Round]:
        raise AssertionError("nothing is to be trained")

    def score(self, weights: Sequence[bytes], inputs: AnyArray, /) -> MemberScores:
        raise AssertionError("nothing is to be scored")


class RoundsInMemory:
    """A store without files: its rounds end with the process."""

    def __init__(self) -> None:
        self._rounds: dict[str, Round] = {}

    def __len__(self) -> int:
        return len(self._rounds)

    def get(self, key: str, spec: RoundSpec, /) -> Round | None:
        return self._rounds.get(key)

    def put(self, key: str, done: Round, /) -> None:
        self._rounds[key] = done


class CheckpointsInMemory:
    """Checkpoints without files: they end with the process."""

    def __init__(self) -> None:
        self._states: dict[RoundSpec, bytes] = {}

    def load(self, spec: RoundSpec, /) -> bytes | None:
        return self._states.get(spec)

    def save(self, spec: RoundSpec, state: bytes, /) -> None:
        self._states[spec] = state

    def drop(self, spec: RoundSpec, /) -> None:
        self._states.pop(spec, None)
