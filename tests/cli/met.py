"""The command line in a process that a test meets at a certain point, to stop or to kill it there.

Nobody waits for seconds: the process tells when it has come to that point, and waits there itself.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
from pathlib import Path

from dynsnap.cli import main

# Forked from a process that has loaded everything, which takes longer than what is tested.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["dynsnap.cli", "dynsnap.study", "dynsnap.train"])


class Met:
    """`dynsnap` with these arguments, met once its run folder holds so many files of a kind.

    Args:
        cwd: Where it runs.
        files: A pattern of the files, from the run folder on.
        count: How many there must be. It is asked whenever a round or a checkpoint is stored.
    """

    def __init__(self, *arguments, cwd, files, count=1):
        self._said = [tempfile.NamedTemporaryFile() for _ in range(2)]  # noqa: SIM115
        self._line, theirs = _PROCESSES.Pipe()
        names = [file.name for file in self._said]
        self._process = _PROCESSES.Process(
            target=_run, args=(list(map(str, arguments)), cwd, files, count, theirs, names)
        )
        self._process.start()
        theirs.close()
        try:
            self._line.recv()
        except EOFError:
            raise AssertionError(f"It ended before: {self.communicate()}") from None

    @property
    def pid(self):
        return self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def communicate(self):
        """Let it go on, wait for its end, and hand back what it has said."""
        self._line.close()
        self._process.join()
        return tuple(Path(file.name).read_text() for file in self._said)

    def kill(self):
        """Kill it where it is."""
        self.send_signal(signal.SIGKILL)
        self.communicate()


def _run(arguments, cwd, files, count, line, names):
    from dynsnap.store import RoundCheckpoints, RunFolder

    os.chdir(cwd)
    for number, name in enumerate(names, start=1):
        os.dup2(os.open(name, os.O_WRONLY), number)
    sys.argv = ["dynsnap", *arguments]
    meetings = [line]

    def meet(folder):
        if meetings and len(list(folder.glob(files))) >= count:
            told = meetings.pop()
            told.send("here")
            with contextlib.suppress(EOFError):  # the other end is closed
                told.recv()

    put, save = RunFolder.put, RoundCheckpoints.save

    def met_put(self, *stored):
        put(self, *stored)
        meet(self.path)

    def met_save(self, *stored):
        save(self, *stored)
        meet(self._folder.path)

    RunFolder.put, RoundCheckpoints.save = met_put, met_save
    main()
