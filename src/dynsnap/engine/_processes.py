"""An engine of worker processes on one machine."""

import contextlib
import dataclasses
import mmap
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import DupFd
from typing import Any

from dynsnap.engine._engine import (
    PoolEngine,
    checked_workers,
    cores,
    ignoring_interrupts,
    one_thread,
    without_script,
)
from dynsnap.engine._pickled import Packed, PickledTrainer, pack
from dynsnap.engine._wave import Rules
from dynsnap.engine._worker import Event, Task, TaskEnded, TaskFailed, TaskLost, Worker, failed
from dynsnap.ensemble import Trainer

# Alignment of arrays in bytes, as numpy and torch use it.
_ALIGNED = 64


class ProcessesEngine(PoolEngine):
    """Distribute rounds over processes of this machine.

    Each process computes with one thread. It receives the trainer once, and all share one copy of
    the data in memory. Workers start when they are needed and stay for the next wave of the same
    trainer; `close`, or the end of a `with` block, ends them.

    Args:
        workers: The number of processes; by default one per core.
        rules: How rounds are distributed and retried.

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

    def _start(self, trainer: Trainer) -> tuple[Packed, "_ProcessPool"]:
        packed = pack(trainer)
        return packed, _ProcessPool(packed.pickled, self._workers)


@dataclass(eq=False)
class _WorkerProcess:
    process: SpawnProcess
    line: "Connection[Any, Any]"
    task: int | None = None
    heard: bool = False


class _ProcessPool:
    """Processes with a pipe each, so that a killed one cannot block the others."""

    def __init__(self, pickled: PickledTrainer, workers: int) -> None:
        self._most = workers
        self._workers: list[_WorkerProcess] = []
        # An unnamed file: nothing is left behind when a process is killed.
        self._file = tempfile.TemporaryFile(prefix="dynsnap-")  # noqa: SIM115  # until `close`
        self._places: list[tuple[int, int]] = []
        for array in pickled.arrays:
            content = array.raw()
            start = self._file.tell()
            self._file.write(content)
            self._places.append((start, start + content.nbytes))
            self._file.write(bytes(-self._file.tell() % _ALIGNED))
        self._file.flush()
        # A trainer that is made with functions of the script needs the script.
        self._needs_script = b"__main__" in pickled.content
        self._about = {
            field.name: getattr(pickled, field.name)
            for field in dataclasses.fields(pickled)
            if field.name != "arrays"
        }

    def begin_wave(self) -> None:
        """Does nothing: a worker resets its request to stop with its next task."""

    def places(self) -> int:
        return self._most

    def begin(self, task: Task, /) -> None:
        idle = [worker for worker in self._workers if worker.task is None]
        worker = idle[0] if idle else self._start()
        worker.task = task.number
        # `news` reports a worker that has just died.
        with contextlib.suppress(OSError):
            worker.line.send(task)

    def events(self, seconds: float, /) -> Iterator[tuple[int, Event]]:
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
                    worker.line.send(STOP)

    def abandon(self, number: int, /) -> None:
        for worker in list(self._workers):
            if worker.task == number:
                worker.task = None
                self._remove(worker)

    def close(self) -> None:
        for worker in list(self._workers):
            self._remove(worker)
        self._file.close()

    def _start(self) -> _WorkerProcess:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        hidden = contextlib.nullcontext() if self._needs_script else without_script()
        with one_thread(), ignoring_interrupts(), hidden:
            process = context.Process(
                target=main,
                args=(theirs, MappedTrainer(self._file.fileno(), self._places, self._about)),
                name="dynsnap worker",
                daemon=True,
            )
            process.start()
        theirs.close()
        worker = _WorkerProcess(process, ours)
        self._workers.append(worker)
        return worker

    def _hear(self, worker: _WorkerProcess) -> Event:
        try:
            event: Event = worker.line.recv()
        except (EOFError, OSError):
            self._remove(worker)
            ending = _ending(worker.process.exitcode)
            if self._needs_script and not worker.heard:
                # Python's own explanation goes to standard error, once for every worker.
                return TaskLost(
                    f"its worker process {ending} as it began: it runs your script again to find "
                    "what the model is made with. Move that to a module, or train below "
                    '`if __name__ == "__main__":`'
                )
            return TaskLost(f"its worker process {ending}")
        worker.heard = True
        return event

    def _remove(self, worker: _WorkerProcess) -> None:
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


STOP = "stop"  # makes a busy worker stop at its next checkpoint


class MappedTrainer:
    """A pickled trainer whose arrays lie in a file that all workers of the machine map.

    Args:
        file: The open file, which child processes inherit.
        places: The start and end of each array in the file.
        about: The other fields of the pickled trainer.
    """

    def __init__(
        self, file: Any, places: Sequence[tuple[int, int]], about: Mapping[str, Any]
    ) -> None:
        self._file, self._places, self._about = file, places, about

    def __reduce__(self) -> tuple[Any, ...]:
        return MappedTrainer, (DupFd(self._file), self._places, self._about)

    def pickled(self) -> PickledTrainer:
        """The pickled trainer. Its arrays are mapped, and copied only on write."""
        file = self._file.detach()
        size = max((end for _, end in self._places), default=0)
        whole = memoryview(mmap.mmap(file, size, access=mmap.ACCESS_COPY) if size else b"")
        arrays = [whole[start:end] for start, end in self._places]
        os.close(file)
        return PickledTrainer(arrays=arrays, **self._about)


def main(line: "Connection[Any, Any]", mapped: MappedTrainer) -> None:
    """The main function of a worker process: run tasks from the pipe until it closes."""
    exit_with_the_driver()
    worker: Worker | None = None
    stopped = False

    def stopping() -> bool:
        nonlocal stopped
        while line.poll():
            stopped = line.recv() == STOP or stopped
        return stopped

    try:
        while True:
            task = line.recv()
            if not isinstance(task, Task):
                continue  # a request to stop that arrived after the end of the task
            stopped = False
            try:
                worker = worker or Worker(mapped.pickled())
            except Exception as error:
                line.send(failed(error))
                return
            for event in worker.work(task, tell=line.send, stopping=stopping):
                line.send(event)
    except (EOFError, OSError):
        return  # the driver ended or closed the pipe


def exit_with_the_driver() -> None:
    """End this process when the driver ends, also if the driver is killed."""
    threading.Thread(target=_exit_when_it_ends, daemon=True).start()


def _exit_when_it_ends() -> None:
    driver = parent_process()
    assert driver is not None
    connection.wait([driver.sentinel])
    os._exit(1)
