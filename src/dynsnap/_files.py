"""Files that are either wholly there or not there: write aside, flush to disk, rename."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from dynsnap._aside import Aside
from dynsnap.errors import FileError


class _Batch:
    """Files that are whole and wait for each other."""

    def __init__(self) -> None:
        self._ready: dict[Path, Aside] = {}
        self._open: set[Aside] = set()
        self._made: list[Path] = []  # folders, outer before inner
        self._doomed: list[Path] = []

    def begin(self, path: Path) -> Aside:
        aside = Aside(path)
        self._open.add(aside)
        aside.create()
        return aside

    def end(self, path: Path, aside: Aside) -> None:
        if path in self._ready:
            raise FileError(f"Cannot write {path} twice. Give each output a name of its own.")
        _flush(aside.path)
        self._ready[path] = aside

    def make_folder(self, path: Path) -> None:
        missing = [place for place in (path, *path.parents) if not place.exists()]
        self._made += reversed(missing)  # first: a signal may come right after
        path.mkdir(parents=True, exist_ok=True)

    def remove(self, path: Path) -> None:
        self._doomed.append(path)

    def put_in_place(self) -> None:
        with _undisturbed():
            for path, aside in self._ready.items():
                with _naming(path):
                    aside.move(path)
                self._open.discard(aside)
            for path in self._doomed:
                if _place(path) not in self._ready:
                    with _naming(path):
                        path.unlink(missing_ok=True)
            self._made.clear()
        for folder in {path.parent for path in self._ready}:
            # Some systems cannot flush a directory; the rename itself is still atomic.
            with contextlib.suppress(OSError):
                _flush(folder)

    def clear(self) -> None:
        for aside in list(self._open):
            aside.discard()
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # it is used by now
                folder.rmdir()


_current: ContextVar[_Batch | None] = ContextVar("batch", default=None)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Let all files that are written in this block take their places when it ends well.

    Until then each is written aside, so that a full disk or a signal replaces none of them. What
    is written cannot be read at its place before the block ends.
    """
    if _current.get() is not None:
        yield  # the outer block puts them in place
        return
    batch = _Batch()
    try:
        _current.set(batch)  # in here: Ctrl-C right after must not leave it set
        yield
        batch.put_in_place()
    finally:
        _current.set(None)
        batch.clear()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Hand out a path to write to, and move it over `path` when the block ends well.

    Whatever goes wrong inside, an earlier file at `path` stays as it was and nothing half
    written is left behind. A symbolic link stays one: the file that it names is replaced.
    """
    if path.is_dir():
        raise FileError(f"Cannot write {path}: it is a directory. Name a file in it.")
    place = _place(path)
    with together():
        batch = _current.get()
        assert batch is not None
        with _naming(path):
            aside = batch.begin(place)
            yield aside.path
            batch.end(place, aside)


def make_folder(path: Path) -> None:
    """Make a folder and those above it. They go again if `together` around it ends badly."""
    batch = _current.get() or _Batch()
    with _naming(path):
        batch.make_folder(path)


def remove(path: Path) -> None:
    """Remove a file where there is one; within `together`, when the others take their places."""
    with together():
        batch = _current.get()
        assert batch is not None
        batch.remove(path)


def _place(path: Path) -> Path:
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            f"Cannot write {path}: {reason}. Name a place that exists and has room."
        ) from error


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep signals waiting while files take their places."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are for the main thread alone
        return
    came: list[int] = []
    before = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and callable(signal.getsignal(number)):
            before[number] = signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)


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
