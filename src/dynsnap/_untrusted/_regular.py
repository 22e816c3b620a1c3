"""Files that are files: not pipes, which never end, and not devices."""

import errno
from pathlib import Path


def regular(path: Path) -> Path:
    """The path, if a file of bytes is there.

    A folder from a stranger may hold a named pipe, as an archive can bring one: to open it would
    wait for a writer for ever.

    Raises:
        OSError: There is no such file, or it is a pipe, a socket or a device.
    """
    if not (path.is_file() or path.is_dir()):  # for folders, whoever opens one says so
        path.stat()  # raises where there is nothing, or a link to itself
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
    return path
