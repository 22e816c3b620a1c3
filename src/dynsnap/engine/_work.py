"""What a worker does with a task, wherever it runs."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from dynsnap.engine._events import EpochDone, Event, RoundDone, StateSaved, Task, TaskEnded, failed
from dynsnap.engine._parcel import Parcel, unpack
from dynsnap.ensemble import RoundSpec, Trainer
from dynsnap.errors import Interrupted

Tell: TypeAlias = Callable[[Event], None]


class Bench:
    """The place of one worker: a trainer, unpacked once, and a line to the driver.

    Args:
        parcel: The trainer.
        where: The name of this place in messages.
    """

    def __init__(self, parcel: Parcel, *, where: str = "this machine") -> None:
        self._monitor, self._states = _Monitor(), _States()
        self._trainer: Trainer = unpack(
            parcel, monitor=self._monitor, checkpoints=self._states, where=where
        )

    def work(self, task: Task, *, tell: Tell, stopping: Callable[[], bool]) -> Iterator[Event]:
        """Train the rounds of a task.

        Args:
            task: The rounds.
            tell: Takes what there is to tell in the middle of a round.
            stopping: Whether the driver has asked to stop.

        Yields:
            Every round as it finishes; in the end that it has, or what went wrong.
        """
        self._monitor.tell, self._monitor.asked = tell, stopping
        self._states.tell, self._states.known = tell, dict(task.states)
        try:
            for done in self._trainer.train(task.specs):
                yield RoundDone(done)
            yield TaskEnded()
        except Interrupted as error:
            yield TaskEnded() if stopping() else failed(error)
        except Exception as error:  # whatever it is, the driver decides what becomes of it
            yield failed(error)


def _nowhere(event: Event) -> None:
    """Takes what is told while no task is under way: nothing."""


class _Monitor:
    """Stands in for the driver's monitor."""

    def __init__(self) -> None:
        self.tell: Tell = _nowhere
        self.asked: Callable[[], bool] = bool

    def epoch_done(self, spec: RoundSpec, epoch: int, accuracy: float, /) -> None:
        self.tell(EpochDone(spec, epoch, accuracy))

    def stopping(self) -> bool:
        return self.asked()


class _States:
    """Stands in for the driver's checkpoints. States travel with tasks, and back when saved."""

    def __init__(self) -> None:
        self.tell: Tell = _nowhere
        self.known: dict[RoundSpec, bytes] = {}

    def load(self, spec: RoundSpec, /) -> bytes | None:
        return self.known.pop(spec, None)

    def save(self, spec: RoundSpec, state: bytes, /) -> None:
        self.tell(StateSaved(spec, state))

    def drop(self, spec: RoundSpec, /) -> None:
        """Left to the driver: only it knows when a round is stored."""
