"""What a retrained model must hold to: one metric, one threshold, one part of the inputs."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from dynsnap._registry import Registry
from dynsnap.comparison import Estimate
from dynsnap.errors import PlanError
from dynsnap.metrics import Metric, metric

Kinds: TypeAlias = tuple[type, ...]

OWN: Mapping[str, Kinds] = {
    "metric": (str,),
    "at_least": (float, int, str),  # a text for a multiple of the noise floor
    "at_most": (float, int, str),
    "on": (str,),
    "confidence": (float, int),
    "unresolved": (str,),
    "correction": (str,),
    "class": (str, int),
    "slice": (dict,),
    "min_count": (int,),
    "name": (str,),
    "allow_odd": (bool,),
}
_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    dict: "a table",
    bool: "true or false",
}


def check_kind(name: str, value: Any, kinds: Kinds, where: str) -> None:
    """Raise PlanError unless the value of a key is of one of its types."""
    # TOML's true is a Python int, which only a switch may be.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        known = _WORDS.get(kinds[0], kinds[0].__name__)
        raise PlanError(f"`{name}` of {where} must be {known}, got {value!r}.")


On: TypeAlias = Literal["value", "bound"]
Unresolved: TypeAlias = Literal["fail", "pass", "report"]
UNRESOLVED: tuple[Unresolved, ...] = ("fail", "pass", "report")

NOISE_FLOOR = "noise_floor"
_MULTIPLE = re.compile(
    r"\s*([+-]?[\d.]+(?:e[+-]?\d+)?)\s*(?:[x×*]|times)\s*(?:noise[ _-]floor|same[ _-]data)\s*", re.I
)

_ON_PURPOSE = "or say that it is meant so with allow_odd = true (--allow-odd-rules)"

EVERY = "*"  # as a class or a slice's value: each of them is judged on its own

# Most metrics are shares. A threshold outside is a slip (85 for 0.85), not a strict rule.
_SHARE = (0.0, 1.0)
_SIGNED = (-1.0, 1.0)

# Where a rule does not say how many inputs it needs. With none lost of so many, up to a tenth may
# still be lost of all.
MIN_COUNT = 30

_USUAL = 0.95  # the level of a rule that names none
_LEAST_CONFIDENCE = 0.5  # of a bound: below, the value is as likely to be outside as inside

# Sums of shares carry rounding errors far below any share of inputs; 0.85 must pass 0.85.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A threshold on a metric.

    Attributes:
        metric: A name from the catalogue. Metrics of one generation are those of the new one.
        at_least: The least value that passes; exactly one of this and `at_most` is given.
        at_most: The largest value that passes. A text such as "1.2 x noise_floor" stands for so
            many times what OLD and its twin have, which was trained again on the same data.
        on: "value" judges the measured value; "bound" the worse end of its interval (the low end
            against `at_least`, the high end against `at_most`), so that luck does not pass.
        confidence: The level of that interval, 0.95 if left out. To name one asks for the bound.
        unresolved: What a bound means where the interval covers the threshold: "fail" (pass only
            if clearly good), "pass" (fail only if clearly worse), or "report", the third verdict.
            None leaves it to `judge`.
        correction: "holm" lets all checks of a rule for every class or slice be right together
            with `confidence`; None judges each at that level.
        relative_to: "noise_floor" where the threshold is a multiple of it.
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
    at_least: float | str | None = None  # a number, once the rule is made
    at_most: float | str | None = None
    on: On | None = None  # one of the two, once the rule is made
    confidence: float = cast(float, None)  # a number, once the rule is made
    class_name: str | None = None
    slice: tuple[str, str] | None = None
    min_count: int | None = None
    name: str = ""
    allow_odd: bool = False
    unresolved: Unresolved | None = None
    correction: Literal["holm"] | None = None
    relative_to: Literal["noise_floor"] | None = None
    keys: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        entry = metric(self.metric)
        object.__setattr__(self, "metric", entry.name)  # another word for it becomes its name
        if self.on is None:  # as in files: who asks for what only a bound has means a bound
            asked = self.confidence is not None or self.unresolved or self.correction
            object.__setattr__(self, "on", "bound" if asked else "value")
        if self.confidence is None:
            object.__setattr__(self, "confidence", _USUAL)
        if (self.at_least is None) == (self.at_most is None):
            raise PlanError(
                f"A rule on {self.metric} needs exactly one of `at_least` and `at_most`, "
                f"found {'neither' if self.at_least is None else 'both'}. "
                "Write two rules for a value that must lie between two thresholds."
            )
        self._read_multiple()
        self._check_types()
        self._check_bound()
        low, high = entry.range
        if self.relative_to is not None:
            self._check_multiple(entry)
        elif not low <= self.threshold <= high or math.isinf(self.threshold):
            hint = ""
            if (low, high) == _SHARE and 1 < self.threshold <= 100:
                hint = f" Metrics are fractions: write {self.threshold / 100:g}."
            raise PlanError(
                f"The threshold of a rule on {self.metric} must be {_words(low, high)}, "
                f"got {self.threshold:g}.{hint}"
            )
        if not self.allow_odd:
            self._refuse_odd(entry, low, high)
        if not 0 < self.confidence < 1:
            meant = self.confidence / 100 if 1 < self.confidence < 100 else _USUAL
            raise PlanError(
                f"`confidence` must lie between 0 and 1, such as {meant:g}, got "
                f"{self.confidence:g}."
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
        self._check_classes(entry)
        if self.partial and entry.scope == "many":
            raise PlanError(
                f"{self.metric} is about all inputs at once: a rule on it takes no class or slice."
            )
        if self.min_count is not None:
            check_min_count(self.min_count)
        for name, value in self.keys.items():
            key = RULE_KEYS.find(name)
            check_kind(name, value, key.kinds, f"a rule on {self.metric}")
            try:
                key.check(value)
            except PlanError:
                raise
            except ValueError as error:
                raise PlanError(f"`{name}` of a rule on {self.metric}: {error}") from error

    def _read_multiple(self) -> None:
        """Take "1.2 x noise_floor" apart."""
        for side in ("at_least", "at_most"):
            text = getattr(self, side)
            if not isinstance(text, str):
                continue
            match = _MULTIPLE.fullmatch(text)
            try:
                factor = float(match[1]) if match else math.nan
            except ValueError:
                factor = math.nan
            if math.isnan(factor):
                raise PlanError(
                    f"`{side}` of a rule on {self.metric} must be a number, or a multiple of the "
                    f'noise floor such as "1.2 x noise_floor", got {text!r}.'
                )
            object.__setattr__(self, side, factor)
            object.__setattr__(self, "relative_to", NOISE_FLOOR)

    def _check_multiple(self, entry: Metric) -> None:
        if self.relative_to != NOISE_FLOOR:
            raise PlanError(f'`relative_to` must be "noise_floor", got {self.relative_to!r}.')
        if not (entry.scope == "pair" and entry.direction == "lower" and entry.range[0] == 0):
            raise PlanError(
                f"A rule on {self.metric} takes no multiple of the noise floor: only what is 0 "
                "between equal models does. Write a rule on lost, churn or prediction_difference."
            )
        if math.isinf(entry.range[1]) and not entry.tasks:
            raise PlanError(
                f"{self.metric} is a ratio already: a rule on it takes no multiple of the noise "
                "floor. Write a rule on lost."
            )
        if self.at_most is None and not self.allow_odd:
            raise PlanError(
                f"{self.metric} is better when it is lower, so at_least fails the better model. "
                f"Write at_most, {_ON_PURPOSE}."
            )
        if not 0 < self.threshold < math.inf:
            raise PlanError(
                "A multiple of the noise floor must be a number above 0, such as 1.2, got "
                f"{self.threshold:g}."
            )

    def _check_bound(self) -> None:
        if self.on not in ("value", "bound"):
            raise PlanError(f'`on` must be "value" or "bound", got {self.on!r}.')
        if self.unresolved is not None and self.unresolved not in UNRESOLVED:
            raise PlanError(
                f'`unresolved` must be "fail", "pass" or "report", got {self.unresolved!r}.'
            )
        if self.correction not in (None, "holm"):
            raise PlanError(f'`correction` must be "holm", got {self.correction!r}.')
        for key in ("unresolved", "correction"):
            if getattr(self, key) is not None and self.on == "value":
                raise PlanError(
                    f'`{key}` of a rule on {self.metric} has no effect with on = "value": a value '
                    'is on one side of its threshold. Write on = "bound".'
                )
        if self.correction is not None and not self.for_every:
            raise PlanError(
                f"`correction` of a rule on {self.metric} has no effect: the rule has one check. "
                'Give it class = "*" or every value of a slice.'
            )

    def _check_types(self) -> None:
        """Raise for what only a caller from Python can hand over: files are checked when read."""
        for key in ("at_least", "at_most", "confidence"):
            value = getattr(self, key)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
                raise PlanError(
                    f"`{key}` of a rule on {self.metric} must be a number, got {value!r}."
                )
            if value is not None and not isinstance(value, int | float):
                # A fraction, or a number of numpy's, which stands for what it is written as.
                plain = str(value) if isinstance(value, np.generic) else value
                object.__setattr__(self, key, float(plain))
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

    def _check_classes(self, entry: Metric) -> None:
        """Raise for an average over classes in one class, or a metric of a class without one."""
        if entry.of == "class" and self.class_name is None:
            base, change = (entry.change_of or entry.name), "_change" if entry.change_of else ""
            raise PlanError(
                f'{self.metric} is of one class. Name it (class = "...", or '
                f"{self.metric}[CLASS] on the command line; * is every class), or take "
                f"{base}_macro{change} or {base}_weighted{change}."
            )
        if entry.of == "classes" and self.class_name is not None:
            base = entry.change_of or entry.name
            single = base.removesuffix("_macro").removesuffix("_weighted")
            single = "recall" if single == base else single
            single += "_change" if entry.change_of else ""
            raise PlanError(
                f"{self.metric} is about all classes at once, so a rule on it takes no class. For "
                f"one class, take {single}."
            )

    def _refuse_odd(self, entry: Metric, low: float, high: float) -> None:
        """Raise for a rule that asks for a worse value, or that nothing can fail."""
        if self.relative_to is not None:
            return  # checked as a multiple; how far a model can be off is known when it is judged
        better = entry.direction
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
        if (
            (low, high) == _SIGNED
            and entry.change_of is None
            and side == "at_least"
            and self.threshold < 0
        ):
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
        assert given is not None and not isinstance(given, str)
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
        bound = f" at {self.confidence:.12g} confidence" if self.on == "bound" else ""
        if self.unresolved == "pass":
            bound = f" unless clearly worse{bound}"
        together = " together (Holm)" if self.correction else ""
        return f"{self.metric} {sign} {self.asked}{bound}{self._where()}{together}{self.further}"

    @property
    def asked(self) -> str:
        """The threshold as a text: "0.02", or "1.2 × noise floor"."""
        return f"{self.threshold:g}" + (" × noise floor" if self.relative_to else "")

    @property
    def further(self) -> str:
        """The further keys as a text, such as ", slack 0.01"; empty where there are none."""
        return "".join(f", {name} {value}" for name, value in self.keys.items())

    def _where(self) -> str:
        if self.class_name is not None:
            return " in every class" if self.class_name == EVERY else f" in class {self.class_name}"
        if self.slice is not None:
            column, value = self.slice
            return f" for every {column}" if value == EVERY else f" where {column} = {value}"
        return ""


Status: TypeAlias = Literal["passed", "failed", "unresolved", "not judged"]
_JUDGED: tuple[Status, ...] = ("passed", "failed", "unresolved")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """What one rule found on one part of the inputs.

    Attributes:
        part: "all inputs", "class frog" or "region = north".
        inputs: How many inputs the part holds.
        estimate: The metric there, with its interval; None where it is undefined.
        judged: The number that was held against the threshold.
        reason: Why nothing was judged, or why these inputs cannot pass; empty otherwise.
        noise_floor: The same metric between OLD and its twin, where one was given.
        asked: The threshold here, where it is a multiple of the noise floor.
        multiple: The metric in multiples of the noise floor, for a rule that is about them.
        confidence: The level of the interval that decided; None for a rule on a value.
        resolved: Whether the interval leaves the threshold out; `rule.unresolved` states what
            becomes of the outcome where it does not.
        needed: The fewest inputs with which a rule on a bound can pass, where that is known.
        further: About how many further labelled inputs, drawn like these, would settle what is
            not resolved, if the value stays; None where that is not known.
        further_differing: The same if only inputs are labelled on which OLD and NEW differ, for
            metrics that follow from those: see `dynsnap.gate.further_disagreements`.
    """

    rule: Rule
    part: str
    inputs: int
    status: Status
    estimate: Estimate | None = None
    judged: float | None = None
    reason: str = ""
    noise_floor: float | None = None
    asked: float | None = None
    multiple: Estimate | None = None
    confidence: float | None = None
    resolved: bool = True
    needed: int | None = None
    further: int | None = None
    further_differing: int | None = None

    @property
    def threshold(self) -> float:
        """The number that the metric is held against, in the metric's own unit."""
        return self.rule.threshold if self.asked is None else self.asked


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleKey:
    """A further key of rules.

    Attributes:
        name: The key in TOML, and in `Rule(keys={...})`.
        kinds: The types that its value may have.
        judge: Gives the outcome of a rule that has the key, from the outcome without it and the
            value: the same, or a copy with another `status`. It is called for what was judged, not
            for parts that were left out.
        check: Raises PlanError, or another ValueError, for a value that makes no sense.
    """

    name: str
    kinds: Kinds
    judge: Callable[[RuleOutcome, Any], RuleOutcome]
    check: Callable[[Any], None] = lambda value: None

    def __post_init__(self) -> None:
        kinds = self.kinds
        if not (isinstance(kinds, tuple) and kinds and all(isinstance(one, type) for one in kinds)):
            raise PlanError(
                f"`kinds` of the rule key {self.name!r} must be a tuple of types, such as "
                f"(float, int), got {kinds!r}."
            )
        for word, given in (("judge", self.judge), ("check", self.check)):
            if not callable(given):
                raise PlanError(
                    f"`{word}` of the rule key {self.name!r} must be a function, got {given!r}."
                )


RULE_KEYS: Registry[RuleKey] = Registry("rule key", {})


def register_rule_key(key: RuleKey) -> None:
    """Make a key known in this process: rules in files and in code may then have it."""
    if key.name in OWN:
        raise PlanError(f"The rule key {key.name!r} is part of dynsnap. Choose another name.")
    RULE_KEYS.add(key.name, key)


def with_keys(outcome: RuleOutcome) -> RuleOutcome:
    """The outcome after the further keys of its rule, in their order."""
    if outcome.status == "not judged":
        return outcome
    for name, value in outcome.rule.keys.items():
        found = RULE_KEYS.find(name).judge(outcome, value)
        if not isinstance(found, RuleOutcome):
            raise PlanError(
                f"`judge` of the rule key {name!r} must return an outcome, got {found!r}."
            )
        # A status that no verdict knows would count as neither failed nor unresolved: as passed.
        if found.status not in _JUDGED:
            raise PlanError(
                f"`judge` of the rule key {name!r} must return the status "
                f"{', '.join(_JUDGED)}, got {found.status!r}."
            )
        outcome = found
    return outcome


def is_multiple(text: str) -> bool:
    """Whether a threshold is written as a multiple of the noise floor.

    Example:
        >>> [is_multiple(text) for text in ("1.2 x noise_floor", "1.2 × same-data", "1.2 x old")]
        [True, True, False]
    """
    return _MULTIPLE.fullmatch(text) is not None


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


def groups(rules: Iterable[Rule]) -> frozenset[str]:
    """Which groups of metrics the rules need.

    Example:
        >>> sorted(groups([Rule(metric="auroc", at_least=0.9), Rule(metric="lost", at_most=0.1)]))
        ['consistency', 'ranking']
    """
    return frozenset(metric(rule.metric).group for rule in rules)


def confidences(rules: Iterable[Rule]) -> tuple[float, ...]:
    """The levels of the intervals that the rules are judged by; at least one.

    Example:
        >>> confidences([Rule(metric="lost", at_most=0.1, on="bound", confidence=0.9)])
        (0.9,)
    """
    return tuple(sorted({rule.confidence for rule in rules if rule.on == "bound"})) or (_USUAL,)


def _words(low: float, high: float) -> str:
    if math.isfinite(high):
        return f"between {low:g} and {high:g}"
    return f"a number from {low:g} up" if math.isfinite(low) else "a finite number"


def as_rules(rules: Rule | Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules to judge by, if they are rules and at least one."""
    found = (rules,) if isinstance(rules, Rule) else tuple(rules)
    for rule in found:
        if not isinstance(rule, Rule):
            raise PlanError(
                f'A rule must be a `Rule`, such as Rule(metric="lost", at_most=0.02), got {rule!r}.'
            )
    if not found:
        raise PlanError("There is no rule to judge by. Give at least one.")
    return found
