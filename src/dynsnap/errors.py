"""Everything that dynsnap raises on purpose.

One root, so that a caller (and the command line) can catch them in one place. A message states what
is wrong, what was found, and what to do about it, in one line.
"""

import difflib
import re
from collections.abc import Callable, Iterable
from typing import TypeVar

_Name = TypeVar("_Name")


class DynSnapError(Exception):
    """The root of every error that dynsnap raises on purpose."""


class InputError(DynSnapError, ValueError):
    """A value that was handed in does not make sense."""


class PlanError(DynSnapError, ValueError):
    """A plan, a rule or a setting contradicts itself or names something that does not exist."""


class FileError(DynSnapError):
    """A file cannot be read or written, or does not hold what it should."""


class ComparisonError(DynSnapError):
    """Predictions that are each sound cannot be compared with each other, or not in this way."""


class DataError(DynSnapError):
    """A data set is missing, altered, or cannot be cut as asked."""


class TrainingError(DynSnapError):
    """A round of training could not be carried out, or gave something unusable."""


class Interrupted(DynSnapError):  # noqa: N818 (nothing went wrong)
    """Work stopped cleanly before it was done: what is finished is kept, and can be resumed."""


def did_you_mean(wrong: str, known: Iterable[str], *, page: str = "") -> str:
    """A sentence that names the nearest known word, or all of them when there are few.

    Args:
        wrong: The word that is not known.
        known: Those that are.
        page: The page of the documentation that lists them, for when there are many.

    Example:
        >>> did_you_mean("consistancy", ["accuracy", "consistency"])
        'Did you mean "consistency"?'
        >>> did_you_mean("?", [f"class {number}" for number in range(100)], page="docs/data.md")
        'docs/data.md lists all names.'
    """
    names = sorted(known)
    near = difflib.get_close_matches(wrong, names, n=1)
    if near:
        return f'Did you mean "{near[0]}"?'
    if len(names) <= 40:
        return f"Known: {', '.join(names)}."
    if page:
        return f"{page} lists all names."
    return f"Known: {some_of(names, 12)}."


def some_of(
    names: Iterable[_Name],
    most: int = 3,
    *,
    show: Callable[[_Name], str] = str,
    between: str = ", ",
) -> str:
    """The first of some names, and how many more there are.

    Example:
        >>> some_of(["a", "b"]), some_of(["a", "b", "c", "d", "e"])
        ('a, b', 'a, b, c and 2 more')
    """
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return between.join(show(name) for name in every[:most]) + more


# What ends a line, moves a cursor, turns the direction of writing, or is no character at all.
_UNSHOWABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def one_line(text: str) -> str:
    r"""The text with control characters spelled out, so that it stays on one line.

    Example:
        >>> print(one_line("a\nb\x1b[31m"))
        a\nb\x1b[31m
    """
    return _UNSHOWABLE.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text)
