"""Pools from arrays in memory, and from NPZ files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Labels
from dynsnap._untrusted import ArrayArchive
from dynsnap.data._dataset import DataSet, class_order, numbered
from dynsnap.data._dataset import positions as positions_of
from dynsnap.data._pool import Pool
from dynsnap.errors import DataError, InputError

_NAMES = ("inputs", "labels", "classes", "ids")
_SLICE = "slice:"


def from_arrays(
    inputs: AnyArray | Sequence[Any],
    labels: AnyArray | Sequence[Any],
    *,
    classes: Sequence[str] | None = None,
    ids: AnyArray | Sequence[Any] | None = None,
    slices: Mapping[str, AnyArray] | None = None,
    name: str = "data",
    positions: bool | None = None,
) -> Pool:
    """A pool from what is in memory already.

    Args:
        inputs: Images, features, or texts; one per row.
        labels: Class names, or whole numbers: positions in `classes` where those are given (see
            `positions`), else names themselves.
        classes: Class names; by default those that occur, in order.
        ids: A unique name for each row; by default made from `name` and the row's number.
        slices: Further columns for breakdowns.
        name: What to call the pool. Two pools that meet need two names, or ids of their own.
        positions: Whether whole numbers beside `classes` are positions or names; if left out, they
            are positions, and refused where a class has the name of another one's position.

    Example:
        >>> from_arrays([[0.0], [1.0], [2.0]], ["dog", "cat", "dog"]).labels
        array([1, 0, 1])
    """
    rows = checked_inputs(inputs, name)
    given = np.asarray(labels)
    sound = given.dtype.kind in "iuU" or all(isinstance(label, str | int) for label in given.flat)
    if given.ndim != 1 or not sound:
        raise DataError(
            f"{name}: labels must be class names or whole numbers, one per row, but are "
            f"{given.dtype} of the shape {given.shape}."
        )
    if classes is not None and given.dtype.kind in "iu" and positions is not False:
        names = tuple(map(str, classes))
        if positions is None:
            check_meaning(names, name)
        places: Labels = given.astype(np.int64)
    else:
        words = [str(label) for label in given.tolist()]
        names = class_order(words) if classes is None else tuple(map(str, classes))
        places = positions_of(words, names, what=name)
    return Pool(
        name=name,
        inputs=rows,
        labels=places,
        classes=names,
        ids=numbered(name, len(rows)) if ids is None else np.asarray(ids),
        slices={column: np.asarray(values) for column, values in (slices or {}).items()},
    )


def read_npz(path: str | Path, *, test: str | Path | None = None) -> DataSet:
    """A data set from NPZ files with the arrays `inputs` and `labels`.

    Further arrays: `classes` (names, so that `labels` are positions, see `positions` of
    `from_arrays`, which may be an array too), `ids`, and `slice:NAME`.
    Nothing in them is ever unpickled.
    """
    train = _npz(Path(path), "train")
    if test is None:
        return DataSet(train=train)
    held = _npz(Path(test), "test")
    if held.classes != train.classes:
        names = class_order((*train.classes, *held.classes))
        train, held = (_widened(pool, names) for pool in (train, held))
    return DataSet(train=train, test=held)


def check_meaning(classes: Sequence[str], where: object) -> None:
    """Raise if whole numbers could be names of these classes as well as positions among them."""
    try:
        _check.unambiguous(classes, what="labels")
    except InputError as error:
        raise DataError(f"{where}: {error}") from error


def positions_said(archive: ArrayArchive, path: Path) -> bool | None:
    """Whether an archive states that whole numbers in `labels` are positions in `classes`."""
    try:
        return archive.positions()
    except InputError as error:
        raise DataError(f"{path}: {error}") from error


def _npz(path: Path, name: str) -> Pool:
    with ArrayArchive(path) as archive:
        if lacking := {"inputs", "labels"} - archive.headers.keys():
            raise DataError(
                f"{path} must hold the arrays `inputs` and `labels`, but lacks {sorted(lacking)}: "
                f"it has {sorted(archive.headers)}."
            )
        known = [key for key in archive.headers if key in _NAMES or key.startswith(_SLICE)]
        arrays = {key: archive.read(key) for key in known}
        positions = positions_said(archive, path)
    return from_arrays(
        arrays["inputs"],
        arrays["labels"],
        classes=arrays["classes"].tolist() if "classes" in arrays else None,
        ids=arrays.get("ids"),
        slices={
            key.removeprefix(_SLICE): values.astype(str)
            for key, values in arrays.items()
            if key.startswith(_SLICE)
        },
        name=name,
        positions=positions,
    )


def checked_inputs(inputs: AnyArray | Sequence[Any], name: str) -> AnyArray:
    """Inputs as a pool holds them: numbers of one shape per row, or texts as objects."""
    try:
        rows = np.asarray(inputs)
    except ValueError as error:
        raise DataError(f"{name}: inputs must all be of one shape.") from error
    if rows.ndim and rows.dtype.kind in "US":
        rows = rows.astype(object)
    if rows.dtype == object:
        if rows.ndim != 1 or not all(isinstance(text, str) for text in rows):
            raise DataError(
                f"{name}: inputs must be numbers of one shape per row, or one text per row."
            )
    elif rows.ndim < 2 or rows.dtype.kind not in "biuf":
        raise DataError(
            f"{name}: inputs must be numbers with at least two axes (rows first), or texts, but "
            f"are {rows.dtype} of the shape {rows.shape}."
        )
    return rows


def _widened(pool: Pool, classes: tuple[str, ...]) -> Pool:
    """The pool with its labels as positions among more classes."""
    place = np.array([classes.index(name) for name in pool.classes], dtype=np.int64)
    return Pool(
        name=pool.name,
        inputs=pool.inputs,
        labels=place[pool.labels],
        classes=classes,
        ids=pool.ids,
        slices=pool.slices,
    )
