"""Map a function over many items on many workers, as a comparison of many files does."""

import multiprocessing
import pickle
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any

import dynsnap
from dynsnap.engine._engine import (
    Closing,
    checked_workers,
    cores,
    ignoring_interrupts,
    one_thread,
)
from dynsnap.engine._processes import exit_with_the_driver
from dynsnap.engine._ray import Cluster
from dynsnap.engine._ray_task import guarded
from dynsnap.errors import ComparisonError

_ATTEMPTS = 3  # how often workers may die before the map fails


class ProcessesMap(Closing):
    """Map a function over a pool of local processes.

    Workers compute with one thread each and stay until `close`. A killed worker is replaced, and
    its items are computed again.

    Args:
        workers: The number of processes; by default one per core.

    Example:
        >>> with ProcessesMap(workers=1) as spread:
        ...     list(spread(abs, [-3, 2]))
        [3, 2]
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = checked_workers(workers) or cores()
        self._pool: ProcessPoolExecutor | None = None

    def __call__(self, function: Callable[[Any], Any], things: Iterable[Any], /) -> Iterator[Any]:
        """The results, in the order of the items."""
        left = iter(things)
        under_way: deque[tuple[Any, Future[Any]]] = deque()
        lost = 0
        while True:
            for thing in islice(left, _ahead(self._workers) - len(under_way)):
                under_way.append((thing, self._submit(function, thing)))
            if not under_way:
                return
            try:
                answer = under_way[0][1].result()
            except BrokenProcessPool as error:
                lost += 1
                self.close()
                if lost >= _ATTEMPTS:
                    raise ComparisonError(
                        f"Worker processes were ended {lost} times from outside; memory may be "
                        "short. Use fewer with --workers."
                    ) from error
                under_way = deque((thing, self._submit(function, thing)) for thing, _ in under_way)
                continue
            under_way.popleft()
            yield answer

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.kill()  # the remaining results are not needed
            self._pool.shutdown(cancel_futures=True)
        self._pool = None

    def _submit(self, function: Callable[[Any], Any], thing: Any) -> "Future[Any]":
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=exit_with_the_driver,
            )
        with one_thread(), ignoring_interrupts():  # submitting starts the processes
            try:
                return self._pool.submit(function, thing)
            except BrokenProcessPool as error:  # a worker has just died, and this item with it
                lost: Future[Any] = Future()
                lost.set_exception(error)
                return lost


class RayMap(Closing):
    """Map a function over the workers of a Ray cluster, or of a Ray on this machine.

    Ray replaces workers and nodes that die, and computes their items again.

    Args:
        address: HOST:PORT of the cluster's head, or "auto"; see `RayEngine`.
        workers: The largest number of concurrent tasks; by default one per core.
    """

    def __init__(self, address: str | None = None, *, workers: int | None = None) -> None:
        self._cluster = Cluster(address)
        self._workers = checked_workers(workers)

    def __call__(self, function: Callable[[Any], Any], things: Iterable[Any], /) -> Iterator[Any]:
        """The results, in the order of the items."""
        ray = self._cluster.join(cores=self._workers or cores())
        work = ray.remote(guarded("do")).options(
            num_cpus=1, num_returns="streaming", max_retries=_ATTEMPTS - 1
        )
        workers = self._workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        left = iter(things)
        under_way: deque[Any] = deque()
        while True:
            for thing in islice(left, _ahead(workers) - len(under_way)):
                content = pickle.dumps((function, thing, socket.gethostname()))
                under_way.append(work.remote(dynsnap.__version__, content))
            if not under_way:
                return
            yield _answer(ray, under_way.popleft())

    def close(self) -> None:
        """Leave the cluster; end it if this map started it."""
        self._cluster.leave()


def _answer(ray: Any, stream: Any) -> Any:
    try:
        content = ray.get(next(stream))
    except ray.exceptions.RayError as error:
        lines = str(getattr(error, "cause", None) or error).strip().splitlines()
        raise ComparisonError(
            f"Workers of the Ray cluster were lost {_ATTEMPTS} times, the last time because of "
            f"{type(error).__name__}: {lines[0] if lines else 'no reason'}"
        ) from error
    if isinstance(content, str):
        raise ComparisonError(content)
    well, answer = pickle.loads(content)  # noqa: S301  # from our own worker
    if not well:
        raise answer
    return answer


def _ahead(workers: int) -> int:
    """How many items to submit ahead, so that a free worker finds the next one ready."""
    return workers + 2
