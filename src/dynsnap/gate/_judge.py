"""May this retrain ship? A comparison held against rules."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from dynsnap import comparison as comparisons
from dynsnap._registry import Displayed
from dynsnap.comparison import (
    AlignedBlocks,
    Comparison,
    Estimate,
    GroupKey,
    GroupResult,
    Settings,
)
from dynsnap.comparison._display import fitted, frame, value_text
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.gate._evidence import (
    Answer,
    Decision,
    decide,
    further_disagreements,
    further_inputs,
    inputs_needed,
)
from dynsnap.gate._inputs import (
    Side,
    refuse_chosen_labels,
    refuse_foreign_slices,
    refuse_foreign_weights,
    refuse_missing_ids,
    refuse_one_source,
    refuse_other_predictions,
    refuse_own_truth,
    refuse_sets_alike,
    refuse_strange_twin,
    refuse_unknown_labels,
    refuse_unlabelled,
)
from dynsnap.gate._parts import (
    UNEVEN,
    Part,
    estimate_on,
    few,
    floor_on,
    judged_by,
    obstacle,
    parts_of,
    refuse_heavy,
    sizes_of,
    threshold_on,
    with_interval,
)
from dynsnap.gate._rule import (
    EVERY,
    MIN_COUNT,
    ROUNDING,
    UNRESOLVED,
    Rule,
    RuleOutcome,
    Status,
    Unresolved,
    as_rules,
    check_min_count,
    confidences,
    with_keys,
)
from dynsnap.metrics import metric
from dynsnap.predictions import Baseline, Verification

Levels: TypeAlias = Callable[[float], Comparison]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict(Displayed):
    """The outcomes of all rules, in the order of the rules.

    A console shows it in at most 20 lines; a notebook shows the failed rules and every check.

    Attributes:
        verification: For each generation, the twin among them, whether what was judged is what was
            written: files of dynsnap carry a digest.
        baselines: The named baselines among the generations.
    """

    old: str
    new: str
    inputs: int
    outcomes: tuple[RuleOutcome, ...]
    notes: tuple[str, ...] = ()
    verification: Mapping[str, Verification] = field(default_factory=dict)
    baselines: tuple[Baseline, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no check failed, and none is unresolved."""
        return not self.failed and not self.unresolved

    @property
    def word(self) -> Literal["passed", "failed", "unresolved"]:
        """The verdict: a failure comes before what is unresolved."""
        if self.failed:
            return "failed"
        return "unresolved" if self.unresolved else "passed"

    @property
    def unresolved(self) -> tuple[RuleOutcome, ...]:
        """The outcomes of rules that ask for the third verdict, where it is open who is right."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == "unresolved")

    @property
    def failed(self) -> tuple[RuleOutcome, ...]:
        """The outcomes that stand in the way."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == "failed")

    def __repr__(self) -> str:
        said = f"{len(self.failed):,} of {len(self.outcomes):,} checks failed"
        lines = [f"<Verdict: {self.word}, {self.old} → {self.new}, {self.inputs:,} inputs, {said}>"]
        order = ("failed", "unresolved", "passed", "not judged")
        for each in sorted(self.outcomes, key=lambda one: order.index(one.status)):
            found = "" if each.estimate is None else f" {value_text(each.estimate)}"
            lines.append(f"  {each.status:10} {each.rule.title}, {each.part}:{found}")
        return fitted(lines)

    def to_frame(self, *, library: str | None = None) -> Any:
        """A data frame of pandas or polars, whichever is there: a row for each check."""
        return frame(
            (
                {
                    "rule": each.rule.title,
                    "metric": each.rule.metric,
                    "part": each.part,
                    "status": each.status,
                    "inputs": each.inputs,
                    "value": None if each.estimate is None else each.estimate.value,
                    "low": None if each.estimate is None else each.estimate.low,
                    "high": None if each.estimate is None else each.estimate.high,
                    "threshold": each.threshold,
                }
                for each in self.outcomes
            ),
            library,
        )


def judge(
    comparison: Comparison | Sequence[Comparison] | Levels,
    rules: Rule | Iterable[Rule],
    *,
    allow_missing: float = 0.0,
    allow_unknown_labels: float | None = None,
    allow_unlabelled: float = 0.0,
    min_count: int = MIN_COUNT,
    weights_from: Side = "old",
    slices_from: Side = "old",
    unresolved: Unresolved = "fail",
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
            need one comparison for each level. A rule with a correction needs levels that are
            not known beforehand: give a function of the level, such as
            `lambda level: dynsnap.compare(old, new, confidence=level)`.
        rules: What to hold them against.
        allow_missing: The share of a generation's ids that the other one may lack.
        allow_unknown_labels: The share of a generation's labels that may be no true class of any
            input. If left out it is 0.1, and no label may differ from a true class only by case,
            spaces or underscores.
        allow_unlabelled: The share of the inputs that may have no true class where others have
            one. Rules on metrics that need the truth are then judged on the labelled inputs.
        min_count: The fewest inputs that a rule may rest on that has no `min_count` of its own.
            Under "*" it is about all inputs together: of its parts, each that has any is judged.
            A rule on a value needs as many effective inputs (Kish's, where inputs are weighted).
        weights_from: Whose weights may count: those of the old generation, which the new one may
            repeat; or, with "new", those that the new one alone has.
        slices_from: The same for the columns of slices that rules are about.
        unresolved: What becomes of a check on a bound whose interval covers the threshold, for
            rules that do not say it: see `Rule.unresolved`.

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
    rules = as_rules(rules)
    if not 0 <= allow_missing <= 1:
        raise PlanError(f"`allow_missing` must be a share between 0 and 1, got {allow_missing:g}.")
    if allow_unknown_labels is not None and not 0 <= allow_unknown_labels <= 1:
        raise PlanError(
            f"`allow_unknown_labels` must be a share between 0 and 1, got {allow_unknown_labels:g}."
        )
    if not 0 <= allow_unlabelled <= 1:
        raise PlanError(
            f"`allow_unlabelled` must be a share between 0 and 1, got {allow_unlabelled:g}."
        )
    check_min_count(min_count)
    for name, side in (("weights_from", weights_from), ("slices_from", slices_from)):
        if side not in ("old", "new"):
            raise PlanError(f'`{name}` must be "old" or "new", got {side!r}.')
    if unresolved not in UNRESOLVED:
        raise PlanError(f'`unresolved` must be "fail", "pass" or "report", got {unresolved!r}.')
    levels = _Levels.of(comparison, rules)
    first = levels.first
    refuse_one_source(first)
    refuse_missing_ids(first, allow_missing)
    refuse_unlabelled(first, allow_unlabelled)
    refuse_unknown_labels(first, allow_unknown_labels)
    refuse_sets_alike(first, allow_unknown_labels)
    refuse_foreign_weights(first, weights_from)
    columns = dict.fromkeys(rule.slice[0] for rule in rules if rule.slice is not None)
    refuse_foreign_slices(first, columns, slices_from)
    refuse_own_truth(first)
    if any("truth" in metric(rule.metric).needs for rule in rules):
        refuse_chosen_labels(first)
    if any(rule.relative_to for rule in rules):
        refuse_strange_twin(first)
    outcomes = [
        outcome
        for rule in rules
        for outcome in _outcomes(levels, rule, min_count, rule.unresolved or unresolved)
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


def leveled(blocks: AlignedBlocks, rules: Sequence[Rule], settings: Settings) -> Levels:
    """What `judge` takes for rules of any kind: all that they ask for, at any level.

    Args:
        blocks: Two generations, and the twin of the first where `settings.twin` states it.
        rules: What will be judged.
        settings: As for `dynsnap.comparison.compare_blocks`; `confidences` is not used.
    """
    levels = comparisons.Levels(blocks, settings)
    made: dict[float, Comparison] = {}

    def at(confidence: float) -> Comparison:
        if confidence not in made:
            found = levels(confidence)
            alone = replace(settings, confidences=(confidence,))
            parts = apart(found, rules)
            (made[confidence],) = comparisons.measure_apart([found], blocks, parts, alone)
        return made[confidence]

    return at


def _is_about(rule: Rule, group: GroupResult) -> bool:
    """Whether a rule judges this group. A slice's column may have any name, "truth" among them."""
    if group.kind == "class":
        return rule.class_name in (EVERY, group.name)
    if group.kind == "slice" and rule.slice is not None:
        column, wanted = rule.slice
        return group.column == column and wanted in (EVERY, group.name)
    return False


class _Levels:
    """Comparisons of the same predictions with intervals of several levels."""

    def __init__(self, known: Sequence[Comparison], make: Levels | None) -> None:
        self._known, self._make = list(known), make
        for each in known:
            self._check(each)
        refuse_other_predictions(self._known)

    @classmethod
    def of(
        cls, given: Comparison | Sequence[Comparison] | Levels, rules: Sequence[Rule]
    ) -> "_Levels":
        if isinstance(given, Comparison):
            return cls([given], None)
        if callable(given):
            return cls([given(confidences(rules)[0])], given)
        if not isinstance(given, Sequence):
            raise PlanError(
                f"`judge` takes what `dynsnap.compare` returns, got a {type(given).__name__}."
            )
        if not given:
            raise PlanError("There is nothing to judge. Give a comparison of two generations.")
        return cls(given, None)

    @property
    def first(self) -> Comparison:
        return self._known[0]

    def at(self, confidence: float, rule: Rule) -> Comparison:
        for comparison in self._known:
            if comparison.confidence == confidence:
                return comparison
        if self._make is not None:
            made = self._make(confidence)
            self._check(made)
            refuse_other_predictions([self.first, made])
            self._known.append(made)
            return made
        found = ", ".join(f"{comparison.confidence:g}" for comparison in self._known)
        way = f"Compare again with confidence={confidence:g}."
        if rule.correction:
            way = (
                "Give `judge` a function of the level: judge(lambda level: dynsnap.compare(old, "
                "new, confidence=level), rules)."
            )
        raise PlanError(
            f"Rule {rule.title!r} asks for intervals at {confidence:g} confidence, but the "
            f"comparison has them at {found}. {way}"
        )

    @staticmethod
    def _check(comparison: Comparison) -> None:
        if len(comparison.pairs) != 1:
            raise ComparisonError(
                f"A gate judges two generations, old and new; this comparison has "
                f"{len(comparison.generations)}. Compare two."
            )


def _outcomes(
    levels: _Levels, rule: Rule, min_count: int, unresolved: Unresolved
) -> list[RuleOutcome]:
    comparison = levels.first if rule.on == "value" else levels.at(rule.confidence, rule)

    @functools.cache
    def parts_at(level: float) -> list[Part]:
        return list(parts_of(levels.at(level, rule), rule))

    parts = parts_at(comparison.confidence)
    if rule.for_every and rule.min_count is None:
        # To leave out small parts would let a lost class pass; the inputs must suffice as a whole.
        whole = Part("all inputs", *sizes_of(comparison, rule), {})
        if whole.counting < min_count:
            _unjudged(rule, whole, few(whole, min_count))
        refuse_heavy(rule, whole, min_count)
        for part in parts:
            refuse_heavy(rule, part, min(min_count, part.counting / UNEVEN))
        fewest = 1
    else:
        fewest = min_count if rule.min_count is None else rule.min_count
    # What keeps a part from being judged depends on its inputs and on OLD, never on NEW's answers.
    level = 1 - (1 - rule.confidence) / (max(1, len(parts)) if rule.correction else 1)
    reasons = [obstacle(comparison, rule, part, fewest, unresolved, level) for part in parts]
    ready = [place for place, reason in enumerate(reasons) if not reason]
    found = dict.fromkeys(ready, Decision("open", rule.confidence))
    if rule.on == "bound":

        def interval(level: float, place: int) -> Estimate:
            part = parts_at(level)[ready[place]]
            return with_interval(rule, part, judged_by(comparison, rule, part))

        thresholds = [rule.threshold] * len(ready)
        found = dict(zip(ready, decide(rule, thresholds, interval), strict=True))
    outcomes = []
    for place, (part, reason) in enumerate(zip(parts, reasons, strict=True)):
        if reason:
            outcomes.append(_unjudged(rule, part, reason, rule.for_every))
        elif rule.on == "value":
            outcomes.append(_of_value(comparison, rule, part))
        else:
            there = parts_at(found[place].confidence)[place]
            outcomes.append(_of_bound(comparison, rule, there, found[place], unresolved))
    if all(outcome.status == "not judged" for outcome in outcomes):
        said = "; ".join(f"{outcome.part}: {outcome.reason}" for outcome in outcomes[:3])
        raise ComparisonError(
            f"Rule {rule.title!r} could be judged nowhere ({said or 'there are no inputs'}). "
            "Change the rule, or predict more inputs."
        )
    return [with_keys(outcome) for outcome in outcomes]


def _of_value(comparison: Comparison, rule: Rule, part: Part) -> RuleOutcome:
    estimate = estimate_on(comparison, rule, part)
    if math.isnan(estimate.value):
        return _unjudged(rule, part, f"{rule.metric} is undefined there (0/0)", rule.for_every)
    asked = threshold_on(comparison, rule, part)
    if rule.at_least is not None:
        passed = estimate.value >= asked - ROUNDING
    else:
        passed = estimate.value <= asked + ROUNDING
    return RuleOutcome(
        rule=rule,
        part=part.words,
        inputs=part.inputs,
        status="passed" if passed else "failed",
        estimate=estimate,
        judged=estimate.value,
        noise_floor=floor_on(rule, part),
        asked=asked if rule.relative_to else None,
        multiple=judged_by(comparison, rule, part) if rule.relative_to else None,
    )


def _of_bound(
    comparison: Comparison, rule: Rule, part: Part, decision: Decision, unresolved: Unresolved
) -> RuleOutcome:
    becomes: dict[Unresolved, Status] = {"fail": "failed", "pass": "passed", "report": "unresolved"}
    statuses: dict[Answer, Status] = {
        "good": "passed", "bad": "failed", "open": becomes[unresolved],
    }  # fmt: skip
    by = with_interval(rule, part, judged_by(comparison, rule, part))
    resolved, level = decision.answer != "open", decision.confidence
    asked, estimate = rule.threshold, by
    if rule.relative_to:
        asked, estimate = threshold_on(comparison, rule, part), estimate_on(comparison, rule, part)
        if asked > 0:  # the interval of the multiple, in the unit of the metric
            unit = asked / rule.threshold
            estimate = Estimate(estimate.value, (by.low or 0.0) * unit, (by.high or 0.0) * unit)
    # "Clearly worse" is judged by the better end of the interval, all else by the worse one.
    worse = estimate.low if rule.at_least is not None else estimate.high
    better = estimate.high if rule.at_least is not None else estimate.low
    needed = inputs_needed(rule, confidence=level)
    short = not resolved and needed is not None and part.effective < needed
    churn = part.metrics.get("churn")
    return RuleOutcome(
        rule=rule,
        part=part.words,
        inputs=part.inputs,
        status=statuses[decision.answer],
        estimate=estimate,
        judged=better if unresolved == "pass" else worse,
        reason=f"{part.counting:,} inputs cannot show it, however good: that takes {needed:,}"
        if short
        else "",
        noise_floor=floor_on(rule, part),
        asked=asked if rule.relative_to else None,
        multiple=by if rule.relative_to else None,
        confidence=level,
        resolved=resolved,
        needed=needed,
        further=None
        if resolved
        else further_inputs(
            rule,
            by,
            rule.threshold,
            part.effective,
            confidence=level,
            exact=comparison.task != "graded",  # of which an input may be lost in part
        ),
        # Two numbers may agree of which one is right; grades show whether answers differ.
        further_differing=None
        if resolved or comparison.task in ("regression", "graded")
        else further_disagreements(
            rule,
            by,
            rule.threshold,
            part.effective,
            None if churn is None else churn.value,
            confidence=level,
        ),
    )


def _unjudged(rule: Rule, part: Part, reason: str, lenient: bool = False) -> RuleOutcome:
    if not lenient:
        raise ComparisonError(
            f"Rule {rule.title!r} cannot be judged on {part.words}: {reason}. "
            "Change the rule, or predict more inputs."
        )
    return RuleOutcome(
        rule=rule, part=part.words, inputs=part.inputs, status="not judged", reason=reason
    )
