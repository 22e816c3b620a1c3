"""What a worker is asked to do, and what it tells of it."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dynsnap.ensemble import Round, RoundSpec
from dynsnap.errors import DynSnapError


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Rounds for one worker, which may train them side by side.

    Attributes:
        number: Tells it from all others of the same study.
        specs: The rounds.
        states: The checkpoints of those that were begun before.
    """

    number: int
    specs: tuple[RoundSpec, ...]
    states: Mapping[RoundSpec, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EpochDone:
    """A round has come so far."""

    spec: RoundSpec
    epoch: int
    accuracy: float


@dataclass(frozen=True, slots=True, eq=False)
class StateSaved:
    """A round can be gone on with from here."""

    spec: RoundSpec
    state: bytes


@dataclass(frozen=True, slots=True, eq=False)
class RoundDone:
    """A round is finished."""

    done: Round


@dataclass(frozen=True, slots=True)
class TaskEnded:
    """The worker is free: all its rounds are done, or it stopped as asked."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskFailed:
    """The worker is free, because something was raised.

    Attributes:
        error: What it was, if dynsnap raised it on purpose: trying again would not help.
        text: What it was, in words.
        details: Where it was raised.
    """

    error: DynSnapError | None
    text: str
    details: str


@dataclass(frozen=True, slots=True)
class TaskLost:
    """The worker is gone, with all that it had not sent yet."""

    reason: str


Event: TypeAlias = EpochDone | StateSaved | RoundDone | TaskEnded | TaskFailed | TaskLost


def failed(error: Exception) -> TaskFailed:
    """What to tell of an error that a worker has met."""
    return TaskFailed(
        error=error if isinstance(error, DynSnapError) else None,
        text=f"{type(error).__name__}: {error}",
        details="".join(traceback.format_exception(error)),
    )
