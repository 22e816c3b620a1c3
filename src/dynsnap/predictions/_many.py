"""Parquet files that hold the rows of one generation together."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from dynsnap.errors import FileError
from dynsnap.predictions._digest import Verification, together
from dynsnap.predictions._kinds import bare, is_list, is_text
from dynsnap.predictions._locate import Many, StoredFile
from dynsnap.predictions._reading import reading
from dynsnap.predictions._schema import CLASSES_KEY, ColumnLayout, ColumnNames, interpret
from dynsnap.predictions._sources import ParquetBatches
from dynsnap.predictions._text import listed, on_one_line, shown
from dynsnap.predictions._vocabulary import Batches

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


def opened_together(many: Many, columns: ColumnNames) -> tuple[list[File], ColumnLayout]:
    """Look at files that must have the same columns, and find out which column is what."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        files = list(pool.map(_looked_at, many.files))
    first = files[0]
    with reading(first.place):
        layout = interpret(first.source.schema, columns)
    for file in files[1:]:
        _check_alike(first, file)
    return files, layout


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
