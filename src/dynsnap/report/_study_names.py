"""What the tables of a study call things, in the terminal and on the page."""

from collections.abc import Iterable, Mapping, Sequence

from dynsnap.report._blocks import counted
from dynsnap.study import Row

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


def pairs_of(metrics: Iterable[str]) -> list[str]:
    """The pairs of generations that losses are told of, each as it stands behind a metric."""
    known = (name.removeprefix("lost_") for name in metrics if name.startswith("lost_"))
    return list(dict.fromkeys(known))
