"""Plain arrays in NPZ archives: their headers first, and of the arrays only those that are needed.

A pickle in one is never loaded.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from dynsnap._types import AnyArray
from dynsnap._untrusted._archive import Archive
from dynsnap._untrusted._limits import allowance, megabytes
from dynsnap._untrusted._npy import (
    HEADER,
    MAGIC,
    ArrayHeader,
    PickledError,
    array_header,
    read_values,
)
from dynsnap._untrusted._regular import regular
from dynsnap.errors import FileError, InputError, one_line

POSITIONS = "positions"  # see `ArrayArchive.positions`

# How files start that are often taken for an NPZ archive.
_STARTS = {
    MAGIC: "a single array, ",
    b"PAR1": "a Parquet file, ",
    b"ARROW1": "an Arrow file, ",
}


class ArrayArchive:
    """An NPZ archive that is open: the header of every array, and the arrays that are asked for.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> file = Path(tempfile.mkdtemp()) / "some.npz"
        >>> np.savez(file, small=np.arange(3), large=np.zeros((100, 100)))
        >>> with ArrayArchive(file) as archive:
        ...     archive.headers["large"].shape, archive.read("small")
        ((100, 100), array([0, 1, 2]))
    """

    headers: dict[str, ArrayHeader]

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _opened(path)
        self._left = 0

    def __enter__(self) -> Self:
        try:
            with self._saying_what_is_wrong():
                size = self._path.stat().st_size
                self._left = allowance(size)
                self._archive = Archive(self._file, size, deflated=True)
                self._names = {name.removesuffix(".npy"): name for name in self._archive.entries}
                self.headers = {name: self._header(name) for name in self._names}
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def read(self, name: str) -> AnyArray:
        """One of the arrays."""
        size = self.headers[name].nbytes
        if size > self._left:
            raise FileError(
                f"{self._path} would unpack to far more than its own size: "
                f"{one_line(name[:100])!r} alone claims {megabytes(size)}. Write it with "
                "`numpy.savez`, which does not compress, or as a Parquet file."
            )
        self._left -= size
        with self._saying_what_is_wrong(), self._archive.open(self._names[name]) as entry:
            return read_values(entry, self.headers[name])

    def positions(self) -> bool | None:
        """Whether the archive says that whole numbers are positions in `classes`, or names.

        It says so with the array `positions`, a single truth value. An array of that name with a
        value for each row is a column like any other.
        """
        header = self.headers.get(POSITIONS)
        if header is None or header.shape:
            return None
        if header.dtype != bool:
            raise InputError(
                f"The array `{POSITIONS}` must be true or false, but is of the type {header.dtype}."
            )
        return bool(self.read(POSITIONS))

    def _header(self, name: str) -> ArrayHeader:
        entry = self._archive.entries[self._names[name]]
        with self._archive.open(entry.filename) as file:
            start = file.read(HEADER)
        if not start.startswith(MAGIC):
            raise FileError(f"{self._path} holds {one_line(name[:100])!r}, which is not an array.")
        return array_header(start, entry.file_size)

    @contextlib.contextmanager
    def _saying_what_is_wrong(self) -> Iterator[None]:
        try:
            yield
        except FileError:
            raise
        except PickledError as error:
            raise FileError(
                f"{self._path} holds pickled Python objects, which are never loaded. "
                "Save plain arrays: text with `.astype(str)`."
            ) from error
        except MemoryError as error:
            raise FileError(
                f"{self._path} is damaged, or needs more memory than there is."
            ) from error
        except Exception as error:
            # Headers are Python literals inside a zip file: damage shows in a dozen kinds of error.
            reason = one_line(str(error))[:200] or type(error).__name__
            raise FileError(f"{self._path} is damaged ({reason}). Write it again.") from error


def read_arrays(path: Path, needed: Callable[[str], bool]) -> dict[str, AnyArray]:
    """Those arrays of an NPZ archive whose names are needed; the others are not unpacked."""
    with ArrayArchive(path) as archive:
        return {name: archive.read(name) for name in archive.headers if needed(name)}


def _opened(path: Path) -> IO[bytes]:
    if path.is_dir():
        raise FileError(f"Cannot read {path}: it is a directory. Name an NPZ file.")
    file = None
    try:
        file = regular(path).open("rb")
        start = file.read(6)
    except OSError as error:
        if file is not None:
            file.close()
        reason = error.strerror or str(error)
        raise FileError(f"Cannot read {path}: {reason}. Name a file that can be read.") from error
    if start.startswith(b"PK"):
        return file
    file.close()
    found = next((what for magic, what in _STARTS.items() if start.startswith(magic)), "")
    raise FileError(
        f"{path} is {found if start else 'empty, '}not an NPZ archive. Write one with "
        "`numpy.savez`, or give the file its own ending."
    )
