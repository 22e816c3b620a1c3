"""The sizes that pages of a Parquet file declare, checked before pyarrow takes memory for them.

The header of a page is a struct of Thrift's compact protocol. Its second and third fields are the
sizes of the page, unpacked and as stored; pyarrow allocates as much before it reads the page.
"""

import mmap
from pathlib import Path
from typing import Any

from dynsnap._untrusted import megabytes
from dynsnap.errors import InputError

_RATIO = 64  # bytes that a page may unpack to for each byte of it, like other compressed parts
_FLOOR = 1 << 24  # bytes that any page may unpack to; writers make pages of about one megabyte
_DEPTH = 8  # of structs in a header; Parquet's has three


class _DamagedError(Exception):
    """A header that cannot be read: pyarrow says how."""


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
        if header.unpacked > max(_FLOOR, _RATIO * header.stored):
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
        if kind in (1, 2):  # a truth value, which its kind tells
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
