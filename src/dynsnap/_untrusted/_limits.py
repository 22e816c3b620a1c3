"""Checks before a file is read: its kind, how large it may become, its digest."""

import errno
import gzip
import hashlib
import hmac
import io
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO

from dynsnap.errors import FileError, PlanError, one_line


def regular(path: Path) -> Path:
    """The path, if a file of bytes is there.

    A folder from a stranger may hold a named pipe, as an archive can bring one: to open it would
    wait for a writer for ever.

    Raises:
        OSError: There is no such file, or it is a pipe, a socket or a device.
    """
    if not (path.is_file() or path.is_dir()):  # the reader of a folder reports it
        path.stat()  # raises where there is nothing, or a link to itself
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
    return path


_RATIO = 64  # times its own size: honest arrays and tables stay far below, a bomb far above
_FLOOR = 64 << 20  # bytes that any file may unpack to


def allowance(packed: int) -> int:
    """The most bytes that a file of this size may unpack to.

    Example:
        >>> allowance(1_000) == 64 << 20
        True
        >>> allowance(10_000_000)
        640000000
    """
    return max(_FLOOR, _RATIO * packed)


def megabytes(size: int) -> str:
    """A size as people read it.

    Example:
        >>> megabytes(3_000_000_000)
        '3,000.0 MB'
    """
    return f"{size / 1e6:,.1f} MB"


class Bounded(io.RawIOBase):
    """A stream of unpacked bytes: an OSError ends it where it is damaged or passes its allowance.

    Args:
        stream: The unpacked bytes.
        most: How many there may be.
    """

    def __init__(self, stream: "IO[bytes] | gzip.GzipFile", most: int) -> None:
        self._stream = stream
        self._most = self._left = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview[int]", /) -> int:  # type: ignore[override]
        try:
            content = self._stream.read(min(len(buffer), self._left + 1))
        except (EOFError, zlib.error) as error:  # of gzip, which raises an OSError for all else
            raise OSError(str(error)) from error
        self._left -= len(content)
        if self._left < 0:
            raise OSError(
                f"it unpacks to more than {megabytes(self._most)}, which is too much for its size"
            )
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()


_LOCAL_HEADER = 30  # bytes of an entry's own header, before its name and extra field
_ENCRYPTED = 0x1
_KINDS = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflated"}


class Archive:
    """The entries of a zip archive.

    Args:
        file: The archive, open for reading; it stays open.
        size: Its bytes.
        deflated: Whether entries may be compressed.

    Raises:
        zipfile.BadZipFile, ValueError, ...: It is damaged, or claims more than it can hold.
    """

    def __init__(self, file: IO[bytes], size: int, *, deflated: bool) -> None:
        self._file, self._size = file, size
        self._zip = zipfile.ZipFile(file)
        entries = self._zip.infolist()
        self.entries = {entry.filename: entry for entry in entries}
        if len(self.entries) < len(entries):  # two readers could take two files for it
            raise ValueError("it holds two files of one name")
        packed = 0
        for entry in entries:
            allowed = entry.compress_type == zipfile.ZIP_STORED or deflated
            # Other methods (LZMA) may ask for gigabytes to unpack a few bytes.
            if entry.compress_type not in _KINDS or not allowed:
                raise ValueError(f"it holds {entry.filename[:100]!r} compressed in another way")
            if entry.flag_bits & _ENCRYPTED:
                raise ValueError(f"it holds {entry.filename[:100]!r} encrypted")
            stored = entry.compress_type == zipfile.ZIP_STORED
            if stored and entry.file_size != entry.compress_size:
                raise ValueError(f"it is at odds about the size of {entry.filename[:100]!r}")
            packed += entry.compress_size
        if packed > size:  # entries that share their bytes, or claim more than there are
            raise ValueError("its entries claim more bytes than it has")

    def open(self, name: str) -> IO[bytes]:
        """The unpacked bytes of an entry; at most as many as its directory states."""
        return self._zip.open(self.entries[name])

    def span(self, name: str) -> tuple[int, int]:
        """Where the bytes of an entry lie that is stored as it is: offset and size."""
        entry = self.entries[name]
        self._file.seek(entry.header_offset)
        header = self._file.read(_LOCAL_HEADER)
        if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
            raise ValueError(f"the header of {name[:100]!r} is not where it should be")
        long_name, extra = struct.unpack("<HH", header[26:30])
        start = entry.header_offset + _LOCAL_HEADER + long_name + extra
        if start + entry.file_size > self._size:
            raise ValueError(f"{name[:100]!r} reaches beyond its end")
        return start, entry.file_size


DIGEST = "[0-9a-f]{64}"


def check_digest(text: str) -> str:
    """A SHA-256 as its 64 hexadecimal digits, as `sha256sum` writes them.

    Example:
        >>> check_digest("AB" * 32)[:6]
        'ababab'
    """
    plain = text.strip().lower().removeprefix("sha256:")
    if not re.fullmatch(DIGEST, plain):
        raise PlanError(
            f"A SHA-256 digest has 64 hexadecimal digits, got {one_line(text[:80])!r}. "
            "`sha256sum FILE` prints the digest of a file."
        )
    return plain


def read_pinned(path: Path, sha256: str | None, *, start: bytes, otherwise: str) -> bytes:
    """The bytes of a file, if they have this digest.

    The file is read once: the bytes that were digested are the bytes that are used.

    Args:
        path: The file.
        sha256: Its digest; None for any.
        start: How it begins; a file that does not is not read further.
        otherwise: What is said of such a file.
    """
    wanted = None if sha256 is None else check_digest(sha256)
    try:
        with regular(path).open("rb") as file:
            content = file.read(len(start))
            content += file.read() if content == start else b""
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror or error}. Name a file.") from error
    if not content.startswith(start):
        raise FileError(otherwise)
    if wanted is not None:
        found = hashlib.sha256(content).hexdigest()
        if not hmac.compare_digest(found, wanted):
            raise FileError(
                f"{path} is not the file that was asked for: its SHA-256 is {found}, not {wanted}. "
                "It was not opened."
            )
    return content
