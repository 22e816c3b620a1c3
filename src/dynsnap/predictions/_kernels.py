"""Compiled single passes over many rows. Import this late: numba is slow to load.

What they read is handed in as a read-only view, so that each is compiled once, not once more for
arrays that happen to be writable.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from dynsnap._types import AnyArray, Labels, Scores


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile, and keep the machine code on disk where there is a place for it."""
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither the package nor the home directory can be written to
        compiled = numba.njit(nogil=True)(function)
    return compiled


@_compiled
def first_bad_row(scores: Scores, tolerance: float) -> int:
    """The first row that is not a distribution, -1 if all are."""
    rows, classes = scores.shape
    for row in range(rows):
        total = 0.0
        least = 0.0
        for column in range(classes):
            value = np.float64(scores[row, column])
            total += value
            least = min(least, value)
        # Written so that NaN and infinity fail it too.
        if not (least >= 0.0 and abs(total - 1.0) <= tolerance):
            return row
    return -1


@_compiled
def highest(scores: Scores, labels: Labels) -> None:
    """Fill in the class with the highest score of each row, the lowest class on ties."""
    rows, classes = scores.shape
    for row in range(rows):
        best = 0
        most = scores[row, 0]
        for column in range(1, classes):
            # Two selections rather than a branch: which score is higher is unpredictable.
            value = scores[row, column]
            better = value > most
            best = column if better else best
            most = value if better else most
        labels[row] = best


@_compiled
def hash_texts(offsets: AnyArray, content: AnyArray, hashes: AnyArray) -> None:
    """A 64-bit hash (FNV-1a, then a finishing mix) of every text of an Arrow text column."""
    for row in range(len(hashes)):
        value = np.uint64(0xCBF29CE484222325)
        for place in range(offsets[row], offsets[row + 1]):
            value = (value ^ np.uint64(content[place])) * np.uint64(0x100000001B3)
        value ^= value >> np.uint64(32)
        hashes[row] = value * np.uint64(0x9E3779B97F4A7C15)
