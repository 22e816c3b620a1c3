"""NPZ archives: plain arrays in a zip file. A pickle in one is never loaded."""

import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from dynsnap._types import AnyArray
from dynsnap._untrusted import POSITIONS, ArrayArchive
from dynsnap.errors import InputError
from dynsnap.predictions._arrow import combined
from dynsnap.predictions._labels import as_positions, class_names_of, encoded
from dynsnap.predictions._schema import ColumnNames, metadata_of
from dynsnap.predictions._text import decoded, listed, shown

CLASSES = "classes"  # the array that holds the class names


def read_table(path: Path, columns: ColumnNames) -> pa.Table:
    """The arrays of an archive as a table.

    Whole numbers in `label` and `truth` are class names, as in every other format: 3 is the class
    "3". Where the array `positions` is true they are positions in `classes`, -1 for no truth.
    Without it, a number that is no name but a position is refused.
    """
    with ArrayArchive(path) as archive:
        return _table(archive, columns)


def _table(archive: ArrayArchive, columns: ColumnNames) -> pa.Table:
    positions = archive.positions()
    aside = {CLASSES} if positions is None else {CLASSES, POSITIONS}
    headers = {name: header for name, header in archive.headers.items() if name not in aside}
    classes = _class_names(archive.read(CLASSES)) if CLASSES in archive.headers else None
    if columns.id not in headers:
        # What is wrong is said where columns are interpreted, by names alone.
        return pa.table({name: pa.nulls(0) for name in headers})
    rows = (headers[columns.id].shape or (1,))[0]
    table: dict[str, pa.Array] = {}
    for name, header in headers.items():
        special = name in columns.reserved or name.startswith(columns.score_prefix)
        listed = name == columns.scores and len(header.shape) > 1
        if header.shape != (rows,) and not listed:
            if special:
                raise InputError(
                    f"The array {shown(name)} must have one value for each of the {rows:,} ids, "
                    f"but has the shape {header.shape}."
                )
            table[name] = pa.nulls(rows)  # not a column, and named among those left out
            continue
        array = archive.read(name)
        if listed:
            table[name] = lists_of_rows(array, name=name, rows=rows)
        else:
            table[name] = _column(array, name=name, needed=special)
    made = pa.table(table, metadata=None if classes is None else metadata_of(classes))
    return named_classes(made, classes, columns, positions=positions)


def named_classes(
    table: pa.Table,
    classes: tuple[str, ...] | None,
    columns: ColumnNames,
    *,
    positions: bool | None,
) -> pa.Table:
    """The same table with labels and truth by name.

    Args:
        table: Columns of arrays.
        classes: The class names that come with them, if any do.
        columns: What the columns are called.
        positions: Whether whole numbers are positions in `classes`, or names. None takes them for
            names, and refuses one that is no name of a class but a position.
    """
    if classes is None or positions is False:
        return table
    if positions:
        return places_as_names(table, classes, columns)
    for name in sorted({columns.label, columns.truth} & set(table.column_names)):
        column = combined(table.column(name))
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            continue
        places = {str(place) for place in range(len(classes))} - set(classes)
        doubtful = [each for each in encoded(column)[0] if each in places]
        if doubtful:
            raise InputError(
                f"`{name}` holds {listed(doubtful, most=3)}, which is no class among "
                f"{listed(classes, most=3)}, but a position: are they names or positions? Say so "
                "with positions=False or positions=True (in NPZ, an array `positions`)."
            )
    return table


def places_as_names(table: pa.Table, classes: tuple[str, ...], columns: ColumnNames) -> pa.Table:
    """The same table with labels and truth by name, which are positions in the classes so far."""
    for name in {columns.label, columns.truth} & set(table.column_names):
        column = combined(table.column(name))
        if pa.types.is_integer(column.type):
            gaps = column.is_null().to_numpy(zero_copy_only=False)
            values = column.fill_null(0).to_numpy()
            if name == columns.truth:  # a place that no class has: the truth is not known
                gaps |= values == -1
            places = as_positions(
                np.where(gaps, 0, values),
                what=name,
                rows=len(column),
                classes=classes,
                positions=True,
            )
            named = pa.DictionaryArray.from_arrays(
                pa.array(places, mask=gaps), pa.array(classes, pa.string())
            )
            table = table.set_column(table.column_names.index(name), name, named)
    return table


def write_arrays(path: Path, arrays: Mapping[str, AnyArray], *, comment: bytes = b"") -> None:
    """Write an archive. (`np.savez` would take some names for its own options.)"""
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = comment
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def lists_of_rows(array: AnyArray, *, name: str, rows: int) -> pa.Array:
    """A matrix of scores as one list for each row."""
    if array.ndim == 3:
        raise InputError(
            f"The array {shown(name)} has three axes, as the scores of an ensemble's members do. "
            "Combine them into (inputs, classes) first, or look at them with `dynsnap audit`."
        )
    if array.ndim != 2 or len(array) != rows or not array.shape[1]:
        raise InputError(
            f"The array {shown(name)} must be (inputs, classes) with {rows:,} inputs, "
            f"but has the shape {array.shape}."
        )
    flat = _column(np.ascontiguousarray(array).reshape(-1), name=name, needed=True)
    return pa.FixedSizeListArray.from_arrays(flat, array.shape[1])


def _class_names(array: AnyArray) -> tuple[str, ...]:
    if array.ndim != 1 or array.dtype.kind not in "USiubf":
        raise InputError(f"The array {shown(CLASSES)} must be a list of class names.")
    return class_names_of(_text(array, name=CLASSES), what=CLASSES)


def _text(array: AnyArray, *, name: str) -> AnyArray:
    """Text that is valid, bytes decoded, in the machine's own byte order."""
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    if array.dtype.kind == "S":
        return decoded(array, what=name)
    points = array.view(np.uint32) if array.dtype.kind == "U" and array.size else np.zeros(1)
    if points.max() > sys.maxunicode:
        raise InputError(f"The array {shown(name)} is not valid text.")
    return array


def _column(array: AnyArray, *, name: str, needed: bool) -> pa.Array:
    try:
        return pa.array(_text(array, name=name))
    except (pa.ArrowException, ValueError, TypeError):
        if needed:
            raise InputError(
                f"The array {shown(name)} is of the type {array.dtype} and cannot be read."
            ) from None
        return pa.nulls(len(array))
