"""May this retrain ship? A comparison held against rules."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from dynsnap.comparison import (
    Comparison,
    Estimate,
    Estimates,
    GroupKey,
    GroupResult,
    TransitionCounts,
)
from dynsnap.errors import ComparisonError, PlanError, did_you_mean
from dynsnap.gate._inputs import (
    Side,
    refuse_foreign_slices,
    refuse_foreign_weights,
    refuse_missing_ids,
    refuse_one_source,
    refuse_other_predictions,
    refuse_own_truth,
    refuse_unknown_labels,
)
from dynsnap.gate._keys import RULE_KEYS
from dynsnap.gate._rule import EVERY, MIN_COUNT, ROUNDING, Rule, check_min_count, top_k
from dynsnap.metrics import metric
from dynsnap.predictions import Verification

# A class or slice under "*" may be small, but of its inputs a quarter must count.
_UNEVEN = 4

# How bad a metric can become, from the share of inputs that OLD is right on.
_REACH: Mapping[str, Callable[[float], float]] = {
    "lost": lambda right: right,
    "never": lambda right: 1 - right,
    "neutral_churn": lambda right: 1 - right,
    "composite": lambda right: -right,
}

Status: TypeAlias = Literal["passed", "failed", "not judged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """What one rule found on one part of the inputs.

    Attributes:
        part: "all inputs", "class frog" or "region = north".
        inputs: How many inputs the part holds.
        estimate: The metric there, with its interval; None where it is undefined.
        judged: The number that was held against the threshold.
        reason: Why nothing was judged; empty otherwise.
        noise_floor: The same metric between OLD and its twin, where one was given.
    """

    rule: Rule
    part: str
    inputs: int
    status: Status
    estimate: Estimate | None = None
    judged: float | None = None
    reason: str = ""
    noise_floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcomes of all rules, in the order of the rules.

    Attributes:
        verification: For each generation, the twin among them, whether what was judged is what was
            written: files of dynsnap carry a digest.
    """

    old: str
    new: str
    inputs: int
    outcomes: tuple[RuleOutcome, ...]
    notes: tuple[str, ...] = ()
    verification: Mapping[str, Verification] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether no rule failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[RuleOutcome, ...]:
        """The outcomes that stand in the way."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == "failed")


def judge(
    comparison: Comparison | Sequence[Comparison],
    rules: Rule | Iterable[Rule],
    *,
    allow_missing: float = 0.0,
    allow_unknown_labels: float | None = None,
    min_count: int = MIN_COUNT,
    weights_from: Side = "old",
    slices_from: Side = "old",
) -> Verdict:
    """Hold an old and a new generation against rules.

    A gate never passes because something was missing. Where a rule cannot be judged (its metric
    needs scores or truth that the files lack, its class or slice does not exist or holds fewer
    than `min_count` inputs, ids are missing on one side, labels are no true classes), this raises.
    Only under a rule for *every* class or slice are parts that are too small left out, and the
    verdict names them. A rule on a bound raises wherever a part that is not too small has no
    interval.

    Args:
        comparison: Two generations side by side. Rules that ask for intervals of several levels
            need one comparison for each level.
        rules: What to hold them against.
        allow_missing: The share of a generation's ids that the other one may lack.
        allow_unknown_labels: The share of a generation's labels that may be no true class of any
            input. If left out it is 0.1, and no label may differ from a true class only by case,
            spaces or underscores.
        min_count: The fewest inputs that a rule may rest on that has no `min_count` of its own.
            Under "*" it is about all inputs together: of its parts, each that has any is judged.
            A rule on a value needs as many effective inputs (Kish's, where inputs are weighted).
        weights_from: Whose weights may count: those of the old generation, which the new one may
            repeat; or, with "new", those that the new one alone has.
        slices_from: The same for the columns of slices that rules are about.

    Example:
        >>> import dynsnap
        >>> old = dynsnap.Predictions(ids=[1, 2, 3, 4], classes=["cat", "dog"],
        ...                           labels=["cat", "dog", "dog", "cat"],
        ...                           truth=["cat", "dog", "cat", "cat"])
        >>> new = dynsnap.Predictions(ids=[1, 2, 3, 4], classes=["cat", "dog"],
        ...                           labels=["cat", "cat", "cat", "cat"],
        ...                           truth=["cat", "dog", "cat", "cat"])
        >>> rules = [Rule(metric="lost", at_most=0.1, min_count=4)]
        >>> verdict = judge(dynsnap.compare(old, new), rules)
        >>> verdict.passed, verdict.outcomes[0].judged
        (False, 0.25)
    """
    rules = (rules,) if isinstance(rules, Rule) else tuple(rules)
    for rule in rules:
        if not isinstance(rule, Rule):
            raise PlanError(
                f'A rule must be a `Rule`, such as Rule(metric="lost", at_most=0.02), got {rule!r}.'
            )
    if not rules:
        raise PlanError("There is no rule to judge by. Give at least one.")
    if not 0 <= allow_missing <= 1:
        raise PlanError(f"`allow_missing` must be a share between 0 and 1, got {allow_missing:g}.")
    if allow_unknown_labels is not None and not 0 <= allow_unknown_labels <= 1:
        raise PlanError(
            f"`allow_unknown_labels` must be a share between 0 and 1, got {allow_unknown_labels:g}."
        )
    check_min_count(min_count)
    for name, side in (("weights_from", weights_from), ("slices_from", slices_from)):
        if side not in ("old", "new"):
            raise PlanError(f'`{name}` must be "old" or "new", got {side!r}.')
    levels = [comparison] if isinstance(comparison, Comparison) else list(comparison)
    if not levels:
        raise PlanError("There is nothing to judge. Give a comparison of two generations.")
    for each in levels:
        if len(each.pairs) != 1:
            raise ComparisonError(
                f"A gate judges two generations, old and new; this comparison has "
                f"{len(each.generations)}. Compare two."
            )
    first = levels[0]
    refuse_other_predictions(levels)
    refuse_one_source(first)
    refuse_missing_ids(first, allow_missing)
    refuse_unknown_labels(first, allow_unknown_labels)
    refuse_foreign_weights(first, weights_from)
    columns = dict.fromkeys(rule.slice[0] for rule in rules if rule.slice is not None)
    refuse_foreign_slices(first, columns, slices_from)
    refuse_own_truth(first)
    outcomes = [
        outcome for rule in rules for outcome in _outcomes(_level(levels, rule), rule, min_count)
    ]
    pair = first.pairs[0]
    return Verdict(
        old=pair.old,
        new=pair.new,
        inputs=first.inputs,
        outcomes=tuple(outcomes),
        notes=first.notes,
        verification=first.alignment.verified,
    )


def apart(comparison: Comparison, rules: Sequence[Rule]) -> set[GroupKey]:
    """The classes and slices that rules ask more of than the comparison has measured there.

    They are keys of groups, as `dynsnap.comparison.measure_apart` takes them.
    """
    whole = {**comparison.generations[-1].metrics, **comparison.pairs[0].metrics}
    return {
        group.key
        for rule in rules
        for group in comparison.pairs[0].groups
        if _is_about(rule, group) and rule.metric in whole and rule.metric not in group.metrics
    }


def _is_about(rule: Rule, group: GroupResult) -> bool:
    """Whether a rule judges this group. A slice's column may have any name, "truth" among them."""
    if group.kind == "class":
        return rule.class_name in (EVERY, group.name)
    if group.kind == "slice" and rule.slice is not None:
        column, wanted = rule.slice
        return group.column == column and wanted in (EVERY, group.name)
    return False


def _level(levels: Sequence[Comparison], rule: Rule) -> Comparison:
    for comparison in levels:
        if rule.on == "value" or comparison.confidence == rule.confidence:
            return comparison
    found = ", ".join(f"{comparison.confidence:g}" for comparison in levels)
    raise PlanError(
        f"Rule {rule.title!r} asks for intervals at {rule.confidence:g} confidence, but the "
        f"comparison has them at {found}. Compare again with confidence={rule.confidence:g}."
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The inputs that a rule is about, and what was measured there."""

    words: str
    inputs: int
    counting: int  # those that have a weight above 0
    effective: float  # how many of equal weight would be as much evidence
    metrics: Estimates
    noise_floor: Estimates | None = None
    transitions: TransitionCounts | None = None

    @property
    def can_lose(self) -> bool:
        """Whether any input was right before, as far as that is known."""
        cases = self.transitions
        return cases is None or cases.kept + cases.lost > 0


def _outcomes(comparison: Comparison, rule: Rule, min_count: int) -> list[RuleOutcome]:
    parts = list(_parts(comparison, rule))
    if rule.for_every and rule.min_count is None:
        # To leave out small parts would let a lost class pass; the inputs must suffice as a whole.
        whole = _Part("all inputs", *_sizes(comparison), {})
        if whole.counting < min_count:
            _unjudged(rule, whole, _few(whole, min_count))
        _refuse_heavy(rule, whole, min_count)
        for part in parts:
            _refuse_heavy(rule, part, min(min_count, part.counting / _UNEVEN))
        fewest = 1
    else:
        fewest = min_count if rule.min_count is None else rule.min_count
    outcomes = [_outcome(comparison, rule, part, fewest) for part in parts]
    if all(outcome.status == "not judged" for outcome in outcomes):
        reasons = "; ".join(f"{outcome.part}: {outcome.reason}" for outcome in outcomes[:3])
        raise ComparisonError(
            f"Rule {rule.title!r} could be judged nowhere ({reasons or 'there are no inputs'}). "
            "Change the rule, or predict more inputs."
        )
    return outcomes


def _outcome(comparison: Comparison, rule: Rule, part: _Part, fewest: int) -> RuleOutcome:
    lenient = rule.for_every
    if part.counting < fewest:
        return _unjudged(rule, part, _few(part, fewest), lenient)
    _refuse_heavy(rule, part, fewest)
    _refuse_all_classes(comparison, rule)
    if not rule.allow_odd and (why := _cannot_fail(comparison, rule, part)):
        return _unjudged(rule, part, why, lenient)
    estimate = _estimate(comparison, rule, part)
    judged = estimate.value if rule.on == "value" else _bound(rule, part, estimate)
    if math.isnan(judged):
        return _unjudged(rule, part, f"{rule.metric} is undefined there (0/0)", lenient)
    if rule.at_least is not None:
        passed = judged >= rule.at_least - ROUNDING
    else:
        passed = judged <= rule.threshold + ROUNDING
    floor = (part.noise_floor or {}).get(rule.metric)
    outcome = RuleOutcome(
        rule=rule,
        part=part.words,
        inputs=part.inputs,
        status="passed" if passed else "failed",
        estimate=estimate,
        judged=judged,
        noise_floor=None if floor is None else floor.value,
    )
    for name, value in rule.keys.items():
        outcome = RULE_KEYS.find(name).judge(outcome, value)
    return outcome


def _bound(rule: Rule, part: _Part, estimate: Estimate) -> float:
    """The worse end of the interval.

    A part without an interval ends the gate, under "*" as well: it may be the one that is bad.
    """
    bound = estimate.low if rule.at_least is not None else estimate.high
    if bound is None or math.isnan(bound):
        what = f"has no interval there ({estimate.reason or 'none was made'})"
        if math.isnan(estimate.value):
            what = "is undefined there (0/0), so it has no bound"
        raise ComparisonError(
            f"Rule {rule.title!r} cannot be judged on {part.words}: {rule.metric} {what}. Judge "
            'its value (on = "value") or another metric, leave small parts out with `min_count`, '
            "or predict more inputs."
        )
    return bound


def _few(part: _Part, fewest: int) -> str:
    weighing = " that have a weight above 0" if part.counting < part.inputs else ""
    return f"{part.counting} inputs{weighing}, fewer than {fewest} (min_count)"


def _refuse_heavy(rule: Rule, part: _Part, fewest: float) -> None:
    """Raise where a few inputs carry so much of the weight that a value rests on them alone.

    Under "*" too: what the light inputs lost is not seen, so the part may be the one that is bad.
    Bounds allow for heavy inputs by themselves.
    """
    if rule.on == "value" and part.effective < fewest * (1 - ROUNDING):
        raise ComparisonError(
            f"Rule {rule.title!r} cannot be judged on {part.words}: a few of its {part.counting} "
            f"inputs carry most of the weight, so that they are as much evidence as "
            f"{part.effective:.3g} inputs, fewer than {fewest:.3g}. Judge the bound "
            '(on = "bound"), correct the weights, or take a smaller min_count.'
        )


def _cannot_fail(comparison: Comparison, rule: Rule, part: _Part) -> str:
    """Why no answers of NEW could fail a rule, given those of OLD; empty if some could."""
    old = comparison.pairs[0].old
    if rule.metric == "lost" and not part.can_lose:
        return f"{old} is right on none of these inputs, so none can be lost"
    shares = [part.metrics.get(name) for name in ("kept", "lost")]
    if rule.on == "bound" or rule.metric not in _REACH:
        return ""
    right = sum(math.nan if share is None else share.value for share in shares)
    worst = _REACH[rule.metric](right)
    if rule.at_most is not None:
        safe = worst <= rule.at_most + ROUNDING
    else:
        safe = worst >= rule.threshold - ROUNDING
    if not safe:  # as NaN is, where the share is not known
        return ""
    return (
        f"{old} is right on {right:.4g} of them, so {rule.metric} is {worst:.4g} at worst and "
        "nothing can fail"
    )


def _sizes(found: Comparison | GroupResult) -> tuple[int, int, float]:
    """How many inputs there are, how many count at all, and as how many they count together."""
    counting = found.inputs if found.counting is None else found.counting
    return found.inputs, counting, counting if found.effective is None else found.effective


def _unjudged(rule: Rule, part: _Part, reason: str, lenient: bool = False) -> RuleOutcome:
    if not lenient:
        raise ComparisonError(
            f"Rule {rule.title!r} cannot be judged on {part.words}: {reason}. "
            "Change the rule, or predict more inputs."
        )
    return RuleOutcome(
        rule=rule, part=part.words, inputs=part.inputs, status="not judged", reason=reason
    )


def _refuse_all_classes(comparison: Comparison, rule: Rule) -> None:
    """Raise where the k highest scores are so many of the classes that nothing can fail."""
    classes = len(comparison.classes)
    alone = metric(rule.metric).scope == "generation"
    for k in top_k([rule]):
        # The truth is among all classes; two sets of more than half of them have one in common.
        if not rule.allow_odd and (k == classes if alone else classes < 2 * k <= 2 * classes):
            raise ComparisonError(
                f"Nothing can fail rule {rule.title!r}: with {classes} classes, {rule.metric} is "
                "always 1. Take a smaller k, or say that it is meant so with allow_odd = true "
                "(--allow-odd-rules)."
            )


def _estimate(comparison: Comparison, rule: Rule, part: _Part) -> Estimate:
    if rule.metric in part.metrics:
        return part.metrics[rule.metric]
    needs = metric(rule.metric).needs
    if "truth" in needs and not comparison.has_truth:
        why = "it needs the truth, which these files do not hold. Add a column `truth`"
    elif "scores" in needs and not comparison.has_scores:
        why = "it needs scores, which not all of these files hold. Write them too"
    elif any(k > len(comparison.classes) for k in top_k([rule])):
        why = f"there are only {len(comparison.classes):,} classes. Take a smaller k"
    else:
        why = f"it is not measured on {part.words}, only on all inputs. Take another metric"
    raise ComparisonError(f"Rule {rule.title!r} cannot be judged: {why}.")


def _parts(comparison: Comparison, rule: Rule) -> Iterator[_Part]:
    pair = comparison.pairs[0]
    if rule.class_name is not None:
        yield from _classes(comparison, rule, rule.class_name)
    elif rule.slice is not None:
        yield from _slices(comparison, rule, *rule.slice)
    else:
        scope = metric(rule.metric).scope
        new = comparison.generations[-1]
        found = {"generation": new.metrics, "pair": pair.metrics, "many": comparison.agreement}
        sizes = _sizes(comparison)
        yield _Part("all inputs", *sizes, found[scope], pair.noise_floor, pair.transitions)


def _classes(comparison: Comparison, rule: Rule, wanted: str) -> Iterator[_Part]:
    if not comparison.has_truth:
        raise ComparisonError(
            f"Rule {rule.title!r} is about true classes, but these files do not hold the truth. "
            "Add a column `truth`."
        )
    groups = {group.name: group for group in comparison.pairs[0].groups if group.kind == "class"}
    if wanted != EVERY and wanted not in comparison.classes:
        raise ComparisonError(
            f"Rule {rule.title!r} is about a class that these files do not have. "
            f"{did_you_mean(wanted, comparison.classes)}"
        )
    for name in comparison.classes if wanted == EVERY else [wanted]:
        yield _group(f"class {name}", groups.get(name))


def _slices(comparison: Comparison, rule: Rule, column: str, wanted: str) -> Iterator[_Part]:
    if column not in comparison.slices:
        raise ComparisonError(
            f"Rule {rule.title!r} is about the column {column!r}, which these files do not have "
            f"as a slice. {did_you_mean(column, comparison.slices)}"
        )
    values = comparison.slices[column]
    if wanted != EVERY and wanted not in values:
        raise ComparisonError(
            f"Rule {rule.title!r} is about a value that {column!r} does not take. "
            f"{did_you_mean(wanted, values)}"
        )
    groups = {
        group.name: group
        for group in comparison.pairs[0].groups
        if group.kind == "slice" and group.column == column
    }
    for value in values if wanted == EVERY else [wanted]:
        yield _group(f"{column} = {value}", groups.get(value))


def _group(words: str, group: GroupResult | None) -> _Part:
    # A class of the file's that no input has is a part of no inputs, not a part left out.
    if group is None:
        return _Part(words, 0, 0, 0, {})
    return _Part(words, *_sizes(group), group.metrics, transitions=group.transitions)
