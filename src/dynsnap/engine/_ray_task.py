"""What runs on a Ray worker. Ray sends `guarded` by value; the worker imports the rest."""

import pickle
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from dynsnap.engine._worker import Event, Task, Worker, failed
from dynsnap.errors import FileError

_REPORT_EVERY = 0.25  # seconds; a call to the mailbox takes about a millisecond

# Ray runs many tasks in one process: keep the trainer of the last one.
_workers: dict[str, Worker] = {}


class Mailbox:
    """An actor on the driver's node that collects events from inside rounds."""

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        self._stopping = False

    def leave(self, messages: list[bytes]) -> bool:
        """Add messages; return whether the driver asked to stop."""
        self._messages += messages
        return self._stopping

    def collect(self) -> list[bytes]:
        """Return and clear the messages."""
        messages, self._messages = self._messages, []
        return messages

    def stop(self) -> None:
        """Ask all workers to stop."""
        self._stopping = True

    def begin(self) -> None:
        """Clear the mailbox for a new wave."""
        self._stopping, self._messages = False, []


def guarded(name: str) -> Callable[..., Iterator[bytes | str]]:
    """Wrap a function of this module to check the worker's dynsnap version first."""

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


def work(name: str, pickled: list[Any], content: bytes, mailbox: Any) -> Iterator[bytes]:
    """Train the rounds of a task.

    Args:
        name: Identifies the pickled trainer.
        pickled: Its reference in the object store; in a list, so that Ray does not fetch it early.
        content: The task.
        mailbox: Receives events from inside a round; None if the driver needs none.

    Yields:
        Pickled events: arrays that Ray unpickles would stay in the object store.
    """
    import ray

    task: Task = pickle.loads(content)  # noqa: S301  # from our own driver
    line = _Channel(task.number, mailbox)
    try:
        worker = _workers.get(name)
        if worker is None:
            _workers.clear()
            worker = _workers[name] = Worker(ray.get(pickled[0]), where=socket.gethostname())
    except Exception as error:
        yield pickle.dumps(failed(error))
        return
    for event in worker.work(task, tell=line.tell, stopping=line.stopping):
        line.report()
        yield pickle.dumps(event)


def do(content: bytes) -> Iterator[bytes]:
    """Apply a function to an item: the content holds both, and the driver's host name.

    Yields:
        Whether it succeeded, and the result or exception, pickled.
    """
    function, thing, home = pickle.loads(content)  # noqa: S301  # from our own driver
    here = socket.gethostname()
    try:
        answer = (True, function(thing))
    except FileError as error:
        elsewhere = f" So it is on {here}: files must be where every worker can read them."
        answer = (False, error if here == home else FileError(f"{error}{elsewhere}"))
    except Exception as error:  # the driver raises it again
        answer = (False, error)
    yield pickle.dumps(answer)


class _Channel:
    """Sends a worker's events to the mailbox in batches."""

    def __init__(self, number: int, mailbox: Any) -> None:
        self._number = number
        self._mailbox = mailbox
        self._messages: list[bytes] = []
        self._last = time.monotonic()
        self._stop = False

    def tell(self, event: Event) -> None:
        self._messages.append(pickle.dumps((self._number, event)))

    def stopping(self) -> bool:
        if time.monotonic() - self._last >= _REPORT_EVERY:
            self.report()
        return self._stop

    def report(self) -> None:
        import ray

        self._last = time.monotonic()
        if self._mailbox is not None:
            self._stop = ray.get(self._mailbox.leave.remote(self._messages))
            self._messages = []
