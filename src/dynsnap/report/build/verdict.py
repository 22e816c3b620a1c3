"""A gate's verdict as a document: the decision first, then what it rests on."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dynsnap.comparison import Comparison
from dynsnap.gate import Rule, RuleOutcome, Verdict
from dynsnap.report.build.cells import (
    ABOUT_SAME_DATA,
    SAME_DATA,
    count_cell,
    interval_cell,
    interval_column,
    metric_cell,
    value_cell,
)
from dynsnap.report.build.comparison import (
    BREAKDOWNS,
    comparison_sections,
    setting,
    signature,
)
from dynsnap.report.build.groups import worse_slices
from dynsnap.report.build.inputs import Looks
from dynsnap.report.document import (
    Banner,
    Bullet,
    Bullets,
    Cell,
    Check,
    Column,
    Document,
    Node,
    Section,
    Status,
    Strip,
    Table,
    Tone,
)
from dynsnap.report.figures import rules
from dynsnap.report.words import clipped, count, counted, interval, number

_TONES: dict[str, Tone] = {"failed": "bad", "passed": "good", "not judged": "quiet"}
_STATUSES: dict[str, Status] = {"failed": "failed", "passed": "passed", "not judged": "skipped"}
_SEARCH = 12  # rows from which on a table has a field to search it


def verdict_document(
    verdict: Verdict,
    comparison: Comparison | None = None,
    *,
    limit: int = 0,
    looks: Looks | None = None,
    learned_from: Mapping[str, int] | None = None,
) -> Document:
    """A verdict and every check, failures first; on a page, the comparison that was judged too.

    Args:
        verdict: What `dynsnap.gate.judge` returned.
        comparison: What it judged.
        limit: Of each rule, the most checks that the terminal shows besides the failures, those
            nearest to the threshold first; 0 for all.
        looks: What inputs look like, by id, as `dynsnap.data.read_excerpts` gives it.
        learned_from: Training rows of each class, where that is known.

    Example:
        >>> from dynsnap.gate import Rule, RuleOutcome
        >>> outcome = RuleOutcome(rule=Rule(metric="lost", at_most=0.02), part="all inputs",
        ...                       inputs=50, status="passed", judged=0.0)
        >>> verdict = Verdict(old="monday", new="tuesday", inputs=50, outcomes=(outcome,))
        >>> verdict_document(verdict).banner.word
        'PASS'
    """
    sections = [_rules(verdict, comparison, limit)]
    about = []
    if comparison is not None:
        about.append(setting(comparison))
        found = comparison_sections(comparison, BREAKDOWNS, 0, looks or {}, learned_from or {})
        sections += [replace(section, detail="full") for section in found]
    if verdict.verification:
        about.append(verification(verdict))
    partial = comparison is not None and comparison.alignment.partial
    return Document(
        title=f"{clipped(verdict.old, 60)} → {clipped(verdict.new, 60)}",
        about=" ".join(about),
        banner=Banner("PASS" if verdict.passed else "FAIL", _summary(verdict), verdict.passed),
        warnings=(comparison.alignment.sentence(),) if comparison is not None and partial else (),
        sections=tuple(sections),
        footer=signature(),
        suite="gate",
        checks=tuple(_check(outcome) for outcome in verdict.outcomes),
        properties=tuple(
            (f"verification of {name}", str(each)) for name, each in verdict.verification.items()
        ),
    )


def worst_first(outcomes: Sequence[RuleOutcome]) -> list[RuleOutcome]:
    """Failures first, then what passed, then what was not judged; of each rule the worst first."""
    ordered = list(dict.fromkeys(outcome.rule for outcome in outcomes))
    statuses = list(_TONES)
    return sorted(
        outcomes,
        key=lambda one: (statuses.index(one.status), ordered.index(one.rule), -_excess(one)),
    )


def sentence(outcome: RuleOutcome) -> str:
    """An outcome in one sentence."""
    if outcome.status == "not judged":
        return f"{outcome.rule.metric} of {outcome.part}: {outcome.reason}."
    rule, estimate = outcome.rule, outcome.estimate
    found = number(estimate.value if estimate else None)
    limits = f" (interval {interval(estimate)})" if interval(estimate) else ""
    asked = "at least" if rule.at_least is not None else "at most"
    which = ", with the worse end of the interval" if rule.on == "bound" else ""
    return (
        f"{rule.metric} of {outcome.part} is {found}{limits}, "
        f"asked for {asked} {rule.threshold:g}{which}."
    )


def verification(verdict: Verdict) -> str:
    """Whether the files that were judged are as they were written, in a sentence.

    Example:
        >>> from dynsnap.predictions import Verification
        >>> found = {"old": Verification(True, "digest"), "new": Verification(False, "no digest")}
        >>> verification(Verdict(old="old", new="new", inputs=9, outcomes=(), verification=found))
        'Inputs: old verified; new not verified (no digest).'
    """
    names: dict[str, list[str]] = {}
    for name, each in verdict.verification.items():
        status = "verified" if each.verified else f"not verified ({each.detail})"
        names.setdefault(status, []).append(name)
    said = [f"{', '.join(some)} {status}" for status, some in names.items()]
    return f"Inputs: {'; '.join(said)}."


def _check(outcome: RuleOutcome) -> Check:
    title = f"{outcome.rule.title} ({outcome.part})"
    return Check(title, _STATUSES[outcome.status], sentence(outcome))


def _excess(outcome: RuleOutcome) -> float:
    """How far beyond its threshold a value lies; below zero if it passed."""
    if outcome.judged is None:
        return 0.0
    beyond = outcome.judged - outcome.rule.threshold
    return beyond if outcome.rule.at_most is not None else -beyond


def _summary(verdict: Verdict) -> str:
    judged = [outcome for outcome in verdict.outcomes if outcome.status != "not judged"]
    left_out = len(verdict.outcomes) - len(judged)
    more = f", {count(left_out)} not judged" if left_out else ""
    return (
        f"{count(len(verdict.failed))} of {count(len(judged))} checks failed{more}, "
        f"on {counted(verdict.inputs, 'input')}."
    )


def _rules(verdict: Verdict, comparison: Comparison | None, limit: int) -> Section:
    outcomes = worst_first(verdict.outcomes)
    body: list[Node] = []
    if any(outcome.estimate is not None for outcome in outcomes):
        body.append(rules(outcomes))
    body.append(_table(outcomes, limit))
    if unjudged := [outcome for outcome in outcomes if outcome.status == "not judged"]:
        body.append(Bullets.of("Not judged", [sentence(one) for one in unjudged[: limit or None]]))
    if comparison is not None and (steps := tuple(_next(verdict, comparison))):
        body.append(Bullets(title="What to look at next", items=steps, detail="full"))
    if verdict.notes:
        body.append(Bullets.of("Notes", verdict.notes))
    return Section(
        name="rules",
        title="Rules",
        lead="Dots are values, bars through them intervals, upright lines thresholds; "
        "what would fail is shaded.",
        body=tuple(body),
    )


def _table(outcomes: Sequence[RuleOutcome], limit: int) -> Table:
    times: Counter[tuple[Rule, str]] = Counter()
    left_out = set()
    for place, outcome in enumerate(outcomes):
        times[outcome.rule, outcome.status] += 1
        often = times[outcome.rule, outcome.status]
        if outcome.status != "failed" and limit and often > limit:
            left_out.add(place)
    rest = f"and {count(len(left_out))} more that did not fail" if left_out else ""
    return Table(
        name="rules-table",
        title="Every check, failures first, of each rule the worst first",
        columns=(
            Column("metric"),
            Column("outcome", key=True),
            Column("of", "words", key=True),
            Column("asked for"),
            Column("value", "number"),
            interval_column(),
            Column("░ fails", "plot", detail="brief"),
            Column("inputs", "number"),
            Column(SAME_DATA, "number", ABOUT_SAME_DATA),
            Column("rule", "words"),
        ),
        rows=tuple(_row(outcome) for outcome in outcomes),
        full_rows=frozenset(left_out),
        search=len(outcomes) > _SEARCH,
        brief_footer=rest,
    )


def _row(outcome: RuleOutcome) -> tuple[Cell, ...]:
    rule, found = outcome.rule, outcome.estimate
    on_bound = rule.on == "bound"
    sign = "≥" if rule.at_least is not None else "≤"
    level = f" at {rule.confidence:g}" if on_bound else ""
    floor = outcome.noise_floor
    return (
        metric_cell(rule.metric),
        Cell(outcome.status, tone=_TONES[outcome.status]),
        Cell(outcome.part),
        Cell(f"{sign} {rule.threshold:g}{level}"),
        # The number that is held against the threshold stands out.
        value_cell(found.value if found else None, "quiet" if on_bound else "strong"),
        interval_cell(found, "strong" if on_bound else "quiet"),
        Cell(plot=_plot(outcome), tone=_TONES[outcome.status]),
        count_cell(outcome.inputs),
        Cell() if floor is None else value_cell(floor, "quiet"),
        Cell(rule.name, tone="quiet"),
    )


def _plot(outcome: RuleOutcome) -> Strip | None:
    """The value and its interval beside the threshold, on a scale of their own."""
    found, rule = outcome.estimate, outcome.rule
    if found is None:
        return None
    known = [found.value, found.low, found.high, rule.threshold]
    numbers = [each for each in known if each is not None and math.isfinite(each)]
    air = (max(numbers) - min(numbers)) / 4 or 0.02
    return Strip(
        estimate=found,
        start=min(numbers) - air,
        end=max(numbers) + air,
        threshold=rule.threshold,
        fails_above=rule.at_most is not None,
        failed=outcome.status == "failed",
    )


def _next(verdict: Verdict, comparison: Comparison) -> Iterator[Bullet]:
    """What a reviewer would turn to, from what was found."""
    pair = comparison.pairs[0]
    for outcome in worst_first(verdict.failed)[:3]:
        yield Bullet(sentence(outcome))
        floor = outcome.noise_floor
        if floor is not None and not _better(outcome, floor):
            yield Bullet(
                f"The old model retrained on the same data has {number(floor)}, which fails this "
                "rule too: chance in training alone may explain it."
            )
    if verdict.passed:
        yield Bullet(_tightest(verdict))
    classes = [
        (group.transitions.lost, group.name)
        for group in pair.groups
        if group.kind == "class" and group.transitions
    ]
    lost, name = max(classes, key=lambda one: one[0], default=(0, ""))
    if lost and pair.transitions:
        share = lost / pair.transitions.lost
        said = f"{count(lost)} inputs, {share:.0%} of all that were lost."
        yield Bullet(f"Class {clipped(name)} lost most: {said}", "classes")
    worse, tested = worse_slices(comparison, pair)
    if worse:
        yield Bullet(f"{len(worse)} of {tested} slices got worse beyond chance.", "slices")
    if pair.flipped:
        said = "The inputs that the new model is wrong about with most confidence are listed."
        yield Bullet(said, "inputs")


def _better(outcome: RuleOutcome, value: float) -> bool:
    if outcome.rule.at_least is not None:
        return value >= outcome.rule.threshold
    return value <= outcome.rule.threshold


def _tightest(verdict: Verdict) -> str:
    judged = [outcome for outcome in verdict.outcomes if outcome.judged is not None]
    nearest = min(judged, key=lambda one: abs((one.judged or 0.0) - one.rule.threshold))
    return f"Nearest to its threshold: {sentence(nearest)}"
