"""What a document of a file may hold, stated as a value: kinds, ranges, lengths, and all keys.

`mismatch(schema, value)` shows where a document first departs from its schema. A key that a schema
does not name is such a place.
"""

import math
import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dynsnap.errors import did_you_mean, one_line

_MOST_ITEMS = 10_000_000
_DEPTH = 4  # of settings, which are numbers, texts, and lists and tables of those
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Schema(Protocol):
    """What a value may be."""

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        """What is wrong with the value at this place; nothing for a sound one."""
        ...


def mismatch(schema: Schema, value: Any, where: str = "") -> str | None:
    """What is wrong with a value, None where it follows the schema.

    Example:
        >>> mismatch(Table({"size": Whole(1, 9)}), {"size": 12})
        '`size` must be a whole number from 1 to 9, got 12'
        >>> mismatch(Table({"size": Whole(1, 9)}), {"size": 3})
    """
    return next(schema.problems(value, where), None)


def _wrong(where: str, wanted: str, value: Any) -> str:
    # As much of the value as a line has room for.
    return f"{_at(where)} must be {wanted}, got {one_line(reprlib.repr(value))}"


def _at(where: str) -> str:
    return f"`{one_line(where)}`" if where else "the document"


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within bounds."""

    low: int = 0
    high: int = 2**53

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        # A bool is an int to Python.
        if type(value) is not int or not self.low <= value <= self.high:
            yield _wrong(where, f"a whole number from {self.low} to {self.high}", value)


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number within bounds."""

    low: float = -math.inf
    high: float = math.inf

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        whole = type(value) is int and abs(value) < 2**1023
        sound = whole or (type(value) is float and math.isfinite(value))
        if not sound or not self.low <= value <= self.high:
            bounds = f" from {self.low:g} to {self.high:g}" if math.isfinite(self.low) else ""
            yield _wrong(where, f"a finite number{bounds}", value)


@dataclass(frozen=True, slots=True)
class Text:
    """Text of bounded length, and of a form where one is given.

    Attributes:
        free: Whether it may hold control characters, as a label or the name of a column may.
    """

    longest: int = 10_000
    form: str | None = None
    free: bool = False

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        if type(value) is not str or len(value) > self.longest:
            yield _wrong(where, f"text of at most {self.longest:,} characters", value)
        elif self.form is not None and not re.fullmatch(self.form, value):
            yield _wrong(where, f"of the form {self.form}", value)
        elif not self.free and _CONTROL.search(value):
            yield f"{_at(where)} holds control characters"
        elif not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
            yield f"{_at(where)} is not valid Unicode"


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        if type(value) is not bool:
            yield _wrong(where, "true or false", value)


@dataclass(frozen=True, slots=True)
class Null:
    """Nothing."""

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        if value is not None:
            yield _wrong(where, "null", value)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some words."""

    words: tuple[str, ...]

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        if type(value) is not str or value not in self.words:
            yield _wrong(where, f"one of {', '.join(self.words)}", value)


@dataclass(frozen=True, slots=True, init=False)
class AnyOf:
    """Whatever follows one of several schemas."""

    choices: tuple[Schema, ...]

    def __init__(self, *choices: Schema) -> None:
        object.__setattr__(self, "choices", choices)

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        found = [mismatch(choice, value, where) for choice in self.choices]
        if None not in found:
            yield next(problem for problem in reversed(found) if problem is not None)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of items that all follow one schema."""

    item: Schema
    least: int = 0
    most: int = _MOST_ITEMS
    distinct: bool = False  # of texts or numbers

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        if type(value) is not list or not self.least <= len(value) <= self.most:
            found = value if type(value) is not list else f"{len(value):,}"
            yield _wrong(where, f"a list of {self.least:,} to {self.most:,} items", found)
            return
        for place, item in enumerate(value):
            yield from self.item.problems(item, f"{where}[{place}]")
        if self.distinct and len(set(value)) < len(value):
            yield f"{_at(where)} must hold each item once"


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose keys are all named here."""

    needed: Mapping[str, Schema]
    optional: Mapping[str, Schema] = field(default_factory=dict)

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        if type(value) is not dict:
            yield _wrong(where, "a table", value)
            return
        known = {**self.needed, **self.optional}
        for key in value:
            if key not in known:
                yield (
                    f"{_at(where)} has an unknown key, {one_line(reprlib.repr(key))}. "
                    f"{did_you_mean(key[:100], known)}"
                )
        for key in self.needed:
            if key not in value:
                yield f"{_at(where)} lacks `{key}`"
        for key, schema in known.items():
            if key in value:
                yield from schema.problems(value[key], f"{where}.{key}" if where else key)


@dataclass(frozen=True, slots=True)
class MapOf:
    """A table of any keys of a form, with values that all follow one schema."""

    value: Schema
    key: Schema = Text(longest=1_000)
    most: int = _MOST_ITEMS

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        if type(value) is not dict or len(value) > self.most:
            found = value if type(value) is not dict else f"{len(value):,}"
            yield _wrong(where, f"a table of at most {self.most:,} keys", found)
            return
        for key, item in value.items():
            place = f"{where}.{key[:100]}" if where else key[:100]
            yield from self.key.problems(key, f"{place} (its name)")
            yield from self.value.problems(item, place)


@dataclass(frozen=True, slots=True)
class Plain:
    """Numbers, texts, flags, null, and shallow lists and tables of those."""

    depth: int = _DEPTH

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        if type(value) in (list, dict):
            if not self.depth:
                yield f"{_at(where)} is nested too deeply"
                return
            inner = Plain(self.depth - 1)
            made: Schema = ListOf(inner) if type(value) is list else MapOf(inner)
            yield from made.problems(value, where)
        else:
            yield from AnyOf(Null(), Flag(), Number(), Text()).problems(value, where)
