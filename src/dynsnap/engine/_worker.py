"""Tasks, the events that a worker reports about them, and the worker itself, wherever it runs."""

import pickle
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dynsnap.engine._pickled import PickledTrainer, unpack
from dynsnap.ensemble import Round, RoundSpec, Trainer
from dynsnap.errors import DynSnapError, Interrupted


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Rounds for one worker, which may train them side by side.

    Attributes:
        number: Unique within one study.
        specs: The rounds.
        states: The checkpoints of rounds that started earlier.
    """

    number: int
    specs: tuple[RoundSpec, ...]
    states: Mapping[RoundSpec, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EpochDone:
    """A round finished an epoch."""

    spec: RoundSpec
    epoch: int
    accuracy: float


@dataclass(frozen=True, slots=True, eq=False)
class StateSaved:
    """A checkpoint of an unfinished round."""

    spec: RoundSpec
    state: bytes


@dataclass(frozen=True, slots=True, eq=False)
class RoundDone:
    """A finished round."""

    done: Round


@dataclass(frozen=True, slots=True)
class TaskEnded:
    """The task is over: all rounds are done, or the worker stopped on request."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskFailed:
    """The task ended with an exception.

    Attributes:
        error: The exception if it is a `DynSnapError`, which a retry would not cure.
        text: The type and message of the exception.
        details: Its traceback.
    """

    error: DynSnapError | None
    text: str
    details: str


@dataclass(frozen=True, slots=True)
class TaskLost:
    """The worker died; undelivered results are lost."""

    reason: str


Event: TypeAlias = EpochDone | StateSaved | RoundDone | TaskEnded | TaskFailed | TaskLost


def failed(error: Exception) -> TaskFailed:
    """The event that reports an exception."""
    return TaskFailed(
        error=_portable(error) if isinstance(error, DynSnapError) else None,
        text=f"{type(error).__name__}: {error}",
        details="".join(traceback.format_exception(error)),
    )


def _portable(error: DynSnapError) -> DynSnapError:
    """The error, or one of dynsnap's own with its text where pickle cannot make it again.

    The class is a user's own where a trainer is, and may take other arguments than one text.
    """
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  # written here
    except Exception:  # whatever its class does
        kinds = (kind for kind in type(error).__mro__ if issubclass(kind, DynSnapError))
        return next(kind for kind in kinds if kind.__module__ == DynSnapError.__module__)(
            str(error)
        )
    return error


Tell: TypeAlias = Callable[[Event], None]


class Worker:
    """Trains the rounds of tasks with a trainer that is unpickled once.

    Args:
        pickled: The trainer.
        where: The name of the machine, for messages.
    """

    def __init__(self, pickled: PickledTrainer, *, where: str = "this machine") -> None:
        self._monitor, self._states = _WorkerMonitor(), _States()
        self._trainer: Trainer = unpack(
            pickled, monitor=self._monitor, checkpoints=self._states, where=where
        )

    def work(self, task: Task, *, tell: Tell, stopping: Callable[[], bool]) -> Iterator[Event]:
        """Train the rounds of a task.

        Args:
            task: The rounds.
            tell: Receives events from inside a round.
            stopping: Whether the driver asked to stop.

        Yields:
            Each round as it finishes, then the end of the task or its failure.
        """
        self._monitor.tell, self._monitor.asked = tell, stopping
        self._states.tell, self._states.known = tell, dict(task.states)
        try:
            for done in self._trainer.train(task.specs):
                yield RoundDone(done)
            yield TaskEnded()
        except Interrupted as error:
            yield TaskEnded() if stopping() else failed(error)
        except Exception as error:  # the driver decides whether to retry
            yield failed(error)


def _nowhere(event: Event) -> None:
    """Discards events while no task is running."""


class _WorkerMonitor:
    """Forwards progress to the driver's monitor."""

    def __init__(self) -> None:
        self.tell: Tell = _nowhere
        self.asked: Callable[[], bool] = bool

    def epoch_done(self, spec: RoundSpec, epoch: int, accuracy: float, /) -> None:
        self.tell(EpochDone(spec, epoch, accuracy))

    def stopping(self) -> bool:
        return self.asked()


class _States:
    """Forwards checkpoints to the driver. Tasks carry earlier states."""

    def __init__(self) -> None:
        self.tell: Tell = _nowhere
        self.known: dict[RoundSpec, bytes] = {}

    def load(self, spec: RoundSpec, /) -> bytes | None:
        return self.known.pop(spec, None)

    def save(self, spec: RoundSpec, state: bytes, /) -> None:
        self.tell(StateSaved(spec, state))

    def drop(self, spec: RoundSpec, /) -> None:
        """Does nothing: the driver drops a state once its round is stored."""
