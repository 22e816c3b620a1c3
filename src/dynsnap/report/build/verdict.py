"""A gate's verdict as a document: the decision first, then what it rests on."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dynsnap.comparison import Comparison
from dynsnap.errors import some_of
from dynsnap.gate import Rule, RuleOutcome, Verdict
from dynsnap.report.build.cells import (
    ABOUT_SAME_DATA,
    SAME_DATA,
    about_floor,
    count_cell,
    interval_cell,
    interval_column,
    metric_cell,
    value_cell,
)
from dynsnap.report.build.comparison import (
    BREAKDOWNS,
    comparison_sections,
    files_of,
    setting,
    warnings,
)
from dynsnap.report.build.groups import worse_slices
from dynsnap.report.build.inputs import Excerpts
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

_TONES: dict[str, Tone] = {
    "failed": "bad",
    "unresolved": "strong",
    "passed": "good",
    "not judged": "quiet",
}
_STATUSES: dict[str, Status] = {
    "failed": "failed",
    "unresolved": "unresolved",
    "passed": "passed",
    "not judged": "skipped",
}
_WORDS = {"passed": "PASS", "failed": "FAIL", "unresolved": "UNRESOLVED"}
_REASONS = 5  # failed rules that the banner names
_SEARCH = 12  # rows from which on a table has a field to search it


def verdict_document(
    verdict: Verdict,
    comparison: Comparison | None = None,
    *,
    limit: int = 0,
    excerpts: Excerpts | None = None,
    learned_from: Mapping[str, int] | None = None,
) -> Document:
    """A verdict and every check, failures first; on a page, the comparison that was judged too.

    Args:
        verdict: What `dynsnap.gate.judge` returned.
        comparison: What it judged.
        limit: Of each rule, the most checks that the terminal shows besides the failures, those
            nearest to the threshold first; 0 for all.
        excerpts: What inputs look like, by id, as `dynsnap.data.read_excerpts` gives it.
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
        found = comparison_sections(comparison, BREAKDOWNS, 0, excerpts or {}, learned_from or {})
        sections += [replace(section, detail="full") for section in found]
    if verdict.verification:
        about.append(verification(verdict))
    warned = list(_short(verdict.outcomes))
    if comparison is not None:
        warned = [*warnings(comparison), *warned]
    return Document(
        title=f"{clipped(verdict.old, 60)} → {clipped(verdict.new, 60)}",
        about=" ".join(about),
        banner=Banner(
            _WORDS[verdict.word], _summary(verdict), verdict.passed, tuple(_reasons(verdict))
        ),
        warnings=tuple(warned),
        sections=tuple(sections),
        made_from=files_of(comparison),
        suite="gate",
        checks=tuple(_check(outcome) for outcome in verdict.outcomes),
        properties=(
            *(
                (f"verification of {name}", str(each))
                for name, each in verdict.verification.items()
            ),
            *((f"baseline {each.name}", each.sentence()) for each in verdict.baselines),
        ),
    )


def _short(outcomes: Sequence[RuleOutcome]) -> Iterator[str]:
    """What a rule on a bound needs, where a part has too few inputs to pass however good it is."""
    by_rule: dict[Rule, list[RuleOutcome]] = {}
    for outcome in outcomes:
        if outcome.needed is not None and outcome.inputs < outcome.needed:
            by_rule.setdefault(outcome.rule, []).append(outcome)
    for rule, short in by_rule.items():
        most = max(outcome.needed or 0 for outcome in short)
        named = some_of([f"{each.part} ({count(each.inputs)})" for each in short])
        yield (
            f"{rule.title}: passes with {count(most)} inputs or more, if all are good. Fewer have "
            f"{named}."
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
    asked = f"{'at least' if rule.at_least is not None else 'at most'} {rule.asked}"
    if rule.relative_to:
        asked += f", which is {number(outcome.threshold)} here"
    asked += rule.further  # they may pass a value that misses its threshold
    which = ", with the worse end of the interval" if rule.on == "bound" else ""
    ends = (None, None) if estimate is None else (estimate.low, estimate.high)
    worse, better = ends if rule.at_least is not None else ends[::-1]
    # The rule itself may leave it to the gate which end decides.
    if rule.on == "bound" and outcome.judged == better != worse:
        which = ", unless the whole interval is worse"
    said = f"{rule.metric} of {outcome.part} is {found}{limits}, asked for {asked}{which}."
    return f"{said} {unsettled(outcome)}" if not outcome.resolved else said


def unsettled(outcome: RuleOutcome) -> str:
    """What would settle a check whose interval covers its threshold."""
    said = "The interval covers the threshold"
    if outcome.reason:
        said += f" ({outcome.reason})"
    if outcome.further is None:
        return f"{said}; no number of further inputs is known to settle it at this value."
    said += f"; about {count(outcome.further)} further labelled inputs would settle it"
    if outcome.part != "all inputs":
        said += f" ({outcome.part})"
    if outcome.further_differing is not None:
        said += (
            f", or {count(outcome.further_differing)} if you label only inputs on which the two "
            "models differ"
        )
    return f"{said}, if the value stays."


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
        if not each.file:
            status = each.detail
        else:
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
    beyond = outcome.judged - outcome.threshold
    return beyond if outcome.rule.at_most is not None else -beyond


def _summary(verdict: Verdict) -> str:
    judged = [outcome for outcome in verdict.outcomes if outcome.status != "not judged"]
    left_out = len(verdict.outcomes) - len(judged)
    more = f", {count(len(verdict.unresolved))} unresolved" if verdict.unresolved else ""
    more += f", {count(left_out)} not judged" if left_out else ""
    return (
        f"{count(len(verdict.failed))} of {count(len(judged))} checks failed{more}, "
        f"on {counted(verdict.inputs, 'input')}."
    )


def _reasons(verdict: Verdict) -> Iterator[Bullet]:
    """The rules that failed, each with the check that failed worst."""
    outcomes = worst_first(verdict.outcomes)
    failed: dict[Rule, list[int]] = {}
    for place, outcome in enumerate(outcomes):
        if outcome.status == "failed":
            failed.setdefault(outcome.rule, []).append(place)
    for rule, places in itertools.islice(failed.items(), _REASONS):
        title = f"{clipped(rule.name, 80)}: " if rule.name else ""
        more = f" And {counted(len(places) - 1, 'more check')} of this rule." if places[1:] else ""
        worst = outcomes[places[0]]
        yield Bullet(f"{title}{sentence(worst)}{more}", _row_name(places[0]))
    if len(failed) > _REASONS:
        yield Bullet(f"And {counted(len(failed) - _REASONS, 'more rule')} failed.", "rules")


def _row_name(place: int) -> str:
    return f"check-{place + 1}"


def _rules(verdict: Verdict, comparison: Comparison | None, limit: int) -> Section:
    outcomes = worst_first(verdict.outcomes)
    body: list[Node] = []
    if any(outcome.estimate is not None for outcome in outcomes):
        body.append(rules(outcomes))
    about = ABOUT_SAME_DATA if comparison is None else about_floor(comparison)
    body.append(_table(outcomes, limit, about))
    if open_ := [outcome for outcome in outcomes if not outcome.resolved]:
        body.append(Bullets.of("Not settled", [*_unsettled(open_, limit)]))
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
        "what would fail is shaded. Checks of one metric share a scale.",
        body=tuple(body),
    )


def _unsettled(outcomes: Sequence[RuleOutcome], limit: int) -> Iterator[str]:
    """Checks whose interval covers the threshold, and what labelling only some inputs means."""
    for outcome in outcomes[: limit or None]:
        yield f"{outcome.rule.metric} of {outcome.part}: {unsettled(outcome)}"
    if limit and len(outcomes) > limit:
        yield f"And {count(len(outcomes) - limit)} more."
    if any(outcome.further_differing is not None for outcome in outcomes):
        yield (
            "Label inputs first on which the two models differ: no other input can be lost or "
            "gained. They are no random sample, so the estimate changes: lost is then the share "
            "of all inputs on which the models differ, which needs no labels, times the share "
            "lost among those labelled. Accuracy itself stays unknown."
        )


def _table(outcomes: Sequence[RuleOutcome], limit: int, about: str) -> Table:
    times: Counter[tuple[Rule, str]] = Counter()
    left_out = set()
    for place, outcome in enumerate(outcomes):
        times[outcome.rule, outcome.status] += 1
        often = times[outcome.rule, outcome.status]
        if outcome.status not in ("failed", "unresolved") and limit and often > limit:
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
            Column(SAME_DATA, "number", about),
            Column("rule", "words"),
        ),
        rows=tuple(_row(outcome) for outcome in outcomes),
        row_names=tuple(map(_row_name, range(len(outcomes)))),
        full_rows=frozenset(left_out),
        search=len(outcomes) > _SEARCH,
        brief_footer=rest,
    )


def _row(outcome: RuleOutcome) -> tuple[Cell, ...]:
    rule, found = outcome.rule, outcome.estimate
    on_bound = rule.on == "bound"
    sign = "≥" if rule.at_least is not None else "≤"
    level = f" at {outcome.confidence or rule.confidence:.5g}" if on_bound else ""
    floor = outcome.noise_floor
    return (
        metric_cell(rule.metric),
        Cell(outcome.status, tone=_TONES[outcome.status]),
        Cell(outcome.part),
        Cell(f"{sign} {rule.asked}{level}{rule.further}"),
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
    known = [found.value, found.low, found.high, outcome.threshold]
    numbers = [each for each in known if each is not None and math.isfinite(each)]
    air = (max(numbers) - min(numbers)) / 4 or 0.02
    return Strip(
        estimate=found,
        start=min(numbers) - air,
        end=max(numbers) + air,
        threshold=outcome.threshold,
        fails_above=rule.at_most is not None,
        failed=outcome.status == "failed",
    )


def _next(verdict: Verdict, comparison: Comparison) -> Iterator[Bullet]:
    """What a reviewer would turn to, from what was found."""
    pair = comparison.pairs[0]
    for outcome in worst_first(verdict.failed)[:3]:  # which the banner names
        floor = outcome.noise_floor
        if floor is not None and not _better(outcome, floor):
            yield Bullet(
                f"The old model retrained on the same data has {number(floor)} for "
                f"{outcome.rule.metric} of {outcome.part}, which fails the rule too: chance in "
                "training alone may explain it."
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
        said = f"{count(lost)} of all {count(pair.transitions.lost)} lost inputs."
        yield Bullet(f'Class "{clipped(name)}" lost most: {said}', "classes")
    worse, tested = worse_slices(comparison, pair)
    if worse:
        yield Bullet(f"{len(worse)} of {tested} slices got worse beyond chance.", "slices")
    if pair.flipped:
        said = "The inputs that the new model is wrong about with most confidence are listed."
        yield Bullet(said, "inputs")


def _better(outcome: RuleOutcome, value: float) -> bool:
    if outcome.rule.at_least is not None:
        return value >= outcome.threshold
    return value <= outcome.threshold


def _tightest(verdict: Verdict) -> str:
    judged = [outcome for outcome in verdict.outcomes if outcome.judged is not None]
    nearest = min(judged, key=lambda one: abs((one.judged or 0.0) - one.threshold))
    return f"Nearest to its threshold: {sentence(nearest)}"
