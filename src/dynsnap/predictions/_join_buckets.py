"""Rows in a temporary file, sorted into buckets as they come: what joins spill to."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Positions
from dynsnap.errors import FileError


class Buckets:
    """Rows of one kind that are added in any order and read back bucket by bucket.

    The file has no name, so nothing is left behind however the program ends.

    Example:
        >>> buckets = Buckets(2, np.int64)
        >>> buckets.add(np.array([1, 0, 1]), np.array([10, 20, 30]))
        >>> buckets.add(np.array([0]), np.array([40]))
        >>> buckets.read(0), buckets.read(1)
        (array([20, 40]), array([10, 30]))
    """

    def __init__(self, count: int, dtype: Any) -> None:
        self.count = count
        self.dtype = np.dtype(dtype)
        self._end = 0  # bytes
        self._runs: list[AnyArray] = []  # of each addition: where every bucket begins, in bytes
        with _room():
            self._file = tempfile.TemporaryFile(prefix="dynsnap-")  # noqa: SIM115

    def add(self, numbers: Positions, rows: AnyArray) -> None:
        """Put each row into the bucket of this number."""
        order, bounds = sorted_by(numbers, self.count)
        self.add_sorted(rows[order], bounds)

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
        with _room():
            return _read(self._file, [run[number : number + 2] for run in self._runs], self.dtype)

    def size(self, number: int) -> int:
        """How many rows a bucket has."""
        size = sum(int(run[number + 1] - run[number]) for run in self._runs)
        return size // int(self.dtype.itemsize)

    def sent(self, first: int, last: int) -> "SentBuckets":
        """Some of the buckets, for another process of this machine."""
        self._file.flush()
        runs = [run[first : last + 1] for run in self._runs]
        path = f"/proc/{os.getpid()}/fd/{self._file.fileno()}"
        return SentBuckets(path, self.dtype, first, runs, self)

    def close(self) -> None:
        """Give the room on disk back."""
        self._file.close()


class OutOfReach(Exception):  # noqa: N818  # nothing is wrong
    """A temporary file of another process cannot be opened here."""


@dataclass(frozen=True, slots=True, eq=False)
class SentBuckets:
    """Buckets of another process, which keeps their file open.

    Attributes:
        path: The way to the file.
        first: The first of the buckets.
        runs: Of each addition: where these buckets begin, in bytes.
        here: The buckets themselves, in the process that has them.
    """

    path: str
    dtype: Any
    first: int
    runs: Sequence[AnyArray]
    here: Buckets | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return SentBuckets, (self.path, self.dtype, self.first, self.runs)

    def read(self, number: int) -> AnyArray:
        """The rows of a bucket, in the order in which they came."""
        if self.here is not None:
            return self.here.read(number)
        place = number - self.first
        try:
            with open(self.path, "rb") as file:  # noqa: PTH123  # no path, but a way to a file
                return _read(file, [run[place : place + 2] for run in self.runs], self.dtype)
        except OSError as error:
            raise OutOfReach(self.path) from error


def _read(file: Any, runs: Sequence[AnyArray], dtype: Any) -> AnyArray:
    content = np.empty(sum(int(stop - start) for start, stop in runs), np.uint8)
    filled = 0
    for start, stop in runs:
        file.seek(int(start))
        filled += file.readinto(content[filled : filled + int(stop - start)].data)
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
