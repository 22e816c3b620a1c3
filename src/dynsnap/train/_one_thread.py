"""Computing on one thread of torch, without a change to the threads of the caller."""

import atexit
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")


def on_one_thread(compute: Callable[[], Result]) -> Result:
    """Compute on one thread of torch, whatever the caller has set.

    A product of matrices that is cut up for several threads may sum in another order, and how it
    is cut depends on how many matrices there are: on one thread each is computed as if alone.

    Example:
        >>> on_one_thread(torch.get_num_threads)
        1
    """
    if torch.get_num_threads() == 1:
        return compute()
    found: Result = _workers.run(compute)
    return found


class _Workers:
    """Threads of our own that are limited once and for all.

    Torch has a number for each thread, and one that new threads start with. To limit the caller's
    thread for a while would set both, and leave every thread that starts in the meantime limited.

    These are not the threads of an executor, which takes no work once the main thread has ended:
    those of a server may go on.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._threads = 0
        self._open = 0  # jobs that are not finished

    def run(self, compute: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        with self._changed:
            self._open += 1
            if self._open > self._threads and self._threads < (os.cpu_count() or 1):
                self._threads += 1
                threading.Thread(target=self._work, name="dynsnap", daemon=True).start()
        self._jobs.put((compute, future))
        return future.result()

    def finish(self) -> None:
        """Wait until nothing is computed: a thread must not be ended in the middle of that."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open)

    def _work(self) -> None:
        _limit_this_thread()
        while True:
            compute, future = self._jobs.get()
            try:
                future.set_result(compute())
            except BaseException as error:  # it is raised where the result is waited for
                future.set_exception(error)
            del compute, future  # what they hold is the caller's
            with self._changed:
                self._open -= 1
                self._changed.notify_all()


def _limit_this_thread() -> None:
    default = torch.get_num_threads()
    torch.set_num_threads(1)
    # Another new thread sets back what new threads start with.
    helper = threading.Thread(target=torch.set_num_threads, args=(default,))
    helper.start()
    helper.join()
    torch.set_flush_denormal(False)  # inherited from whichever thread came first


def _start_over() -> None:
    """A process that was forked has none of the threads."""
    global _workers
    _workers = _Workers()


_workers = _Workers()
os.register_at_fork(after_in_child=_start_over)
atexit.register(lambda: _workers.finish())
