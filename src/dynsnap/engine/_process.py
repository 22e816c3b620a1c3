"""The main function of a worker process, and how it is fed. Imported by the worker first of all."""

import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from multiprocessing import connection, parent_process
from multiprocessing.connection import Connection
from multiprocessing.reduction import DupFd
from typing import Any

from dynsnap.engine._events import Task, failed
from dynsnap.engine._parcel import Parcel
from dynsnap.engine._work import Bench

STOP = "stop"  # sent to a worker that has a task: end it at the next safe place


class Crate:
    """A parcel whose arrays lie in a file that all workers of the machine share.

    Args:
        file: The open file; handed over to a child process as such.
        places: Where each array begins and ends in the file.
        about: The parcel without its arrays.
    """

    def __init__(
        self, file: Any, places: Sequence[tuple[int, int]], about: Mapping[str, Any]
    ) -> None:
        self._file, self._places, self._about = file, places, about

    def __reduce__(self) -> tuple[Any, ...]:
        return Crate, (DupFd(self._file), self._places, self._about)

    def parcel(self) -> Parcel:
        """The parcel. Its arrays are read when used, and copied only where they are written to."""
        file = self._file.detach()
        size = max((end for _, end in self._places), default=0)
        whole = memoryview(mmap.mmap(file, size, access=mmap.ACCESS_COPY) if size else b"")
        arrays = [whole[start:end] for start, end in self._places]
        os.close(file)
        return Parcel(arrays=arrays, **self._about)


def main(line: "Connection[Any, Any]", crate: Crate) -> None:
    """Work through the tasks that come along the line, until it is closed."""
    stay_no_longer_than_the_driver()
    bench: Bench | None = None
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
                continue  # asked to stop when the task had just ended
            stopped = False
            try:
                bench = bench or Bench(crate.parcel())
            except Exception as error:
                line.send(failed(error))
                return
            for event in bench.work(task, tell=line.send, stopping=stopping):
                line.send(event)
    except (EOFError, OSError):
        return  # the driver has gone, or needs no more


def stay_no_longer_than_the_driver() -> None:
    """A driver that is killed tells nobody: do not go on for hours for no one."""
    threading.Thread(target=_leave_with_the_driver, daemon=True).start()


def _leave_with_the_driver() -> None:
    driver = parent_process()
    assert driver is not None
    connection.wait([driver.sentinel])
    os._exit(1)
