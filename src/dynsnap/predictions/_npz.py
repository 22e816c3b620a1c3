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
from dynsnap.predictions._labels import as_positions
from dynsnap.predictions._schema import ColumnNames, metadata_of
from dynsnap.predictions._text import check_class_names, decoded, shown

CLASSES = "classes"  # the array that holds the class names


def read_table(path: Path, columns: ColumnNames) -> pa.Table:
    """The arrays of an archive as a table.

    Whole numbers in `label` and `truth` are positions in `classes` where the array `positions` is
    true, and class names where it is false. Without it they are positions if they cannot be names.
    An archive without `classes` has names, as every other format: 3 is the class "3".
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
            table[name] = _lists(array, name=name, rows=rows)
        elif (
            classes
            and name in (columns.label, columns.truth)
            and array.dtype.kind in "iu"
            and positions is not False
        ):
            places = as_positions(array, what=name, rows=rows, classes=classes, positions=positions)
            table[name] = pa.DictionaryArray.from_arrays(pa.array(places), pa.array(classes))
        else:
            table[name] = _column(array, name=name, needed=special)
    return pa.table(table, metadata=None if classes is None else metadata_of(classes))


def write_arrays(path: Path, arrays: Mapping[str, AnyArray], *, comment: bytes = b"") -> None:
    """Write an archive. (`np.savez` would take some names for its own options.)"""
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = comment
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _lists(array: AnyArray, *, name: str, rows: int) -> pa.Array:
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
    if array.ndim != 1 or array.dtype.kind not in "USiu":
        raise InputError(f"The array {shown(CLASSES)} must be a list of class names.")
    return check_class_names(_text(array, name=CLASSES).astype(str).tolist())


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
