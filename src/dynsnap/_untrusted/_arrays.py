"""Plain arrays in NPZ archives: their headers first, and of the arrays only those that are needed.

A pickle in one is never loaded.
"""

import contextlib
import io
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from dynsnap._types import AnyArray
from dynsnap._untrusted._archive import Archive
from dynsnap._untrusted._limits import allowance, megabytes
from dynsnap._untrusted._regular import regular
from dynsnap.errors import FileError, InputError, one_line

POSITIONS = "positions"  # see `ArrayArchive.positions`

_HEADER = 12_000  # bytes; numpy itself refuses headers of more than 10,000
# How files start that are often taken for an NPZ archive.
_STARTS = {
    b"\x93NUMPY": "a single array, ",
    b"PAR1": "a Parquet file, ",
    b"ARROW1": "an Arrow file, ",
}


class PickledError(ValueError):
    """An array holds Python objects, which only a pickle can bring back."""


@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """What an array's first bytes say.

    Attributes:
        start: Where its values begin.
    """

    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"
    fortran: bool
    start: int

    @property
    def nbytes(self) -> int:
        """What its values take in memory."""
        return math.prod(self.shape) * self.dtype.itemsize


def array_header(start: bytes, size: int) -> ArrayHeader:
    """The header of an array in numpy's format, if its values fit into what is there.

    Args:
        start: The first bytes; `_HEADER` of them are enough for any header.
        size: Bytes of the header and the values together.

    Raises:
        ValueError: It is damaged, claims more values than there are, or holds objects.
    """
    file = io.BytesIO(start[:_HEADER])
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            shape, fortran, dtype = read(file)
    except Exception as error:  # a header is a Python literal, which can be wrong in many ways
        raise ValueError(f"its header cannot be read: {error}") from error
    if dtype.hasobject:
        raise PickledError("it holds objects, not numbers or text")
    header = ArrayHeader(tuple(map(int, shape)), dtype, bool(fortran), file.tell())
    if min(header.shape, default=0) < 0 or header.start + header.nbytes > size:
        raise ValueError(
            f"it claims to hold {dtype.str} of the shape {header.shape}, which is not in it"
        )
    return header


class ArrayArchive:
    """An NPZ archive that is open: the header of every array, and the arrays that are asked for.

    Example:
        >>> import tempfile
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
            array: AnyArray = np.lib.format.read_array(entry, allow_pickle=False)
            return array

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
            start = file.read(_HEADER)
        if not start.startswith(b"\x93NUMPY"):
            raise FileError(f"{self._path} holds {one_line(name[:100])!r}, which is not an array.")
        return array_header(start, entry.file_size)

    @contextlib.contextmanager
    def _saying_what_is_wrong(self) -> Iterator[None]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of old or damaged headers: one line is enough
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
