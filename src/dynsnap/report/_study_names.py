"""What the tables of a study call things, in the terminal and on the page."""

from collections.abc import Iterable, Mapping, Sequence

from dynsnap.ensemble import METHODS, Recipe
from dynsnap.report._blocks import counted
from dynsnap.study import FRESH, Row, StudyPlan

HEADLINE = {"accuracy": "ACC", "consistency": "CON", "correct_consistency": "ACC-CON"}
MOVES = {"gained": "gained", "lost": "lost", "composite": "Com"}  # the paper's Table 5
_SHORT = {
    "majority": "MV",
    "weighted_majority": "WMV",
    "average": "AVG",
    "weighted_average": "WAVG",
}


def abbreviated(combination: str) -> str:
    """A combination as the paper abbreviates it."""
    return _SHORT.get(combination, combination)


def preferred(rows: Sequence[Row]) -> str:
    """The combination that pictures show: the average, where there is one."""
    known = list(dict.fromkeys(row.combination for row in rows))
    return "average" if "average" in known else known[0]


def kappa(cost: float) -> str:
    """A cost in trainings from scratch, as people read it: of a part of one no digit is lost."""
    return f"{cost:.1f}" if cost >= 0.3 or cost == 0 else f"{cost:.3g}"


def said_replicates(usual: int, own: Mapping[str, int]) -> str:
    """How often methods are repeated, with those that are repeated more or less often.

    Args:
        usual: How often a method is.
        own: By the name of a method, how often it is.
    """
    others = [f"{often} of {name}" for name, often in own.items() if often != usual]
    said = counted(usual, "replicate")
    return f"{said} ({', '.join(others)})" if others else said


def said_windows(plan: StudyPlan | None) -> dict[str, str]:
    """By the name of a sweep, what the windows of all its points have in common, after a comma."""
    known = {sweep.name: sweep.windows for sweep in plan.sweeps} if plan is not None else {}
    return {name: f", {windows}" for name, windows in known.items() if windows}


def said_rounds(plan: StudyPlan | None) -> str:
    """Which methods of a study's own train other rounds than DynSnap-cyc; empty where none does."""
    usual = next((one for one in plan.methods if one.name == FRESH), None) if plan else None
    if plan is None or usual is None:
        return ""
    others = [
        f"{one.name}, {_round(one.recipe)}"
        for one in plan.methods
        if one.name not in METHODS and one.recipe != usual.recipe
    ]
    if not others:
        return ""
    return f"A round of {FRESH} has {_round(usual.recipe)}. Others: {'; '.join(others)}."


def _round(recipe: Recipe) -> str:
    if recipe.selection == "window":
        return f"{counted(recipe.snapshots, 'window')} of {counted(recipe.window, 'epoch')}"
    best = f"the best {recipe.snapshots} of {counted(recipe.epochs, 'epoch')}"
    return f"{best} at a {recipe.schedule.kind} rate"


def pairs_of(metrics: Iterable[str]) -> list[str]:
    """The pairs of generations that losses are told of, each as it stands behind a metric."""
    known = (name.removeprefix("lost_") for name in metrics if name.startswith("lost_"))
    return list(dict.fromkeys(known))
