"""Methods held against fair references, input by input and replicate by replicate.

A way of retraining is worth what it adds to three others: a fresh DynSnap-cyc; the strongest fresh
method that costs no more in all, first generation included; and never retraining the method's own
first generation. Every difference is paired, with an interval over inputs and replicates.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from dynsnap.comparison import PairedDifference
from dynsnap.ensemble import Method, cost, wanted
from dynsnap.study._labels import OF_ONE, MethodLabels
from dynsnap.study._plan import StudyPlan, kept_as, kept_by
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
            f"generation {number} is {_below(one)} below {self.reference}'s"
            for number, one in self.accuracies.items()
            if one.clearly_below
        ]
        if self.late is not None and self.late.clearly_below:
            reasons.append(f"new classes are {_below(self.late)} below {self.reference}'s")
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
    near = -100 * one.high
    places = 1 if round(near, 1) else 2  # what is clear does not reach 0
    return f"{-100 * one.value:.1f} points ({near:.{places}f} to {-100 * one.low:.1f})"


def _least_cost(method: Method, epochs: int) -> float:
    """Trainings from scratch (κ) that a generation takes at least, the first or a later one."""
    return min(
        cost(method.recipe_of(n), rounds=wanted(method.plan_of(n), []), epochs=epochs)
        for n in (1, 2)
    )


class _Table:
    """The rows of a study's table that verdicts are drawn from.

    Args:
        rows: All rows.
        plan: The study.
        combination: How members are combined.
    """

    def __init__(self, rows: Sequence[Row], plan: StudyPlan, combination: str) -> None:
        by: dict[str, dict[str, Row]] = {}
        for row in rows:
            if row.combination == combination:
                by.setdefault(row.method, {})[row.metric] = row
        each = {
            int(match[1]) for of in by.values() for one in of if (match := OF_ONE.fullmatch(one))
        }
        self.generations = max(each, default=0)
        needed = {"accuracy", *(f"accuracy_{number}" for number in range(1, self.generations + 1))}
        self.methods = {
            name: of for name, of in by.items() if self.generations > 1 and needed <= set(of)
        }
        # What a fresh method takes in each generation: measured, or by its plan at least.
        self.fresh = {
            one.name: self.cost(one.name)
            if one.name in self.methods
            else _least_cost(one, plan.epochs)
            for one in plan.methods
            if starts_fresh(one)
        }

    def cost(self, method: str) -> float:
        """Trainings from scratch (κ) of a generation, over all generations."""
        return self.methods[method]["accuracy"].cost

    def affordable(self, method: str) -> list[str]:
        """The other fresh methods that cost no more in all, or no more than the cheapest."""
        most = max(self.cost(method), min(self.fresh.values(), default=0.0)) + 1e-9
        return [name for name, cost in self.fresh.items() if cost <= most and name != method]

    def strength(self, method: str) -> tuple[float, float, str]:
        """What the strongest method has most of: accuracy in later generations, then cheapness."""
        numbers = range(2, self.generations + 1)
        each = [self.methods[method][f"accuracy_{n}"].value for n in numbers]
        return float(np.mean(each)), -self.cost(method), method


def fair_references(
    rows: Sequence[Row], plan: StudyPlan, *, combination: str = "average"
) -> dict[str, dict[Role, str]]:
    """Which references each method of a study is held against.

    The strongest fresh method is the one with the highest mean accuracy over the later generations
    among those that cost no more in all, first generation included. What costs less than each of
    them is held against the cheapest: a model that is never retrained has to be worth a single
    network. It is chosen by its point estimate, and the methods it is drawn from are few.

    Args:
        rows: The study's table.
        plan: The study, which tells which methods start from scratch each time.
        combination: How members are combined.
    """
    return _references(_Table(rows, plan, combination), plan)


def _references(table: _Table, plan: StudyPlan) -> dict[str, dict[Role, str]]:
    first = _kept_firsts(table, plan)
    found: dict[str, dict[Role, str]] = {}
    for name in table.methods:
        roles: dict[Role, str] = {}
        if FRESH in table.fresh and name != FRESH:  # and open, where it could not be measured
            roles["fresh"] = FRESH
        affordable = [one for one in table.affordable(name) if one in table.methods]
        if affordable:
            roles["strongest"] = max(affordable, key=table.strength)
        if name in first:
            roles["first"] = first[name]
        found[name] = roles
    return found


def _kept_firsts(table: _Table, plan: StudyPlan) -> dict[str, str]:
    """What each method is called if its first generation is kept.

    By time that has to be a method of the table: what is called generation 1 there was deployed
    before each retrain.
    """
    retrained = [name for name in table.methods if kept_by(name) is None]
    if not plan.data.by_time:
        return {name: kept_as(name) for name in retrained}
    return {
        one.name: name
        for name, own in plan.never_retrained.items()
        if name in table.methods
        for one in plan.methods
        if (one.plan_of(1), one.recipe_of(1)) == (own.plan_of(1), own.recipe_of(1))
        and one.name in retrained
    }


def starts_fresh(method: Method) -> bool:
    """Whether every generation of a method is trained from scratch, whatever is deployed."""
    retraining = method.retraining
    alone = retraining is None or not (retraining.warm_start or retraining.distill_weight)
    return method.rolling is None and alone and not method.stabilized


def held_against(
    rows: Sequence[Row], plan: StudyPlan, labels: MethodLabels, *, combination: str = "average"
) -> dict[str, tuple[HeldAgainst, ...]]:
    """Every method of a study minus each of its references, in every later generation.

    A fresh method of the plan that was not measured may have been the strongest: where it may cost
    no more, it is among the references, and nothing of it could be compared.

    Args:
        rows: The study's table.
        plan: The study.
        labels: The labels of all methods.
        combination: How members are combined.
    """
    return _held(_Table(rows, plan, combination), plan, labels)


def _held(
    table: _Table, plan: StudyPlan, labels: MethodLabels
) -> dict[str, tuple[HeldAgainst, ...]]:
    later = range(2, max(table.generations, labels.generations) + 1)
    new = labels.late is not None or any("late_accuracy" in of for of in table.methods.values())

    @cache
    def difference(name: str, other: str, metric: str) -> PairedDifference | None:
        return labels.difference(name, other, metric)

    def held(name: str, role: Role, reference: str) -> HeldAgainst:
        each = {n: difference(name, reference, f"accuracy_{n}") for n in later}
        late = difference(name, reference, "late_accuracy")
        missing = [_generations([n for n, one in each.items() if one is None])]
        if late is None and new:
            missing.append("new classes")
        return HeldAgainst(
            method=name,
            role=role,
            reference=reference,
            cost=_whole_cost(table, plan, name, role, reference),
            accuracies={n: one for n, one in each.items() if one is not None},
            late=late,
            missing=tuple(filter(None, missing)),
        )

    found: dict[str, tuple[HeldAgainst, ...]] = {}
    for name, roles in _references(table, plan).items():
        known = [held(name, role, reference) for role, reference in roles.items()]
        unknown = (one for one in table.affordable(name) if one not in table.methods)
        known += [held(name, "strongest", one) for one in unknown if one != roles.get("fresh")]
        found[name] = tuple(known)
    return found


def _generations(numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    *most, last = map(str, numbers)
    return f"generations {', '.join(most)} and {last}" if most else f"generation {last}"


def _whole_cost(table: _Table, plan: StudyPlan, method: str, role: Role, reference: str) -> float:
    """What a reference cost in all; of a first generation that is kept, that alone is paid for."""
    if role == "first" and not plan.data.by_time:
        of = table.methods[method]
        retrain = of["retrain_cost"].value if "retrain_cost" in of else table.cost(method)
        return table.generations * table.cost(method) - (table.generations - 1) * retrain
    if reference not in table.methods:
        return math.nan
    return table.generations * table.cost(reference)


def held_in(
    folder: Path, rows: Sequence[Row], plan: StudyPlan, *, combination: str = "average"
) -> dict[str, tuple[HeldAgainst, ...]]:
    """Every method of a study minus its references, from the labels in a folder.

    Args:
        folder: A run folder, or published results. Without labels, nothing can be held.
        rows: The study's table.
        plan: The study.
        combination: How members are combined.

    Raises:
        FileError: The labels are damaged.
    """
    table = _Table(rows, plan, combination)
    labels = MethodLabels.read(
        folder,
        combination=combination,
        generations=table.generations,
        by_time=plan.data.by_time,
        baseline=plan.baseline.name,
    )
    return {} if labels is None else _held(table, plan, labels)
