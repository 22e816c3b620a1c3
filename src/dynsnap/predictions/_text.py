"""Names that people gave: which are refused, how they are shown, and in which order they come."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePath
from typing import TypeAlias

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.errors import InputError, some_of

FEW = 50  # so many values may be classes whatever they look like: of ratings, there are 0.5 to 5
_NEARLY_ALL = 0.9  # different values for each row: ids, or free text
_MANY = 0.5
_TELLING = 10  # with fewer values, each row may well have its own
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def doubts(column: str, names: Collection[str], *, rows: int) -> list[str]:
    """What a reader should know about class names that nothing but this column names.

    Class names that the file declares, by columns of scores or in its metadata, are not looked at.

    Args:
        column: The column.
        names: Its distinct values, without declared class names.
        rows: How many rows it has.

    Raises:
        InputError: They are not class names: more than 50 numbers that are not whole, or nearly
            as many values as rows.

    Example:
        >>> doubts("label", ["0.5", "1"], rows=9)
        ['The column "label" holds numbers that are not whole, taken for class names: "0.5".']
    """
    broken = natural_order(name for name in names if _is_broken(name))
    if len(broken) > FEW:
        raise InputError(
            f"The column {shown(column)} must hold class names, but has {len(names):,} different "
            f"values in {rows:,} rows, {len(broken):,} of them numbers that are not whole, such as "
            f"{listed(broken, most=2)}. Are they scores (--task binary), or predictions of a "
            f"number (--task regression --tolerance NUMBER)? {_advice(column)}"
        )
    if len(names) > FEW and len(names) > _NEARLY_ALL * rows:
        raise InputError(
            f"The column {shown(column)} must hold class names, but has {len(names):,} different "
            f"values in {rows:,} rows, such as {listed(natural_order(names), most=2)}. Are they "
            f"ids, or free text (grade it, and give --task graded)? {_advice(column)}"
        )
    found = []
    if broken:
        found.append(
            f"The column {shown(column)} holds numbers that are not whole, taken for class names: "
            f"{listed(broken)}."
        )
    if len(names) > _TELLING and len(names) > (_MANY if len(names) > FEW else _NEARLY_ALL) * rows:
        found.append(
            f"The column {shown(column)} has {len(names):,} different values in {rows:,} rows: are "
            "they class names?"
        )
    return found


def _advice(column: str) -> str:
    return (
        "Name the column of class names with --label-column and --truth-column; if these are "
        f"class names, declare them: scores, or the metadata `dynsnap.classes` beside "
        f"{shown(column)}."
    )


def _is_broken(name: str) -> bool:
    return bool(_NUMBER.fullmatch(name)) and not float(name).is_integer()


# Controls move a terminal's cursor or end a line; the two separators end a line as well. The same
# class is written once for Python and once for pyarrow's regular expressions (RE2).
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
CONTROL_RE2 = r"[\p{Cc}\x{2028}\x{2029}]"
_LINE = 60

# Every class is measured on its own, with intervals: so many take about 20 s and 1.6 GB.
MOST_CLASSES = 25_000
LONGEST_CLASS = 10_000  # characters; names are looked through one by one, and shown

_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_DIGITS = re.compile(r"([0-9]+)")

_SortKey: TypeAlias = tuple[int, float, tuple[tuple[int, str], ...], str]


def shown(text: object) -> str:
    """A name as it may stand inside a message: quoted, on one line, not too long.

    Example:
        >>> shown("a\\nb")
        '"a\\\\nb"'
    """
    return f'"{on_one_line(text, limit=_LINE)}"'


def on_one_line(text: object, *, limit: int = 300) -> str:
    """Text on one line, not too long, with what a terminal would obey escaped.

    Of a path that is too long, the end is kept: it names the file.
    """
    plain = str(text)
    if len(plain) > limit:
        ends = isinstance(text, PurePath)
        plain = "…" + plain[1 - limit :] if ends else plain[: limit - 1] + "…"
    escaped = _CONTROL.sub(lambda hit: ascii(hit.group())[1:-1], plain)
    return escaped.encode("utf-8", "backslashreplace").decode()


def listed(names: Iterable[object], *, most: int = 5) -> str:
    """A few names for a message, and how many more there are.

    Example:
        >>> listed(["a", "b", "c"], most=2)
        '"a", "b" and 1 more'
    """
    return some_of(names, most, show=shown)


def check_name(name: object, *, kind: str) -> str:
    """The name, if it is text that can be shown and stored.

    Example:
        >>> check_name("<b>cat</b>", kind="class name")
        '<b>cat</b>'
    """
    if not isinstance(name, str):
        raise InputError(
            f"A {kind} must be text, but {shown(repr(name))} is of the type "
            f"{type(name).__name__}. Convert it with str()."
        )
    if not name:
        raise InputError(f"A {kind} is empty. Give every {kind} at least one character.")
    if _CONTROL.search(name):
        raise InputError(
            f"The {kind} {shown(name)} holds control characters. Remove them (a line break or "
            "an escape sequence in a name can forge what a terminal shows)."
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"The {kind} {shown(name)} is not valid Unicode text. Decode it properly first."
        ) from None
    return str(name)  # numpy's str_ becomes a plain str


def check_class_names(classes: Iterable[object]) -> tuple[str, ...]:
    """Class names as a tuple: text, not empty, each once."""
    if isinstance(classes, str):
        raise InputError(
            f"`classes` must be a sequence of names, but is the single text {shown(classes)}."
        )
    names = tuple(check_name(name, kind="class name") for name in classes)
    refuse_too_many(len(names), where="`classes`")
    long = max(names, key=len, default="")
    if len(long) > LONGEST_CLASS:
        raise InputError(
            f"The class name {shown(long)} has {len(long):,} characters; {LONGEST_CLASS:,} are the "
            "most. Is it free text? Name the right column, or shorten it."
        )
    if not names:
        raise InputError("`classes` is empty. Name at least one class.")
    if len(set(names)) < len(names):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"Class names must be unique, but {listed(twice)} occurs more than once.")
    return names


def refuse_too_many(classes: int, *, where: str) -> None:
    """Raise if there are more classes than a comparison can measure one by one."""
    if classes > MOST_CLASSES:
        raise InputError(
            f"There are more than {MOST_CLASSES:,} classes in {where}, the most that are compared "
            "(each is measured on its own). Are these class names? Name the right column, or "
            "merge classes first."
        )


def decoded(texts: AnyArray, *, what: str) -> AnyArray:
    """An array of bytes as text.

    Example:
        >>> decoded(np.array([b"cat"]), what="labels").tolist()
        ['cat']
    """
    try:
        return np.char.decode(texts, "utf-8")
    except UnicodeDecodeError:
        raise InputError(f"`{what}` must be valid UTF-8 text. Decode it properly first.") from None


def natural_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names in the order that people expect: numbers by their value, also within text.

    Example:
        >>> natural_order(["10", "9", "-1", "page 10", "page 9"])
        ('-1', '9', '10', 'page 9', 'page 10')
    """
    return tuple(sorted(names, key=_sort_key))


def _sort_key(name: str) -> _SortKey:
    if _PLAIN_NUMBER.fullmatch(name):
        return (0, float(name), (), name)
    # Digits are compared by length, then as text: int() refuses very long ones.
    pieces = _DIGITS.split(name)
    parts = [
        (len(stripped), stripped) if place % 2 else (0, piece)
        for place, piece in enumerate(pieces)
        for stripped in [piece.lstrip("0")]
    ]
    return (1, 0.0, tuple(parts), name)


def positions_of(names: Sequence[str]) -> dict[str, int]:
    """Where each name stands."""
    return {name: place for place, name in enumerate(names)}
