"""Majority and minority classes."""

import numpy as np

from dynsnap._types import AnyArray, Flags


def majority_classes(rows: AnyArray, *, share: float = 0.9) -> Flags:
    """Which classes are majority classes: the most frequent ones, which cover a share of all rows.

    All others that have rows are minority classes. Equally frequent classes are alike, so balanced
    data has no minority.

    Args:
        rows: How many rows each class has.
        share: What majority classes cover together, at least.

    Example:
        >>> majority_classes(np.array([60, 28, 8, 4, 0])).tolist()
        [True, True, True, False, False]
        >>> majority_classes(np.array([50, 50, 50, 50])).tolist()
        [True, True, True, True]
    """
    rows = np.asarray(rows)
    if not rows.any():
        return np.zeros(len(rows), dtype=bool)
    falling = -np.sort(-rows, kind="stable")
    before = np.cumsum(falling) - falling
    needed = falling[before < share * rows.sum()]
    return np.asarray((rows >= needed[-1]) & (rows > 0))
