"""The same done to many things by many workers: how a comparison of many files is spread."""

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
from dynsnap.engine._process import stay_no_longer_than_the_driver
from dynsnap.engine._ray_connect import Cluster
from dynsnap.engine._ray_task import guarded
from dynsnap.engine._workers import (
    Closing,
    checked_workers,
    cores,
    one_thread,
    without_interrupts,
)
from dynsnap.errors import ComparisonError

_ATTEMPTS = 3  # how often workers may be lost before it is given up


class ProcessesMap(Closing):
    """Does the same to many things in processes of this machine.

    Workers compute with one thread each and stay until `close`. One that is killed is replaced, and
    what it had is done again.

    Args:
        workers: How many; as many as there are cores unless said otherwise.

    Example:
        >>> with ProcessesMap(workers=1) as spread:
        ...     list(spread(abs, [-3, 2]))
        [3, 2]
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = checked_workers(workers) or cores()
        self._pool: ProcessPoolExecutor | None = None

    def __call__(self, function: Callable[[Any], Any], things: Iterable[Any], /) -> Iterator[Any]:
        """What the function gives for each thing, in their order."""
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
                process.kill()  # nobody waits for what is left
            self._pool.shutdown(cancel_futures=True)
        self._pool = None

    def _submit(self, function: Callable[[Any], Any], thing: Any) -> "Future[Any]":
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=stay_no_longer_than_the_driver,
            )
        with one_thread(), without_interrupts():  # this is when processes are started
            try:
                return self._pool.submit(function, thing)
            except BrokenProcessPool as error:  # a worker was lost just now: so is this, then
                lost: Future[Any] = Future()
                lost.set_exception(error)
                return lost


class RayMap(Closing):
    """Does the same to many things on a Ray cluster, or on a Ray of its own on this machine.

    Ray replaces workers and nodes that die, and what they had is done again.

    Args:
        address: HOST:PORT of the cluster's head, or "auto"; see `RayEngine`.
        workers: Most tasks at once; as many as the cluster has cores unless said otherwise.
    """

    def __init__(self, address: str | None = None, *, workers: int | None = None) -> None:
        self._cluster = Cluster(address)
        self._workers = checked_workers(workers)

    def __call__(self, function: Callable[[Any], Any], things: Iterable[Any], /) -> Iterator[Any]:
        """What the function gives for each thing, in their order."""
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
        """Leave the cluster; end it if it is our own."""
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
    """How many things are under way at most: a worker that is done finds the next one ready."""
    return workers + 2
