"""Files as batches of rows, whatever their format."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from dynsnap.errors import FileError, InputError
from dynsnap.predictions._declared import (
    check_arrow,
    check_pages,
    check_rows,
    check_views,
    check_whole,
    lists_of,
    values_in,
    width,
)
from dynsnap.predictions._digest import NO_DIGEST, Verification, verify
from dynsnap.predictions._npz import read_table
from dynsnap.predictions._schema import ColumnNames
from dynsnap.predictions._text import on_one_line, shown
from dynsnap.predictions._text_files import read_delimited, read_json_lines
from dynsnap.predictions._vocabulary import Batches

Format: TypeAlias = Literal["Parquet", "Arrow", "CSV", "TSV", "JSON Lines", "NPZ"]

FORMATS: dict[str, Format] = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    ".csv": "CSV",
    ".csv.gz": "CSV",
    ".tsv": "TSV",
    ".tsv.gz": "TSV",
    ".jsonl": "JSON Lines",
    ".ndjson": "JSON Lines",
    ".jsonl.gz": "JSON Lines",
    ".npz": "NPZ",
}
_BATCH_ROWS = 1 << 17
_BATCH_BYTES = 64 << 20  # with thousands of scores per row, fewer rows are read at a time
_BUFFER = 1 << 20  # bytes that are read at once of a column
_ARROW_MAGIC = b"ARROW1"


def format_of(path: Path) -> Format:
    """The format that the end of a file's name stands for.

    Example:
        >>> format_of(Path("old.feather"))
        'Arrow'
    """
    for suffix, found in FORMATS.items():
        if path.name.lower().endswith(suffix):
            return found
    raise FileError(
        f"{on_one_line(path)}: unsupported file extension {shown(path.suffix)}. Use one of "
        f"{', '.join(FORMATS)}."
    )


@contextlib.contextmanager
def opened(path: Path, columns: ColumnNames) -> Iterator[Batches]:
    """A file of any format as batches of rows, closed in the end.

    What comes out of it was checked to be sound as Arrow data: damaged offsets or text that is
    not UTF-8 do not get past here.
    """
    kind = format_of(path)
    if kind == "Parquet":
        with ParquetBatches.looked_at(str(path)).kept_open() as file:
            yield file
    elif kind == "Arrow":
        with pa.memory_map(str(path)) as mapped:
            check_arrow(memoryview(mapped.read_buffer()))
            mapped.seek(0)
            yield _ArrowBatches(mapped, path)
    elif kind == "CSV" or kind == "TSV":
        yield TableBatches(read_delimited(path, kind, columns), NO_DIGEST)
    elif kind == "JSON Lines":
        yield TableBatches(read_json_lines(path), NO_DIGEST)
    else:
        yield TableBatches(read_table(path, columns), verify(path, "NPZ"))


@dataclass(frozen=True, slots=True)
class TableBatches:
    """A table in memory as batches of rows."""

    table: pa.Table
    verification: Verification

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def batches(self, columns: Sequence[str], /) -> Iterator[pa.RecordBatch]:
        return iter(self.table.select(list(columns)).to_batches())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParquetBatches:
    """A Parquet file, wherever it is stored. Can be sent to other processes, which open it again.

    Attributes:
        path: Where it is in its file system.
        filesystem: One of pyarrow's; None for the local one.
        schema: Its columns.
        groups: How many rows each of its row groups has.
        rows_at_once: Rows of a batch.
        stored: Its size in bytes, None where it is far away.
        lists: The values in columns of lists, by their paths.
        verification: Whether it is as it was written.
    """

    path: str
    filesystem: Any
    schema: pa.Schema
    groups: tuple[int, ...]
    rows_at_once: int
    verification: Verification
    stored: int | None = None
    lists: Mapping[str, int] = field(default_factory=dict)
    _held: Any = None

    @classmethod
    def looked_at(cls, path: str, filesystem: Any = None) -> "ParquetBatches":
        """What the end of the file shows about it; a local file is checked against its digest.

        Of one that is stored elsewhere, which would have to be fetched once more for that, pages
        are checked as they are read.
        """
        import pyarrow.parquet as pq

        about = pq.read_metadata(path, filesystem=filesystem)
        if filesystem is None:
            verification = verify(Path(path), "Parquet")
        else:
            verification = Verification(False, "pages alone have checksums in a store")
        groups = [about.row_group(place) for place in range(about.num_row_groups)]
        size = sum(group.total_byte_size for group in groups) // max(1, about.num_rows)
        lists = lists_of(about)
        # Repeated values are stored once: a row may be far larger in memory.
        size = max(size, width(about, lists))
        # A store far away is the caller's own, and is not asked once more.
        stored = Path(path).stat().st_size if filesystem is None else None
        if stored is not None:
            check_rows(about.num_rows, stored)
            check_pages(Path(path), about)
        return cls(
            path=path,
            filesystem=filesystem,
            schema=about.schema.to_arrow_schema(),
            groups=tuple(group.num_rows for group in groups),
            rows_at_once=min(_BATCH_ROWS, max(1, _BATCH_BYTES // max(1, size))),
            stored=stored,
            lists=lists,
            verification=verification,
        )

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(self.groups)

    def check_whole(self, columns: Sequence[str]) -> None:
        """Raise if these columns as a whole would take far more memory than the file has bytes."""
        if self.stored is not None:
            check_whole(values_in(self.lists, list(columns), rows=self.rows), self.stored)

    @contextlib.contextmanager
    def kept_open(self) -> "Iterator[ParquetBatches]":
        """The same for many passes, of which each would else open the file."""
        with self._opened() as file:
            yield replace(self, _held=file)

    def batches(
        self, columns: Sequence[str], /, *, start: int = 0, stop: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows from `start` up to `stop`; no other row group is looked at."""
        stop = self.rows if stop is None else stop
        ends = np.cumsum((0, *self.groups))
        wanted = np.flatnonzero((ends[:-1] < stop) & (ends[1:] > start)).tolist()
        before = int(ends[wanted[0]]) if wanted else stop
        with contextlib.ExitStack() as until:
            file = self._held or until.enter_context(self._opened())
            settings = {"batch_size": self.rows_at_once, "columns": list(columns)}
            for batch in file.iter_batches(row_groups=wanted, **settings):
                rows = batch[max(0, start - before) : max(0, stop - before)]
                before += len(batch)
                if len(rows):
                    yield _sound(rows, columns)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow.parquet as pq

        # Without a buffer, column chunks are loaded as a whole (and there may be only one of each);
        # what is read ahead stays in memory until the file is closed. A store far away is asked
        # for whole chunks, since every question takes its time.
        near = self.filesystem is None
        buffer = min(_BUFFER, max(1, _BATCH_BYTES // max(1, len(self.schema)))) if near else 0
        with pq.ParquetFile(
            self.path,
            filesystem=self.filesystem,
            buffer_size=buffer,
            pre_buffer=not near,
            page_checksum_verification=True,
        ) as file:
            about = file.metadata
            found = tuple(about.row_group(i).num_rows for i in range(about.num_row_groups))
            if found != self.groups:
                raise InputError("It changed while it was read. Compare again.")
            yield file

    def __reduce__(self) -> tuple[Any, ...]:
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        return _parquet_again, ({**named, "_held": None},)


def _parquet_again(settings: dict[str, Any]) -> ParquetBatches:
    return ParquetBatches(**settings)


class _ArrowBatches:
    """An Arrow file or an Arrow stream, mapped into memory and not copied."""

    def __init__(self, mapped: pa.MemoryMappedFile, path: Path) -> None:
        self._mapped = mapped
        self._is_file = mapped.read(len(_ARROW_MAGIC)) == _ARROW_MAGIC
        self.schema = self._open().schema
        self.verification = verify(path, "Arrow")

    def _open(self) -> "pa.RecordBatchFileReader | pa.RecordBatchStreamReader":
        self._mapped.seek(0)
        return pa.ipc.open_file(self._mapped) if self._is_file else pa.ipc.open_stream(self._mapped)

    def batches(self, columns: Sequence[str], /) -> Iterator[pa.RecordBatch]:
        reader = self._open()
        if self._is_file:
            found = (reader.get_batch(place) for place in range(reader.num_record_batches))
        else:
            found = iter(reader)
        for batch in found:
            yield _sound(batch, columns)


def _sound(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    chosen = batch.select(list(columns))
    chosen.validate(full=True)
    check_views(chosen)
    return chosen
