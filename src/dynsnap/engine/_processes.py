"""Worker processes on the cores of one machine."""

import contextlib
import dataclasses
import multiprocessing
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from dynsnap.engine import _process
from dynsnap.engine._engine import CrewEngine
from dynsnap.engine._events import Event, Task, TaskEnded, TaskFailed, TaskLost
from dynsnap.engine._parcel import Parcel, Sent, pack
from dynsnap.engine._spread import Rules
from dynsnap.engine._workers import checked_workers, cores, one_thread, without_interrupts
from dynsnap.ensemble import Trainer

# Bytes, at a multiple of which arrays begin, as numpy and torch lay them out themselves.
_ALIGNED = 64


class ProcessesEngine(CrewEngine):
    """Spreads rounds over processes of this machine.

    Each computes with one thread. The trainer is sent to each once, and its data lies in memory
    once for all. Workers are started when they are needed and stay for the next wave of the same
    trainer; `close`, or leaving a `with` block, ends them.

    Args:
        workers: How many; as many as there are cores unless said otherwise.
        rules: How rounds are handed out, and how often one is tried.

    Example:
        >>> from dynsnap.data import digits_stream
        >>> from dynsnap.ensemble import Recipe, RoundSpec, Schedule
        >>> from dynsnap.testing import CentroidTrainer
        >>> recipe = Recipe(schedule=Schedule("step"), epochs=2, snapshots=1)
        >>> specs = [RoundSpec(recipe=recipe, generation=1, index=index) for index in range(3)]
        >>> with ProcessesEngine(workers=1) as engine:
        ...     rounds = list(engine(CentroidTrainer(digits_stream()), specs))
        >>> sorted(done.spec.index for done in rounds)
        [0, 1, 2]
    """

    def __init__(self, workers: int | None = None, *, rules: Rules | None = None) -> None:
        super().__init__(rules)
        self._workers = checked_workers(workers) or cores()

    def _hire(self, trainer: Trainer) -> tuple[Sent, "_Crew"]:
        sent = pack(trainer)
        return sent, _Crew(sent.parcel, self._workers)


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    line: "Connection[Any, Any]"
    task: int | None = None


class _Crew:
    """Processes, each with a line of its own: one that is killed can block no other."""

    def __init__(self, parcel: Parcel, workers: int) -> None:
        self._most = workers
        self._workers: list[_Worker] = []
        # Has no name, so nothing is left behind, whoever is killed.
        self._file = tempfile.TemporaryFile(prefix="dynsnap-")  # noqa: SIM115  # until `close`
        self._places: list[tuple[int, int]] = []
        for array in parcel.arrays:
            content = array.raw()
            start = self._file.tell()
            self._file.write(content)
            self._places.append((start, start + content.nbytes))
            self._file.write(bytes(-self._file.tell() % _ALIGNED))
        self._file.flush()
        self._about = {
            field.name: getattr(parcel, field.name)
            for field in dataclasses.fields(parcel)
            if field.name != "arrays"
        }

    def begin_wave(self) -> None:
        """Nothing to do: a worker that was asked to stop forgets that with its next task."""

    def places(self) -> int:
        return self._most

    def begin(self, task: Task, /) -> None:
        idle = [worker for worker in self._workers if worker.task is None]
        worker = idle[0] if idle else self._start()
        worker.task = task.number
        # A worker that has just died is found by `news`.
        with contextlib.suppress(OSError):
            worker.line.send(task)

    def news(self, seconds: float, /) -> Iterator[tuple[int, Event]]:
        lines = {worker.line: worker for worker in self._workers if worker.task is not None}
        for line in connection.wait(list(lines), seconds):
            worker = lines[line]  # type: ignore[index]  # a line, as that is what was handed in
            number = worker.task
            if number is None:
                continue  # abandoned in the meantime
            event = self._hear(worker)
            if isinstance(event, TaskEnded | TaskFailed | TaskLost):
                worker.task = None
            yield number, event

    def stop(self) -> None:
        for worker in self._workers:
            if worker.task is not None:
                with contextlib.suppress(OSError):
                    worker.line.send(_process.STOP)

    def abandon(self, number: int, /) -> None:
        for worker in list(self._workers):
            if worker.task == number:
                worker.task = None
                self._remove(worker)

    def close(self) -> None:
        for worker in list(self._workers):
            self._remove(worker)
        self._file.close()

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        with one_thread(), without_interrupts():
            process = context.Process(
                target=_process.main,
                args=(theirs, _process.Crate(self._file.fileno(), self._places, self._about)),
                name="dynsnap worker",
                daemon=True,
            )
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker

    def _hear(self, worker: _Worker) -> Event:
        try:
            event: Event = worker.line.recv()
        except (EOFError, OSError):
            self._remove(worker)
            return TaskLost(f"its worker process {_ending(worker.process.exitcode)}")
        return event

    def _remove(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.line.close()
        worker.process.join(0.2)
        worker.process.kill()
        worker.process.join()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
