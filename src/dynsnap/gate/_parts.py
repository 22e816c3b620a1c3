"""The parts of the inputs that a rule is about, and what keeps it from being judged on one."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dynsnap.comparison import (
    Comparison,
    Estimate,
    Estimates,
    GroupResult,
    LabelledInputs,
    TransitionCounts,
)
from dynsnap.errors import ComparisonError, did_you_mean
from dynsnap.gate._evidence import can_fail
from dynsnap.gate._rule import EVERY, ROUNDING, Rule, Unresolved, top_k
from dynsnap.metrics import metric
from dynsnap.predictions.tasks import CLASSIFICATION

# A class or slice under "*" may be small, but of its inputs a quarter must count.
UNEVEN = 4

# How bad a metric can become, from the share of inputs that OLD is right on.
_REACH: Mapping[str, Callable[[float], float]] = {
    "lost": lambda right: right,
    "never": lambda right: 1 - right,
    "neutral_churn": lambda right: 1 - right,
    "composite": lambda right: -right,
    "accuracy_change": lambda right: -right,
    "gained": lambda right: 0.0,
}


@dataclass(frozen=True, slots=True)
class Part:
    """The inputs that a rule is about, and what was measured there."""

    words: str
    inputs: int
    counting: int  # those that have a weight above 0
    effective: float  # how many of equal weight would be as much evidence
    metrics: Estimates
    noise_floor: Estimates | None = None
    transitions: TransitionCounts | None = None
    multiples: Estimates | None = None

    @property
    def can_lose(self) -> bool:
        """Whether any input was right before, as far as that is known."""
        cases = self.transitions
        return cases is None or cases.kept + cases.lost > 0


def parts_of(comparison: Comparison, rule: Rule) -> Iterator[Part]:
    pair = comparison.pairs[0]
    if rule.class_name is not None:
        yield from _classes(comparison, rule, rule.class_name)
    elif rule.slice is not None:
        yield from _slices(comparison, rule, *rule.slice)
    else:
        new = comparison.generations[-1]
        yield Part(
            "all inputs",
            *sizes_of(comparison, rule),
            {**new.metrics, **pair.metrics, **comparison.agreement},
            pair.noise_floor,
            pair.transitions,
            pair.multiples,
        )


def _classes(comparison: Comparison, rule: Rule, wanted: str) -> Iterator[Part]:
    groups = {group.name: group for group in comparison.pairs[0].groups if group.kind == "class"}
    if comparison.task != CLASSIFICATION and not groups:
        has = "does not measure each label by itself" if comparison.classes else "has none"
        raise ComparisonError(
            f"Rule {rule.title!r} is about classes, but the task {comparison.task} {has}. Judge "
            "all inputs, or a slice."
        )
    if not comparison.has_truth:
        raise ComparisonError(
            f"Rule {rule.title!r} is about true classes, but these files do not hold the truth. "
            "Add a column `truth`."
        )
    if wanted != EVERY and wanted not in comparison.classes:
        raise ComparisonError(
            f"Rule {rule.title!r} is about a class that these files do not have. "
            f"{did_you_mean(wanted, comparison.classes)}"
        )
    for name in comparison.classes if wanted == EVERY else [wanted]:
        yield _group(f"class {name}", groups.get(name), rule)


def _slices(comparison: Comparison, rule: Rule, column: str, wanted: str) -> Iterator[Part]:
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
        yield _group(f"{column} = {value}", groups.get(value), rule)


def _group(words: str, group: GroupResult | None, rule: Rule) -> Part:
    # A class of the file's that no input has is a part of no inputs, not a part left out.
    if group is None:
        return Part(words, 0, 0, 0, {})
    return Part(
        words,
        *sizes_of(group, rule),
        group.metrics,
        group.noise_floor,
        group.transitions,
        group.multiples,
    )


def obstacle(
    comparison: Comparison,
    rule: Rule,
    part: Part,
    fewest: int,
    unresolved: Unresolved,
    level: float,
) -> str:
    """Why a part is not judged; empty where it is."""
    if part.counting < fewest:
        return few(part, fewest)
    refuse_heavy(rule, part, fewest)
    _refuse_all_classes(comparison, rule)
    if rule.allow_odd:
        return ""
    why = _cannot_fail(comparison, rule, part)
    if not why and rule.on == "bound" and unresolved == "pass":
        why = _cannot_show(comparison, rule, part, level)
    return why


def few(part: Part, fewest: int) -> str:
    weighing = " that have a weight above 0" if part.counting < part.inputs else ""
    return f"{part.counting} inputs{weighing}, fewer than {fewest} (min_count)"


def refuse_heavy(rule: Rule, part: Part, fewest: float) -> None:
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


def _cannot_fail(comparison: Comparison, rule: Rule, part: Part) -> str:
    """Why no answers of NEW could fail a rule, given those of OLD; empty if some could."""
    old = comparison.pairs[0].old
    if rule.metric == "lost" and not part.can_lose:
        return f"{old} is right on none of these inputs, so none can be lost"
    if rule.on == "value" and (why := _cannot_change(rule, part, old)):
        return why
    multiple = rule.relative_to is not None
    if rule.on == "bound" and not multiple:
        return ""
    worst = _worst(rule, part)
    if multiple and math.isnan(worst):
        worst = metric(rule.metric).range[1]
    asked = threshold_on(comparison, rule, part) if multiple else rule.threshold
    beyond = worst - asked if rule.at_least is None else asked - worst
    safe = beyond <= ROUNDING
    if not safe:  # as NaN is, where the share is not known
        return ""
    times = f", and {rule.asked} is {asked:.4g}" if multiple else ""
    return (
        f"{old} is right on {_right(part):.4g} of them, so {rule.metric} is {worst:.4g} at worst "
        f"and nothing can fail{times}"
    )


def _cannot_change(rule: Rule, part: Part, old: str) -> str:
    """Why no answers of NEW could fail a rule on the change of a metric that OLD is bad in."""
    base, was = _before(rule, part)
    if base is None or math.isnan(was):
        return ""
    beyond = _worst(rule, part) - rule.threshold
    if (-beyond if rule.at_least is not None else beyond) > ROUNDING:
        return ""
    return f"{base} of {old} is {was:.4g}, so no change can fail"


def _before(rule: Rule, part: Part) -> tuple[str | None, float]:
    """For the change of a metric, that metric and its value of OLD; NaN where it is not known."""
    base = metric(rule.metric).change_of
    change = part.metrics.get(rule.metric)
    now = None if base is None else part.metrics.get(base)
    if change is None or now is None:
        return base, math.nan
    return base, now.value - change.value


def _measured(comparison: Comparison, group: str) -> bool:
    """Whether a group of metrics was measured."""
    return any(metric(name).group == group for name in comparison.generations[-1].metrics)


def _right(part: Part) -> float:
    """The share of a part's inputs that OLD is right on; NaN where that is not known."""
    shares = [part.metrics.get(name) for name in ("kept", "lost")]
    return sum(math.nan if share is None else share.value for share in shares)


def _worst(rule: Rule, part: Part) -> float:
    """How bad a metric can become, given OLD; NaN where that is not known."""
    if rule.metric in _REACH:
        return _REACH[rule.metric](_right(part))
    base, was = _before(rule, part)
    if base is None:
        return math.nan
    low, high = metric(base).range
    return (low if rule.at_least is not None else high) - was


def _cannot_show(comparison: Comparison, rule: Rule, part: Part, level: float) -> str:
    """Why a rule that fails only what is clearly worse cannot fail; empty if it can."""
    worst = _worst(rule, part)
    if math.isnan(worst):
        least, most = metric(rule.metric).range
        worst = least if rule.at_least is not None else most
    asked = threshold_on(comparison, rule, part)
    found = estimate_on(comparison, rule, part)
    if can_fail(rule, found, asked, worst, part.effective, confidence=level):
        return ""
    return (
        f"these {part.counting:,} inputs are too little evidence to show that {rule.metric} is "
        f"clearly worse than {asked:.4g}, even at its worst ({worst:.4g}), so nothing can fail"
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


def estimate_on(comparison: Comparison, rule: Rule, part: Part) -> Estimate:
    if rule.metric in part.metrics:
        return part.metrics[rule.metric]
    entry, needs = metric(rule.metric), metric(rule.metric).needs
    if entry.tasks and comparison.task not in entry.tasks:
        why = (
            f"it is a metric of the task {' and '.join(entry.tasks)}, and the task is "
            f"{comparison.task}. Take another metric, or give --task {entry.tasks[0]}"
        )
    elif comparison.task != CLASSIFICATION and (comparison.has_truth or "truth" not in needs):
        found = {**comparison.pairs[0].metrics, **comparison.generations[-1].metrics}
        where = "" if part.words == "all inputs" or rule.metric not in found else f" {part.words}"
        why = f"the task {comparison.task} does not have it{where and ' on'}{where}. Take one of "
        why += ", ".join(part.metrics or found)
    elif "truth" in needs and not comparison.has_truth:
        why = "it needs the truth, which these files do not hold. Add a column `truth`"
    elif "scores" in needs and not comparison.has_scores:
        why = "it needs scores, which not all of these files hold. Write them too"
    elif any(k > len(comparison.classes) for k in top_k([rule])):
        why = f"there are only {len(comparison.classes):,} classes. Take a smaller k"
    elif (group := metric(rule.metric).group) != "consistency" and not _measured(comparison, group):
        why = f'it was not measured. Compare with metrics=["{group}"]'
    else:
        why = f"it is not measured on {part.words}, only on all inputs. Take another metric"
    raise ComparisonError(f"Rule {rule.title!r} cannot be judged: {why}.")


def with_interval(rule: Rule, part: Part, estimate: Estimate) -> Estimate:
    """The estimate, which must have an interval.

    A part without one ends the gate, under "*" as well: it may be the one that is bad.
    """
    ends = (estimate.low, estimate.high)
    if any(end is None or math.isnan(end) for end in ends):
        what = f"has no interval there ({estimate.reason or 'none was made'})"
        if math.isnan(estimate.value):
            what = "is undefined there (0/0), so it has no bound"
        raise ComparisonError(
            f"Rule {rule.title!r} cannot be judged on {part.words}: {rule.metric} {what}. Judge "
            'its value (on = "value") or another metric, leave small parts out with `min_count`, '
            "or predict more inputs."
        )
    return estimate


def judged_by(comparison: Comparison, rule: Rule, part: Part) -> Estimate:
    """What a rule's own number is held against: the metric, or its multiple of the noise floor."""
    found = estimate_on(comparison, rule, part)
    if not rule.relative_to:
        return found
    threshold_on(comparison, rule, part)
    return (part.multiples or {}).get(rule.metric, Estimate(math.nan, reason="none was made"))


def threshold_on(comparison: Comparison, rule: Rule, part: Part) -> float:
    """The threshold in the unit of the metric."""
    if not rule.relative_to:
        return rule.threshold
    floor = floor_on(rule, part)
    if floor is None:
        why = "there is no noise floor. Give the predictions of OLD trained again, --noise-floor"
        if comparison.task == "graded":
            why += ", or several answers of OLD to each input"
        if comparison.pairs[0].noise_floor is not None:
            why = f"the noise floor of {rule.metric} is not measured on {part.words}"
            if rule.metric not in comparison.pairs[0].noise_floor:
                why = f"the twin lacks what {rule.metric} needs. Write its scores and truth too"
        raise ComparisonError(f"Rule {rule.title!r} cannot be judged: {why}.")
    if math.isnan(floor):
        raise ComparisonError(
            f"Rule {rule.title!r} cannot be judged on {part.words}: the noise floor of "
            f"{rule.metric} is undefined there (0/0). Leave small parts out with `min_count`."
        )
    return rule.threshold * floor


def floor_on(rule: Rule, part: Part) -> float | None:
    found = (part.noise_floor or {}).get(rule.metric)
    return None if found is None else found.value


def sizes_of(whole: Comparison | GroupResult, rule: Rule) -> tuple[int, int, float]:
    """How many inputs there are, how many count at all, and as how many they count together.

    For a metric that needs the truth, these are the inputs that have one.
    """
    found: Comparison | GroupResult | LabelledInputs = whole
    if whole.labelled is not None and "truth" in metric(rule.metric).needs:
        found = whole.labelled
    counting = found.inputs if found.counting is None else found.counting
    return found.inputs, counting, counting if found.effective is None else found.effective
