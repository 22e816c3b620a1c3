"""Workers on a Ray cluster, or on a Ray of our own on this machine."""

import contextlib
import dataclasses
import pickle
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np

from dynsnap.engine._engine import CrewEngine
from dynsnap.engine._events import Event, Task, TaskEnded, TaskFailed, TaskLost
from dynsnap.engine._parcel import Sent, pack
from dynsnap.engine._ray_connect import Cluster
from dynsnap.engine._ray_task import Desk, guarded
from dynsnap.engine._spread import Rules
from dynsnap.engine._workers import checked_workers, cores
from dynsnap.ensemble import Trainer
from dynsnap.errors import PlanError, TrainingError


class RayEngine(CrewEngine):
    """Spreads rounds over the workers of a Ray cluster.

    Joins the cluster at `address`, or the one that this process is connected to already; else
    starts a Ray of its own on this machine, without dashboard and usage statistics, and ends that
    one on `close`. The trainer is put into the object store once. A worker or a node that dies is
    replaced by others: what it had not delivered is trained again, and nothing else is.

    Args:
        address: HOST:PORT of the cluster's head, or "auto" for the one that runs on this machine.
        workers: Most tasks at once; as many as the cluster has room for unless said otherwise.
        cpus: Cores that each task is given.
        gpus: GPUs that each task is given, maybe less than one; one unless said otherwise where
            the trainer uses a GPU, else none.
        rules: How rounds are handed out, and how often one is tried.
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
        """Leave the cluster; end it if it is our own."""
        super().close()
        self._cluster.leave()

    def _hire(self, trainer: Trainer) -> tuple[Sent, "_Crew"]:
        ray = self._cluster.join(cores=(self._workers or cores()) * self._cpus)
        sent = pack(trainer, ray.cloudpickle.CloudPickler)
        return sent, _Crew(ray, sent, most=self._workers, needs=self._needs(trainer))

    def _needs(self, trainer: Trainer) -> dict[str, float]:
        gpus = self._gpus if self._gpus is not None else float(_uses_gpu(trainer))
        return {"CPU": self._cpus, "GPU": gpus}

    def _rules_for(self, trainer: Trainer) -> Rules:
        if self._rules.side_by_side is not None:
            return self._rules
        return dataclasses.replace(self._rules, side_by_side=_uses_gpu(trainer))


class _Crew:
    """Tasks on a Ray cluster, each a stream of events."""

    def __init__(self, ray: Any, sent: Sent, *, most: int | None, needs: dict[str, float]) -> None:
        self._ray = ray
        self._most = most
        self._needs = {kind: amount for kind, amount in needs.items() if amount}
        self._running: dict[int, Any] = {}
        if not self._room():
            raise TrainingError(
                f"The Ray cluster has {_listed(ray.cluster_resources(), needs)}, but each task "
                f"needs {_listed(needs, needs)}. Ask for less, or add machines."
            )
        self._desk: Any = None
        if sent.monitor is not None or sent.checkpoints is not None:
            here = ray.get_runtime_context().get_node_id()
            strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
            self._desk = (
                ray.remote(Desk)
                .options(num_cpus=0, scheduling_strategy=strategy(here, soft=False))
                .remote()
            )
        arrays = tuple(np.asarray(array.raw()) for array in sent.parcel.arrays)
        self._version = sent.parcel.versions["dynsnap"]
        self._parcel = [ray.put(dataclasses.replace(sent.parcel, arrays=arrays))]
        self._name = uuid.uuid4().hex
        self._work = ray.remote(guarded("work")).options(
            num_cpus=needs["CPU"],
            num_gpus=needs["GPU"],
            num_returns="streaming",
            # A worker goes on when the driver has taken its last round, and no sooner: what it
            # has sent cannot be lost with it, and memory stays bounded.
            _generator_backpressure_num_objects=1,
            max_retries=0,  # Ray would train rounds again that have arrived
        )

    def begin_wave(self) -> None:
        if self._desk is not None:
            self._ray.get(self._desk.begin.remote())

    def places(self) -> int:
        # A cluster that has just lost all its nodes may get new ones.
        room = max(1, self._room())
        return min(room, self._most) if self._most is not None else room

    def begin(self, task: Task, /) -> None:
        self._running[task.number] = self._work.remote(
            self._version, self._name, self._parcel, pickle.dumps(task), self._desk
        )

    def news(self, seconds: float, /) -> Iterator[tuple[int, Event]]:
        # Ray may be told of more streams than are ready: one at a time is enough.
        ready, _ = self._ray.wait(list(self._running.values()), num_returns=1, timeout=seconds)
        found = [
            (number, self._next(stream))
            for number, stream in self._running.items()
            if any(stream is one for one in ready)
        ]
        # What was told before comes before.
        if self._desk is not None:
            for letter in self._ray.get(self._desk.collect.remote()):
                yield pickle.loads(letter)  # noqa: S301  # from our own worker
        for number, event in found:
            if isinstance(event, TaskEnded | TaskFailed | TaskLost):
                self._running.pop(number, None)
            yield number, event

    def stop(self) -> None:
        if self._desk is not None:
            self._ray.get(self._desk.stop.remote())

    def abandon(self, number: int, /) -> None:
        stream = self._running.pop(number, None)
        if stream is not None:
            with contextlib.suppress(Exception):  # it may have ended by itself
                self._ray.cancel(stream, force=True)

    def close(self) -> None:
        for number in list(self._running):
            self.abandon(number)
        if self._desk is not None and self._ray.is_initialized():
            self._ray.kill(self._desk)
        self._parcel = []

    def _next(self, stream: Any) -> Event:
        try:
            content = self._ray.get(next(stream))
        except StopIteration:
            return TaskLost("its worker ended without a word")
        except Exception as error:  # whatever became of worker, node or object
            lines = str(getattr(error, "cause", None) or error).strip().splitlines()
            return TaskLost(f"of {type(error).__name__}: {lines[0] if lines else 'no reason'}")
        if isinstance(content, str):
            refused = TrainingError(content)
            return TaskFailed(refused, content, "")
        event: Event = pickle.loads(content)  # noqa: S301  # from our own worker
        return event

    def _room(self) -> int:
        """How many tasks fit into the cluster as it is now."""
        there = self._ray.cluster_resources()
        return min(int(there.get(kind, 0) / amount) for kind, amount in self._needs.items())


def _uses_gpu(trainer: Trainer) -> bool:
    return str(getattr(trainer, "device", "cpu")).startswith("cuda")


def _listed(found: dict[str, float], kinds: dict[str, float]) -> str:
    return " and ".join(f"{found.get(kind, 0):g} {kind}s" for kind in kinds)
