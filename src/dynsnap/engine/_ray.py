"""Workers on a Ray cluster, or on a Ray of our own on this machine."""

import contextlib
import dataclasses
import pickle
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynsnap.engine._events import Event, Task, TaskEnded, TaskFailed, TaskLost
from dynsnap.engine._parcel import Sent, pack
from dynsnap.engine._processes import cores
from dynsnap.engine._ray_connect import check_address, connect, found_ray
from dynsnap.engine._ray_task import Desk, guarded
from dynsnap.engine._spread import More, Rules, Wave
from dynsnap.ensemble import Round, RoundSpec, Trainer
from dynsnap.errors import PlanError, TrainingError


class RayEngine:
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
        if workers is not None and workers < 1:
            raise PlanError(f"`workers` must be at least 1, got {workers}.")
        if not cpus > 0:
            raise PlanError(f"`cpus` must be positive, got {cpus}.")
        if gpus is not None and not gpus >= 0:
            raise PlanError(f"`gpus` must not be negative, got {gpus}.")
        check_address(address)
        self._address = address
        self._workers = workers
        self._cpus = cpus
        self._gpus = gpus
        self._rules = rules or Rules()
        self._ours = False
        self._trainer: Trainer | None = None
        self._sent: Sent | None = None
        self._crew: _Crew | None = None

    takes_more = True

    def __call__(
        self, trainer: Trainer, specs: Sequence[RoundSpec], /, *, more: More | None = None
    ) -> Iterator[Round]:
        """The rounds as they finish.

        Args:
            trainer: Trains them.
            specs: The rounds.
            more: Asked for further rounds whenever one has been taken, so that a study need not
                wait for the slowest round before it asks for the next.
        """
        if not specs:
            return
        if self._trainer is not trainer or self._sent is None or self._crew is None:
            self._leave()
            ray, ours = connect(self._address, cores=(self._workers or cores()) * self._cpus)
            self._ours = self._ours or ours
            self._sent = pack(trainer, ray.cloudpickle.CloudPickler)
            self._crew = _Crew(ray, self._sent, most=self._workers, needs=self._needs(trainer))
            self._trainer = trainer
        self._crew.begin_wave()
        rules = self._rules
        if rules.side_by_side is None:
            rules = dataclasses.replace(rules, side_by_side=_uses_gpu(trainer))
        yield from Wave(
            crew=self._crew,
            rules=rules,
            monitor=self._sent.monitor,
            checkpoints=self._sent.checkpoints,
        ).run(specs, more)

    def close(self) -> None:
        """Leave the cluster; end it if it is our own."""
        self._leave()
        if self._ours:
            found_ray().shutdown()
            self._ours = False

    def __enter__(self) -> "RayEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _leave(self) -> None:
        if self._crew is not None:
            self._crew.close()
        self._trainer = self._sent = self._crew = None

    def _needs(self, trainer: Trainer) -> dict[str, float]:
        gpus = self._gpus if self._gpus is not None else float(_uses_gpu(trainer))
        return {"CPU": self._cpus, "GPU": gpus}


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
