"""Files from a folder or from a tar archive, which is read in memory and never unpacked."""

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from dynsnap._untrusted import Bounded, allowance, regular
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
    return dict(
        read_files(path, lambda place, handle: (place.name, read(place.name, handle)), names)
    )


def read_files(
    path: Path,
    read: Callable[[PurePosixPath, IO[bytes]], Content],
    names: Collection[str] | None = None,
) -> Iterator[Content]:
    """What `read` makes of the plain files of an archive, in their order; of all without `names`.

    The archive may unpack to so much and no more: see `_untrusted.allowance`.
    """
    try:
        with (
            regular(path).open("rb") as file,
            tarfile.open(fileobj=_unpacked(path, file), mode="r|") as tar,
        ):
            for member in tar:
                place = PurePosixPath(member.name)
                if place.is_absolute() or ".." in place.parts:
                    raise DataError(
                        f"{path} holds the name {member.name!r}, which leads out of its folder: it "
                        "is not the official archive. Get it again from its source."
                    )
                wanted = names is None or place.name in names
                # A sparse file claims a size for which there are no bytes.
                if wanted and member.isreg() and not member.issparse():
                    handle = tar.extractfile(member)
                    assert handle is not None  # a regular file always has one
                    yield read(place, handle)
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DataError(
            f"Cannot read {path} as a tar archive: it is cut short or damaged "
            f"({one_line(str(error))}). "
            "Get it again from its source."
        ) from error


def _unpacked(path: Path, file: IO[bytes]) -> IO[bytes]:
    """The bytes of a tar file, which may be compressed by gzip."""
    start = file.read(2)
    file.seek(0)
    if start != b"\x1f\x8b":
        return file
    most = allowance(path.stat().st_size)
    return io.BufferedReader(Bounded(gzip.GzipFile(fileobj=file), most))


def file_md5(path: Path) -> str:
    """The md5 sum of a file of any size."""
    try:
        with regular(path).open("rb") as handle:
            return hashlib.file_digest(
                handle, lambda: hashlib.md5(usedforsecurity=False)
            ).hexdigest()
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
