"""What all that has workers has in common: how many there are, how they start, when they end."""

import contextlib
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self

from dynsnap.errors import PlanError

# Read by OpenMP, torch and BLAS when they are loaded.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Closing(ABC):
    """Has workers until it is closed, or its `with` block is left."""

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def checked_workers(workers: int | None) -> int | None:
    """A number of workers, None where it is not said."""
    if workers is not None and workers < 1:
        raise PlanError(f"`workers` must be at least 1, got {workers}.")
    return workers


def cores() -> int:
    """Cores of this machine that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Processes that are started in here compute with one thread each."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Processes that are started in here do not hear Ctrl-C, SIGTERM or SIGHUP.

    A terminal or a service manager sends them to all processes of a program. The driver stops the
    others, after it has what they have done.
    """
    ending = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
