"""P-values of many groups, corrected for there being many."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dynsnap.comparison._results import GroupKind, GroupResult


def corrected(groups: Iterable[GroupResult]) -> tuple[GroupResult, ...]:
    """The groups with p-values that allow for how many of their kind were tested."""
    found = tuple(groups)
    kinds: dict[GroupKind, list[float]] = defaultdict(list)
    for group in found:
        if group.changed is not None:
            kinds[group.kind].append(group.changed)
    honest = {kind: iter(holm(values)) for kind, values in kinds.items()}
    return tuple(
        group if group.changed is None else replace(group, corrected=next(honest[group.kind]))
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
