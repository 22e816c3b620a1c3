"""A file aside: where a file is written until it is whole, hidden beside its place.

Its writer holds a lock on it. The kernel drops the lock when the process ends, however it ends, so
an unlocked file aside is a leftover, and the next writer in that folder removes it. A process id
in the name would not tell: ids are reused, and each container and host has its own.
"""

import atexit
import contextlib
import os
import re
import secrets
import shutil
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: leftovers stay until somebody removes them
    fcntl = None  # type: ignore[assignment]

_NAME = re.compile(r"\..*\.[0-9a-f]{16}\.dynsnap(\.[^.]*)?", re.DOTALL)
_LONGEST = 255  # bytes of a file name
_live: set["Aside"] = set()


class Aside:
    """A new, empty file beside `target`, locked by this process.

    It is made by `create`, so that whoever removes it can know of it before: a signal may come
    right after.

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


def is_aside(name: str) -> bool:
    """Whether a file is named as files aside are, so that it is none of anybody else's."""
    return _NAME.fullmatch(name) is not None


def sweep(folder: Path, folders: re.Pattern[str] | None = None) -> None:
    """Remove the files aside in a folder whose writers are gone.

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
        return  # whoever writes there next says what is wrong with it
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
def discard_all() -> None:
    """Remove what this process has aside: it will not be finished."""
    for aside in list(_live):
        aside.discard()


def _name(target: Path) -> str:
    end = f".{secrets.token_hex(8)}.dynsnap{target.suffix}"
    stem = os.fsencode(target.stem)[: max(0, _LONGEST - 1 - len(os.fsencode(end)))]
    return f".{stem.decode(errors='ignore')}{end}"


def locked(handle: int) -> bool:
    """Take the lock of a file or folder. False where it was removed in the moment before."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks, where nobody can take it for a leftover
    return os.fstat(handle).st_nlink > 0
