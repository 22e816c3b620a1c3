"""What the algorithm asks of whoever trains, and of whoever schedules.

Values cross this line, not objects: the algorithm never sees a module, an optimiser or a device.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dynsnap._types import Accuracies, AnyArray, Floats, MemberScores, Positions
from dynsnap.ensemble._recipe import Recipe
from dynsnap.errors import InputError, TrainingError


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSpec:
    """One round of training, named so that it can be repeated on its own, anywhere.

    Attributes:
        recipe: How it trains.
        generation: Which D_i it trains on, counted from 1.
        replicate: Which repetition of the whole study it belongs to, counted from 0.
        index: Its place among the rounds of this recipe, generation and replicate.
        seed: The study's seed.
        twin: 1 for the learner that measures the noise floor: the same in all but its randomness.
        parent: The key of the member that it starts from, None for a fresh start.
    """

    recipe: Recipe
    generation: int
    replicate: int = 0
    index: int = 0
    seed: int = 0
    twin: int = 0
    parent: str | None = None

    def canonical(self) -> str:
        """The spec as text, the same wherever it is computed: its name, its seed, its key."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))

    def __str__(self) -> str:
        recipe = self.recipe
        twin = ", twin" if self.twin else ""
        # One that starts afresh may have the same index.
        onward = ", from a member" if self.parent is not None else ""
        return (
            f"round {self.index} of generation {self.generation}, replicate {self.replicate}"
            f"{twin} ({recipe.schedule.kind}, {recipe.epochs} epochs{onward})"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Round:
    """Every snapshot of one round, before pruning.

    Attributes:
        accuracy: Validation accuracy of each member, on this round's own validation rows.
        epochs: The epoch (from 0) that each member was taken at.
        scores: Scores of the members on each evaluation set, by its name ("test", "late").
        curve: Validation accuracy after every epoch.
        weights: One serialised learner per snapshot in the trainer's own safe format, or empty
            where only scores are kept. Member j is snapshot j // passes.
        seconds: Time that training took.
    """

    spec: RoundSpec
    accuracy: Accuracies
    epochs: Positions
    scores: Mapping[str, MemberScores]
    curve: Floats
    weights: tuple[bytes, ...] = ()
    seconds: float = 0.0

    def __post_init__(self) -> None:
        members = self.spec.recipe.members
        if len(self.accuracy) != members or len(self.epochs) != members:
            raise InputError(
                f"{self.spec} must give {members} members, but has {len(self.accuracy)} "
                f"accuracies and {len(self.epochs)} epochs."
            )
        for name, scores in self.scores.items():
            if scores.ndim != 3 or len(scores) != members:
                raise InputError(
                    f"{self.spec} must score `{name}` as (members, inputs, classes) with {members} "
                    f"members, but has the shape {scores.shape}."
                )
            if not np.isfinite(scores).all():
                raise TrainingError(f"{self.spec} gave scores that are not finite on `{name}`.")
        if not all(0 <= value <= 1 for value in self.accuracy):  # NaN fails this too
            raise TrainingError(
                f"{self.spec} has validation accuracies outside [0, 1]: {self.accuracy}. "
                "Training may have diverged, or the validation split may be empty."
            )


class Trainer(Protocol):
    """Trains rounds, each seeded by its spec alone.

    It is handed many at once, so that one device may train them side by side, and yields them in
    any order as they finish. How a round is computed follows from its spec, never from how many
    are pending.
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
    """Is told how training goes, and may ask it to stop at the next safe place."""

    def epoch_done(self, spec: RoundSpec, epoch: int, accuracy: float, /) -> None: ...

    def stopping(self) -> bool:
        """Asked after every epoch; a trainer then saves a checkpoint and raises Interrupted."""
        ...


class Checkpoints(Protocol):
    """Keeps the state of unfinished rounds, so that a long one need not start over."""

    def load(self, spec: RoundSpec, /) -> bytes | None: ...

    def save(self, spec: RoundSpec, state: bytes, /) -> None: ...

    def drop(self, spec: RoundSpec, /) -> None: ...


class Engine(Protocol):
    """Spreads rounds over workers and hands them back as they finish."""

    def __call__(self, trainer: Trainer, specs: Sequence[RoundSpec], /) -> Iterable[Round]: ...


class RoundStore(Protocol):
    """Keeps finished rounds under their keys."""

    def get(self, key: str, spec: RoundSpec, /) -> Round | None: ...

    def put(self, key: str, done: Round, /) -> None: ...


@runtime_checkable
class NamingStore(RoundStore, Protocol):
    """A store that finds rounds by their names, whatever key they have: maybe another machine's."""

    def key_of(self, spec: RoundSpec, /) -> str | None:
        """What a round was called where it was trained, None where it is not there."""
        ...


def serial(trainer: Trainer, specs: Sequence[RoundSpec], /) -> Iterable[Round]:
    """The engine of one process: no workers, nothing to spread."""
    return trainer.train(specs)


def round_key(trainer: Trainer, spec: RoundSpec) -> str:
    """The address of a round: a hash of everything that can change it."""
    text = f"{trainer.fingerprint}\n{spec.canonical()}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
