"""What all engines share: how workers are counted, started and ended, and one pool per trainer."""

import contextlib
import os
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol, Self

from dynsnap.engine._pickled import Packed
from dynsnap.engine._wave import More, Rules, TaskPool, Wave
from dynsnap.ensemble import Round, RoundSpec, Trainer
from dynsnap.errors import PlanError

# OpenMP, torch and BLAS read these when they are loaded.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Closing(ABC):
    """Owns workers until `close`, or until its `with` block ends."""

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def checked_workers(workers: int | None) -> int | None:
    """The number of workers after a check; None if not given."""
    if workers is not None and workers < 1:
        raise PlanError(f"`workers` must be at least 1, got {workers}.")
    return workers


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Processes started inside compute with one thread each."""
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
def ignoring_interrupts() -> Iterator[None]:
    """Processes started inside ignore Ctrl-C, SIGTERM and SIGHUP.

    A terminal or a service manager sends these to all processes of a program. The driver stops the
    workers, after it has received what they finished.
    """
    ending = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def without_script() -> Iterator[None]:
    """Processes started inside do not run the caller's script again.

    Python runs it in every process that it spawns, to find what is defined there. A script that
    trains at its top level would train in each of its workers.
    """
    script = vars(sys.modules["__main__"])
    names: tuple[str, ...] = ("__file__", "__spec__")
    before = {name: script[name] for name in names if name in script}
    script.pop("__file__", None)
    script["__spec__"] = None
    try:
        yield
    finally:
        script.update(before)


class WorkerPool(TaskPool, Protocol):
    """Workers that keep one trainer from wave to wave."""

    def begin_wave(self) -> None:
        """Start a wave, and clear an earlier request to stop."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class PoolEngine(Closing):
    """Distributes rounds over a pool, and keeps it for the next wave of the same trainer."""

    takes_more = True

    def __init__(self, rules: Rules | None) -> None:
        self._rules = rules or Rules()
        self._trainer: Trainer | None = None
        self._current: tuple[Packed, WorkerPool] | None = None

    def __call__(
        self, trainer: Trainer, specs: Sequence[RoundSpec], /, *, more: More | None = None
    ) -> Iterator[Round]:
        """The rounds as they finish.

        Args:
            trainer: Trains the rounds.
            specs: The rounds.
            more: Called for further rounds whenever one was taken, so that a study need not wait
                for the slowest round.
        """
        if not specs:
            return
        if self._trainer is not trainer or self._current is None:
            self._close_pool()
            self._current = self._start(trainer)
            self._trainer = trainer
        packed, pool = self._current
        pool.begin_wave()
        yield from Wave(
            pool=pool,
            rules=self._rules_for(trainer),
            monitor=packed.monitor,
            checkpoints=packed.checkpoints,
        ).run(specs, more)

    def close(self) -> None:
        """End the workers."""
        self._close_pool()

    @abstractmethod
    def _start(self, trainer: Trainer) -> tuple[Packed, WorkerPool]:
        """The packed trainer, and a pool of workers that hold it."""

    def _rules_for(self, trainer: Trainer) -> Rules:
        return self._rules

    def _close_pool(self) -> None:
        if self._current is not None:
            self._current[1].close()
        self._trainer = self._current = None
