"""What a Parquet or an Arrow file states about its own size, checked before it is believed."""

import codecs
import mmap
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dynsnap._untrusted import allowance, megabytes
from dynsnap.errors import InputError

_PAGE_RATIO = 64  # bytes that a page may unpack to for each byte of it, like other compressed parts
_PAGE_FLOOR = 1 << 24  # bytes that any page may unpack to; writers make pages of about one megabyte
_DEPTH = 8  # of structs in a header; Parquet's has three


class _DamagedError(Exception):
    """A header that cannot be read: pyarrow states how."""


def check_pages(path: Path, about: Any) -> None:
    """Raise if a page of a Parquet file claims far more than its size.

    Args:
        path: The file.
        about: Its metadata, as pyarrow reads it.
    """
    if not about.num_rows:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for group in range(about.num_row_groups):
            for place in range(about.num_columns):
                _check_chunk(content, about.row_group(group).column(place))
            if hasattr(content, "madvise"):  # what was looked at would count as ours to the end
                content.madvise(mmap.MADV_DONTNEED)


def _check_chunk(content: mmap.mmap, chunk: Any) -> None:
    place = chunk.data_page_offset
    if chunk.has_dictionary_page:
        place = min(place, chunk.dictionary_page_offset)
    end = min(place + chunk.total_compressed_size, len(content))
    while 0 <= place < end:
        try:
            header = _Header(content, place)
        except (_DamagedError, IndexError):
            return
        if not 0 <= header.stored <= end - header.end:
            raise InputError(
                f"A page claims {header.stored:,} bytes where {end - header.end:,} are left. The "
                "file is damaged, or was made to fill the memory."
            )
        if header.unpacked > max(_PAGE_FLOOR, _PAGE_RATIO * header.stored):
            raise InputError(
                f"A page of {header.stored:,} bytes claims to unpack to "
                f"{megabytes(header.unpacked)}. Write the file without compression."
            )
        place = header.end + header.stored


class _Header:
    """The header of a page.

    Attributes:
        unpacked: Bytes of the page in memory.
        stored: Bytes of the page in the file.
        end: Where the page itself begins.
    """

    def __init__(self, content: mmap.mmap, start: int) -> None:
        self._content, self.end = content, start
        numbers = [self._field(), self._field(), self._field()]  # the type, and both sizes
        self.unpacked, self.stored = numbers[1:]
        self._struct(_DEPTH)

    def _field(self) -> int:
        """A number that follows the field before it."""
        if self._byte() != 0x15:
            raise _DamagedError
        coded = self._varint()
        return (coded >> 1) ^ -(coded & 1)

    def _byte(self) -> int:
        self.end += 1
        return self._content[self.end - 1]

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise _DamagedError

    def _struct(self, depth: int) -> None:
        """Go past the fields of a struct."""
        while head := self._byte():
            if not head >> 4:
                self._varint()  # the number of the field, where it is far from the last one
            self._skip(head & 0x0F, depth)

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (1, 2):  # a truth value, which its kind shows
            return
        if kind == 3:
            self.end += 1
        elif kind in (4, 5, 6):
            self._varint()
        elif kind == 7:
            self.end += 8
        elif kind == 8:
            length = self._varint()  # which moves on by itself, so not in one line with the sum
            self.end += length
        elif kind == 12 and depth:
            self._struct(depth - 1)
        else:  # lists and maps, which no header has
            raise _DamagedError


_ROWS_PER_BYTE = 64
_ROWS = 1 << 22  # that any file may have
_COLUMNS = 50_000
_RATIO = 512  # bytes in memory for each byte of a file that is read as a whole
_FLOOR = 1 << 30
_NUMBER = 8  # bytes of a value in memory
_MAGIC = b"ARROW1"
_BLOCK = struct.Struct("<qi4xq")  # of a footer: where a message is, and how long its two parts are


def check_rows(rows: int, size: int) -> None:
    """Raise if a file of this size claims more rows than honest predictions have."""
    if rows > max(_ROWS, _ROWS_PER_BYTE * size):
        raise InputError(
            f"It claims {rows:,} rows in {megabytes(size)}, which no predictions fit into. "
            "It is damaged, or was made to fill the memory."
        )


def check_columns(columns: int) -> None:
    """Raise for a table of more columns than can be looked at: each takes some kilobytes."""
    if columns > _COLUMNS:
        raise InputError(
            f"There are {columns:,} columns; {_COLUMNS:,} are the most. Leave out what is not "
            "needed; scores of many classes fit into one column of lists, in a Parquet file."
        )


def check_first_line(start: bytes, *, mark: str) -> None:
    """Raise if a CSV or TSV file is in UTF-16, or its first line names too many columns."""
    refuse_utf16(start)
    marks = start.partition(b"\n")[0].count(mark.encode())
    if marks > _COLUMNS:  # fewer columns, where names hold commas
        check_columns(1 + marks)


def refuse_utf16(start: bytes) -> None:
    """Raise if text begins as Windows writes UTF-16, with a byte order mark."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError("Its text is UTF-16. Write it in UTF-8.")


def check_whole(values: int, size: int) -> None:
    """Raise if a file of this size claims more values than may be in memory at once."""
    if values * _NUMBER > max(_FLOOR, _RATIO * size):
        raise InputError(
            f"It claims {values:,} values in {megabytes(size)}: as a whole it would take "
            f"{megabytes(values * _NUMBER)} of memory. Compare it with `dynsnap compare`, which "
            "reads it in parts, or write labels instead of scores."
        )


def lists_of(about: Any) -> dict[str, int]:
    """The values in columns of lists, by their paths in a Parquet file's metadata."""
    found: dict[str, int] = {}
    for place in range(about.num_columns):
        leaf = about.schema.column(place)
        if leaf.max_repetition_level:
            groups = range(about.num_row_groups)
            found[leaf.path] = sum(about.row_group(i).column(place).num_values for i in groups)
    return found


def values_in(lists: Mapping[str, int], columns: list[str], *, rows: int) -> int:
    """How many values some columns have."""
    total = 0
    for name in columns:
        leaves = [values for path, values in lists.items() if path.startswith(f"{name}.")]
        total += sum(leaves) if leaves else rows
    return total


def width(about: Any, lists: Mapping[str, int]) -> int:
    """Bytes in memory of a row with all columns."""
    rows: int = max(1, about.num_rows)
    flat: int = about.num_columns - len(lists)
    return _NUMBER * (flat + -(-sum(lists.values()) // rows))


def check_declared(path: Path) -> None:
    """Raise if a Parquet file claims far more than it can hold, to be read as a whole."""
    import pyarrow.parquet as pq

    about, size = pq.read_metadata(path), path.stat().st_size
    lists = lists_of(about)
    check_columns(about.num_columns)
    check_rows(about.num_rows, size)
    check_pages(path, about)
    check_whole((about.num_columns - len(lists)) * about.num_rows + sum(lists.values()), size)


def check_views(batch: pa.RecordBatch) -> None:
    """Raise if texts that share their bytes would take far more as texts of their own."""
    for column in batch.columns:
        if pa.types.is_string_view(column.type) and len(column):
            views = np.frombuffer(column.buffers()[1], np.int32)[::4]
            own = int(views[column.offset : column.offset + len(column)].sum(dtype=np.int64))
            if own > allowance(batch.nbytes):
                raise InputError(
                    f"Its texts would take {megabytes(own)} as texts of their own. Write them as "
                    "plain text, not as views."
                )


# --- Arrow files ----------------------------------------------------------------------------


def check_arrow(content: memoryview) -> None:
    """Raise if the compressed buffers of an Arrow file or stream claim far more than its size."""
    try:
        claimed = sum(_claimed(*message) for message in _messages(content))
    except (struct.error, IndexError, ValueError, OverflowError):
        return  # damaged: pyarrow states how
    if claimed > allowance(len(content)):
        raise InputError(
            f"It claims to unpack to {megabytes(claimed)}, far more than its "
            f"{megabytes(len(content))}. Write it without compression, or as Parquet."
        )


def _messages(content: memoryview) -> Iterator[tuple[memoryview, memoryview]]:
    """The metadata and the body of every message."""
    if bytes(content[: len(_MAGIC)]) != _MAGIC:
        place = 0
        while place + 8 <= len(content):
            metadata, start = _metadata(content, place)
            if not len(metadata):
                return
            end = start + _Table.root(metadata).number(3, "<q")
            yield metadata, content[start:end]
            place = end
        return
    (size,) = struct.unpack_from("<i", content, len(content) - 10)
    footer = _Table.root(content[len(content) - 10 - size : len(content) - 10])
    for field in (2, 3):  # dictionaries and batches of rows
        for offset, head, body in footer.structs(field, _BLOCK):
            metadata, _ = _metadata(content, offset)
            yield metadata, content[offset + head : offset + head + body]


def _metadata(content: memoryview, place: int) -> tuple[memoryview, int]:
    """The metadata of the message at a place, and where it ends."""
    start, size = place + 4, struct.unpack_from("<I", content, place)[0]
    if size == 0xFFFFFFFF:  # the newer of two ways to begin
        start, size = place + 8, struct.unpack_from("<I", content, place + 4)[0]
    return content[start : start + size], start + size


def _claimed(metadata: memoryview, body: memoryview) -> int:
    """Bytes that the compressed buffers of a message claim to unpack to."""
    message = _Table.root(metadata)
    kind = message.number(1, "<B")
    if kind not in (2, 3):
        return 0
    rows = message.table(2)
    rows = rows.table(1) if kind == 2 and rows is not None else rows  # a dictionary's values
    if rows is None or rows.table(3) is None:  # not compressed
        return 0
    sizes = (
        struct.unpack_from("<q", body, offset)[0]
        for offset, length in rows.structs(2, struct.Struct("<qq"))
        if length > 0
    )
    return sum(size for size in sizes if size > 0)


class _Table:
    """A table of FlatBuffers, the format of Arrow's metadata: as much of it as is needed here."""

    def __init__(self, content: memoryview, place: int) -> None:
        self._content, self._place = content, place
        self._fields = place - self._unpack("<i", place)

    @classmethod
    def root(cls, content: memoryview) -> "_Table":
        return cls(content, struct.unpack_from("<I", content, 0)[0])

    def number(self, field: int, kind: str) -> int:
        at = self._at(field)
        return 0 if at is None else self._unpack(kind, at)

    def table(self, field: int) -> "_Table | None":
        at = self._at(field)
        return None if at is None else _Table(self._content, at + self._unpack("<I", at))

    def structs(self, field: int, kind: struct.Struct) -> Iterator[tuple[Any, ...]]:
        at = self._at(field)
        if at is None:
            return
        start = at + self._unpack("<I", at)
        count = self._unpack("<I", start)
        if count * kind.size > len(self._content):
            raise ValueError("a list is longer than what it is in")
        for place in range(count):
            yield kind.unpack_from(self._content, start + 4 + place * kind.size)

    def _at(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self._unpack("<H", self._fields):
            return None
        offset = self._unpack("<H", self._fields + entry)
        return self._place + offset if offset else None

    def _unpack(self, kind: str, at: int) -> int:
        if at < 0:  # which Python would count from the end
            raise ValueError("a place before the beginning")
        found: int = struct.unpack_from(kind, self._content, at)[0]
        return found
