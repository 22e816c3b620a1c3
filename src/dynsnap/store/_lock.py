"""One writer per folder, held by the kernel: a process that dies leaves no lock behind."""

import os
from pathlib import Path
from typing import IO

from dynsnap.errors import FileError

try:
    import fcntl
except ImportError:  # Windows locks bytes of a file instead
    fcntl = None  # type: ignore[assignment]


class FolderLock:
    """The right to write to a folder, from `acquire` until `release` or the end of the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None

    @property
    def held(self) -> bool:
        """Whether this object has it now."""
        return self._file is not None

    def acquire(self) -> None:
        """Take the lock, or raise while another holder has it."""
        try:
            file = (self._folder / ".lock").open("a+b", buffering=0)
        except OSError as error:
            raise FileError(f"Cannot write to {self._folder}: {error.strerror}.") from error
        file.seek(0)
        try:
            _lock(file)
        except OSError as error:
            holder = file.read(32).decode(errors="replace").strip() or "unknown"
            file.close()
            raise FileError(
                f"Another process (pid {holder}) is at work in {self._folder}. Wait until it has "
                "finished, or name another folder."
            ) from error
        try:
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
        except OSError as error:  # the disk is full
            file.close()
            raise FileError(f"Cannot write to {self._folder}: {error.strerror}.") from error
        self._file = file

    def release(self) -> None:
        """Let others write."""
        if self._file is not None:
            self._file.close()  # which lets go of the lock, too
            self._file = None


def _lock(file: IO[bytes]) -> None:
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        # A byte far beyond the pid, which others may still want to read.
        file.seek(1 << 20)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        finally:
            file.seek(0)
