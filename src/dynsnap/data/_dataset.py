"""What a source gives, and the small things that all sources share."""

import gzip
import hashlib
import importlib
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO

import numpy as np

from dynsnap._types import AnyArray, Labels
from dynsnap._untrusted import Bounded, allowance, regular
from dynsnap.data._pool import Pool
from dynsnap.errors import DataError


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSet:
    """A data set as its source has it.

    Attributes:
        train: Rows to learn from.
        test: The official test set, where there is one.
        notes: What the reader should know about how it was read, a sentence each.
    """

    train: Pool
    test: Pool | None = None
    notes: tuple[str, ...] = ()


def class_order(names: Iterable[str]) -> tuple[str, ...]:
    """Distinct class names in their order: by number where all are whole numbers, else by text.

    Example:
        >>> class_order(["10", "9", "9"])
        ('9', '10')
    """
    found = set(names)
    try:
        return tuple(sorted(found, key=lambda name: (int(name), name)))
    except ValueError:
        return tuple(sorted(found))


def positions(names: Sequence[str], classes: Sequence[str], *, what: str) -> Labels:
    """Class names as positions in `classes`."""
    place = {name: position for position, name in enumerate(classes)}
    try:
        return np.fromiter((place[name] for name in names), dtype=np.int64, count=len(names))
    except KeyError as error:
        raise DataError(
            f"{what}: label {error.args[0]!r} is not one of the {len(classes)} classes."
        ) from None


def numbered(name: str, rows: int) -> AnyArray:
    """Ids for rows that bring none: unique, also across pools of different names.

    Example:
        >>> numbered("test", 2).tolist()
        ['test-0', 'test-1']
    """
    return np.char.add(f"{name}-", np.arange(rows).astype(str))


def needs(module: str, *, extra: str, what: str) -> ModuleType:
    """Import a library that only some sources need."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DataError(
            f"{what} needs {module.split('.')[0]}, which is not installed. "
            f"Install it with: pip install 'dynsnap[{extra}]'"
        ) from error


def read_bytes(path: Path) -> bytes:
    """The content of a file, or a clear reason why not."""
    try:
        return regular(path).read_bytes()
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error


def data_folder(path: str | Path | None) -> Path:
    """Where to look: the path given, else the folder that $DYNSNAP_DATA names, else `data`."""
    return Path(path or os.environ.get("DYNSNAP_DATA") or "data").expanduser()


def missing(name: str, path: Path, *, get: str, put: str) -> DataError:
    """The error for a data set that is not there: where it comes from, and where to put it."""
    return DataError(
        f"{name} was not found at {path}, and nothing is downloaded unasked. Get {get}, and put "
        f"{put} there, or say where it is (--data, `path`, or the environment variable "
        "DYNSNAP_DATA)."
    )


def opened(path: Path) -> IO[bytes]:
    """A file of text to read from, unpacked on the way where its name ends in .gz.

    Reading raises an OSError where it is damaged, or unpacks to far more than its own size.

    Raises:
        DataError: It cannot be read, or is packed and its name does not tell.
    """
    try:
        if regular(path).suffix == ".gz":
            most = allowance(path.stat().st_size)
            return io.BufferedReader(Bounded(gzip.open(path, "rb"), most))
        file = path.open("rb")
        packed = file.read(2) == b"\x1f\x8b"  # which begins no text
        file.seek(0)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
    if packed:
        file.close()
        raise DataError(f"{path} is packed by gzip. Call it {path.name}.gz.")
    return file


def md5(content: bytes) -> str:
    """The md5 sum that data sets are published with; not a protection against forgery."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
