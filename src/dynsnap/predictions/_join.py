"""Where the ids of one column are in others, and what all generations know of an input."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray, Positions
from dynsnap.errors import ComparisonError
from dynsnap.predictions._ids import as_text, places_in
from dynsnap.predictions._labels import Slice
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._text import shown

_Fact: TypeAlias = Literal["truth", "weights"]


@dataclass(slots=True)
class _Contradiction:
    """Inputs of which two generations say different things, with the first as an example."""

    inputs: int
    one: object
    other: object
    id: object


@dataclass(slots=True)
class Common:
    """Gives every generation the truth, weights and slices that any has, rows by rows.

    Contradictions are counted on the way, and refused at the end.
    """

    names: Sequence[str]
    inputs: int = 0
    contradictions: dict[tuple[_Fact, int, int], _Contradiction] = field(default_factory=dict)

    def add(
        self, generations: Sequence[Predictions], *, id_column: pa.Array
    ) -> tuple[Predictions, ...]:
        """Some rows of all generations, lined up; truth and weights from the first that has them.

        Args:
            generations: The same inputs, in the same order, over the same classes.
            id_column: Their ids.
        """
        slices: dict[str, Slice] = {}
        for each in generations:
            for name, column in each.slices.items():
                slices[name] = slices[name].beside(column) if name in slices else column
        facts = {
            "id_column": id_column,
            "truth": self._common("truth", generations, id_column),
            "weights": self._common("weights", generations, id_column),
            "slices": slices,
        }
        self.inputs += len(id_column)
        return tuple(changed(each, **facts) for each in generations)

    def merge(self, later: "Common") -> None:
        """Add what was found in rows that come later."""
        self.inputs += later.inputs
        for key, more in later.contradictions.items():
            found = self.contradictions.setdefault(key, replace(more, inputs=0))
            found.inputs += more.inputs

    def refuse_contradictions(self) -> None:
        """Raise if two generations contradict each other in any row."""
        if not self.contradictions:
            return
        # "truth" comes before "weights", and earlier generations before later ones.
        (fact, first, second), found = min(self.contradictions.items())
        what = "truths" if fact == "truth" else "weights"
        advice = f"Correct one of them, or leave its {fact} out."
        if fact == "truth" and found.inputs == self.inputs > 1:
            advice = (
                "Not one is the same: they seem to be of different data sets, or one has fine and "
                "the other coarse classes. Compare predictions of the same inputs and classes."
            )
        raise ComparisonError(
            f"{shown(self.names[first])} and {shown(self.names[second])} give different {what} for "
            f"{found.inputs:,} of {self.inputs:,} shared ids, such as {shown(found.one)} and "
            f"{shown(found.other)} for the id {shown(found.id)}. {advice}"
        )

    def _common(
        self, fact: _Fact, generations: Sequence[Predictions], id_column: pa.Array
    ) -> AnyArray | None:
        """The weights of the first generation that has any; the truth, input by input."""
        holders = [
            (number, values)
            for number, each in enumerate(generations)
            if (values := getattr(each, fact)) is not None
        ]
        if not holders:
            return None
        first, common = holders[0]
        for number, values in holders[1:]:
            task = generations[0].task
            if fact == "truth" and task is not None:
                differs = task.truth_differs(common, values)
            elif fact == "truth":  # one may know what the other does not know yet
                differs = (common != values) & (common >= 0) & (values >= 0)
            else:  # one file may have stored fewer digits than the other
                differs = ~np.isclose(common, values, rtol=1e-6, atol=0)
            if differs.any():
                row = int(np.argmax(differs))
                classes = generations[0].classes
                one, other = (
                    value[row]
                    if fact == "weights"
                    else classes[value[row]]
                    if task is None
                    else task.texts(value[row : row + 1], classes)[0]
                    for value in (common, values)
                )
                example = _Contradiction(0, one, other, id_column[row].as_py())
                found = self.contradictions.setdefault((fact, first, number), example)
                found.inputs += int(differs.sum())
            if fact == "truth":
                known = common >= 0 if task is None else task.known(common)
                if not known.all():
                    common = _completed(common, values, known)
        shared: AnyArray = common
        return shared


def _completed(common: AnyArray, values: AnyArray, known: AnyArray) -> AnyArray:
    """Truths, with those of another generation where they are not known."""
    if common.ndim == 1:
        return np.where(known, common, values)
    width = max(common.shape[1], values.shape[1])  # sets, of which a file has fewer labels at most
    one, other = (
        np.pad(each, ((0, 0), (0, width - each.shape[1])), constant_values=-1)
        for each in (common, values)
    )
    return np.where(known[:, None], one, other)


EXAMPLES = 5


class MissingId(NamedTuple):
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
    lacking: tuple[tuple[MissingId, ...], ...]
    same_order: bool


def join(columns: Sequence[pa.Array]) -> Join:
    """Find the ids that all columns share; ids are unique in each.

    Whole numbers and text are compared as text.

    Example:
        >>> found = join([pa.array([3, 1, 2]), pa.array([1, 2, 4])])
        >>> found.rows, found.missing
        ((array([1, 2]), array([0, 1])), (1, 1))
        >>> found.lacking[1]
        (MissingId(column=0, row=0, id='3'),)
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


def first_few(lacking: Iterable[MissingId]) -> tuple[MissingId, ...]:
    """The few that a report names."""
    return tuple(sorted(lacking)[:EXAMPLES])


def _missing(
    columns: Sequence[pa.Array], places: Sequence[Positions]
) -> tuple[tuple[int, ...], tuple[tuple[MissingId, ...], ...]]:
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


def _few(
    columns: Sequence[pa.Array], lost: Iterable[tuple[int, Positions]]
) -> tuple[MissingId, ...]:
    return first_few(
        MissingId(number, int(row), str(columns[number][int(row)].as_py()))
        for number, rows in lost
        for row in rows[:EXAMPLES]
    )


def _is_everything(rows: AnyArray, length: int) -> bool:
    return len(rows) == length and bool((np.diff(rows) == 1).all())
