"""Theorem 5: what two accuracies alone say about correct-consistency."""

from dynsnap._types import AnyArray, Labels
from dynsnap.metrics import accuracy, correct_consistency
from dynsnap.theory._bound import Range


def correct_consistency_bounds(
    old: Labels, new: Labels, *, truth: Labels, weights: AnyArray | None = None
) -> Range:
    """Correct-consistency and the range that the two accuracies leave it (Fréchet's bounds).

    It lies between max(ACC_old + ACC_new − 1, 0) and min(ACC_old, ACC_new); both ends can occur.
    `weights` is the importance of each input.

    Example:
        >>> import numpy as np
        >>> found = correct_consistency_bounds(
        ...     np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0]), truth=np.zeros(4, int))
        >>> found.low, found.value, found.high
        (0.5, 0.5, 0.75)
    """
    before = accuracy(old, truth=truth, weights=weights)
    now = accuracy(new, truth=truth, weights=weights)
    return Range(
        name="T5",
        claim="max(ACC_old + ACC_new − 1, 0) ≤ ACC-CON ≤ min(ACC_old, ACC_new)",
        low=max(before + now - 1, 0.0),
        value=correct_consistency(old, new, truth=truth, weights=weights),
        high=min(before, now),
    )
