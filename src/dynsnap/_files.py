"""Files that are either wholly there or not there: staged beside their place, flushed, renamed.

The writer of a staged file holds a lock on it. The kernel drops the lock when the process ends,
however it ends, so an unlocked staged file is a leftover, and the next writer in that folder
removes it. A process id in the name would not do: ids are reused, and each container and host has
its own.
"""

import atexit
import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from dynsnap.errors import FileError

try:
    import fcntl
except ImportError:  # Windows: leftovers stay until they are removed by hand
    fcntl = None  # type: ignore[assignment]

_NAME = re.compile(r"\..*\.[0-9a-f]{16}\.dynsnap(\.[^.]*)?", re.DOTALL)
_LONGEST = 255  # bytes of a file name
_CHUNK = 1 << 20
_live: set["StagedFile"] = set()


class StagedFile:
    """A new, empty file beside `target`, locked by this process.

    `create` makes it, after it is registered for removal: a signal may come right after.

    Args:
        target: The place that the file is meant for. The suffix is the same: some writers choose
            their format by it.

    Attributes:
        path: The file.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self.path = target.with_name(_name(target))
        self._handle: int | None = None
        self._owner = os.getpid()
        _live.add(self)

    def create(self) -> None:
        """Make the file, and remove what others have left in its folder."""
        sweep(self.path.parent)
        while True:
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            if locked(self._handle):
                break
            self._release()  # another process has just taken the file for a leftover
            self.path = self._target.with_name(_name(self._target))
        if fcntl is None:  # an open file cannot be renamed there
            self._release()

    def move(self, target: Path) -> None:
        """Put the file in its place."""
        self.path.replace(target)
        self._release()
        _live.discard(self)

    def discard(self) -> None:
        """Remove the file, where it is still there."""
        if self._owner == os.getpid():  # else this is a copy in a forked process
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        self._release()
        _live.discard(self)

    def _release(self) -> None:
        handle, self._handle = self._handle, None  # closed once: the number may be another file's
        if handle is not None:
            os.close(handle)


def is_staged(name: str) -> bool:
    """Whether a file has the name of a staged file."""
    return _NAME.fullmatch(name) is not None


def sweep(folder: Path, folders: re.Pattern[str] | None = None) -> None:
    """Remove the files staged in a folder whose writers are gone.

    Args:
        folder: Where to look.
        folders: Not the files, but the folders of these names whose owners are gone.
    """
    if fcntl is None:
        return
    wanted, flags = (_NAME, os.O_RDWR) if folders is None else (folders, os.O_DIRECTORY)
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if wanted.fullmatch(entry.name)]
    except OSError:
        return  # the next writer there reports it
    for name in names:
        path = os.path.join(folder, name)  # noqa: PTH118 (a hot path)
        with contextlib.suppress(OSError):
            handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while it is held
                if folders is None:
                    os.unlink(path)  # noqa: PTH108
                else:
                    shutil.rmtree(path)
            finally:
                os.close(handle)


@atexit.register
def discard_staged() -> None:
    """Remove what this process has staged: it will not be finished."""
    for staged in list(_live):
        staged.discard()


def _name(target: Path) -> str:
    end = f".{secrets.token_hex(8)}.dynsnap{target.suffix}"
    stem = os.fsencode(target.stem)[: max(0, _LONGEST - 1 - len(os.fsencode(end)))]
    return f".{stem.decode(errors='ignore')}{end}"


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process or thread is in such a block of this folder.

    Nothing is locked on file systems that have no locks.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # which drops the lock


def locked(handle: int) -> bool:
    """Take the lock of a file or folder. False where it was removed in the moment before."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks, where no sweep removes it
    return os.fstat(handle).st_nlink > 0


class _Batch:
    """Files that are whole and wait for each other."""

    def __init__(self) -> None:
        self._ready: dict[Path, StagedFile] = {}
        self._open: set[StagedFile] = set()
        self._made: list[Path] = []  # folders, outer before inner
        self._doomed: list[Path] = []

    def begin(self, path: Path) -> StagedFile:
        staged = StagedFile(path)
        self._open.add(staged)
        staged.create()
        return staged

    def end(self, path: Path, staged: StagedFile) -> None:
        if path in self._ready:
            raise FileError(f"Cannot write {path} twice. Give each output a name of its own.")
        flush(staged.path)
        self._ready[path] = staged

    def make_folder(self, path: Path) -> None:
        missing = [place for place in (path, *path.parents) if not place.exists()]
        self._made += reversed(missing)  # first: a signal may come right after
        path.mkdir(parents=True, exist_ok=True)

    def remove(self, path: Path) -> None:
        self._doomed.append(path)

    def put_in_place(self) -> None:
        with _undisturbed():
            for path, staged in self._ready.items():
                with _naming(path):
                    staged.move(path)
                self._open.discard(staged)
            for path in self._doomed:
                if _place(path) not in self._ready:
                    with _naming(path):
                        path.unlink(missing_ok=True)
            self._made.clear()
        for folder in {path.parent for path in self._ready}:
            # Some systems cannot flush a directory; the rename itself is still atomic.
            with contextlib.suppress(OSError):
                flush(folder)

    def clear(self) -> None:
        for staged in list(self._open):
            staged.discard()
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # it is used by now
                folder.rmdir()


_current: ContextVar[_Batch | None] = ContextVar("batch", default=None)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Let all files that are written in this block take their places when it ends well.

    Until then each is written staged, so that a full disk or a signal replaces none of them. What
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
            staged = batch.begin(place)
            yield staged.path
            batch.end(place, staged)


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
    with replacing(path) as staged:
        staged.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write a whole text file at once, or leave things as they were."""
    write_bytes(path, content.encode())


def as_json(values: Any) -> str:
    """Plain values as JSON for people and machines; one value per line.

    Example:
        >>> print(as_json({"classes": 2}), end="")
        {
          "classes": 2
        }
    """
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def digest_and_size(file: BinaryIO) -> tuple[str, int]:
    """The SHA-256 of what is left of an open file, and how many bytes that is.

    Example:
        >>> import io
        >>> digest_and_size(io.BytesIO(b"dynsnap"))[1]
        7
    """
    whole, size = hashlib.sha256(), 0
    while piece := file.read(_CHUNK):
        whole.update(piece)
        size += len(piece)
    return whole.hexdigest(), size


def timestamp(at: datetime | None = None) -> str:
    """A moment in UTC, as files of dynsnap state it; by default this one.

    Example:
        >>> timestamp(datetime(2020, 12, 6, 14, 30, tzinfo=UTC))
        '2020-12-06T14:30:00Z'
    """
    return (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def flush(path: Path) -> None:
    """Let a file, or what was renamed in a folder, outlast a power cut."""
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)  # where a disk that is full, or failing, may first be noticed
    finally:
        os.close(handle)
