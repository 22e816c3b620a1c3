"""Where predictions are: one file, a directory or a pattern of them, an object store."""

import fnmatch
import glob
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from dynsnap.errors import FileError
from dynsnap.predictions._arrow import bare, is_list, is_text
from dynsnap.predictions._digest import Verification, together
from dynsnap.predictions._keys import split_address
from dynsnap.predictions._reading import reading
from dynsnap.predictions._schema import CLASSES_KEY
from dynsnap.predictions._sources import ParquetBatches
from dynsnap.predictions._stored import Address, refuse_study, resolve
from dynsnap.predictions._text import listed, on_one_line, shown
from dynsnap.predictions._vocabulary import Batches

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PATTERN = re.compile(r"[*?\[]")
_PATTERN_IN_URI = re.compile(r"[*\[]")  # there, a question mark begins the options
_PARQUET = (".parquet", ".pq")


class StoredFile(NamedTuple):
    """One Parquet file of many.

    Attributes:
        place: What it is called in messages; a Path where it is a file of this machine.
        path: Where it is in its file system.
        filesystem: One of pyarrow's; None for the local one.
    """

    place: Path | str
    path: str
    filesystem: Any


class FileSet(NamedTuple):
    """The files that hold one generation together, in the order of their names."""

    name: str
    files: tuple[StoredFile, ...]


def is_uri(place: str | Path) -> bool:
    """Whether a place is written as SCHEME://...

    Example:
        >>> is_uri("s3://bucket/old"), is_uri("old.parquet")
        (True, False)
    """
    return isinstance(place, str) and _URI.match(place) is not None


def locate(place: str | Path) -> Path | FileSet | Address:
    """What a place stands for: a file, or the Parquet files of a directory, a pattern or a store.

    An address in published results stands for itself, one in a run folder for its file.

    In a directory, files are looked for at any depth; those whose name, or whose folder's name,
    begins with a dot or an underscore are not part of the data, as is the custom.

    Args:
        place: A path, a pattern such as "old/*.parquet" (`**` stands for folders at any depth), or
            a URI that pyarrow knows: file://, s3://, gs://, abfs://, hdfs://; or an address,
            FOLDER::METHOD/COMBINATION/gN/rN.

    Example:
        >>> locate("old.parquet")
        PosixPath('old.parquet')
    """
    if isinstance(place, str) and is_uri(place):
        parts = urlsplit(place)
        if parts.scheme.lower() == "file":
            return locate(Path(unquote(parts.path)))
        return _in_store(place)
    if (address := split_address(place)) is not None:
        return resolve(*address)
    path = Path(place)
    name = on_one_line(path)
    if path.is_dir():
        refuse_study(path)
        found = _in_folder(path)
        if not found:
            raise FileError(
                f"{name} is a directory, but no Parquet file is in it. Name a file, or a directory "
                "with files that end in .parquet."
            )
    elif (pattern := _pattern(path)) is not None:
        found = []
        # Unlike Path.glob, this one takes a whole pattern, absolute or not.
        for match in map(Path, sorted(glob.glob(pattern, recursive=True))):  # noqa: PTH207
            found += _in_folder(match) if match.is_dir() else [match]
        found = list(dict.fromkeys(found))
        _check_found(name, found)
    else:
        return path
    return FileSet(name, tuple(StoredFile(file, str(file), None) for file in found))


def _pattern(path: Path) -> str | None:
    """The pattern that a path is, None if it is none: a folder [old] that exists is that folder."""
    parts = path.parts
    known = (count for count in range(len(parts), 0, -1) if Path(*parts[:count]).exists())
    exist = next(known, 0)
    if not any(map(_PATTERN.search, parts[exist:])):
        return None
    return str(Path(*map(glob.escape, parts[:exist]), *parts[exist:]))


def files_of(found: Path | FileSet | Address) -> list[Path | str]:
    """The files that hold what was located."""
    if isinstance(found, Path):
        return [found]
    if isinstance(found, Address):
        return list(found.files)
    return [file.place for file in found.files]


def _in_folder(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.rglob("*")
        if _is_data(file.relative_to(folder).parts) and file.is_file()
    )


def _is_data(parts: Sequence[str]) -> bool:
    hidden = any(part.startswith((".", "_")) for part in parts)
    return not hidden and parts[-1].lower().endswith(_PARQUET)


def _in_store(uri: str) -> FileSet:
    from pyarrow import fs

    name = on_one_line(uri)
    address, _, options = uri.partition("?")
    steps = address.split("/")
    fixed = next((i for i, step in enumerate(steps) if _PATTERN_IN_URI.search(step)), len(steps))
    pattern = steps[fixed:]
    base = "/".join(steps[:fixed]) + ("?" + options if options else "")
    try:
        filesystem, root = filesystem_of(base)
        info = filesystem.get_file_info(root)
        if info.type == fs.FileType.File and not pattern:
            found = [root]
        elif info.type == fs.FileType.NotFound:
            raise FileError(f"{name} does not exist. Check the address.")
        else:
            every = filesystem.get_file_info(fs.FileSelector(root, recursive=True))
            found = sorted(
                each.path
                for each in every
                if each.type == fs.FileType.File and _wanted(each.path, root, pattern)
            )
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = on_one_line(" ".join(str(error).split()), limit=160).rstrip(".")
        raise FileError(f"{name} cannot be opened: {reason}. Check the address.") from error
    if not pattern and not found:
        raise FileError(
            f"{name} is a directory, but no Parquet file is in it. Name a file, or a directory "
            "with files that end in .parquet."
        )
    _check_found(name, [PurePosixPath(path) for path in found])
    scheme = address.partition("://")[0]
    files = (StoredFile(f"{scheme}://{path.lstrip('/')}", path, filesystem) for path in found)
    return FileSet(name, tuple(files))


def filesystem_of(uri: str) -> tuple[Any, str]:
    """The file system behind an address, and the path in it."""
    from pyarrow import fs

    found: tuple[Any, str] = fs.FileSystem.from_uri(uri)
    return found


def _wanted(path: str, root: str, pattern: Sequence[str]) -> bool:
    parts = PurePosixPath(path).relative_to(root).parts
    return _matches(parts, pattern) if pattern else _is_data(parts)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not parts or not pattern:
        return not parts and not pattern
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or _matches(parts[1:], pattern)
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _check_found(name: str, found: Sequence[Path | PurePosixPath]) -> None:
    if not found:
        raise FileError(f"{name} matches no file. Check the pattern.")
    for file in found:
        if not file.name.lower().endswith(_PARQUET):
            raise FileError(
                f"{name} matches {on_one_line(file)}, but files that make up a generation together "
                "must be Parquet. Name one file, or a pattern that ends in .parquet."
            )


_AT_ONCE = 16  # files that are looked at together: a store far away takes its time for each


class File(NamedTuple):
    """A file and what it is called in messages."""

    place: Path | str
    source: Batches


@dataclass(frozen=True, slots=True, eq=False)
class Chained:
    """Files one after another. What is wrong with one is said with its name."""

    files: Sequence[File]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the first file; the others have the same."""
        return self.files[0].source.schema

    @property
    def verification(self) -> Verification:
        """Whether all files are as they were written."""
        return together([file.source.verification for file in self.files])

    def batches(self, columns: Sequence[str], /) -> Iterator[pa.RecordBatch]:
        """The rows of all files."""
        for place, source in self.files:
            with reading(place):
                yield from source.batches(columns)


def opened_together(many: FileSet) -> list[File]:
    """Look at files that must have the same columns."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        files = list(pool.map(_looked_at, many.files))
    for file in files[1:]:
        _check_alike(files[0], file)
    return files


def _looked_at(file: StoredFile) -> File:
    with reading(file.place):
        return File(file.place, ParquetBatches.looked_at(file.path, file.filesystem))


def _check_alike(first: File, other: File) -> None:
    one, two = first.source.schema, other.source.schema
    names = f"{on_one_line(other.place)} and {on_one_line(first.place)}"
    advice = "Files that make up a generation together must be written alike."
    lacking, more = (
        [name for name in these.names if name not in those.names]
        for these, those in ((one, two), (two, one))
    )
    if lacking or more:
        said = [f"only the second has {listed(lacking)}"] if lacking else []
        said += [f"only the first has {listed(more)}"] if more else []
        raise FileError(f"{names} have different columns: {', '.join(said)}. {advice}")
    if _classes(one) != _classes(two):
        raise FileError(f"{names} name different classes in their metadata. {advice}")
    for name in one.names:
        kinds = [
            _kind(schema.field(schema.get_all_field_indices(name)[0])) for schema in (two, one)
        ]
        if kinds[0] != kinds[1] and "null" not in kinds:
            raise FileError(
                f"{names} have different types in the column {shown(name)}: {kinds[0]} and "
                f"{kinds[1]}. {advice}"
            )


def _classes(schema: pa.Schema) -> bytes | None:
    found: bytes | None = (schema.metadata or {}).get(CLASSES_KEY)
    return found


def _kind(field: pa.Field) -> str:
    """The type of a column, as far as files that are read together must agree on it."""
    kind = bare(field.type)
    if is_list(kind):
        return f"lists of {kind.value_type}"
    if is_text(kind):
        return "text"
    return "whole numbers" if pa.types.is_integer(kind) else str(kind)
