"""UBJSON as XGBoost writes it, and no other way of saying the same.

Names come in order and once, lengths are 64-bit integers, nothing follows the end. What this
decoder accepts has one reading, so XGBoost's own parser reads the same.
"""

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from dynsnap._types import Positions
from dynsnap.boost._structure import invalid, shown, unchecked

# A part that is read in a way of its own: from a position, to what it holds and where it ends.
Hook: TypeAlias = Callable[[bytes, int], tuple[Any, int]]

NUMBERS: Mapping[bytes, np.dtype[Any]] = {
    b"U": np.dtype("u1"),
    b"i": np.dtype("i1"),
    b"I": np.dtype(">i2"),
    b"l": np.dtype(">i4"),
    b"L": np.dtype(">i8"),
    b"d": np.dtype(">f4"),
    b"D": np.dtype(">f8"),
}
_SCALARS = {
    b"U": struct.Struct("B"),
    b"i": struct.Struct("b"),
    b"I": struct.Struct(">h"),
    b"l": struct.Struct(">i"),
    b"L": struct.Struct(">q"),
    b"d": struct.Struct(">f"),
    b"D": struct.Struct(">d"),
}
_DEEPEST = 16


def decode(content: bytes, hooks: Mapping[str, Hook]) -> Any:
    """The value that the bytes hold, to the last of them.

    Args:
        content: The bytes.
        hooks: What reads the values of these names.

    Example:
        >>> decode(b"{" + name("a") + b"i" + bytes([7]) + b"}", {})
        {'a': 7}
    """
    try:
        found, end = _Decoder(content, hooks).value(0, 0)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise invalid(f"it is cut short or damaged ({error})") from error
    if end != len(content):
        raise invalid(f"{len(content) - end} bytes follow its end")
    return found


def name(text: str) -> bytes:
    """A name as it stands before its value."""
    return b"L" + len(text).to_bytes(8, "big") + text.encode()


def scalar(content: bytes, at: int) -> tuple[Any, int]:
    """One number, and where it ends."""
    number = _SCALARS.get(content[at : at + 1])
    if number is None:
        raise invalid(f"byte {at} begins no number")
    return number.unpack_from(content, at + 1)[0], at + 1 + number.size


class _Decoder:
    def __init__(self, content: bytes, hooks: Mapping[str, Hook]) -> None:
        self._content = content
        self._hooks = hooks

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > _DEEPEST:
            raise invalid(f"its values are nested more than {_DEEPEST} deep")
        marker = self._content[at : at + 1]
        if marker == b"S":
            return self._text(at + 1)
        if marker == b"{":
            return self._object(at + 1, depth)
        if marker == b"[":
            return self._array(at + 1, depth)
        return scalar(self._content, at)

    def _text(self, at: int) -> tuple[str, int]:
        size, at = self._length(at)
        end = at + size
        if end > len(self._content):
            raise invalid(f"a text of {size} bytes is longer than the rest of the file")
        return self._content[at:end].decode(), end

    def _length(self, at: int) -> tuple[int, int]:
        if self._content[at : at + 1] != b"L":
            raise invalid(f"byte {at} begins no length")
        size = int.from_bytes(self._content[at + 1 : at + 9], "big")
        # Any value takes a byte at least, so that no length promises more than there is.
        if size > len(self._content) - at - 9:
            raise invalid(f"a length of {size} is more than the rest of the file")
        return size, at + 9

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        last = ""
        while self._content[at : at + 1] != b"}":
            key, at = self._text(at)
            if found and key <= last:
                raise invalid(f"the name {shown(key)} is repeated, or out of order")
            hook = self._hooks.get(key)
            found[key], at = (
                hook(self._content, at) if hook is not None else self.value(at, depth + 1)
            )
            last = key
        return found, at + 1

    def _run(self, at: int, most: int) -> tuple[list[Any], int]:
        """The numbers that follow one another with the same marker each: most lists are such."""
        marker = self._content[at : at + 1]
        kind = NUMBERS.get(marker)
        if kind is None:
            return [], at
        step = 1 + kind.itemsize
        markers = self._content[at : at + most * step : step]
        count = len(markers) - len(markers.lstrip(marker))
        pairs = np.dtype([("marker", "u1"), ("value", kind)])
        return np.frombuffer(self._content, pairs, count, at)["value"].tolist(), at + count * step

    def _array(self, at: int, depth: int) -> tuple[Any, int]:
        typed = self._content[at : at + 1] == b"$"
        if not typed:
            if self._content[at : at + 1] != b"#":
                raise invalid(f"byte {at} begins no array")
            count, at = self._length(at + 1)
            items: list[Any] = []
            while len(items) < count:
                run, at = self._run(at, count - len(items))
                items += run
                if not run:
                    item, at = self.value(at, depth + 1)
                    items.append(item)
            return items, at
        kind = NUMBERS.get(self._content[at + 1 : at + 2])
        if kind is None or self._content[at + 2 : at + 3] != b"#":
            raise invalid(f"byte {at} begins no array of numbers")
        count, at = self._length(at + 3)
        numbers = np.frombuffer(self._content, kind, count, at)
        return numbers, at + numbers.nbytes


def table(found: Any, what: str, needed: str | None = None, allowed: str = "") -> dict[str, Any]:
    """A table, if it has the names that it needs and no others; any names where none are said."""
    if not isinstance(found, dict):
        raise invalid(f"{what} is not a table")
    if needed is None:
        return found
    if missing := set(needed.split()) - found.keys():
        raise invalid(f"{what} lacks {', '.join(sorted(missing))}")
    if strange := found.keys() - set(needed.split()) - set(allowed.split()):
        raise unchecked(f"{shown(sorted(strange))} in {what}")
    return found


def text(found: dict[str, Any], key: str, pattern: str) -> str:
    """The text of this name, if it is of the pattern."""
    value = found[key]
    if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
        raise invalid(f"`{key}` is {shown(value)}")
    return value


def counted(found: dict[str, Any], key: str) -> int:
    """A number that is written as a text."""
    return int(text(found, key, r"\d{1,9}"))


def integers(found: dict[str, Any], key: str) -> Positions:
    """A list of integers."""
    values = found[key]
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise invalid(f"`{key}` is not a list of integers")
    return np.array(values, dtype=np.int64)
