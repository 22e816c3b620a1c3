"""A published study with everything that fair tables need: labels, costs, references, intervals.

`results/beyond.py` and `results/evidence.py` write their tables from this. Values are means over
inputs and replicates of the published labels, so that a reader can recompute each with numpy.
"""

import statistics
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from _seeds import labels_of, rows_of
from _students import Learner, learners_of
from dynsnap.comparison import PairedDifference
from dynsnap.report import kappa
from dynsnap.study import (
    LARGE_LOSS,
    HeldAgainst,
    MethodSummary,
    Role,
    Row,
    StudyPlan,
    frontier,
    held_against,
    kept_by,
    read_study,
    starts_fresh,
)

RESULTS = Path(__file__).parent
ROLES: dict[Role, str] = {
    "fresh": "fresh DynSnap-cyc",
    "strongest": "strongest fresh at no higher total cost",
    "first": "own first generation, kept",
}
HEADS = {
    "late_accuracy": "new class",
    "gained": "gained",
    "lost": "lost",
    "consistency": "CON",
    "correct_consistency": "ACC-CON",
}


BELOW, OPEN, FINE = "clearly below", "open", "not clearly below"


class Measured:
    """One study of the results, further seeds included.

    Args:
        folder: Its folder: a table, a study file, and labels.
    """

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.folder = folder
        self.rows = rows_of(folder)
        self.plan: StudyPlan = read_study(folder / "study.toml", stored=True)
        self.labels = labels_of(folder)

    @cached_property
    def held(self) -> dict[str, tuple[HeldAgainst, ...]]:
        """Every method minus its references."""
        return held_against(self.rows, self.plan, self.labels)

    @cached_property
    def methods(self) -> dict[str, MethodSummary]:
        """Every method with its verdict."""
        return {one.method: one for one in frontier(self.rows, held=self.held, plan=self.plan)}

    @cached_property
    def students(self) -> dict[str, Learner]:
        """Distilled networks and their controls, as `dynsnap distill --json` wrote them."""
        return {
            name: one for name, one in learners_of(self.folder).items() if name not in self.methods
        }

    def against(self, method: str, role: Role) -> HeldAgainst | None:
        """A method minus one of its references."""
        return next((one for one in self.held.get(method, ()) if one.role == role), None)

    def value(self, method: str, metric: str) -> float | None:
        """A metric in percent: the mean over inputs, then over replicates."""
        means = self.each(method, metric)
        return statistics.mean(means) if means else None

    def each(self, method: str, metric: str) -> list[float]:
        """A metric in percent, by replicate."""
        if metric == "late_accuracy" and self.labels.late is None:
            return []
        return [100 * float(one.mean()) for one in self.labels.values(method, metric).values()]

    def cell(self, method: str, metric: str, places: int = 1) -> str:
        """A metric with its standard deviation over replicates."""
        means = self.each(method, metric)
        if not means:
            return ""
        spread = statistics.stdev(means) if len(means) > 1 else None
        return with_spread(statistics.mean(means), spread, places)

    def networks(self, method: str) -> str:
        """How many networks one prediction takes: the members of the last generation."""
        name = kept_by(method) or method
        if name in self.students:
            return str(self.students[name].networks)
        plan = next((one.plan for one in self.plan.methods if one.name == name), None)
        if plan is None:
            return ""
        if plan.size == "auto":
            rows = [r for r in self.rows if r.method == name and r.metric.startswith("members_")]
            return f"{rows[-1].value:.3g}" if rows else ""
        return str(plan.size)

    def costs(self, method: str) -> tuple[float, float, float]:
        """κ of the first generation, of a retrain, and of all generations."""
        if method in self.students:
            return self._costs_of_student(self.students[method])
        one = self.methods[method]
        total = one.total_cost
        return total - (len(one.accuracies) - 1) * one.cost, one.cost, total

    def _costs_of_student(self, one: Learner) -> tuple[float, float, float]:
        """A student takes its teacher's trainings and as many of its own in every generation."""
        total = one.cost * self.labels.generations
        if one.teacher is None:  # it learns from labels alone
            return one.cost, one.cost, total
        first, retrain, taught = self.costs(one.teacher)
        own = one.cost - taught / self.labels.generations
        return first + own, retrain + own, total


def has_labels(study: str, results: Path | None = None) -> bool:
    """Whether a study was run and its labels are published."""
    folder = (results or RESULTS) / study
    return (folder / "table.csv").is_file() and (folder / "labels.parquet").is_file()


def points(one: PairedDifference | None, places: int = 1) -> str:
    """A difference in points, with its interval, and what that covers if not seeds too."""
    if one is None:
        return ""
    value, low, high = (f"{100 * each:+.{places}f}" for each in (one.value, one.low, one.high))
    return f"{value} ({low} to {high}{', inputs alone' if one.replicates == 1 else ''})"


def harm(found: Iterable[PairedDifference]) -> str:
    """Whether a method does harm, by its differences to what it is held against."""
    found = list(found)
    if any(one.clearly_below for one in found):
        return BELOW
    return OPEN if any(one.low < -LARGE_LOSS for one in found) else FINE


def percent(row: Row | None, *, spread: bool = True, places: int = 1) -> str:
    """A row of a table in percent, with its standard deviation over replicates."""
    if row is None:
        return ""
    around = 100 * row.spread if spread and row.spread is not None else None
    return with_spread(100 * row.value, around, places)


def with_spread(value: float, spread: float | None, places: int = 1) -> str:
    """A value, and its standard deviation over replicates where there are several."""
    around = "" if spread is None else f" ± {spread:.{places}f}"
    return f"{value:.{places}f}{around}"


def line(cells: Iterable[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


def values_table(of: Measured, methods: Iterable[str]) -> Iterator[str]:
    """Accuracy of every generation, new class, flips per consecutive retrain, consistency, cost."""
    numbers = range(1, of.labels.generations + 1)
    methods = list(methods)
    # What stabilized labels depend on beside the networks, where any method has such.
    needing = any(of.methods[name].needs for name in methods)
    heads = ["method", "networks", *(["needs"] if needing else []), "κ: first", "retrain", "all"]
    heads += [f"ACC {number}" for number in numbers]
    heads += [*HEADS.values(), "qualifies"]
    yield line(heads)
    yield "|---" * len(heads) + "|"
    for name in methods:
        one = of.methods[name]
        needs = [one.needs] if needing else []
        costs = [kappa(cost) for cost in of.costs(name)]
        if name == "noise-floor":  # measured with a twin, whose labels are not of a generation
            rows = (None, one.gained, one.lost, one.consistency, one.correct_consistency)
            shown = [""] * len(numbers) + [percent(row) for row in rows]
            yield line([name, "1", *needs, "", "", "", *shown, ""])
            continue
        cells = [of.cell(name, f"accuracy_{number}") for number in numbers]
        cells += [of.cell(name, metric) for metric in HEADS]
        yield line([name, of.networks(name), *needs, *costs, *cells, verdict(of, name)])


def verdict(of: Measured, method: str) -> str:
    """Whether a method qualifies, and if not, or if that is open, because of what."""
    one = of.methods[method]
    if not one.judged:
        return "(reference)"
    if one.qualifies:
        return "yes"
    reasons = (_reason(each, BELOW if one.shortfall else OPEN) for each in of.held[method])
    return f"{one.verdict}: {'; '.join(dict.fromkeys(filter(None, reasons)))}"


def _reason(one: HeldAgainst, found: str) -> str:
    """What does so much harm, held against one reference; empty where nothing does."""
    numbers = [str(number) for number, gap in one.accuracies.items() if harm([gap]) == found]
    places = [f"generation {numbers[0]}"] if len(numbers) == 1 else []
    if len(numbers) > 1:
        places = [f"generations {', '.join(numbers[:-1])} and {numbers[-1]}"]
    if one.late is not None and harm([one.late]) == found:
        places.append("new class")
    if not places:
        return ""
    return f"{' and '.join(places)} {'below' if found == BELOW else 'against'} {one.reference}"


def differences_table(of: Measured, methods: Iterable[str]) -> Iterator[str]:
    """Every method minus each reference, in points, with intervals."""
    later = range(2, of.labels.generations + 1)
    heads = ["method", "minus", "κ of all generations", *(f"generation {n}" for n in later)]
    heads += ["new class", "detectable: ACC, new class"]
    yield line(heads)
    yield "|---" * len(heads) + "|"
    for name in methods:
        seen: set[str] = set()
        for role in ROLES:
            one = of.against(name, role)
            if one is None or one.reference in seen or kept_by(name):
                continue
            seen.add(one.reference)
            roles = [said for other, said in ROLES.items() if _is(of, name, other, one.reference)]
            about = one.reference if one.role != "first" else "itself"
            detectable = [f"{100 * one.detectable:.1f}"]
            detectable += [] if one.late is None else [f"{100 * one.late.detectable:.1f}"]
            yield line(
                [
                    name,
                    f"{about} ({'; '.join(roles)})",
                    f"{kappa(of.costs(name)[2])} and {kappa(one.cost)}",
                    *(points(one.accuracies[number]) for number in later),
                    points(one.late),
                    ", ".join(detectable),
                ]
            )


def control_table(of: Measured, methods: Iterable[str]) -> Iterator[str]:
    """Networks that start from the deployed one, minus the control with equally many epochs."""
    plans = {one.name: one for one in of.plan.methods}
    controls = [n for n, one in plans.items() if one.retraining and one.retraining.cumulative]
    shown = [n for n in methods if n in plans and n not in controls and not starts_fresh(plans[n])]
    if not controls or not shown:
        return
    later = range(2, of.labels.generations + 1)
    heads = ["method", "minus", "κ of all generations", *(f"generation {n}" for n in later)]
    heads += ["new class", "lost", "CON"]
    yield line(heads)
    yield "|---" * len(heads) + "|"
    metrics = [*(f"accuracy_{number}" for number in later), "late_accuracy", "lost", "consistency"]
    for name in shown:
        for control in controls:
            cells = [points(of.labels.difference(name, control, metric)) for metric in metrics]
            costs = [kappa(of.costs(one)[2]) for one in (name, control)]
            yield line([name, f"{control} (control)", " and ".join(costs), *cells])


def _is(of: Measured, method: str, role: Role, reference: str) -> bool:
    found = of.against(method, role)
    return found is not None and found.reference == reference
