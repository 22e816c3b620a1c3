"""The files in a skops archive, none of them larger than it says or than the archive warrants."""

import ast
import io
import json
import re
import zipfile
import zlib
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.boost._structure import invalid, shown

SCHEMA = "schema.json"
# Arrays of zeros shrink a thousandfold, learned numbers hardly: a file is not a bomb by chance.
_FREE, _FACTOR = 2**26, 64
_LOCAL_HEADER = 30  # bytes of an entry's own header, before its name and extra field
_ENCRYPTED = 0x1
_NPY = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    r"\{'descr': (?P<descr>.{1,2000}), 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>[\d, ]{0,200})\), \} *\n",
    re.DOTALL,
)


class Archive:
    """A zip archive in memory, whose entries are bounded before any is unpacked."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._kinds: dict[str, np.dtype[Any]] = {}
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
        self._entries = {entry.filename: entry for entry in entries}
        if len(self._entries) != len(entries):
            raise invalid("two of its files have the same name")
        total = sum(entry.file_size for entry in entries)
        if total > _FREE + _FACTOR * len(content):
            raise invalid(f"its {len(content)} bytes would take {total} in memory")

    def read(self, name: Any) -> bytes:
        """What a file holds."""
        entry = self._entries.get(name) if isinstance(name, str) else None
        if entry is None:
            raise invalid(f"it has no file {shown(name)}")
        header = self._content[entry.header_offset : entry.header_offset + _LOCAL_HEADER]
        if len(header) < _LOCAL_HEADER or entry.flag_bits & _ENCRYPTED:
            raise invalid(f"its file {shown(name)} is damaged")
        name_size, extra_size = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
        begin = entry.header_offset + _LOCAL_HEADER + name_size + extra_size
        raw = self._content[begin : begin + entry.compress_size]
        if entry.compress_type == zipfile.ZIP_DEFLATED:
            unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            raw = unpacker.decompress(raw, entry.file_size + 1)
        if len(raw) != entry.file_size or zlib.crc32(raw) != entry.CRC:
            raise invalid(f"its file {shown(name)} is damaged")
        return raw

    def schema(self) -> Any:
        """The description of the object that the archive holds."""
        return json.loads(self.read(SCHEMA))

    def array(self, name: Any) -> AnyArray:
        """An array of numbers or texts."""
        return array(self.read(name), self._kinds)


def array(content: bytes, kinds: dict[str, np.dtype[Any]] | None = None) -> AnyArray:
    """An array in numpy's format, if the bytes are as many as its shape needs.

    Args:
        content: The bytes.
        kinds: Types that were met before, by their text.

    Example:
        >>> file = io.BytesIO()
        >>> np.save(file, np.arange(3))
        >>> array(file.getvalue())
        array([0, 1, 2])
    """
    kinds = {} if kinds is None else kinds
    start = len(_NPY) + 2
    end = start + int.from_bytes(content[len(_NPY) : start], "little")
    header = _HEADER.fullmatch(content[start:end].decode("latin-1"))
    if not content.startswith(_NPY) or header is None:
        raise invalid("an array has no header that numpy writes")
    text = header["descr"]
    if text not in kinds:
        kinds[text] = np.lib.format.descr_to_dtype(ast.literal_eval(text))
    kind = kinds[text]
    shape = tuple(int(size) for size in header["shape"].replace(" ", "").split(",") if size)
    count = 1
    for size in shape:
        count *= size
    if kind.hasobject or count * kind.itemsize != len(content) - end or len(shape) > 8:
        raise invalid(f"an array of the shape {shown(shape)} has {len(content) - end} bytes")
    # Fortran's order is the other way round.
    turned = header["fortran"] == "True"
    found: AnyArray = np.frombuffer(content, kind, count, end).copy()
    return found.reshape(shape[::-1]).T if turned else found.reshape(shape)
