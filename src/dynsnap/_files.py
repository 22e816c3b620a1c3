"""Files that are either wholly there or not there: write aside, flush to disk, rename."""

import contextlib
import os
import secrets
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.errors import FileError, InputError, one_line

POSITIONS = "positions"  # an array of NPZ files, see `said_positions`

# How files start that are often taken for an NPZ archive.
_STARTS = {
    b"\x93NUMPY": "a single array, ",
    b"PAR1": "a Parquet file, ",
    b"ARROW1": "an Arrow file, ",
}


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Hand out a path to write to, and move it over `path` when the block ends well.

    Whatever goes wrong inside, an earlier file at `path` stays as it was and nothing half
    written is left behind.
    """
    if path.is_dir():
        raise FileError(f"Cannot write {path}: it is a directory. Name a file in it.")
    # The suffix stays last: some writers choose their format by it.
    aside = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    try:
        yield aside
        _flush(aside)
        aside.replace(path)
        # Some systems cannot flush a directory; the rename itself is still atomic.
        with contextlib.suppress(OSError):
            _flush(path.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            f"Cannot write {path}: {reason}. Name a place that exists and has room."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file at once, or leave things as they were."""
    with replacing(path) as aside:
        aside.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write a whole text file at once, or leave things as they were."""
    write_bytes(path, content.encode())


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)  # where a disk that is full, or failing, may first be noticed
    finally:
        os.close(handle)


def read_arrays(path: Path) -> dict[str, AnyArray]:
    """The plain arrays of an NPZ archive. A pickle in one is never loaded."""
    if path.is_dir():
        raise FileError(f"Cannot read {path}: it is a directory. Name an NPZ file.")
    try:
        with path.open("rb") as handle:
            start = handle.read(6)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(f"Cannot read {path}: {reason}. Name a file that can be read.") from error
    if not start.startswith(b"PK"):  # numpy would take anything else for a pickle
        found = next((what for magic, what in _STARTS.items() if start.startswith(magic)), "")
        raise FileError(
            f"{path} is {found if start else 'empty, '}not an NPZ archive. Write one with "
            "`numpy.savez`, or give the file its own ending."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old or damaged headers: one line is enough
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
    except MemoryError as error:
        raise FileError(f"{path} is damaged, or needs more memory than there is.") from error
    except Exception as error:
        # Headers are Python literals inside a zip file: damage shows in a dozen kinds of error.
        if isinstance(error, ValueError) and "allow_pickle" in str(error):
            raise FileError(
                f"{path} holds pickled Python objects, which are never loaded. "
                "Save plain arrays: text with `.astype(str)`."
            ) from error
        reason = one_line(str(error))[:200] or type(error).__name__
        raise FileError(f"{path} is damaged ({reason}). Write it again.") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # numpy hands out the bytes of anything else
            raise FileError(f"{path} holds {one_line(name)!r}, which is not an array.")
    return arrays


def said_positions(arrays: dict[str, AnyArray]) -> bool | None:
    """Whether an archive says that whole numbers are positions in `classes` (or names).

    It says so with the array `positions`, a single truth value, which is taken out. An array of
    that name with a value for each row is something else, and stays.
    """
    found = arrays.get(POSITIONS)
    if found is None or found.ndim:
        return None
    if found.dtype != bool:
        raise InputError(
            f"The array `{POSITIONS}` must be true or false, but is of the type {found.dtype}."
        )
    return bool(arrays.pop(POSITIONS))
