"""Where the ids of one column stand in others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray, Positions
from dynsnap.predictions._ids import as_text

EXAMPLES = 5
DENSE = 4  # a table of all numbers in the range pays off up to this many per id


class Lacking(NamedTuple):
    """An id that some column lacks, and the first place where another one has it."""

    column: int
    row: int
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """The rows of each column that hold the shared ids, in the order of the first column.

    Attributes:
        rows: For each column its rows; None for all of them, as they are.
        shared: Ids that every column has.
        missing: For each column, how many ids it lacks that another one has.
        lacking: For each column, the first few of those, in the order of columns and rows.
        same_order: Whether the shared ids come in one order everywhere.
    """

    rows: tuple[Positions | None, ...]
    shared: int
    missing: tuple[int, ...]
    lacking: tuple[tuple[Lacking, ...], ...]
    same_order: bool


def join(columns: Sequence[pa.Array]) -> Join:
    """Find the ids that all columns share; ids are unique in each.

    Whole numbers and text are compared as text.

    Example:
        >>> found = join([pa.array([3, 1, 2]), pa.array([1, 2, 4])])
        >>> found.rows, found.missing
        ((array([1, 2]), array([0, 1])), (1, 1))
        >>> found.lacking[1]
        (Lacking(column=0, row=0, id='3'),)
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
            lacking=(nothing,) * len(columns),
            same_order=True,
        )
    places = [places_in(first, other) for other in others]
    kept = np.logical_and.reduce([place >= 0 for place in places])
    rows = [np.flatnonzero(kept), *(place[kept] for place in places)]
    missing, lacking = _missing(columns, places)
    return Join(
        rows=tuple(
            None if _is_everything(chosen, len(column)) else chosen
            for chosen, column in zip(rows, columns, strict=True)
        ),
        shared=len(rows[0]),
        missing=missing,
        lacking=lacking,
        same_order=all(bool((np.diff(chosen) > 0).all()) for chosen in rows),
    )


def first_few(lacking: Iterable[Lacking]) -> tuple[Lacking, ...]:
    """The few that a report names."""
    return tuple(sorted(lacking)[:EXAMPLES])


def places_in(ids: pa.Array, among: pa.Array) -> Positions:
    """Where each id stands in another column; -1 for those that are not there."""
    if ids.type != among.type:
        ids, among = as_text(ids), as_text(among)
    if pa.types.is_integer(among.type) and len(among):
        wanted, numbers = ids.to_numpy(), among.to_numpy()
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < DENSE * len(numbers):
            table = np.full(high - low + 1, -1, np.intp)
            table[numbers - low] = np.arange(len(numbers))
            inside = (wanted >= low) & (wanted <= high)
            places = np.full(len(wanted), -1, np.intp)
            places[inside] = table[wanted[inside] - low]
            return places
    found = pc.index_in(ids, value_set=among).fill_null(-1)
    return np.asarray(found, np.intp)


def _missing(
    columns: Sequence[pa.Array], places: Sequence[Positions]
) -> tuple[tuple[int, ...], tuple[tuple[Lacking, ...], ...]]:
    """How many ids of all that any column has each one lacks, and the first few of them."""
    first, *others = columns
    extras: list[pa.Array] = []  # ids of each of the others that the first one lacks
    fresh = []  # their rows, without those of ids that an earlier column has
    for other, place in zip(others, places, strict=True):
        beyond = np.ones(len(other), bool)
        beyond[place[place >= 0]] = False
        extra = other.filter(pa.array(beyond))
        new = np.ones(len(extra), bool)
        for earlier in extras:
            new &= ~_is_in(extra, earlier)
        extras.append(extra)
        fresh.append(np.flatnonzero(beyond)[new])

    total = len(first) + sum(len(rows) for rows in fresh)
    found = [_few(columns, enumerate(fresh, 1))]
    for extra, place in zip(extras, places, strict=True):
        lost = [(0, np.flatnonzero(place < 0))]
        for number, rows in enumerate(fresh, 1):
            names = columns[number].take(pa.array(rows))
            lost.append((number, rows[~_is_in(names, extra)]))
        found.append(_few(columns, lost))
    return tuple(total - len(column) for column in columns), tuple(found)


def _is_in(ids: pa.Array, among: pa.Array) -> AnyArray:
    return np.asarray(pc.is_in(ids, value_set=among), bool)


def _few(columns: Sequence[pa.Array], lost: Iterable[tuple[int, Positions]]) -> tuple[Lacking, ...]:
    return first_few(
        Lacking(number, int(row), str(columns[number][int(row)].as_py()))
        for number, rows in lost
        for row in rows[:EXAMPLES]
    )


def _is_everything(rows: AnyArray, length: int) -> bool:
    return len(rows) == length and bool((np.diff(rows) == 1).all())
