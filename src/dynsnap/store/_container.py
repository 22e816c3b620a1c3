"""Several parts in one file, each with its checksum: a plain zip that numpy and unzip can open.

The parts lie uncompressed, so an array in the file can be mapped instead of read: what is not
looked at costs no memory. Nothing in it is ever unpickled, and what its manifest states is checked
against a schema before anything is made of it.
"""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from dynsnap import _files, _untrusted
from dynsnap._types import AnyArray
from dynsnap._untrusted import Archive, MapOf, Schema, Text
from dynsnap.errors import FileError, one_line

_MANIFEST = "manifest.json"
_CHUNK = 1 << 20
_MOST_PARTS = 100_000
START = b"PK\x03\x04"  # of a container, and of any other zip file
_DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    NotImplementedError,  # a compression method that does not exist
    RuntimeError,  # an entry that claims to be encrypted; a header that is nested too deeply
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    MemoryError,  # for want of any, Python's parser raises it for a header that makes no sense
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
    """A container that was opened and whose checksums hold.

    Attributes:
        facts: What its manifest states; not checked yet beyond being a table.
        content: The whole file, where it was read into memory.
    """

    path: Path
    facts: Mapping[str, Any]
    spans: Mapping[str, Span]
    content: bytes | None = None

    def check(self, schema: Schema) -> None:
        """Raise `DamagedError` unless the manifest follows a schema."""
        if (problem := _untrusted.mismatch(schema, self.facts)) is not None:
            raise DamagedError(f"{self.path} is damaged, or was forged: in its manifest {problem}.")

    def bytes_of(self, name: str) -> bytes:
        """The content of a part."""
        span = self.spans[name]
        if self.content is not None:
            return self.content[span.offset : span.offset + span.size]
        with self.path.open("rb") as file:
            file.seek(span.offset)
            return file.read(span.size)

    def numbered(self, kind: str) -> tuple[bytes, ...]:
        """The contents of the parts `kind.0000.bin`, `kind.0001.bin` and so on, in their order."""
        count = sum(name.startswith(f"{kind}.") for name in self.spans)
        try:
            return tuple(self.bytes_of(f"{kind}.{place:04}.bin") for place in range(count))
        except KeyError as error:
            raise DamagedError(f"{self.path} is damaged: it has no part {error}.") from error

    def array(self, name: str) -> AnyArray:
        """An array of numbers, mapped from the file where it is not empty."""
        span = self.spans[name]
        with self.path.open("rb") as file:
            file.seek(span.offset)
            start = file.read(min(span.size, _untrusted.HEADER))
        try:
            header = _untrusted.array_header(start, span.size)
        except _DAMAGE as error:
            raise DamagedError(f"{self.path}: `{name}` is damaged: {_reason(error)}.") from error
        if header.dtype.kind not in "fiub":
            raise DamagedError(f"{self.path}: `{name}` holds {header.dtype}, not numbers.")
        if 0 in header.shape:
            return np.empty(header.shape, header.dtype)
        mapped: AnyArray = np.memmap(
            self.path,
            header.dtype,
            mode="r",
            offset=span.offset + header.start,
            shape=header.shape,
            order="F" if header.fortran else "C",
        )
        return mapped


def sums_of(names: str) -> Schema:
    """The schema of a manifest's checksums, for parts with names of this form."""
    return MapOf(Text(form=_untrusted.DIGEST), key=Text(form=names), most=_MOST_PARTS)


def write(path: Path, parts: Mapping[str, bytes | AnyArray], facts: Mapping[str, Any]) -> str:
    """Write the parts and what is known about them, or leave things as they were.

    Returns:
        The SHA-256 of the file.
    """
    contents = {
        name: part if isinstance(part, bytes) else _npy(part) for name, part in parts.items()
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    manifest = json.dumps({**facts, "sha256": sums}, indent=1, sort_keys=True).encode()
    with _files.replacing(path) as aside:
        with zipfile.ZipFile(aside, "w") as archive:
            for name, content in {**contents, _MANIFEST: manifest}.items():
                # A fixed date: the same content is the same file.
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
        with aside.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def read(path: Path) -> Container:
    """Open a container, or raise `DamagedError` where anything in it has changed."""
    try:
        file = _untrusted.regular(path).open("rb")
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror or error}. Name a file.") from error
    with file:
        return Container(path, *_parts(path, file, path.stat().st_size))


def read_content(path: Path, content: bytes) -> Container:
    """The same for a file that was read into memory: what is checked is what is used."""
    return Container(path, *_parts(path, BytesIO(content), len(content)), content)


def _parts(path: Path, file: IO[bytes], size: int) -> tuple[dict[str, Any], dict[str, Span]]:
    try:
        archive = Archive(file, size, deflated=False)
        if _MANIFEST not in archive.entries:
            raise DamagedError(
                f"{path} is damaged, or is not a file of dynsnap's own: it has no {_MANIFEST}."
            )
        facts = _untrusted.parse_json(_content(file, Span(*archive.span(_MANIFEST))))
        if not isinstance(facts, dict):
            raise DamagedError(f"{path} is damaged: its manifest is not a table.")
        sums = facts["sha256"]
        if not isinstance(sums, dict):
            raise DamagedError(f"{path} is damaged: its manifest has no checksums.")
        spans = {name: Span(*archive.span(name)) for name in sums}
        for name, expected in sums.items():
            if _digest(file, spans[name]) != expected:
                raise DamagedError(f"{path} is damaged: `{name}` fails its checksum.")
    except _DAMAGE as error:
        raise DamagedError(f"{path} is damaged: {_reason(error)}.") from error
    return facts, spans


def _content(file: IO[bytes], span: Span) -> bytes:
    if span.size > _untrusted.MOST_JSON:
        raise ValueError(f"its manifest has {_untrusted.megabytes(span.size)}")
    file.seek(span.offset)
    return file.read(span.size)


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
    return one_line((str(error) or type(error).__name__).splitlines()[0].rstrip(".")[:300])
