"""P-values of many comparisons, corrected for there being many."""

from collections.abc import Sequence


def holm(values: Sequence[float]) -> list[float]:
    """P-values by Holm's method: the chance that any of those below a level is a fluke stays below.

    Example:
        >>> holm([0.01, 0.04, 0.5])
        [0.03, 0.08, 0.5]
    """
    order = sorted(range(len(values)), key=lambda place: values[place])
    corrected = [0.0] * len(values)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = highest
    return corrected
