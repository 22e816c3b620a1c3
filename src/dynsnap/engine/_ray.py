"""An engine on a Ray cluster, or on a Ray that dynsnap starts on this machine."""

import contextlib
import dataclasses
import os
import pickle
import signal
import socket
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np

from dynsnap.engine._engine import PoolEngine, checked_workers, cores
from dynsnap.engine._pickled import Packed, pack
from dynsnap.engine._ray_task import Mailbox, guarded
from dynsnap.engine._wave import Rules
from dynsnap.engine._worker import Event, Task, TaskEnded, TaskFailed, TaskLost
from dynsnap.ensemble import Trainer
from dynsnap.errors import PlanError, TrainingError


class RayEngine(PoolEngine):
    """Distribute rounds over the workers of a Ray cluster.

    Joins the cluster at `address`, or the one that this process is connected to; otherwise starts a
    Ray on this machine, without dashboard and usage statistics, and ends it on `close`. The object
    store holds the trainer once. When a worker or a node dies, others train what it had not
    delivered, and nothing else.

    Args:
        address: HOST:PORT of the cluster's head, or "auto" for the one that runs on this machine.
        workers: The largest number of concurrent tasks; by default as many as fit.
        cpus: Cores per task.
        gpus: GPUs per task, possibly a fraction; by default one if the trainer uses a GPU, else
            none.
        rules: How rounds are distributed and retried.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        cpus: float = 1.0,
        gpus: float | None = None,
        rules: Rules | None = None,
    ) -> None:
        super().__init__(rules)
        self._workers = checked_workers(workers)
        if not cpus > 0:
            raise PlanError(f"`cpus` must be positive, got {cpus}.")
        if gpus is not None and not gpus >= 0:
            raise PlanError(f"`gpus` must not be negative, got {gpus}.")
        self._cluster = Cluster(address)
        self._cpus = cpus
        self._gpus = gpus

    def close(self) -> None:
        """Leave the cluster; end it if this engine started it."""
        super().close()
        self._cluster.leave()

    def _start(self, trainer: Trainer) -> tuple[Packed, "_RayPool"]:
        ray = self._cluster.join(cores=(self._workers or cores()) * self._cpus)
        packed = pack(trainer, ray.cloudpickle.CloudPickler)
        return packed, _RayPool(ray, packed, most=self._workers, needs=self._needs(trainer))

    def _needs(self, trainer: Trainer) -> dict[str, float]:
        gpus = self._gpus if self._gpus is not None else float(_uses_gpu(trainer))
        return {"CPU": self._cpus, "GPU": gpus}

    def _rules_for(self, trainer: Trainer) -> Rules:
        if self._rules.side_by_side is not None:
            return self._rules
        return dataclasses.replace(self._rules, side_by_side=_uses_gpu(trainer))


class _RayPool:
    """Tasks on a Ray cluster, each a stream of events."""

    def __init__(
        self, ray: Any, packed: Packed, *, most: int | None, needs: dict[str, float]
    ) -> None:
        self._ray = ray
        self._most = most
        self._needs = {kind: amount for kind, amount in needs.items() if amount}
        self._running: dict[int, Any] = {}
        if not self._room():
            raise TrainingError(
                f"The Ray cluster has {_listed(ray.cluster_resources(), needs)}, but each task "
                f"needs {_listed(needs, needs)}. Ask for less, or add machines."
            )
        self._mailbox: Any = None
        if packed.monitor is not None or packed.checkpoints is not None:
            here = ray.get_runtime_context().get_node_id()
            strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
            self._mailbox = (
                ray.remote(Mailbox)
                .options(num_cpus=0, scheduling_strategy=strategy(here, soft=False))
                .remote()
            )
        arrays = tuple(np.asarray(array.raw()) for array in packed.pickled.arrays)
        self._version = packed.pickled.versions["dynsnap"]
        self._pickled = [ray.put(dataclasses.replace(packed.pickled, arrays=arrays))]
        self._name = uuid.uuid4().hex
        self._work = ray.remote(guarded("work")).options(
            num_cpus=needs["CPU"],
            num_gpus=needs["GPU"],
            num_returns="streaming",
            # A worker continues only after the driver has taken its last round: delivered
            # results cannot be lost with the worker, and memory stays bounded.
            _generator_backpressure_num_objects=1,
            max_retries=0,  # Ray would train delivered rounds again
        )

    def begin_wave(self) -> None:
        if self._mailbox is not None:
            self._ray.get(self._mailbox.begin.remote())

    def places(self) -> int:
        # A cluster that has lost all its nodes may get new ones.
        room = max(1, self._room())
        return min(room, self._most) if self._most is not None else room

    def begin(self, task: Task, /) -> None:
        self._running[task.number] = self._work.remote(
            self._version, self._name, self._pickled, pickle.dumps(task), self._mailbox
        )

    def events(self, seconds: float, /) -> Iterator[tuple[int, Event]]:
        # One stream at a time: Ray may report more streams than are ready.
        ready, _ = self._ray.wait(list(self._running.values()), num_returns=1, timeout=seconds)
        found = [
            (number, self._next(stream))
            for number, stream in self._running.items()
            if any(stream is one for one in ready)
        ]
        # Messages of the mailbox are older than the stream's next event.
        if self._mailbox is not None:
            for message in self._ray.get(self._mailbox.collect.remote()):
                yield pickle.loads(message)  # noqa: S301  # from our own worker
        for number, event in found:
            if isinstance(event, TaskEnded | TaskFailed | TaskLost):
                self._running.pop(number, None)
            yield number, event

    def stop(self) -> None:
        if self._mailbox is not None:
            self._ray.get(self._mailbox.stop.remote())

    def abandon(self, number: int, /) -> None:
        stream = self._running.pop(number, None)
        if stream is not None:
            with contextlib.suppress(Exception):  # it may have ended already
                self._ray.cancel(stream, force=True)

    def close(self) -> None:
        for number in list(self._running):
            self.abandon(number)
        if self._mailbox is not None and self._ray.is_initialized():
            self._ray.kill(self._mailbox)
        self._pickled = []

    def _next(self, stream: Any) -> Event:
        try:
            content = self._ray.get(next(stream))
        except StopIteration:
            return TaskLost("its worker ended without a result")
        except Exception as error:  # a lost worker, node or object
            lines = str(getattr(error, "cause", None) or error).strip().splitlines()
            return TaskLost(f"of {type(error).__name__}: {lines[0] if lines else 'no reason'}")
        if isinstance(content, str):
            refused = TrainingError(content)
            return TaskFailed(refused, content, "")
        event: Event = pickle.loads(content)  # noqa: S301  # from our own worker
        return event

    def _room(self) -> int:
        """How many tasks fit into the cluster now."""
        there = self._ray.cluster_resources()
        return min(int(there.get(kind, 0) / amount) for kind, amount in self._needs.items())


def _uses_gpu(trainer: Trainer) -> bool:
    return str(getattr(trainer, "device", "cpu")).startswith("cuda")


def _listed(found: dict[str, float], kinds: dict[str, float]) -> str:
    return " and ".join(f"{found.get(kind, 0):g} {kind}s" for kind in kinds)


_OBJECT_STORE = 512 * 2**20  # bytes, of a Ray that dynsnap starts; beyond that it spills to disk


class Cluster:
    """A connection to a Ray cluster.

    Args:
        address: The cluster; None for the connected one, or for a Ray of our own.
    """

    def __init__(self, address: str | None) -> None:
        _check_address(address)
        self._address = address
        self._ours = False

    def join(self, *, cores: float) -> Any:
        """Connect and return Ray; a Ray of our own gets `cores` cores."""
        ray, ours = _connect(self._address, cores=cores)
        self._ours = self._ours or ours
        return ray

    def leave(self) -> None:
        """End a Ray that this object started."""
        if self._ours:
            _found_ray().shutdown()
            self._ours = False


def _connect(address: str | None, *, cores: float) -> tuple[Any, bool]:
    """Connect; return Ray, and whether this call made the connection.

    Args:
        address: The cluster to join; None starts one on this machine.
        cores: The cores of a cluster that is started here.
    """
    ray = _found_ray()
    if ray.is_initialized():
        return ray, False
    settings: dict[str, Any] = {"address": address}
    if address is None:
        settings = {
            "address": "local",
            "num_cpus": max(1, round(cores)),
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE,
        }
    with _handlers_kept():
        try:
            _check_reachable(address)
            ray.init(**settings, log_to_driver=False, logging_level="ERROR")
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0]
            place = address or "this machine"
            raise TrainingError(f"There is no Ray to use at {place}: {reason}") from error
    return ray, True


def _check_address(address: str | None) -> None:
    """Raise on an address of Ray's client."""
    if address is not None and address.startswith("ray://"):
        raise PlanError(
            "Ray's client (ray://) cannot stream results. Start the study on a machine of the "
            "cluster, with the address HOST:PORT or auto."
        )


def _found_ray() -> Any:
    """Import Ray, or say how to install it."""
    # Ray's agents read this when they start, so set it first.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.cloudpickle
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise PlanError(
            "This engine needs Ray, which is not installed. "
            "Install it with: pip install 'dynsnap[ray]'"
        ) from error
    return ray


def _check_reachable(address: str | None) -> None:
    """Raise OSError if nothing listens there: Ray itself would retry for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep our SIGTERM handler, which Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
