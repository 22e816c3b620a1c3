"""Accuracy, consistency and cost of every method, and which methods qualify.

Consistency alone rewards doing nothing: a model that is never retrained never changes a label.
So a method qualifies only if it has learned new data about as well as a fresh DynSnap-cyc.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynsnap.study._ensembles import NOISE_FLOOR
from dynsnap.study._table import Row

FRESH = "dynsnap-cyc"
LATE_SHARE = 0.9  # of the fresh ensemble's accuracy on new classes, the least to qualify
LAST_LOSS = 0.003  # of accuracy in the last generation, the most that a method may lose

_EACH = re.compile(r"accuracy_(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSummary:
    """Accuracy, consistency and cost of a method; fractions, None where a table lacks them.

    Attributes:
        accuracies: Of each generation on its own.
        retrain: The cost (κ) of a generation that is not the first.
        late: Accuracy of the last generation on classes that are new in a later generation.
        shortfall: Why it does not qualify; empty where it does, or was not judged.
        judged: Whether it was compared with a fresh DynSnap-cyc.
    """

    method: str
    accuracy: Row
    consistency: Row
    correct_consistency: Row | None
    gained: Row | None
    lost: Row | None
    late: Row | None
    accuracies: tuple[Row, ...]
    retrain: Row | None = None
    shortfall: str = ""
    judged: bool = False

    @property
    def cost(self) -> float:
        """Trainings from scratch that a retrain takes; of older tables, that a generation takes."""
        return self.accuracy.cost if self.retrain is None else self.retrain.value

    @property
    def qualifies(self) -> bool:
        """Whether it has no shortfall."""
        return not self.shortfall


def frontier(rows: Sequence[Row], *, combination: str = "average") -> tuple[MethodSummary, ...]:
    """Every method of a study's table, compared with a fresh DynSnap-cyc.

    A method does not qualify where its accuracy on new classes is below 0.9 of the fresh
    ensemble's, or its accuracy in the last generation is more than 0.3 points below.

    Args:
        rows: The table.
        combination: How members are combined.

    Example:
        >>> def of(method, **values):
        ...     return [Row(method=method, combination="average", metric=name, value=value, cost=1)
        ...             for name, value in values.items()]
        >>> rows = [*of("dynsnap-cyc", accuracy=0.9, consistency=0.92, late_accuracy=0.9),
        ...         *of("never-retrain", accuracy=0.9, consistency=1.0, late_accuracy=0.0)]
        >>> [(one.method, one.qualifies) for one in frontier(rows)]
        [('dynsnap-cyc', True), ('never-retrain', False)]
    """
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.combination == combination:
            found.setdefault(row.method, {})[row.metric] = row
    fresh = found.get(FRESH)
    return tuple(
        _summary(method, values, fresh)
        for method, values in found.items()
        if "accuracy" in values and "consistency" in values
    )


def _summary(
    method: str, values: Mapping[str, Row], fresh: Mapping[str, Row] | None
) -> MethodSummary:
    judged = fresh is not None and method not in (FRESH, NOISE_FLOOR)
    return MethodSummary(
        method=method,
        accuracy=values["accuracy"],
        consistency=values["consistency"],
        correct_consistency=values.get("correct_consistency"),
        gained=values.get("gained"),
        lost=values.get("lost"),
        late=values.get("late_accuracy"),
        accuracies=_each(values),
        retrain=values.get("retrain_cost"),
        judged=judged,
        shortfall=_shortfall(values, fresh) if judged and fresh is not None else "",
    )


def _each(values: Mapping[str, Row]) -> tuple[Row, ...]:
    known = [(int(match[1]), name) for name in values if (match := _EACH.fullmatch(name))]
    return tuple(values[name] for _, name in sorted(known))


def _shortfall(values: Mapping[str, Row], fresh: Mapping[str, Row]) -> str:
    reasons = []
    late, late_fresh = values.get("late_accuracy"), fresh.get("late_accuracy")
    if late and late_fresh and late.value < LATE_SHARE * late_fresh.value:
        reasons.append(
            f"new classes {100 * late.value:.1f} %, below {LATE_SHARE:g} of "
            f"{FRESH}'s {100 * late_fresh.value:.1f} %"
        )
    last, last_fresh = _each(values)[-1:], _each(fresh)[-1:]
    if last and last_fresh and last[0].value < last_fresh[0].value - LAST_LOSS:
        gap = 100 * (last_fresh[0].value - last[0].value)
        reasons.append(f"last generation {gap:.1f} points below {FRESH}'s")
    return "; ".join(reasons)
