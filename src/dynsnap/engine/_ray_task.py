"""What happens on a Ray worker. Sent there by value is only `guarded`; the rest it finds there."""

import pickle
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from dynsnap.engine._events import Event, Task, failed
from dynsnap.engine._work import Bench
from dynsnap.errors import FileError

_REPORT_EVERY = 0.25  # seconds; a call to the desk takes about a millisecond

# Ray uses a worker process for many tasks: the trainer of the last one is kept at hand.
_benches: dict[str, Bench] = {}


class Desk:
    """The driver's in-tray: an actor on its node, where workers leave what they have to tell."""

    def __init__(self) -> None:
        self._letters: list[bytes] = []
        self._stopping = False

    def leave(self, letters: list[bytes]) -> bool:
        """Leave something for the driver; whether it has asked to stop."""
        self._letters += letters
        return self._stopping

    def collect(self) -> list[bytes]:
        """All that was left since the last time."""
        letters, self._letters = self._letters, []
        return letters

    def stop(self) -> None:
        """Ask everybody to stop."""
        self._stopping = True

    def begin(self) -> None:
        """A new wave begins."""
        self._stopping, self._letters = False, []


def guarded(name: str) -> Callable[..., Iterator[bytes | str]]:
    """A function of this module, which Ray sends by value: it runs where dynsnap is another too."""

    def work(version: str, *arguments: Any) -> Iterator[bytes | str]:
        import importlib
        import socket

        try:
            import dynsnap

            here = f"dynsnap {dynsnap.__version__}"
        except ImportError:
            here = "no dynsnap"
        if here != f"dynsnap {version}":
            yield (
                f"The worker on {socket.gethostname()} has {here}, but the study was started with "
                f"dynsnap {version}. Install the same version there."
            )
            return
        yield from getattr(importlib.import_module("dynsnap.engine._ray_task"), name)(*arguments)

    return work


def work(name: str, parcel: list[Any], content: bytes, desk: Any) -> Iterator[bytes]:
    """Train the rounds of a task.

    Args:
        name: Tells the parcel from others.
        parcel: Where it is in the object store; in a list, so that Ray does not fetch it unasked.
        content: The task.
        desk: Where to leave what there is to tell in the middle of a round, if anybody listens.

    Yields:
        Packed events: arrays that Ray unpacks would keep their place in the object store.
    """
    import ray

    task: Task = pickle.loads(content)  # noqa: S301  # from our own driver
    line = _Line(task.number, desk)
    try:
        bench = _benches.get(name)
        if bench is None:
            _benches.clear()
            bench = _benches[name] = Bench(ray.get(parcel[0]), where=socket.gethostname())
    except Exception as error:
        yield pickle.dumps(failed(error))
        return
    for event in bench.work(task, tell=line.tell, stopping=line.stopping):
        line.report()
        yield pickle.dumps(event)


def do(content: bytes) -> Iterator[bytes]:
    """Apply a function to a thing: both are in the content, with the name of the driver's machine.

    Yields:
        Whether that went well, and what came of it, packed.
    """
    function, thing, home = pickle.loads(content)  # noqa: S301  # from our own driver
    here = socket.gethostname()
    try:
        answer = (True, function(thing))
    except FileError as error:
        elsewhere = f" So it is on {here}: files must be where every worker can read them."
        answer = (False, error if here == home else FileError(f"{error}{elsewhere}"))
    except Exception as error:  # whatever it is, the driver raises it again
        answer = (False, error)
    yield pickle.dumps(answer)


class _Line:
    """From a worker to the desk, a few words at a time."""

    def __init__(self, number: int, desk: Any) -> None:
        self._number = number
        self._desk = desk
        self._letters: list[bytes] = []
        self._last = time.monotonic()
        self._stop = False

    def tell(self, event: Event) -> None:
        self._letters.append(pickle.dumps((self._number, event)))

    def stopping(self) -> bool:
        if time.monotonic() - self._last >= _REPORT_EVERY:
            self.report()
        return self._stop

    def report(self) -> None:
        import ray

        self._last = time.monotonic()
        if self._desk is not None:
            self._stop = ray.get(self._desk.leave.remote(self._letters))
            self._letters = []
