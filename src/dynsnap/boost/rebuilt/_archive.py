"""The files in a skops archive, none of them larger than it says or than the archive warrants."""

import functools
import io
from typing import Any

import numpy as np

from dynsnap import _untrusted
from dynsnap._types import AnyArray
from dynsnap.boost._structure import invalid, shown

_SCHEMA = "schema.json"
# Bytes that a table, a list and one more value take in memory, by the sign in JSON, and how many
# times as many as in the archive there may be.
_TAKEN, _MORE = {b"{": 240, b"[": 64, b",": 40}, 8
_FIRST = 10  # bytes before the text of an array's header, the last two of them its length
# Trees of one size have the same header, and it takes longer to read than their nodes.
_header = functools.lru_cache(maxsize=4096)(_untrusted.array_header)


class SkopsArchive:
    """A skops archive in memory."""

    def __init__(self, content: bytes) -> None:
        self._most = _untrusted.allowance(len(content))
        self._arrays: set[str] = set()
        self._archive = _untrusted.Archive(io.BytesIO(content), len(content), deflated=True)
        total = sum(entry.file_size for entry in self._archive.entries.values())
        if total > self._most:
            raise invalid(
                f"its {_untrusted.megabytes(len(content))} would take "
                f"{_untrusted.megabytes(total)} in memory"
            )

    def schema(self) -> Any:
        """The description of the object that the archive holds."""
        content = self._read(_SCHEMA)
        # Two characters can be a table or a list, which takes many more bytes in memory.
        taken = sum(size * content.count(sign) for sign, size in _TAKEN.items())
        if taken > _MORE * self._most:
            raise invalid(f"its description would take {_untrusted.megabytes(taken)} in memory")
        return _untrusted.parse_json(content, most=self._most)

    def array(self, name: Any) -> AnyArray:
        """An array of numbers or texts, each of which has a file of its own."""
        if name in self._arrays:  # few files could stand for very many arrays
            raise invalid(f"its file {shown(name)} stands for two arrays")
        found = array(self._read(name))
        self._arrays.add(name)
        return found

    def _read(self, name: Any) -> bytes:
        entry = self._archive.entries.get(name) if isinstance(name, str) else None
        if entry is None:
            raise invalid(f"it has no file {shown(name)}")
        with self._archive.open(entry.filename) as file:
            # So many and no more are unpacked; beyond them lies the end, where the sum is checked.
            content = file.read(entry.file_size)
            if len(content) != entry.file_size or file.read(1):
                raise invalid(f"its file {shown(name)} does not have the size that it says")
        return content


def array(content: bytes) -> AnyArray:
    """An array in numpy's format, if the bytes are as many as its shape needs.

    Example:
        >>> file = io.BytesIO()
        >>> np.save(file, np.arange(3))
        >>> array(file.getvalue())
        array([0, 1, 2])
    """
    header = _header(content[: _FIRST + int.from_bytes(content[8:_FIRST], "little")], len(content))
    values = np.frombuffer(content, header.dtype, header.count, header.start)
    return _untrusted.in_shape(values.copy(), header)
