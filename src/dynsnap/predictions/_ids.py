"""The column of ids: whole numbers or text, each once."""

import contextlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray
from dynsnap.errors import InputError
from dynsnap.predictions._kinds import combined, is_text, unpacked
from dynsnap.predictions._text import CONTROL_RE2, decoded, listed, shown

COMPILED_FROM = 100_000  # rows; below this, loading numba takes longer than it saves


def as_id_column(values: Any) -> pa.Array:
    """Ids of any origin as one Arrow array, int64 or large_string, without a copy where possible.

    Example:
        >>> str(as_id_column(["a", "b"]).type)
        'large_string'
    """
    column = _as_arrow(values)
    column = combined(column) if isinstance(column, pa.ChunkedArray) else unpacked(column)
    if pa.types.is_dictionary(column.type):
        _check_distinct(column)
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):  # nothing at all, or nothing but gaps
        column = column.cast(pa.int64())
    if column.null_count:
        raise InputError(
            f"{column.null_count:,} of {len(column):,} ids are missing. Give every input an id."
        )
    if pa.types.is_integer(column.type):
        try:
            return pc.cast(column, pa.int64())
        except pa.ArrowInvalid:  # unsigned and beyond int64, as hashes are
            return pc.cast(column, pa.large_string())
    if is_text(column.type):
        try:
            return pc.cast(column, pa.large_string())
        except pa.ArrowInvalid:
            raise InputError("Ids must be valid UTF-8 text. Decode them properly first.") from None
    raise InputError(
        f"Ids must be whole numbers or text, but are of the type {column.type}. "
        "Convert them with str() or int()."
    )


def _check_distinct(column: pa.DictionaryArray) -> None:
    """Raise where ids must repeat, before a long one that does is written out for every row."""
    surplus = len(column) - column.null_count - len(column.dictionary)
    if surplus > 0 and is_text(column.type.value_type):
        raise InputError(
            f"Ids must be unique, but {len(column):,} rows have {len(column.dictionary):,} "
            "different ones at most. Keep one row for each input."
        )


def check_ids(column: pa.Array, *, unique: bool = True) -> None:
    """Raise unless the ids can be shown and, if `unique`, occur once each."""
    if not len(column):
        return
    if pa.types.is_large_string(column.type):
        _check_text(column)
    if unique and not all_differ(column):
        refuse_repeats(*repeats(column), rows=len(column))


def all_differ(column: pa.Array) -> bool:
    """Whether each id occurs once."""
    if pa.types.is_large_string(column.type):
        return _texts_differ(column)
    return _numbers_differ(column.to_numpy())


def repeats(column: pa.Array) -> tuple[int, pa.Array]:
    """How many rows repeat an id, and the ids that occur more than once, as they first come."""
    counts = pc.value_counts(column)
    times = counts.field("counts").to_numpy()
    return int((times - 1).sum()), counts.field("values").filter(pa.array(times > 1))


def refuse_repeats(surplus: int, repeated: pa.Array, *, rows: int, where: str = "") -> NoReturn:
    """Say that ids are not unique; `where` names the files in which the first is."""
    place = f" (the first of them in {where})" if where else ""
    raise InputError(
        f"Ids must be unique, but {surplus:,} of {rows:,} rows repeat an id, such as "
        f"{listed(repeated[:3].to_pylist())}{place}. Keep one row for each input."
    )


def as_text(column: pa.Array) -> pa.Array:
    """The ids as text: how whole numbers and text are compared."""
    return pc.cast(column, pa.large_string())


def one_id_column(columns: Sequence[pa.Array]) -> pa.Array:
    """Id columns one below the other."""
    if len({column.type for column in columns}) > 1:  # some unsigned ids fitted, some did not
        columns = [as_text(column) for column in columns]
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def text_buffers(column: pa.Array) -> tuple[AnyArray, AnyArray]:
    """The offsets and the bytes behind a large_string array, without a copy."""
    _, offsets, content = column.buffers()
    starts = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    flat = np.frombuffer(content or b"", np.uint8)
    starts.flags.writeable = flat.flags.writeable = False
    return starts, flat


def _as_arrow(values: Any) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if hasattr(values, "__arrow_c_stream__"):  # a column of a frame
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError):
            return pa.chunked_array(values)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InputError(f"`ids` must have one axis, but has the shape {values.shape}.")
        if values.dtype.kind == "S":
            values = decoded(values, what="ids")
    elif isinstance(values, str | bytes):
        raise InputError(f"`ids` must be one per input, but is the single text {shown(values)}.")
    else:
        values = list(values)
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError):
        raise InputError(
            "Ids must be all whole numbers or all valid text, but they are mixed or of a type "
            "that cannot be stored. Convert them with str()."
        ) from None


def _check_text(column: pa.Array) -> None:
    starts, content = text_buffers(column)
    part = content[starts[0] : starts[-1]]
    if (np.diff(starts) == 0).any():
        raise InputError("An id is empty text. Give every input an id.")
    if part.min() >= 0x20 and part.max() < 0x7F:  # plain ASCII: the usual case, and quick to see
        return
    bad = pc.match_substring_regex(column, CONTROL_RE2)
    if pc.any(bad).as_py():
        first = column[pc.index(bad, True).as_py()].as_py()
        raise InputError(
            f"The id {shown(first)} holds control characters. Remove them from the ids."
        )


def _numbers_differ(ids: AnyArray) -> bool:
    if (ids[1:] > ids[:-1]).all():  # the usual case: rows are numbered
        return True
    ordered = np.sort(ids)
    return bool((ordered[1:] != ordered[:-1]).all())


def _texts_differ(column: pa.Array) -> bool:
    if len(column) >= COMPILED_FROM:
        from dynsnap.predictions import _kernels

        starts, content = text_buffers(column)
        hashes = np.empty(len(column), np.uint64)
        _kernels.hash_texts(starts, content, hashes)
        hashes.sort()
        if (hashes[1:] != hashes[:-1]).all():
            return True
        # Either a duplicate or (hardly ever) two texts with one hash: look at the texts.
    return bool(pc.count_distinct(column).as_py() == len(column))
