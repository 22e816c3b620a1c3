"""Several parts in one file, each with its checksum: a plain zip that numpy and unzip can open.

The parts lie uncompressed, so an array in the file can be mapped instead of read: what is not
looked at costs no memory. Nothing in it is ever unpickled.
"""

import hashlib
import json
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from dynsnap import _files
from dynsnap._parse import parse_json
from dynsnap._types import AnyArray
from dynsnap.errors import FileError

_MANIFEST = "manifest.json"
_CHUNK = 1 << 20
_LOCAL_HEADER = 30  # bytes of a zip entry's own header, before its name and extra field
_DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    NotImplementedError,  # a compression method that does not exist
    RuntimeError,  # an entry that claims to be encrypted
    struct.error,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    OSError,  # a place before the beginning of the file, or a bad sector
)


class DamagedError(FileError):
    """A file of dynsnap's own that no longer holds what was written to it."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where a part's bytes lie in the file."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """A container that was opened and whose checksums hold."""

    path: Path
    facts: Mapping[str, Any]
    spans: Mapping[str, Span]

    def bytes_of(self, name: str) -> bytes:
        """The content of a part."""
        span = self.spans[name]
        with self.path.open("rb") as file:
            file.seek(span.offset)
            return file.read(span.size)

    def array(self, name: str) -> AnyArray:
        """An array, mapped from the file where it is not empty."""
        span = self.spans[name]
        with self.path.open("rb") as file:
            file.seek(span.offset)
            version = np.lib.format.read_magic(file)
            header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, fortran, dtype = header(file)
            if dtype.hasobject:
                raise DamagedError(f"{self.path}: `{name}` holds objects, not numbers.")
            if 0 in shape:
                return np.empty(shape, dtype)
            start = file.tell()
        mapped: AnyArray = np.memmap(
            self.path, dtype, mode="r", offset=start, shape=shape, order="F" if fortran else "C"
        )
        return mapped


def write(path: Path, parts: Mapping[str, bytes | AnyArray], facts: Mapping[str, Any]) -> None:
    """Write the parts and what is known about them, or leave things as they were."""
    contents = {
        name: part if isinstance(part, bytes) else _npy(part) for name, part in parts.items()
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    manifest = json.dumps({**facts, "sha256": sums}, indent=1, sort_keys=True).encode()
    with _files.replacing(path) as aside, zipfile.ZipFile(aside, "w") as archive:
        for name, content in {**contents, _MANIFEST: manifest}.items():
            # A fixed date: the same content is the same file.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)


def is_container(path: Path) -> bool:
    """Whether a file begins as a container does; damage further on is for `read` to find."""
    with _opened(path) as file:
        return file.read(4) == b"PK\x03\x04"


def read(path: Path) -> Container:
    """Open a container, or raise `DamagedError` where anything in it has changed."""
    with _opened(path) as file, _archive(path, file) as archive:
        facts = _manifest(path, archive)
        try:
            sums = dict(facts["sha256"])
            spans = {name: _span(file, archive.getinfo(name)) for name in sums}
            for name, expected in sums.items():
                if _digest(file, spans[name]) != expected:
                    raise DamagedError(f"{path} is damaged: `{name}` fails its checksum.")
        except _DAMAGE as error:
            raise DamagedError(f"{path} is damaged: {_reason(error)}.") from error
    return Container(path, facts, spans)


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror or error}. Name a file.") from error


def _archive(path: Path, file: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except _DAMAGE as error:
        raise DamagedError(f"{path} is damaged: {_reason(error)}.") from error


def _manifest(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    try:
        facts = parse_json(archive.read(_MANIFEST))
    except KeyError as error:
        raise DamagedError(
            f"{path} is damaged, or is not a file of dynsnap's own: it has no {_MANIFEST}."
        ) from error
    except _DAMAGE as error:
        raise DamagedError(f"{path} is damaged: {_reason(error)}.") from error
    if not isinstance(facts, dict):
        raise DamagedError(f"{path} is damaged: its manifest is not a table.")
    return facts


def _span(file: IO[bytes], entry: zipfile.ZipInfo) -> Span:
    file.seek(entry.header_offset)
    header = file.read(_LOCAL_HEADER)
    name, extra = struct.unpack("<HH", header[26:30])
    return Span(entry.header_offset + _LOCAL_HEADER + name + extra, entry.file_size)


def _digest(file: IO[bytes], span: Span) -> str:
    digest = hashlib.sha256()
    file.seek(span.offset)
    left = span.size
    while left > 0 and (chunk := file.read(min(_CHUNK, left))):
        digest.update(chunk)
        left -= len(chunk)
    return digest.hexdigest()


def _npy(array: AnyArray) -> bytes:
    buffer = BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _reason(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
