"""Which parts of the inputs fare worst."""

import math
from collections.abc import Iterable

from dynsnap.comparison._results import GroupResult


def worst_first(groups: Iterable[GroupResult]) -> list[GroupResult]:
    """Groups by the share that they lost, the largest first; without truth, least consistent first.

    Those that fare alike keep the order in which they come, which in a `PairResult` is that of the
    classes, or of a slice's values. One whose share is undefined, for it has no weight, comes last.

    Examples:
        >>> from dynsnap.comparison import Estimate
        >>> def group(name, lost):
        ...     metrics = {"lost": Estimate(lost)}
        ...     return GroupResult(
        ...         kind="class", column="truth", name=name, inputs=50, weight=50, metrics=metrics
        ...     )
        >>> found = worst_first([group("cat", 0.02), group("dog", 0.1), group("ant", 0.02)])
        >>> [each.name for each in found]
        ['dog', 'cat', 'ant']
    """
    return sorted(groups, key=_standing)


def _standing(group: GroupResult) -> float:
    metrics = group.metrics
    value = -metrics["lost"].value if "lost" in metrics else metrics["consistency"].value
    return math.inf if math.isnan(value) else value
