"""What a join puts on disk: a private folder, and files of rows in it that are sorted into buckets.

The folder has a name, so that other processes of the machine can read the files. Its owner holds a
lock on it. The kernel drops the lock when the process ends, however it ends, so an unlocked folder
is a leftover, and the next join removes it. A process id would not tell: ids are reused, and each
container has its own.
"""

import contextlib
import os
import re
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from dynsnap._files import locked, sweep
from dynsnap._types import AnyArray, Positions
from dynsnap.errors import FileError

_NAME = re.compile(r"dynsnap-join-[0-9a-f]{32}")


class Spill:
    """A temporary folder that only this user can enter. It is made when something is put there.

    Example:
        >>> with Spill() as spill:
        ...     buckets = spill.buckets(2, np.int64)
        ...     buckets.add(np.array([1, 0, 1]), np.array([10, 20, 30]))
        ...     buckets.add(np.array([0]), np.array([40]))
        ...     buckets.read(0), buckets.read(1)
        (array([20, 40]), array([10, 30]))
    """

    def __init__(self) -> None:
        self._files: list[Buckets] = []
        self._folder: Path | None = None
        self._remove: Any = None

    def buckets(self, count: int, dtype: Any) -> "Buckets":
        """A new file of rows of one kind, in so many buckets."""
        with _room():
            if self._folder is None:
                self._folder, lock = _own_folder()
                # Also at the end of the process, where the stream was not closed.
                self._remove = weakref.finalize(self, _remove, self._folder, lock, os.getpid())
            self._files.append(Buckets(self._folder / f"{len(self._files)}", count, dtype))
        return self._files[-1]

    def close(self) -> None:
        """Remove the folder and all that is in it."""
        for file in self._files:
            file.close()
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> "Spill":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _own_folder() -> tuple[Path, int | None]:
    """A new folder, locked by this process."""
    parent = Path(tempfile.gettempdir())
    sweep(parent, _NAME)
    while True:
        folder = parent / f"dynsnap-join-{secrets.token_hex(16)}"
        folder.mkdir(mode=0o700)
        if os.name == "nt":  # folders cannot be locked there
            return folder, None
        with contextlib.suppress(FileNotFoundError):  # another took it for a leftover: once more
            handle = os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW)
            if locked(handle) and folder.exists():
                return folder, handle
            os.close(handle)


def _remove(folder: Path, lock: int | None, owner: int) -> None:
    if owner != os.getpid():
        return  # a copy in a forked process, which shares the lock
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


class TemporaryFileGone(Exception):  # noqa: N818  # nothing is wrong
    """A temporary file of another process cannot be opened here."""


class Buckets:
    """Rows of one kind that are added in any order and read back bucket by bucket.

    A copy that was sent to another process reads the file of the process that has made it.

    Attributes:
        count: How many buckets there are.
        dtype: What a row is made of.
    """

    def __init__(self, path: Path, count: int, dtype: Any) -> None:
        self.count = count
        self.dtype = np.dtype(dtype)
        self._path = path
        self._first = 0  # the number of the first bucket that `_runs` reports
        self._runs: list[AnyArray] = []  # of each addition: where every bucket begins, in bytes
        self._end = 0  # bytes
        self._file: Any = path.open("x+b")

    def add(self, numbers: Positions, rows: AnyArray) -> None:
        """Put each row into the bucket of this number."""
        order, bounds = sorted_by(numbers, self.count)
        self.add_sorted(rows.take(order, axis=0), bounds)  # twice as fast as `rows[order]`

    def add_sorted(self, rows: AnyArray, bounds: Positions) -> None:
        """Put rows `bounds[i]` up to `bounds[i + 1]` into bucket i."""
        content = np.ascontiguousarray(rows, self.dtype)
        with _room():
            self._file.seek(self._end)
            self._file.write(content.reshape(-1).view(np.uint8).data)
        self._runs.append(self._end + bounds * self.dtype.itemsize)
        self._end += content.nbytes

    def read(self, number: int) -> AnyArray:
        """The rows of a bucket, in the order in which they came."""
        place = number - self._first
        runs = [run[place : place + 2] for run in self._runs]
        if self._file is not None:
            with _room():
                return _read(self._file, runs, self.dtype)
        try:
            with self._path.open("rb") as file:
                return _read(file, runs, self.dtype)
        except OSError as error:
            raise TemporaryFileGone(str(self._path)) from error

    def size(self, number: int) -> int:
        """How many rows a bucket has."""
        place = number - self._first
        size = sum(int(run[place + 1] - run[place]) for run in self._runs)
        return size // int(self.dtype.itemsize)

    def within(self, first: int, last: int) -> "Buckets":
        """The same without what is known of other buckets, so that little is sent."""
        with _room():
            self._file.flush()
        some = object.__new__(Buckets)
        some.__dict__.update(self.__dict__)
        some._first, some._runs = first, [run[first : last + 1] for run in self._runs]
        return some

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_file": None}

    def close(self) -> None:
        """Give the room on disk back."""
        with contextlib.suppress(OSError):  # on a full disk, what is left to write does not matter
            self._file.close()
        with contextlib.suppress(OSError):
            self._path.unlink()


def _read(file: Any, runs: Sequence[AnyArray], dtype: Any) -> AnyArray:
    content = np.empty(sum(int(stop - start) for start, stop in runs), np.uint8)
    filled = 0
    for start, stop in runs:
        file.seek(int(start))
        filled += file.readinto(content[filled : filled + int(stop - start)].data)
    if filled < len(content):
        raise OSError("a temporary file is shorter than what was written to it")
    return content.view(dtype)


def sorted_by(numbers: Positions, count: int) -> tuple[Positions, Positions]:
    """An order of rows by their bucket, and where each bucket begins in it.

    Example:
        >>> sorted_by(np.array([1, 0, 1]), 2)
        (array([1, 0, 2]), array([0, 1, 3]))
    """
    small = numbers.astype(np.uint16) if count <= 1 << 16 else numbers  # short keys sort faster
    bounds = np.zeros(count + 1, np.intp)
    np.cumsum(np.bincount(numbers, minlength=count), out=bounds[1:])
    return np.argsort(small, kind="stable"), bounds


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """Say what is wrong with the temporary file, not with the file that is being read."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"Joining files by id needs room for temporary files in {tempfile.gettempdir()}: "
            f"{error.strerror or error}. Set TMPDIR to a folder with more room."
        ) from error
