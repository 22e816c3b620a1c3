"""Files from a folder or from a tar archive, which is read in memory and never unpacked."""

import hashlib
import tarfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from dynsnap.errors import DataError, one_line

Content = TypeVar("Content")


def is_archive(path: Path) -> bool:
    """Whether a path is a tar file by its name.

    Example:
        >>> is_archive(Path("cifar-10-python.tar.gz"))
        True
    """
    return path.name.endswith((".tar.gz", ".tgz", ".tar"))


def read_members(
    path: Path, names: Collection[str], read: Callable[[str, IO[bytes]], Content]
) -> dict[str, Content]:
    """What `read` makes of the plain files of an archive with one of these names, in any folder.

    Links, devices and all other names are passed over; a name that leads out of the archive's
    folder is refused, for no honest archive has one.
    """
    found = {}
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                place = PurePosixPath(member.name)
                if place.is_absolute() or ".." in place.parts:
                    raise DataError(
                        f"{path} holds the name {member.name!r}, which leads out of its folder: it "
                        "is not the official archive. Get it again from its source."
                    )
                if member.isreg() and place.name in names:
                    handle = archive.extractfile(member)
                    assert handle is not None  # a regular file always has one
                    found[place.name] = read(place.name, handle)
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DataError(
            f"Cannot read {path} as a tar archive: it is cut short or damaged "
            f"({one_line(str(error))}). "
            "Get it again from its source."
        ) from error
    return found


def file_md5(path: Path) -> str:
    """The md5 sum of a file of any size."""
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(
                handle, lambda: hashlib.md5(usedforsecurity=False)
            ).hexdigest()
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
