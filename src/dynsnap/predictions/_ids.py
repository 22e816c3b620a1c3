"""The column of ids: whole numbers or text, each once, and a number for each of them."""

import contextlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray, Positions
from dynsnap.errors import InputError
from dynsnap.predictions._arrow import combined, is_text, native, type_name, unpacked
from dynsnap.predictions._text import CONTROL_RE2, decoded, listed, shown

DENSE = 4  # a table of all numbers in the range pays off up to this many per id
_LONG = 256  # bytes of an id; numpy takes one step for each byte of the longest

_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_FINISH = np.uint64(0x9E3779B97F4A7C15)


def id_keys(column: pa.Array) -> AnyArray:
    """A 64-bit key of every id: a whole number is its own key, a text is hashed.

    Keys depend on nothing but the id: not on its row, the process or the machine.

    Args:
        column: Ids as `Predictions.id_column` holds them.

    Example:
        >>> id_keys(pa.array([7, 8])).tolist()
        [7, 8]
        >>> texts = pa.array(["b", "a", "b"], pa.large_string())
        >>> one, other, again = id_keys(texts).tolist()
        >>> one == again, one == other
        (True, False)
    """
    if pa.types.is_int64(column.type):
        return np.asarray(column.to_numpy().view(np.uint64))
    starts, content = text_buffers(column)
    hashes = np.empty(len(column), np.uint64)
    lengths = np.diff(starts)
    if len(column) >= COMPILED_FROM or lengths.max(initial=0) > _LONG:
        from dynsnap.predictions import _kernels

        _kernels.hash_texts(starts, content, hashes)
        return hashes
    # The same hash (FNV-1a) as the compiled one, a byte of all ids at a time.
    hashes[:] = _BASIS
    for place in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > place)
        hashes[rows] = (hashes[rows] ^ content[starts[rows] + place]) * _PRIME
    hashes ^= hashes >> np.uint64(32)
    return hashes * _FINISH


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
        f"Ids must be whole numbers or text, but are {type_name(column.type)}. "
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
        return pa.array(native(values))
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
