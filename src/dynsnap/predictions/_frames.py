"""Tables in memory: frames, Arrow tables and dicts of arrays as one Arrow table.

No library of frames is imported: pandas, polars and others hand over Arrow data themselves.
"""

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa

from dynsnap._untrusted import POSITIONS
from dynsnap.errors import InputError
from dynsnap.predictions._arrow import MIXED, combined, native
from dynsnap.predictions._ids import as_id_column, check_ids, places_in
from dynsnap.predictions._labels import class_names_of
from dynsnap.predictions._npz import CLASSES, lists_of_rows, named_classes
from dynsnap.predictions._schema import INDEX, ColumnNames, metadata_of
from dynsnap.predictions._text import listed, shown


@runtime_checkable
class ArrowStream(Protocol):
    """What hands its columns over as Arrow data: frames of pandas and polars, Arrow tables."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Table: TypeAlias = ArrowStream | Mapping[str, Any]  # a frame, or a dict of arrays
Place: TypeAlias = str | Path  # of a file, or of many


class FrameName(str):
    """What a table in memory is called in messages, where a file has its path."""

    __slots__ = ()


def is_table(source: object) -> bool:
    """Whether this is a table in memory: a frame, an Arrow table, or a dict of arrays.

    Example:
        >>> is_table({"id": [1], "label": ["cat"]}), is_table("old.csv")
        (True, False)
    """
    if isinstance(source, str | bytes | Path):
        return False
    named = isinstance(source, Mapping | pa.RecordBatch | ArrowStream)
    return named or _is_pandas(source)


def as_table(source: Any, columns: ColumnNames) -> pa.Table:
    """A table in memory as an Arrow table, without a copy where possible.

    A dict may hold what an NPZ archive holds: `scores` as a matrix, the names of its columns as
    `classes`, and `positions`: whether whole numbers in labels and truth are positions.

    Args:
        source: A frame, an Arrow table, or a dict of arrays.
        columns: What the columns are called.

    Example:
        >>> made = as_table({"id": [1, 2], "scores": [[0.5, 0.5], [0.1, 0.9]], "classes": [0, 1]},
        ...                 ColumnNames())
        >>> made.column_names, made.num_rows
        (['id', 'scores'], 2)
    """
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, Mapping):
        return _of_arrays(source, columns)
    if _is_pandas(source):
        return _of_pandas(source)
    try:
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"A {type(source).__name__} cannot be read as a table: {_first_line(error)}"
        ) from error


def slice_columns(slices: Any, ids: pa.Array) -> dict[str, Any]:
    """The columns of slices, a value for each id: those of a mapping, or of a frame.

    A frame that has a column `id` is matched by it; inputs that it lacks have no value. Any other
    frame has its rows in the order of the ids.
    """
    if isinstance(slices, Mapping):
        return dict(slices)
    if not is_table(slices):
        raise InputError(
            f"`slices` must be a mapping of columns or a frame, but is a {type(slices).__name__}."
        )
    table = as_table(slices, ColumnNames())
    kept = [name for name in table.column_names if not name.startswith(INDEX)]
    if len(set(kept)) < len(kept):
        twice = next(name for name in kept if kept.count(name) > 1)
        raise InputError(f"The column {shown(twice)} of `slices` occurs more than once. Keep one.")
    if "id" not in kept:
        return {name: table.column(name) for name in kept}
    own = as_id_column(table.column("id"))
    check_ids(own)
    places = places_in(ids, own)
    if (places < 0).all():
        raise InputError(
            f"No id of `slices` is among those of the predictions: it has "
            f"{listed(own[:3].to_pylist())}, they have {listed(ids[:3].to_pylist())}."
        )
    rows = pa.array(places, mask=places < 0)
    return {name: combined(table.column(name)).take(rows) for name in kept if name != "id"}


def refuse_other_kinds(source: object, *, what: str) -> None:
    """Raise for what is neither a table nor the place of a file."""
    if isinstance(source, str | Path) or is_table(source):
        return
    advice = "Give a frame, an Arrow table, a dict of arrays, `Predictions`, or a path."
    if hasattr(source, "collect"):  # a query that has not run
        advice = "It is a query that has not run: call its collect() first."
    elif isinstance(source, np.ndarray | list | tuple):
        advice = "Bare arrays have no ids: use `Predictions.from_arrays(ids, proba, classes)`."
    raise InputError(f"{what} cannot be a {type(source).__name__}. {advice}")


def _is_pandas(source: object) -> bool:
    pandas = sys.modules.get("pandas")  # a frame of it exists only if it was imported
    return pandas is not None and isinstance(source, pandas.DataFrame)


def _of_pandas(frame: Any) -> pa.Table:
    """A frame of pandas. An index that has a name becomes a column of that name."""
    frame = _plain(frame)
    kept = True if any(name is not None for name in frame.index.names) else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # columns that have no text as name
            return pa.Table.from_pandas(frame, preserve_index=kept)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    # One column of mixed values must not spoil the others: it may not be needed.
    indexed = frame if frame.index.names == [None] else frame.reset_index()
    names, arrays = [], []
    for place, name in enumerate(indexed.columns):
        names.append(str(name))
        try:
            arrays.append(pa.chunked_array(pa.array(indexed.iloc[:, place], from_pandas=True)))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            arrays.append(_mixed(indexed.iloc[:, place]))
    return pa.table(arrays, names=names)


def _plain(frame: Any) -> Any:
    """The frame without what Arrow reads as something else, or not at all.

    Of a period Arrow keeps the number alone, so that 2020-01 would be called 600.
    """
    pd = sys.modules["pandas"]  # it has made the frame
    changed = {}
    for place, kind in enumerate(frame.dtypes):
        if isinstance(kind, pd.PeriodDtype):
            column = frame.iloc[:, place]
            changed[place] = column.astype(str).where(column.notna(), None)
        elif isinstance(kind, np.dtype) and not kind.isnative:
            changed[place] = pd.Series(native(frame.iloc[:, place].to_numpy()), frame.index)
    if not changed:
        return frame
    frame = frame.copy(deep=False)
    for place, column in changed.items():
        frame.isetitem(place, column)
    return frame


def _mixed(column: Any) -> pa.Array:
    storage = pa.nulls(len(column), MIXED.field(0).type)
    return pa.StructArray.from_arrays([storage], names=[MIXED.field(0).name])


def _of_arrays(given: Mapping[str, Any], columns: ColumnNames) -> pa.Table:
    arrays = {name: values for name, values in given.items() if values is not None}
    classes = class_names_of(arrays[CLASSES], what=CLASSES) if CLASSES in arrays else None
    positions = arrays.get(POSITIONS)
    aside = {CLASSES}
    if positions is not None and np.ndim(positions) == 0:
        aside.add(POSITIONS)
    found: dict[str, Any] = {}
    for name, values in arrays.items():
        if not isinstance(name, str):
            raise InputError(f"A column must have a text as its name, got {name!r}.")
        if name not in aside:
            found[name] = _column(values, name=name)
    sizes = {name: len(values) for name, values in found.items()}
    if len(set(sizes.values())) > 1:
        said = ", ".join(f"{shown(name)} has {size:,}" for name, size in sizes.items())
        raise InputError(f"All columns must have one value for each input, but {said}.")
    table = pa.table(found, metadata=None if classes is None else metadata_of(classes))
    places = None if positions is None or POSITIONS not in aside else bool(positions)
    return named_classes(table, classes, columns, positions=places)


def _column(values: Any, *, name: str) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, ArrowStream):  # a column of a frame
        try:
            return pa.chunked_array(values)
        except (pa.ArrowException, TypeError, ValueError):
            pass
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
        raise InputError(
            f"The column {shown(name)} must hold one value for each input, but is a "
            f"{type(values).__name__}."
        )
    array: Any
    try:
        array = list(values) if isinstance(values, Sequence) else native(np.asarray(values))
    except Exception:  # a type that numpy lacks: whatever the library of the column raises
        array = list(values)
    if isinstance(array, np.ndarray) and array.ndim > 1:
        return lists_of_rows(array, name=name, rows=len(array))
    try:
        return pa.array(array, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InputError(
            f"The column {shown(name)} holds values of several kinds. Convert them to text."
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:160]
