"""What goes wrong with a file, in one line that names it."""

import contextlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from dynsnap.errors import FileError, InputError
from dynsnap.predictions._frames import FrameName
from dynsnap.predictions._sources import format_of
from dynsnap.predictions._text import on_one_line
from dynsnap.predictions._text_files import compression_of

# What the libraries below raise on bytes that make no sense.
_DAMAGE = (
    OSError,
    pa.ArrowException,
    ValueError,
    KeyError,
    EOFError,
    NotImplementedError,
    OverflowError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
# None of them begins a text: a table whose first column is called PAR1 is not taken for Parquet.
_STARTS = {
    b"PAR1\x15": ".parquet",
    b"ARROW1\0": ".arrow",
    b"PK\x03\x04": ".npz",
    b"\x1f\x8b": ".csv.gz",
}
_PACKED_TEXT = ("CSV", "TSV", "JSON Lines")


@contextlib.contextmanager
def reading(place: Path | str) -> Iterator[None]:
    """Turn whatever goes wrong with a file into one line that names it.

    Args:
        place: A file of this machine, or the name of something else that holds Parquet.
    """
    name = on_one_line(place)
    if isinstance(place, FrameName):
        with _reading_frame(name):
            yield
        return
    try:
        if isinstance(place, Path) and not place.exists():
            raise FileError(f"{name} does not exist. Check the path.")
        if isinstance(place, Path) and not (place.is_file() or place.is_dir()):
            # To open a pipe would wait for its writer for ever.
            raise FileError(f"{name} is a pipe or a device. Name a file.")
        yield
    except InputError as error:
        # Bytes of another format can look like any mistake in a text: what they are comes first.
        told = _seen(place) if isinstance(place, Path) else None
        if told is not None:
            raise FileError(f"{name} cannot be read as {told}") from error
        raise FileError(f"{name}: {error}") from error
    except _DAMAGE as error:
        raise FileError(f"{name} cannot be read as {_why(place, error)}") from error


@contextlib.contextmanager
def _reading_frame(name: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    except _DAMAGE as error:
        reason = on_one_line(" ".join(str(error).split()) or type(error).__name__, limit=160)
        raise InputError(f"{name} cannot be read: {reason.rstrip('.')}.") from error


def _why(place: Path | str, error: BaseException) -> str:
    wanted = format_of(place) if isinstance(place, Path) else "Parquet"
    if isinstance(error, MemoryError):
        return f"{wanted}: it is damaged, or needs more memory than there is."
    if isinstance(error, PermissionError):
        return f"{wanted}: {error.strerror}. Allow it to be read."
    if isinstance(place, Path) and (known := _seen(place)):
        return known
    told = "invalid utf8" in str(error).lower()  # pyarrow's words
    if wanted in _PACKED_TEXT and told:
        return f"{wanted}: its text is not UTF-8. Write it in UTF-8."
    reason = on_one_line(" ".join(str(error).split()) or type(error).__name__, limit=160)
    advice = "It may be cut off or damaged; write it again."
    if isinstance(error, NotImplementedError):  # pyarrow's own is one of these
        advice = "Write it with other types of columns, or again if it is damaged."
    return f"{wanted}: {reason.rstrip('.')}. {advice}"


def _seen(path: Path) -> str | None:
    """What the first bytes of a file that cannot be read tell."""
    wanted = format_of(path)
    with contextlib.suppress(OSError), path.open("rb") as handle:
        start = handle.read(8)
        if not start:
            return f"{wanted}: it is empty. Write it again."
        found = next((Path(end) for magic, end in _STARTS.items() if start.startswith(magic)), path)
        packed = compression_of(found)
        if packed and wanted in _PACKED_TEXT and compression_of(path) is None:
            return f"{wanted}: it is packed by gzip. Call it {on_one_line(path.name)}.gz."
        kind = wanted if packed and wanted in _PACKED_TEXT else format_of(found)
        if (kind, packed) != (wanted, compression_of(path)):
            return f"{wanted}: it looks like a {found} file. Give it that ending."
    return None
