"""What a study calls its methods, combinations, rounds and sweeps."""

from collections.abc import Iterable, Mapping, Sequence

from dynsnap.ensemble import METHODS, Recipe
from dynsnap.report.words import counted
from dynsnap.study import FRESH, Row, StudyPlan, Sweep

HEADLINE = {"accuracy": "ACC", "consistency": "CON", "correct_consistency": "ACC-CON"}
NEW = {"late_accuracy": "new classes"}
OF_NEW = "Accuracy of the last generation on classes that arrive in a later generation."
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


def said_replicates(usual: int, own: Mapping[str, int]) -> str:
    """How often methods are repeated, with those that are repeated more or less often.

    Args:
        usual: How often a method is.
        own: By the name of a method, how often it is.

    Example:
        >>> said_replicates(1, {"singlebase": 3, "snapshot": 1})
        '1 replicate (3 of singlebase)'
    """
    others = [f"{often} of {name}" for name, often in own.items() if often != usual]
    said = counted(usual, "replicate")
    return f"{said} ({', '.join(others)})" if others else said


def said_windows(plan: StudyPlan | None) -> dict[str, str]:
    """What the points of a sweep have in common, where their windows are not DynSnap-cyc's own.

    Args:
        plan: The study; of none nothing is said.

    Returns:
        By the name of a sweep, what follows it after a comma.

    Example:
        >>> said_windows(None)
        {}
    """
    said = {sweep.name: _in_common(sweep, plan) for sweep in plan.sweeps} if plan else {}
    return {name: f", {words}" for name, words in said.items() if words}


def _in_common(sweep: Sweep, plan: StudyPlan) -> str:
    recipes = {method.recipe for _, method in sweep.points}
    if recipes == {_usual(plan)} or any(recipe.selection != "window" for recipe in recipes):
        return ""
    lengths, numbers = {one.window for one in recipes}, {one.snapshots for one in recipes}
    if len(lengths) == 1:
        return f"windows of {counted(lengths.pop(), 'epoch')}"
    return f"{counted(numbers.pop(), 'window')} a round" if len(numbers) == 1 else ""


def rounds_of(plan: StudyPlan | None) -> dict[str, str]:
    """How DynSnap-cyc and the methods of a study's own are trained, where not all are alike.

    Args:
        plan: The study; of none nothing is said.

    Returns:
        By the name of a method the epochs of one of its rounds, in few words. Whole trainings, of
        which single learners and bagging are made, are left out.

    Example:
        >>> rounds_of(None)
        {}
    """
    return {name: _few_words(recipe) for name, recipe in _trained(plan).items()}


def said_rounds(plan: StudyPlan | None) -> str:
    """The same as a sentence; empty where all rounds are alike.

    Example:
        >>> said_rounds(None)
        ''
    """
    rounds = {name: _in_full(recipe) for name, recipe in _trained(plan).items()}
    usual = rounds.get(FRESH)
    others: dict[str, list[str]] = {}
    for name, said in rounds.items():
        if said != usual:
            others.setdefault(said, []).append(name)
    if not others:
        return ""
    listed = "; ".join(f"{', '.join(names)}: {said}" for said, names in others.items())
    return f"A round of {FRESH} has {usual}. Others: {listed}."


def _trained(plan: StudyPlan | None) -> dict[str, Recipe]:
    usual = _usual(plan)
    if plan is None or usual is None:
        return {}
    own = {
        method.name: method.recipe
        for method in plan.methods
        if method.name not in METHODS and not _whole(method.recipe, plan)
    }
    return {FRESH: usual, **own} if any(recipe != usual for recipe in own.values()) else {}


def _whole(recipe: Recipe, plan: StudyPlan) -> bool:
    """Whether a round is a training from scratch as a single learner has it."""
    return recipe.schedule.kind == "step" and recipe.epochs == plan.epochs


def _usual(plan: StudyPlan | None) -> Recipe | None:
    """How DynSnap-cyc's rounds are trained, where the study has it."""
    methods = plan.methods if plan is not None else ()
    return next((method.recipe for method in methods if method.name == FRESH), None)


def _in_full(recipe: Recipe) -> str:
    if recipe.selection == "window":
        return f"{counted(recipe.snapshots, 'window')} of {counted(recipe.window, 'epoch')}"
    best = f"the best {recipe.snapshots} of {counted(recipe.epochs, 'epoch')}"
    return f"{best}, {recipe.schedule.kind} rate"


def _few_words(recipe: Recipe) -> str:
    if recipe.selection == "window":
        return f"{recipe.snapshots} × {recipe.window}"
    return f"{recipe.snapshots} best of {recipe.epochs}"


def pairs_of(metrics: Iterable[str]) -> list[str]:
    """The pairs of generations whose losses are shown, each as it stands behind a metric."""
    known = (name.removeprefix("lost_") for name in metrics if name.startswith("lost_"))
    return list(dict.fromkeys(known))
