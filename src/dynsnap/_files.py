"""Files that are either wholly there or not there: write aside, flush to disk, rename."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from dynsnap.errors import FileError


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
