"""Methods held against fair references, input by input and replicate by replicate.

A way of retraining is worth what it adds to three others: a fresh DynSnap-cyc; the strongest fresh
method that costs no more in all, first generation included; and never retraining the method's own
first generation. Every difference is paired, with an interval over inputs and replicates.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from dynsnap.comparison import PairedDifference
from dynsnap.ensemble import Method
from dynsnap.study._ensembles import NEVER_RETRAIN
from dynsnap.study._labels import MethodLabels, retrained
from dynsnap.study._table import Row

Role: TypeAlias = Literal["fresh", "strongest", "first"]
"""Which reference: the fresh DynSnap-cyc, the strongest fresh method at equal or lower total cost,
or the method's own first generation, never retrained."""

FRESH = "dynsnap-cyc"
# A loss of accuracy that an interval has to rule out before a method qualifies.
LARGE_LOSS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAgainst:
    """A method minus one reference.

    Attributes:
        method: The method.
        role: Which reference this is.
        reference: Its name.
        cost: Trainings from scratch (κ) of the reference, all generations together; NaN where it
            was not measured.
        accuracies: The difference in accuracy of every generation that is not the first.
        late: The difference on new classes; None where there are none.
        missing: What the table has, and the labels that there are cannot compare.
    """

    method: str
    role: Role
    reference: str
    cost: float
    accuracies: Mapping[int, PairedDifference]
    late: PairedDifference | None = None
    missing: tuple[str, ...] = ()

    @property
    def shortfall(self) -> str:
        """What is clearly below the reference; empty where nothing is."""
        reasons = [
            f"generation {number} {_below(one)} below {self.reference}'s"
            for number, one in self.accuracies.items()
            if one.clearly_below
        ]
        if self.late is not None and self.late.clearly_below:
            reasons.append(f"new classes {_below(self.late)} below {self.reference}'s")
        return "; ".join(reasons)

    @property
    def unsure(self) -> str:
        """What may lie far below the reference, and is not clearly below it; empty for nothing."""
        each = {f"generation {number}": one for number, one in self.accuracies.items()}
        if self.late is not None:
            each["new classes"] = self.late
        reasons = [
            f"{what} minus {self.reference}'s is {_apart(one)}"
            for what, one in each.items()
            if _may_be_far_below(one)
        ]
        if self.missing:
            what = " and ".join(self.missing)
            reasons.append(f"{what} could not be compared with {self.reference}'s")
        return "; ".join(reasons)

    @property
    def detectable(self) -> float:
        """The smallest difference in accuracy that every later generation would have shown."""
        return max((one.detectable for one in self.accuracies.values()), default=1.0)

    @property
    def compared(self) -> tuple[PairedDifference, ...]:
        """All differences."""
        return (*self.accuracies.values(), *(() if self.late is None else (self.late,)))


def _may_be_far_below(one: PairedDifference) -> bool:
    return one.low < -LARGE_LOSS and not one.clearly_below


def _apart(one: PairedDifference) -> str:
    return f"{100 * one.value:+.1f} points ({100 * one.low:+.1f} to {100 * one.high:+.1f})"


def _below(one: PairedDifference) -> str:
    return f"{-100 * one.value:.1f} points ({-100 * one.high:.1f} to {-100 * one.low:.1f})"


def fair_references(
    rows: Sequence[Row],
    methods: Sequence[Method],
    *,
    combination: str = "average",
    by_time: bool = False,
) -> dict[str, dict[Role, str]]:
    """Which references each method of a study is held against.

    The strongest fresh method has the highest mean accuracy over later generations among those
    whose generations cost no more in all; a method that costs less than every fresh one is held
    against the cheapest. The strongest is chosen on the inputs that are reported: that favours the
    reference.

    Args:
        rows: The study's table.
        methods: The methods of the study's plan: they tell which start from scratch each time.
        combination: How members are combined.
        by_time: Whether the study's data grows by time. Its table has what is deployed before and
            after each retrain, so that the first generation kept is a method of its own there.
    """
    table = {(row.method, row.metric): row for row in rows if row.combination == combination}
    starting = [one.name for one in methods if starts_fresh(one)]
    fresh = [name for name in starting if (name, "accuracy_2") in table]
    kept = _kept_firsts(table, methods) if by_time else None
    found: dict[str, dict[Role, str]] = {}
    for name in dict.fromkeys(method for method, _ in table):
        if (name, "accuracy_2") not in table or (name, "accuracy") not in table:
            continue
        roles: dict[Role, str] = {}
        if FRESH in starting and name != FRESH:  # and open, where it could not be measured
            roles["fresh"] = FRESH
        others = [other for other in fresh if other != name]
        most = total_cost(table, name)
        if name not in fresh and others:  # what is cheaper than all is held against the cheapest
            most = max(most, min(total_cost(table, other) for other in others))
        affordable = [other for other in others if total_cost(table, other) <= most + 1e-9]
        if affordable:
            roles["strongest"] = max(affordable, key=lambda other: _later(table, other))
        if not name.startswith(NEVER_RETRAIN):
            first = f"{NEVER_RETRAIN}-{name}" if kept is None else kept.get(name)
            if first is not None:
                roles["first"] = first
        found[name] = roles
    return found


def _kept_firsts(table: Mapping[tuple[str, str], Row], methods: Sequence[Method]) -> dict[str, str]:
    """The never retrained method of the table that begins as each method does."""
    known = {method for method, _ in table if method.startswith(NEVER_RETRAIN)}
    begins = {name: one for name in known for one in methods if one.name == retrained(name, ())}
    return {
        one.name: name
        for name, own in begins.items()
        for one in methods
        if (one.plan_of(1), one.recipe_of(1)) == (own.plan_of(1), own.recipe_of(1))
    }


def starts_fresh(method: Method) -> bool:
    """Whether every generation of a method is trained from scratch, whatever is deployed."""
    retraining = method.retraining
    alone = retraining is None or not (retraining.warm_start or retraining.distill_weight)
    return method.rolling is None and alone and not method.stabilized


def total_cost(table: Mapping[tuple[str, str], Row], method: str) -> float:
    """What all generations cost together (κ), the first included."""
    mean = table[method, "accuracy"].cost
    return mean * sum(1 for _ in _each(table, method))


def _later(table: Mapping[tuple[str, str], Row], method: str) -> float:
    return float(np.mean([row.value for row in list(_each(table, method))[1:]]))


def _each(table: Mapping[tuple[str, str], Row], method: str) -> Iterator[Row]:
    generation = 1
    while (method, f"accuracy_{generation}") in table:
        yield table[method, f"accuracy_{generation}"]
        generation += 1


def held_against(
    rows: Sequence[Row],
    methods: Sequence[Method],
    labels: MethodLabels,
    *,
    combination: str = "average",
    by_time: bool = False,
) -> dict[str, tuple[HeldAgainst, ...]]:
    """Every method of a study minus each of its references, in every later generation.

    Args:
        rows: The study's table.
        methods: The methods of the study's plan.
        labels: The labels of all methods.
        combination: How members are combined.
        by_time: Whether the study's data grows by time.
    """
    table = {(row.method, row.metric): row for row in rows if row.combination == combination}

    @cache
    def difference(name: str, other: str, metric: str) -> PairedDifference | None:
        return labels.difference(name, other, metric)

    found: dict[str, tuple[HeldAgainst, ...]] = {}
    references = fair_references(rows, methods, combination=combination, by_time=by_time)
    for name, roles in references.items():
        held = []
        for role, reference in roles.items():
            numbers = range(2, labels.generations + 1)
            each = {number: difference(name, reference, f"accuracy_{number}") for number in numbers}
            late = difference(name, reference, "late_accuracy")
            missing = [f"generation {number}" for number, one in each.items() if one is None]
            if late is None and (name, "late_accuracy") in table:
                missing.append("new classes")
            held.append(
                HeldAgainst(
                    method=name,
                    role=role,
                    reference=reference,
                    cost=_cost(table, name if role == "first" else reference, role),
                    accuracies={n: one for n, one in each.items() if one is not None},
                    late=late,
                    missing=tuple(missing),
                )
            )
        found[name] = tuple(held)
    return found


def _cost(table: Mapping[tuple[str, str], Row], method: str, role: Role) -> float:
    """What a reference cost in all; of a first generation that is kept, that alone is paid for."""
    if (method, "accuracy") not in table:
        return math.nan
    cost = total_cost(table, method)
    if role == "first":
        cost -= (sum(1 for _ in _each(table, method)) - 1) * _retrain_cost(table, method)
    return cost


def held_in(
    folder: Path,
    rows: Sequence[Row],
    methods: Sequence[Method],
    *,
    combination: str = "average",
    by_time: bool = False,
) -> dict[str, tuple[HeldAgainst, ...]]:
    """Every method of a study minus its references, from the labels in a folder.

    Args:
        folder: A run folder, or published results. Without labels, nothing can be held.
        rows: The study's table.
        methods: The methods of the study's plan.
        combination: How members are combined.
        by_time: Whether the study's data grows by time.

    Raises:
        FileError: The labels are damaged.
    """
    labels = MethodLabels.read(folder, combination=combination)
    if labels is None:
        return {}
    return held_against(rows, methods, labels, combination=combination, by_time=by_time)


def _retrain_cost(table: Mapping[tuple[str, str], Row], method: str) -> float:
    row = table.get((method, "retrain_cost"))
    return table[method, "accuracy"].cost if row is None else row.value
