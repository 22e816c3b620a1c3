"""P-values of many groups, corrected for there being many."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dynsnap.comparison._results import GroupResult


def corrected(groups: Iterable[GroupResult]) -> tuple[GroupResult, ...]:
    """The groups of a pair with p-values that allow for how many of them were tested.

    Classes, slices and frequencies are one family: a report shows all of them, so the chance that
    it shows any false alarm is the chance over all of them together.
    """
    found = tuple(groups)
    adjusted = iter(holm([group.changed for group in found if group.changed is not None]))
    return tuple(
        group if group.changed is None else replace(group, corrected=next(adjusted))
        for group in found
    )


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
