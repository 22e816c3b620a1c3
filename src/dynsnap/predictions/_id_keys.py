"""A number for every id, by which rows are told apart wherever and in whatever order they come."""

import numpy as np
import pyarrow as pa

from dynsnap._types import AnyArray
from dynsnap.predictions._ids import COMPILED_FROM, text_buffers

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
