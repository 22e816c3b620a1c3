"""What must be known of a whole file before any batch of it can be read: its names.

Class names and the values of slices are counted over all rows, so the columns that hold them are
looked through once, a batch at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from dynsnap.errors import InputError
from dynsnap.predictions._arrow import bare
from dynsnap.predictions._digest import Verification
from dynsnap.predictions._labels import encoded, refuse_missing, refuse_unknown, slice_values
from dynsnap.predictions._schema import ColumnLayout
from dynsnap.predictions._slicing import SliceCut, Slicing
from dynsnap.predictions._text import (
    check_class_names,
    check_name,
    doubts,
    listed,
    natural_order,
    refuse_too_many,
    shown,
)

if TYPE_CHECKING:
    from dynsnap.predictions.tasks import AnswerTask

MOST_SLICE_VALUES = 50
_MOST_SLICES = 1_000
_GLANCE = 16_384  # rows: enough to see that a column has too many values


class NoRowsError(InputError):
    """Predictions of no input, which a log of a day without traffic is."""

    def __init__(self, message: str = "There are no rows.") -> None:  # as pickle calls it
        super().__init__(message)


class Batches(Protocol):
    """A file as batches of rows, as often as they are asked for."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def verification(self) -> Verification: ...

    def batches(self, columns: Sequence[str], /) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The names that a file uses.

    Attributes:
        classes: Class names; those with scores first, in the order of the scores.
        scored: How many of them have scores; the others are named by the truth alone.
        slices: The values of each slice column.
        has_truth: Whether any input has a true class.
        truth_gaps: Whether some have one, and some have none.
        notes: What was left out or made up, a sentence each.
        cuts: How the slices that were asked for by name are made of columns.
        task: What answers are, where they are no classes.
        made_up: Of classes, those that nothing in the file names.
        width: How many values each row has then, and `truth_width` its truth.
    """

    classes: tuple[str, ...]
    scored: int
    slices: Mapping[str, tuple[str, ...]]
    has_truth: bool
    truth_gaps: bool = False
    notes: tuple[str, ...] = ()
    cuts: Mapping[str, SliceCut] = field(default_factory=dict)
    task: "AnswerTask | None" = None
    made_up: tuple[str, ...] = ()
    width: int = 1
    truth_width: int = 1

    @property
    def slice_columns(self) -> tuple[str, ...]:
        """The columns that slices are made of."""
        every = (self.cuts[name].columns if name in self.cuts else (name,) for name in self.slices)
        return tuple(dict.fromkeys(column for columns in every for column in columns))


def vocabulary_of(
    source: Batches, layout: ColumnLayout, slicing: Slicing | None = None
) -> Vocabulary:
    """Look through the columns of names, and give up early on those with too many values.

    Args:
        source: The file.
        layout: Which column is what.
        slicing: The slices that were asked for; None for every column with few values.
    """
    if layout.task is not None:
        found = layout.task.vocabulary(source, layout)
        slices, cuts, ignored = _slices(source, layout, slicing)
        return replace(found, slices=slices, cuts=cuts, notes=(*found.notes, *ignored))
    notes: list[str] = []
    known = layout.classes or ()
    if layout.score_list is not None and not known:
        size = _list_size(source, layout.score_list)
        refuse_too_many(size, where=f"the lists of {shown(layout.score_list)}")
        known = tuple(str(place) for place in range(size))
        notes.append(
            "Classes are called by their positions (0, 1, ...): the file has no class names for "
            f"{shown(layout.score_list)}."
        )
    said, unlabelled, labels = names_in(source, layout.label)
    true, unknown, truths = names_in(source, layout.truth)
    for column, names, rows in ((layout.label, said, labels), (layout.truth, true, truths)):
        if column is not None:
            notes += doubts(column, names - set(known), rows=rows)
    if layout.has_scores:
        refuse_unknown(said, known, what="label")
        new = natural_order(true - set(known))
        _refuse_places(true, known)
        if new:
            notes.append(f"Truth names classes that the model has no score for: {listed(new)}.")
    else:
        new = natural_order((said | true) - set(known))
    if layout.label is not None and not labels:
        raise NoRowsError
    if not known and not new:
        raise InputError("There is no class: no row has a label. Write one into each row.")
    refuse_missing(unlabelled, rows=labels, what="label")
    slices, cuts, ignored = _slices(source, layout, slicing)
    notes += ignored
    return Vocabulary(
        classes=check_class_names((*known, *new)),
        scored=len(known) if layout.has_scores else 0,
        slices=slices,
        has_truth=bool(true),  # a column without a single value is no truth at all
        truth_gaps=bool(true) and unknown > 0,
        notes=tuple(notes),
        cuts=cuts,
    )


def _slices(
    source: Batches, layout: ColumnLayout, slicing: Slicing | None
) -> tuple[dict[str, tuple[str, ...]], dict[str, SliceCut], list[str]]:
    """The values of each slice, how those that were asked for are made, and what was left out."""
    if slicing is not None:
        cuts = slicing.cuts(layout.others, lambda column: lambda: _column(source, column))
        return {name: cut.values for name, cut in cuts.items()}, cuts, []
    slices, ignored = slices_in(source, layout.others, layout.unusable)
    if not ignored:
        return slices, {}, []
    note = (
        f"Columns that are not slices (more than {MOST_SLICE_VALUES} values, or none that can be "
        f"shown) were ignored: {listed(ignored)}."
    )
    return slices, {}, [note]


def _column(source: Batches, column: str) -> Iterator[pa.Array]:
    for batch in source.batches([column]):
        yield batch.column(column)


def _refuse_places(true: set[str], classes: Sequence[str]) -> None:
    """Raise where the truth names no class that has a score, but could be positions of them."""
    places = {str(place) for place in range(len(classes))}
    if true and true <= places and not true & set(classes):
        raise InputError(
            f"`truth` holds {listed(natural_order(true), most=3)}, but the classes are "
            f"{listed(classes, most=3)}: are these positions? Write names, or say "
            "`positions=True` (in NPZ and in a dict, an array `positions` that is true)."
        )


def _list_size(source: Batches, column: str) -> int:
    kind = source.schema.field(column).type
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size)
    for batch in source.batches([column]):
        sizes = pc.list_value_length(batch.column(column)).drop_null()
        if len(sizes):
            return int(sizes[0].as_py())
    return 0


def names_in(source: Batches, column: str | None) -> tuple[set[str], int, int]:
    """The names in a column, how many rows have none, and how many rows there are."""
    names: set[str] = set()
    rows = missing = 0
    if column is None:
        return names, missing, rows
    for batch in source.batches([column]):
        found, codes = encoded(batch.column(column))
        names.update(found)
        refuse_too_many(len(names), where=f"the column {shown(column)}")
        rows += len(codes)
        missing += int((codes < 0).sum())
    kind = bare(source.schema.field(column).type)
    if pa.types.is_floating(kind) and not all(name.lstrip("-").isdigit() for name in names):
        raise InputError(
            f"The column {shown(column)} must hold class names, but holds numbers that are not "
            f"whole, such as {listed(sorted(names), most=2)}. If they are predictions of a number, "
            "read them with `--task regression --tolerance NUMBER`; if they are scores of one "
            "class, with `--task binary --score-column NAME`."
        )
    return names, missing, rows


def slices_in(
    source: Batches, columns: Sequence[str], unusable: Sequence[str] = ()
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """The values of each column that can be a slice, and the names of those that cannot."""
    slices: dict[str, tuple[str, ...]] = {}
    # A column takes a moment, however few bytes it has.
    ignored = [*unusable, *columns[_MOST_SLICES:]]
    for column in columns[:_MOST_SLICES]:
        try:
            check_name(column, kind="slice name")
            values = _values_in(source, column)
        except InputError:  # a name or a value that cannot be shown
            values = ()
        if values:
            slices[column] = values
        else:
            ignored.append(column)
    return slices, ignored


def _values_in(source: Batches, column: str) -> tuple[str, ...]:
    """The values of a slice; empty if the column is not one."""
    values: set[str] = set()
    gaps = False
    for batch in source.batches([column]):
        whole = batch.column(column)
        for start in range(0, len(whole), _GLANCE):
            names, codes = encoded(whole.slice(start, _GLANCE))
            for name in names:
                check_name(name, kind="value")
            values.update(names)
            gaps = gaps or bool((codes < 0).any())
            if len(values) > MOST_SLICE_VALUES:
                return ()
    return slice_values(values, gaps=gaps) if values else ()
