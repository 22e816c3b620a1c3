"""What a retrained model must hold to: one metric, one threshold, one part of the inputs."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dynsnap.errors import PlanError
from dynsnap.metrics import metric

On: TypeAlias = Literal["value", "bound"]

EVERY = "*"  # as a class or a slice's value: each of them is judged on its own

# Most metrics are shares. A threshold outside is a slip (85 for 0.85), not a strict rule.
_SHARE = (0.0, 1.0)
_SIGNED = (-1.0, 1.0)
_UNBOUNDED = (0.0, math.inf)
_RANGES = {
    "composite": _SIGNED,
    "cohen_kappa": _SIGNED,
    "fleiss_kappa": _SIGNED,
    "krippendorff_alpha": _SIGNED,
    "pearson": _SIGNED,
    "relative_negative_flip_rate": _UNBOUNDED,
    "win_loss_ratio": _UNBOUNDED,
    "minkowski": _UNBOUNDED,
    "correct_distance": _UNBOUNDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A threshold on a metric.

    Attributes:
        metric: A name from the catalogue. Metrics of one generation are those of the new one.
        at_least: The least value that passes; exactly one of this and `at_most` is given.
        at_most: The largest value that passes.
        on: "value" judges the measured value; "bound" the worse end of its interval (the low end
            against `at_least`, the high end against `at_most`), so that luck does not pass.
        confidence: The level of that interval.
        class_name: Judge the inputs of this true class only; "*" judges every class on its own.
        slice: Judge the inputs with this (column, value) only; the value "*" judges every value.
        min_count: The fewest inputs that a judgement may rest on.
        name: What the rule is called in reports; made from the rest when empty.

    Example:
        >>> Rule(metric="lost", at_most=0.02, class_name="*").title
        'lost ≤ 0.02 in every class'
    """

    metric: str
    at_least: float | None = None
    at_most: float | None = None
    on: On = "value"
    confidence: float = 0.95
    class_name: str | None = None
    slice: tuple[str, str] | None = None
    min_count: int = 1
    name: str = ""

    def __post_init__(self) -> None:
        entry = metric(self.metric)
        object.__setattr__(self, "metric", entry.name)  # another word for it becomes its name
        if (self.at_least is None) == (self.at_most is None):
            raise PlanError(
                f"A rule on {self.metric} needs exactly one of `at_least` and `at_most`, "
                f"found {'neither' if self.at_least is None else 'both'}. "
                "Write two rules for a value that must lie between two thresholds."
            )
        low, high = _RANGES.get(self.metric, _SHARE)
        if not low <= self.threshold <= high or math.isinf(self.threshold):
            hint = ""
            if (low, high) == _SHARE and 1 < self.threshold <= 100:
                hint = f" Metrics are fractions: write {self.threshold / 100:g}."
            raise PlanError(
                f"The threshold of a rule on {self.metric} must be {_words(low, high)}, "
                f"got {self.threshold:g}.{hint}"
            )
        if self.on not in ("value", "bound"):
            raise PlanError(f'`on` must be "value" or "bound", got {self.on!r}.')
        if not 0 < self.confidence < 1:
            raise PlanError(
                f"`confidence` must lie between 0 and 1, such as 0.95, got {self.confidence:g}."
            )
        if self.class_name is not None and self.slice is not None:
            raise PlanError(
                f"A rule on {self.metric} names a class and a slice. Write a rule for each."
            )
        if self.partial and entry.scope == "many":
            raise PlanError(
                f"{self.metric} is about all inputs at once: a rule on it takes no class or slice."
            )
        if self.min_count < 1:
            raise PlanError(f"`min_count` must be at least 1, got {self.min_count}.")

    @property
    def threshold(self) -> float:
        """The number that the metric is held against."""
        given = self.at_least if self.at_least is not None else self.at_most
        assert given is not None
        return given

    @property
    def partial(self) -> bool:
        """Whether the rule is about a class or a slice, not about all inputs."""
        return self.class_name is not None or self.slice is not None

    @property
    def title(self) -> str:
        """The rule in one line."""
        if self.name:
            return self.name
        sign = "≥" if self.at_least is not None else "≤"
        bound = f" at {self.confidence:g} confidence" if self.on == "bound" else ""
        return f"{self.metric} {sign} {self.threshold:g}{bound}{self._where()}"

    def _where(self) -> str:
        if self.class_name is not None:
            return " in every class" if self.class_name == EVERY else f" in class {self.class_name}"
        if self.slice is not None:
            column, value = self.slice
            return f" for every {column}" if value == EVERY else f" where {column} = {value}"
        return ""


def top_k(rules: Iterable[Rule]) -> tuple[int, ...]:
    """Which k the rules need top-k metrics for.

    Example:
        >>> top_k([Rule(metric="top_5_accuracy", at_least=0.9), Rule(metric="lost", at_most=0.1)])
        (5,)
    """
    found = (re.fullmatch(r"top_(\d+)_.*", rule.metric) for rule in rules)
    return tuple(sorted({int(match[1]) for match in found if match}))


def confidences(rules: Iterable[Rule]) -> tuple[float, ...]:
    """The levels of the intervals that the rules are judged by; at least one.

    Example:
        >>> confidences([Rule(metric="lost", at_most=0.1, on="bound", confidence=0.9)])
        (0.9,)
    """
    return tuple(sorted({rule.confidence for rule in rules if rule.on == "bound"})) or (0.95,)


def _words(low: float, high: float) -> str:
    return f"between {low:g} and {high:g}" if math.isfinite(high) else f"a number from {low:g} up"
