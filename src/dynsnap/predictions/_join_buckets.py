"""Rows in a temporary file, sorted into buckets as they come: what joins spill to."""

import contextlib
import tempfile
from collections.abc import Iterator
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
        runs = [(int(run[number]), int(run[number + 1])) for run in self._runs]
        content = np.empty(sum(stop - start for start, stop in runs), np.uint8)
        filled = 0
        with _room():
            for start, stop in runs:
                self._file.seek(start)
                filled += self._file.readinto(content[filled : filled + stop - start].data)
        return content.view(self.dtype)

    def close(self) -> None:
        """Give the room on disk back."""
        self._file.close()


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
