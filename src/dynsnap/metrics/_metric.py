"""What a metric is: its words, what it needs, which way is better, what its values can be.

A wrong word here would be a wrong interval or a wrong verdict, so every entry is checked when it
is made. The functions at the end make the usual kinds of entry for the catalogue.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from dynsnap._types import Floats
from dynsnap.errors import PlanError

Direction: TypeAlias = Literal["higher", "lower", "neither"]
Scope: TypeAlias = Literal["generation", "pair", "many"]
Need: TypeAlias = Literal["truth", "scores"]
Interval: TypeAlias = Literal["share", "odds", "bootstrap"]
Group: TypeAlias = Literal["consistency", "classification", "ranking"]
Of: TypeAlias = Literal["inputs", "classes", "class", "each"]
Range: TypeAlias = tuple[float, float]


class Cases(NamedTuple):
    """How much there is in all, and of each case of an input, old to new.

    The values are sums of weights, one for each resample and group. Without truth every input that
    keeps its label counts as `wrong_same`, and every other one as `wrong_other`.
    """

    all: Floats
    kept: Floats
    gained: Floats
    lost: Floats
    wrong_same: Floats
    wrong_other: Floats

    @property
    def never(self) -> Floats:
        """Wrong before and wrong now."""
        return self.wrong_same + self.wrong_other


OfCases: TypeAlias = Callable[[Cases], Floats]

SHARE: Range = (0.0, 1.0)
SIGNED: Range = (-1.0, 1.0)
UNBOUNDED: Range = (0.0, math.inf)
ANY: Range = (-math.inf, math.inf)
# Between two rows of scores that have everything on one class each.
FARTHEST = math.sqrt(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One entry of the catalogue.

    Attributes:
        name: The word in rules, JSON, tables and CSV files.
        symbol: The paper's symbol, or the field's usual one.
        meaning: One sentence for a reader who has not seen the metric before.
        direction: Which way is better; "neither" where it depends.
        scope: Whether it is about one generation, an ordered pair, or all generations at once.
        needs: What the predictions must hold beside labels.
        range: The least and the largest value, for a single input and so for the mean of many.
        interval: How far a value may be off, where all inputs count the same: "share" of the inputs
            in `whole` (exact, by Clopper and Pearson), "odds" of such a share, or "bootstrap".
        of_cases: The value, for a metric of a pair that follows from the cases of the inputs.
        whole: The inputs that it is a share of; all of them where this is None.
        aliases: Other words for it that rules may use.
        tasks: The tasks that have it, where it is not about classes.
        group: What it is measured with: see `GROUPS`.
        of: "inputs" (of any inputs), "classes" (an average over classes, and so not of the inputs
            of one class), "class" (of one class among all inputs, and of nothing else), or "each"
            (an average over classes, and of each class among all inputs).
        change_of: The metric of a generation whose change, new minus old, it is.
    """

    name: str
    symbol: str
    meaning: str
    direction: Direction
    scope: Scope
    needs: frozenset[Need] = frozenset()
    range: Range = SHARE
    interval: Interval = "bootstrap"
    of_cases: OfCases | None = None
    whole: OfCases | None = None
    aliases: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    group: Group = "consistency"
    of: Of = "inputs"
    change_of: str | None = None

    def __post_init__(self) -> None:
        """Raise for what only a type checker would find: a wrong word here is a wrong interval."""
        for field, known in _CHOICES.items():
            if getattr(self, field) not in known:
                words = ", ".join(f'"{word}"' for word in known)
                self._refuse(field, f"one of {words}")
        if not isinstance(self.needs, frozenset | set) or not self.needs <= set(get_args(Need)):
            self._refuse("needs", 'a set such as frozenset({"truth"})')
        if not isinstance(self.aliases, tuple) or not all(map(_is_text, self.aliases)):
            self._refuse("aliases", 'a tuple of names, such as ("nfr",)')
        if not all(map(_is_text, (self.name, self.symbol, self.meaning))):
            raise PlanError(
                f"`name`, `symbol` and `meaning` of a metric must be texts, got {self.name!r}, "
                f"{self.symbol!r} and {self.meaning!r}."
            )
        if not _is_range(self.range):
            self._refuse("range", "two numbers, the lower one first, such as (0.0, 1.0)")
        for field in ("of_cases", "whole"):
            given = getattr(self, field)
            if given is not None and not callable(given):
                self._refuse(field, "a function of the cases")

    def _refuse(self, field: str, wanted: str) -> None:
        raise PlanError(
            f"`{field}` of the metric {self.name!r} must be {wanted}, got {getattr(self, field)!r}."
        )


_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "direction": get_args(Direction),
    "scope": get_args(Scope),
    "interval": get_args(Interval),
    "group": get_args(Group),
    "of": get_args(Of),
}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_range(value: object) -> bool:
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in value)
    return numbers and value[0] < value[1]


# What may be asked for beside consistency, which is always measured.
GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "consistency": "the paper's metrics, flips, agreement and calibration",
        "classification": "balanced accuracy, precision, recall, F1, Matthews, log loss, Brier",
        "ranking": "AUROC and average precision",
    }
)

TRUTH: frozenset[Need] = frozenset({"truth"})
SCORES: frozenset[Need] = frozenset({"scores"})
BOTH: frozenset[Need] = TRUTH | SCORES


def of_generation(
    name: str,
    symbol: str,
    direction: Direction,
    needs: frozenset[Need],
    meaning: str,
    *,
    interval: Interval = "bootstrap",
    aliases: tuple[str, ...] = (),
) -> Metric:
    return Metric(
        name=name,
        symbol=symbol,
        meaning=meaning,
        direction=direction,
        scope="generation",
        needs=needs,
        interval=interval,
        aliases=aliases,
    )


def of_pair(
    name: str,
    symbol: str,
    direction: Direction,
    needs: frozenset[Need],
    meaning: str,
    of_cases: OfCases | None = None,
    *,
    interval: Interval = "bootstrap",
    whole: OfCases | None = None,
    range: Range = SHARE,  # noqa: A002  the field is called so
    aliases: tuple[str, ...] = (),
) -> Metric:
    return Metric(
        name=name,
        symbol=symbol,
        meaning=meaning,
        direction=direction,
        scope="pair",
        needs=needs,
        range=range,
        interval=interval,
        of_cases=of_cases,
        whole=whole,
        aliases=aliases,
    )


def of_many(
    name: str,
    symbol: str,
    direction: Direction,
    meaning: str,
    *,
    interval: Interval = "bootstrap",
    range: Range = SHARE,  # noqa: A002  the field is called so
) -> Metric:
    return Metric(
        name=name,
        symbol=symbol,
        meaning=meaning,
        direction=direction,
        scope="many",
        range=range,
        interval=interval,
    )


def top_k_accuracy_entry(k: int) -> Metric:
    return of_generation(
        f"top_{k}_accuracy",
        f"CACC-{k}",
        "higher",
        BOTH,
        f"Share of inputs whose true class is among the {k} highest scores.",
        interval="share",
    )


def top_k_consistency_entry(k: int) -> Metric:
    return of_pair(
        f"top_{k}_consistency",
        f"CCON-{k}",
        "higher",
        SCORES,
        f"Share of inputs whose {k} highest classes, old and new, have one in common.",
        interval="share",
    )


def of_quality(
    name: str,
    symbol: str,
    meaning: str,
    *,
    direction: Direction = "higher",
    needs: frozenset[Need] = TRUTH,
    group: Group = "classification",
    of: Of = "classes",
    range: Range = SHARE,  # noqa: A002  the field is called so
    interval: Interval = "bootstrap",
    aliases: tuple[str, ...] = (),
) -> Metric:
    """A metric of one generation that scikit-learn has as well."""
    return Metric(
        name=name,
        symbol=symbol,
        meaning=meaning,
        direction=direction,
        scope="generation",
        needs=needs,
        range=range,
        interval=interval,
        group=group,
        of=of,
        aliases=aliases,
    )


def change(of: Metric) -> Metric:
    """The change of a metric of a generation: new minus old, in the same inputs."""
    low, high = of.range
    reach = high - low
    return Metric(
        name=f"{of.name}_change",
        symbol=f"Δ{of.symbol}",
        meaning=f"Change of {of.name.replace('_', ' ')}, new minus old.",
        direction=of.direction,
        scope="pair",
        needs=of.needs,
        range=(-reach, reach) if math.isfinite(reach) else ANY,
        aliases=tuple(f"{alias}_change" for alias in of.aliases),
        group=of.group,
        of=of.of,
        change_of=of.name,
    )
