"""What a retrained model must hold to: one metric, one threshold, one part of the inputs."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

from dynsnap.errors import PlanError
from dynsnap.gate._keys import RULE_KEYS, check_kind
from dynsnap.metrics import Direction, metric

On: TypeAlias = Literal["value", "bound"]

_ON_PURPOSE = "or say that it is meant so with allow_odd = true (--allow-odd-rules)"

EVERY = "*"  # as a class or a slice's value: each of them is judged on its own

# Most metrics are shares. A threshold outside is a slip (85 for 0.85), not a strict rule.
_SHARE = (0.0, 1.0)
_SIGNED = (-1.0, 1.0)

# Where a rule does not say how many inputs it needs. With none lost of so many, up to a tenth may
# still be lost of all.
MIN_COUNT = 30

_LEAST_CONFIDENCE = 0.5  # of a bound: below, the value is as likely to be outside as inside

# Sums of shares carry rounding errors far below any share of inputs; 0.85 must pass 0.85.
ROUNDING = 1e-12


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
        min_count: The fewest inputs that a judgement may rest on; None leaves it to `judge`.
        name: What the rule is called in reports; made from the rest when empty.
        allow_odd: Take the rule although nothing can fail it (`lost` at most 1), or although it
            asks for a worse value (`accuracy` at most 0.9). Such rules are slips, mostly, and a
            gate that has one passes whatever happens.
        keys: Further keys and their values: see `register_rule_key`.

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
    min_count: int | None = None
    name: str = ""
    allow_odd: bool = False
    keys: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        entry = metric(self.metric)
        object.__setattr__(self, "metric", entry.name)  # another word for it becomes its name
        if (self.at_least is None) == (self.at_most is None):
            raise PlanError(
                f"A rule on {self.metric} needs exactly one of `at_least` and `at_most`, "
                f"found {'neither' if self.at_least is None else 'both'}. "
                "Write two rules for a value that must lie between two thresholds."
            )
        self._check_types()
        low, high = entry.range
        if not low <= self.threshold <= high or math.isinf(self.threshold):
            hint = ""
            if (low, high) == _SHARE and 1 < self.threshold <= 100:
                hint = f" Metrics are fractions: write {self.threshold / 100:g}."
            raise PlanError(
                f"The threshold of a rule on {self.metric} must be {_words(low, high)}, "
                f"got {self.threshold:g}.{hint}"
            )
        if not self.allow_odd:
            self._refuse_odd(entry.direction, low, high)
        if self.on not in ("value", "bound"):
            raise PlanError(f'`on` must be "value" or "bound", got {self.on!r}.')
        if not 0 < self.confidence < 1:
            raise PlanError(
                f"`confidence` must lie between 0 and 1, such as 0.95, got {self.confidence:g}."
            )
        if self.on == "bound" and self.confidence < _LEAST_CONFIDENCE and not self.allow_odd:
            # 0.05 is the level of a test, and hardly an interval at all.
            raise PlanError(
                f"An interval at {self.confidence:g} confidence is next to the value itself. Take "
                f"at least {_LEAST_CONFIDENCE:g}, such as {1 - self.confidence:g}, {_ON_PURPOSE}."
            )
        if self.class_name is not None and self.slice is not None:
            raise PlanError(
                f"A rule on {self.metric} names a class and a slice. Write a rule for each."
            )
        if self.partial and entry.scope == "many":
            raise PlanError(
                f"{self.metric} is about all inputs at once: a rule on it takes no class or slice."
            )
        if self.min_count is not None:
            check_min_count(self.min_count)
        for name, value in self.keys.items():
            key = RULE_KEYS.find(name)
            check_kind(name, value, key.kinds, f"a rule on {self.metric}")
            key.check(value)

    def _check_types(self) -> None:
        """Raise for what only a caller from Python can hand over: files are checked when read."""
        for key in ("at_least", "at_most", "confidence"):
            value = getattr(self, key)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
                raise PlanError(
                    f"`{key}` of a rule on {self.metric} must be a number, got {value!r}."
                )
        if not isinstance(self.allow_odd, bool):  # any text is true, "false" too
            raise PlanError(f"`allow_odd` must be True or False, got {self.allow_odd!r}.")
        if self.slice is not None and (not isinstance(self.slice, tuple) or len(self.slice) != 2):
            raise PlanError(f"`slice` must be a column and a value, got {self.slice!r}.")
        names = [("slice", text) for text in self.slice or ()]
        if self.class_name is not None:
            names.append(("class_name", self.class_name))
        for key, text in names:
            if not isinstance(text, str):
                raise PlanError(
                    f"`{key}` of a rule on {self.metric} must be a name as text, got {text!r}."
                )

    def _refuse_odd(self, better: Direction, low: float, high: float) -> None:
        """Raise for a rule that asks for a worse value, or that nothing can fail."""
        side = "at_least" if self.at_least is not None else "at_most"
        asked = f"{side} = {self.threshold:g}"
        wanted = {"higher": "at_least", "lower": "at_most", "neither": side}[better]
        if side != wanted:
            raise PlanError(
                f"{self.metric} is better when it is {better}, so {asked} fails the better model. "
                f"Write {wanted} = {self.threshold:g}, {_ON_PURPOSE}."
            )
        if (
            self.metric == "relative_negative_flip_rate"
            and side == "at_most"
            and self.threshold > 1
        ):
            # An old model that is right on most inputs hardly ever comes above 1: 85 is a slip.
            raise PlanError(
                f"{self.metric} is 1 where two unrelated models lose as much, so {asked} lets a "
                f"model pass that is worse than an unrelated one. Take at most 1, {_ON_PURPOSE}."
            )
        if (low, high) == _SIGNED and side == "at_least" and self.threshold < 0:
            # 0 is chance: what two models that know nothing of each other have.
            worse = "chance" if self.metric != "composite" else "a model that is never right"
            raise PlanError(
                f"{self.metric} below 0 is worse than {worse}, so hardly any model fails {asked}. "
                f"Take at least 0, {_ON_PURPOSE}."
            )
        room = self.threshold - low if side == "at_least" else high - self.threshold
        if room <= ROUNDING:
            tighter = f"above {low:g}" if side == "at_least" else f"below {high:g}"
            raise PlanError(
                f"Nothing can fail a rule on {self.metric} with {asked}. Take a threshold "
                f"{tighter}, {_ON_PURPOSE}."
            )

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
    def for_every(self) -> bool:
        """Whether the rule is about every class, or every value of a slice, on its own."""
        return EVERY in (self.class_name, self.slice and self.slice[1])

    @property
    def title(self) -> str:
        """The rule in one line."""
        if self.name:
            return self.name
        sign = "≥" if self.at_least is not None else "≤"
        more = "".join(f", {name} {value}" for name, value in self.keys.items())
        bound = f" at {self.confidence:g} confidence" if self.on == "bound" else ""
        return f"{self.metric} {sign} {self.threshold:g}{bound}{self._where()}{more}"

    def _where(self) -> str:
        if self.class_name is not None:
            return " in every class" if self.class_name == EVERY else f" in class {self.class_name}"
        if self.slice is not None:
            column, value = self.slice
            return f" for every {column}" if value == EVERY else f" where {column} = {value}"
        return ""


def check_min_count(value: int) -> None:
    """Raise unless this is a whole number from 1 up: nothing is fewer than NaN."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise PlanError(f"`min_count` must be a whole number and at least 1, got {value!r}.")


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
