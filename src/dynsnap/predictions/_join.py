"""Where the ids of one column stand in others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray, Positions
from dynsnap.predictions._ids import as_text

_EXAMPLES = 5
_DENSE = 4  # a table of all numbers in the range pays off up to this many per id


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """The rows of each column that hold the shared ids, in the order of the first column.

    Attributes:
        rows: For each column its rows; None for all of them, as they are.
        shared: Ids that every column has.
        missing: For each column, how many ids it lacks that another one has.
        examples: For each column, a few of those, as text.
        same_order: Whether the shared ids come in one order everywhere.
    """

    rows: tuple[Positions | None, ...]
    shared: int
    missing: tuple[int, ...]
    examples: tuple[tuple[str, ...], ...]
    same_order: bool


def join(columns: Sequence[pa.Array]) -> Join:
    """Find the ids that all columns share; ids are unique in each.

    Whole numbers and text are compared as text.

    Example:
        >>> found = join([pa.array([3, 1, 2]), pa.array([1, 2, 4])])
        >>> found.rows, found.missing, found.examples
        ((array([1, 2]), array([0, 1])), (1, 1), (('4',), ('3',)))
    """
    if len({column.type for column in columns}) > 1:
        columns = [as_text(column) for column in columns]
    first, others = columns[0], columns[1:]
    if all(first.equals(other) for other in others):
        nothing: tuple[()] = ()
        return Join(
            rows=(None,) * len(columns),
            shared=len(first),
            missing=(0,) * len(columns),
            examples=(nothing,) * len(columns),
            same_order=True,
        )
    places = [_places(first, other) for other in others]
    kept = np.logical_and.reduce([place >= 0 for place in places])
    rows = [np.flatnonzero(kept), *(place[kept] for place in places)]
    missing, examples = _lacking(first, others, places)
    return Join(
        rows=tuple(
            None if _is_everything(chosen, len(column)) else chosen
            for chosen, column in zip(rows, columns, strict=True)
        ),
        shared=len(rows[0]),
        missing=missing,
        examples=examples,
        same_order=all(bool((np.diff(chosen) > 0).all()) for chosen in rows),
    )


def _places(ids: pa.Array, among: pa.Array) -> Positions:
    """Where each id stands in another column; -1 for those that are not there."""
    if pa.types.is_integer(among.type) and len(among):
        wanted, numbers = ids.to_numpy(), among.to_numpy()
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < _DENSE * len(numbers):
            table = np.full(high - low + 1, -1, np.intp)
            table[numbers - low] = np.arange(len(numbers))
            inside = (wanted >= low) & (wanted <= high)
            places = np.full(len(wanted), -1, np.intp)
            places[inside] = table[wanted[inside] - low]
            return places
    found = pc.index_in(ids, value_set=among).fill_null(-1)
    return np.asarray(found, np.intp)


def _lacking(
    first: pa.Array, others: Sequence[pa.Array], places: Sequence[Positions]
) -> tuple[tuple[int, ...], tuple[tuple[str, ...], ...]]:
    """How many ids of all that any column has each one lacks, and a few of them."""
    extras = []  # what each of the others has beyond the first
    for other, place in zip(others, places, strict=True):
        extra = np.ones(len(other), bool)
        extra[place[place >= 0]] = False
        extras.append(other.filter(pa.array(extra)))
    beyond = pc.unique(pa.concat_arrays(extras))
    missing, examples = [len(beyond)], [_few(beyond)]
    for other, place, extra in zip(others, places, extras, strict=True):
        missing.append(len(first) + len(beyond) - len(other))
        lost = first.filter(pa.array(place < 0))
        elsewhere = beyond.filter(pc.invert(pc.is_in(beyond, value_set=extra)))
        examples.append((*_few(lost), *_few(elsewhere))[:_EXAMPLES])
    return tuple(missing), tuple(examples)


def _few(ids: pa.Array) -> tuple[str, ...]:
    return tuple(str(value) for value in ids[:_EXAMPLES].to_pylist())


def _is_everything(rows: AnyArray, length: int) -> bool:
    return len(rows) == length and bool((np.diff(rows) == 1).all())
