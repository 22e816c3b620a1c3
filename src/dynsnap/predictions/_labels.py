"""Labels, truths and slices as positions in a tuple of names."""

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap import _check
from dynsnap._types import AnyArray, Flags, Labels
from dynsnap.errors import InputError, did_you_mean
from dynsnap.predictions._arrow import combined, native, type_name, unpacked
from dynsnap.predictions._text import (
    check_class_names,
    check_name,
    decoded,
    listed,
    natural_order,
    on_one_line,
    positions_of,
    shown,
)
from dynsnap.predictions._validate import check_length, read_only

MISSING = "(none)"  # the value of a slice for inputs that have none


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """A column to break results down by.

    Attributes:
        values: Its distinct values, as text.
        codes: For each input, the position of its value in `values`.
        differs: For each input, whether another generation has another value; None if none has.
    """

    values: tuple[str, ...]
    codes: Labels
    differs: Flags | None = None

    def take(self, rows: Any) -> "Slice":
        """The same column for some of the inputs."""
        differs = None if self.differs is None else self.differs[rows]
        return Slice(self.values, self.codes[rows], differs)

    def beside(self, other: "Slice") -> "Slice":
        """The same column, with the inputs noted that another generation has another value for.

        An input without a value in one of them is none of those.

        Example:
            >>> old = Slice(("day", "night"), np.array([0, 1, 1]))
            >>> old.beside(Slice(("dusk", "night"), np.array([0, 0, 1]))).differs.tolist()
            [True, True, False]
        """
        if self.codes is other.codes and self.values == other.values:
            return self
        places = {value: place for place, value in enumerate(self.values)} | {MISSING: -2}
        own = np.array([places[value] for value in self.values])
        its = np.array([places.get(value, -1) for value in other.values])
        one, two = own[self.codes], its[other.codes]
        differs = (one != two) & (one != -2) & (two != -2)
        if self.differs is not None:
            differs |= self.differs
        return Slice(self.values, self.codes, differs if differs.any() else None)


def encoded(column: pa.Array) -> tuple[list[str], Labels]:
    """The distinct values of a column as text, and for each row its place there (-1: missing).

    Values of a dictionary that no row uses are left out. Missing is null, or empty text.
    """
    try:
        column = unpacked(column)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
    except pa.ArrowNotImplementedError:
        raise _not_names(column.type) from None
    # Signed before gaps are filled with -1: polars and others write unsigned ones.
    codes = np.asarray(column.indices.cast(pa.int32()).fill_null(-1))
    # The last place is for rows without a value, whose code is -1.
    places = np.full(len(column.dictionary) + 1, -1, np.int32)
    seen = np.zeros(len(places), bool)
    seen[codes] = True
    used = np.flatnonzero(seen[:-1])
    names: dict[str, int] = {}  # a dictionary may hold one text twice
    for place, text in zip(used, _texts(column.dictionary, used), strict=True):
        if text:
            places[place] = names.setdefault(text, len(names))
    return list(names), places[codes]


def positions_in(
    names: list[str], codes: Labels, classes: Mapping[str, int], *, what: str
) -> Labels:
    """Positions in the class names, from the names that `encoded` found."""
    refuse_unknown(names, classes, what=what)
    lookup = np.array([classes[name] for name in names] + [-1], np.int32)
    return lookup[codes]


def refuse_unknown(names: Iterable[str], classes: Collection[str], *, what: str) -> None:
    """Raise if a name is not one of the classes."""
    known = set(classes)
    unknown = [name for name in names if name not in known]
    if unknown:
        near = on_one_line(did_you_mean(unknown[0], classes))
        raise InputError(
            f"`{what}` names {listed(unknown)}, but that is none of the {len(classes):,} classes. "
            f"{near}"
        )


def refuse_missing(missing: int, *, rows: int, what: str) -> None:
    """Raise if any input has no value."""
    if missing:
        way_out = f"Drop those rows, or leave `{what}` out altogether."
        raise InputError(f"`{what}` is missing for {missing:,} of {rows:,} rows. {way_out}")


def as_positions(
    values: Any,
    *,
    what: str,
    rows: int,
    classes: tuple[str, ...],
    positions: bool | None = None,
) -> Labels | None:
    """Labels or truth, given as names or as positions, as positions; None if all are missing.

    Args:
        values: Text, or whole numbers.
        what: What they are called in messages.
        rows: How many there must be.
        classes: The class names.
        positions: Whether whole numbers are positions in `classes` or names; None refuses them
            where they could be either.
    """
    column = _as_column(values, what=what)
    if isinstance(column, np.ndarray):
        check_length(what, column, rows=rows)
        if column.dtype.kind not in "iu":
            raise InputError(
                f"`{what}` must be class names (text) or positions in `classes` (whole numbers), "
                f"but is of the type {column.dtype}."
            )
        if positions is None:
            _check.unambiguous(classes, what=what)
        if positions is False:
            return positions_in(*encoded(pa.array(column)), positions_of(classes), what=what)
        outside = (column < 0) | (column >= len(classes))
        if outside.any():
            raise InputError(
                f"`{what}` must be positions from 0 to {len(classes) - 1}, one for each of the "
                f"{len(classes)} classes, but {int(outside.sum()):,} are outside, such as "
                f"{column[np.argmax(outside)]}. If they are class names, say so: positions=False."
            )
        return column.astype(np.int32)  # a copy: the caller may fill one array again and again
    if len(column) != rows:
        raise InputError(
            f"`{what}` must have one value for each of the {rows:,} ids, but has "
            f"{len(column):,} values."
        )
    if pa.types.is_integer(column.type) and column.null_count < rows:
        # Numbers with gaps: what they are is decided as for numbers without.
        gaps = column.is_null().to_numpy(zero_copy_only=False)
        known = column.filter(column.is_valid()).to_numpy(zero_copy_only=False)
        places = np.full(rows, -1, np.int32)
        found = as_positions(
            known, what=what, rows=len(known), classes=classes, positions=positions
        )
        places[~gaps] = -1 if found is None else found
        return places
    names, codes = encoded(column)
    if not names:
        return None
    return positions_in(names, codes, positions_of(classes), what=what)


def class_names_of(values: Any, *, what: str) -> tuple[str, ...]:
    """Class names from values of any plain kind, as `classes_` of scikit-learn has them.

    They are written as labels and truth of the same kind are read: 3 and 3.0 are "3".

    Example:
        >>> class_names_of(np.array([0, 1]), what="classes")
        ('0', '1')
    """
    array = _as_arrow(_as_column(values, what=what), what=what)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return check_class_names(_texts(array, np.arange(len(array))))


def as_slice(values: Any, *, name: str, rows: int) -> Slice:
    """A column of any plain values as a slice."""
    check_name(name, kind="slice name")
    what = f"slices[{name!r}]"
    if isinstance(values, Slice):
        check_length(what, values.codes, rows=rows)
        texts = tuple(
            check_name(value, kind=f"value of slice {shown(name)}") for value in values.values
        )
        bad = (values.codes < 0) | (values.codes >= len(texts))
        if values.codes.dtype.kind not in "iu" or bad.any() or len(set(texts)) < len(texts):
            raise InputError(
                f"`{what}` must have unique values, and codes that are positions in them."
            )
        return Slice(texts, read_only(values.codes.astype(np.int32, copy=False)))
    column = _as_column(values, what=what)
    array = _as_arrow(column, what=what)
    if len(array) != rows:
        raise InputError(
            f"`{what}` must have one value for each of the {rows:,} ids, but has {len(array):,}."
        )
    found, codes = encoded(array)
    values = slice_values(found, gaps=bool((codes < 0).any()))
    return as_coded_slice(found, codes, values, name=name)


def slice_values(found: Collection[str], *, gaps: bool) -> tuple[str, ...]:
    """The values of a slice in their order, with the one for missing values last."""
    known = natural_order(set(found) - {MISSING})
    return (*known, MISSING) if gaps or MISSING in found else known


def as_coded_slice(found: list[str], codes: Labels, values: tuple[str, ...], *, name: str) -> Slice:
    """A slice over given values, which are all that occur."""
    for value in found:
        check_name(value, kind=f"value of slice {shown(name)}")
    places = positions_of(values)
    # The last entry is for rows without a value, whose code is -1.
    lookup = [places[value] for value in found] + [places.get(MISSING, -1)]
    return Slice(values, read_only(np.array(lookup, np.int32)[codes]))


def _texts(dictionary: pa.Array, used: AnyArray) -> list[str | None]:
    """Some values of a dictionary as text; whole numbers in floats without their point."""
    try:
        values = dictionary.take(pa.array(used))
        if pa.types.is_floating(values.type):
            numbers = values.to_numpy(zero_copy_only=False) + 0.0  # no negative zero
            return [None if np.isnan(each) else str(each).removesuffix(".0") for each in numbers]
        texts: list[str | None] = pc.cast(values, pa.large_string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        raise _not_names(dictionary.type) from None
    return texts


def _not_names(kind: pa.DataType) -> InputError:
    return InputError(f"Values {type_name(kind)} cannot be read as names. Convert them to text.")


def _as_column(values: Any, *, what: str) -> Any:
    """Whole numbers as a numpy array, everything else as an Arrow array."""
    if isinstance(values, pa.ChunkedArray):
        values = combined(values)
    if not isinstance(values, pa.Array):
        if isinstance(values, str | bytes):
            raise InputError(f"`{what}` must be one per input, but is the text {shown(values)}.")
        array: AnyArray | list[Any]
        array = native(_of_another(values)) if hasattr(values, "__array__") else list(values)
        if isinstance(array, np.ndarray):
            if array.ndim != 1:
                raise InputError(
                    f"`{what}` must have one value per input, but has the shape {array.shape}."
                )
            if array.dtype.kind not in "OSUT":
                return array
            if array.dtype.kind == "O" and hasattr(values, "__arrow_c_stream__"):
                # A column of a frame knows its gaps better than an array of objects does.
                with contextlib.suppress(pa.ArrowException, TypeError, ValueError):
                    return combined(pa.chunked_array(values))
            if array.dtype.kind == "S":
                array = decoded(array, what=what)
            elif array.dtype.kind == "T":
                array = array.astype(object)
        values = _as_arrow(array, what=what)
    plain = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if (plain or pa.types.is_boolean(values.type)) and not values.null_count:
        return values.to_numpy(zero_copy_only=False)
    return values


def _of_another(values: Any) -> AnyArray | list[Any]:
    """What another library holds as an array; as a list where it has no array for its type."""
    try:
        return np.asarray(values)
    except Exception:  # whatever that library raises
        return list(values)


def _as_arrow(values: Any, *, what: str) -> pa.Array:
    try:
        return values if isinstance(values, pa.Array) else pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError):
        raise InputError(
            f"`{what}` must be all text or all whole numbers, but it is mixed or of a type that "
            "cannot be stored. Convert it to text."
        ) from None
