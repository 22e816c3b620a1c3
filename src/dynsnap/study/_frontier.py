"""Accuracy, consistency and cost of every method, and which methods qualify.

Consistency alone rewards doing nothing: a model that is never retrained never changes a label.
So a method is held against fair references, and qualifies only if no later generation and no new
class is clearly below one of them: a statement about an interval, not about a point.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dynsnap.ensemble import Method
from dynsnap.study._fair import HeldAgainst
from dynsnap.study._labels import OF_ONE
from dynsnap.study._plan import NOISE_FLOOR, StudyPlan
from dynsnap.study._table import Row

Qualification: TypeAlias = Literal["yes", "open", "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSummary:
    """Accuracy, consistency and cost of a method; fractions, None where a table lacks them.

    Attributes:
        accuracies: Of each generation on its own.
        retrain: The cost (κ) of a generation that is not the first.
        late: Accuracy of the last generation on classes that are new in a later generation.
        shortfall: Why it does not qualify; empty where it does, or was not judged.
        unsure: What may be far below a reference, as the data cannot tell; empty for nothing.
        judged: Whether it was held against a fresh method, and is not the fresh DynSnap-cyc that
            others are held against.
        held: The method minus each of its references, where labels are known.
        networks: Inference cost: networks that are evaluated for each input (passes, for
            MCDropout); None where it is not known before training, or the plan is not known.
        needs: What its labels depend on beside these networks: "stored labels" or "stored scores"
            of the generation before. Inputs without them get plain labels. Empty for nothing.
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
    unsure: str = ""
    judged: bool = False
    held: tuple[HeldAgainst, ...] = ()
    networks: int | None = None
    needs: str = ""

    @property
    def total_cost(self) -> float:
        """Trainings from scratch of all generations, the first included."""
        return max(1, len(self.accuracies)) * self.accuracy.cost

    @property
    def cost(self) -> float:
        """Trainings from scratch that a retrain takes; of older tables, that a generation takes."""
        return self.accuracy.cost if self.retrain is None else self.retrain.value

    @property
    def verdict(self) -> Qualification | None:
        """Whether it qualifies: "open" where nothing is clearly below, and may be by far.

        None where it was not judged.
        """
        if not self.judged:
            return None
        if self.shortfall:
            return "no"
        return "open" if self.unsure else "yes"

    @property
    def replicates(self) -> int:
        """Of how many replicates the verdict is: with one, another seed may decide.

        What is clearly below decides alone, so that its most count; the fewest of all otherwise.
        """
        compared = [gap for one in self.held for gap in one.compared]
        if self.shortfall:
            return max(gap.replicates for gap in compared if gap.clearly_below)
        return min((gap.replicates for gap in compared), default=0)

    @property
    def qualifies(self) -> bool:
        """Whether it has no shortfall, and could hardly have a large one unseen."""
        return self.verdict == "yes"


def frontier(
    rows: Sequence[Row],
    *,
    combination: str = "average",
    held: Mapping[str, Sequence[HeldAgainst]] | None = None,
    plan: StudyPlan | None = None,
) -> tuple[MethodSummary, ...]:
    """Every method of a study's table, with its verdict where it was held against references.

    A method does not qualify where a later generation, or its accuracy on new classes, is clearly
    below a reference: the interval of the paired difference, over inputs and replicates, ends
    below 0. Where none is, and an interval includes a loss of more than `LARGE_LOSS`, or the labels
    cannot compare what the table has, that is open.

    Args:
        rows: The table.
        combination: How members are combined.
        held: What `held_against` returned. Without it, no method is judged.
        plan: The study, which tells what serving each method takes.

    Example:
        >>> def of(method, **values):
        ...     return [Row(method=method, combination="average", metric=name, value=value, cost=1)
        ...             for name, value in values.items()]
        >>> rows = [*of("dynsnap-cyc", accuracy=0.9, consistency=0.92),
        ...         *of("never-retrain", accuracy=0.9, consistency=1.0)]
        >>> [(one.method, one.judged) for one in frontier(rows)]
        [('dynsnap-cyc', False), ('never-retrain', False)]
    """
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.combination == combination:
            found.setdefault(row.method, {})[row.metric] = row
    served = {} if plan is None else _serving(plan)
    known = {method: tuple(each) for method, each in (held or {}).items()}
    fresh = {one.reference for each in known.values() for one in each if one.role == "fresh"}
    return tuple(
        _summary(
            method,
            values,
            known.get(method, ()),
            served.get(method, (None, "")),
            judged=method not in fresh
            and any(one.role != "first" for one in known.get(method, ())),
        )
        for method, values in found.items()
        if "accuracy" in values and "consistency" in values
    )


def _serving(plan: StudyPlan) -> dict[str, tuple[int | None, str]]:
    """The networks that each method evaluates for an input, and the answers that it needs."""
    found = {one.name: _served(one) for one in plan.methods}
    for name, one in {NOISE_FLOOR: plan.baseline, **plan.never_retrained}.items():
        found[name] = (_served(one)[0], "")
    return found


def _served(method: Method) -> tuple[int | None, str]:
    size = method.plan.size
    needed = "stored scores" if method.cost_ratio else "stored labels" if method.margin else ""
    return None if size == "auto" else size, needed


def _summary(
    method: str,
    values: Mapping[str, Row],
    held: tuple[HeldAgainst, ...],
    served: tuple[int | None, str],
    *,
    judged: bool,
) -> MethodSummary:
    # The strongest fresh method is often DynSnap-cyc itself: that is one reason, not two.
    reasons = dict.fromkeys(one.shortfall for one in held if one.shortfall) if judged else ()
    doubts = dict.fromkeys(one.unsure for one in held if one.unsure) if judged else ()
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
        shortfall="; ".join(reasons),
        unsure="; ".join(doubts),
        held=held,
        networks=served[0],
        needs=served[1],
    )


def _each(values: Mapping[str, Row]) -> tuple[Row, ...]:
    known = [(int(match[1]), name) for name in values if (match := OF_ONE.fullmatch(name))]
    return tuple(values[name] for _, name in sorted(known))
