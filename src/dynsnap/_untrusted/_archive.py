"""A zip archive whose directory is checked before anything in it is unpacked."""

import struct
import zipfile
from typing import IO

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
        """The unpacked bytes of an entry; at most as many as its directory says."""
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
