"""A gate's verdict as a page: the decision first, then what it rests on."""

from collections.abc import Iterator, Mapping, Sequence

from dynsnap.comparison import Comparison
from dynsnap.gate import RuleOutcome, Verdict
from dynsnap.report._blocks import count, interval, number
from dynsnap.report._element import Child, Markup, clipped, element
from dynsnap.report._gate import sentence, verification, worst_first
from dynsnap.report.figures import rules
from dynsnap.report.figures._rules import asked
from dynsnap.report.html._comparison import sections, setting, signature, warning
from dynsnap.report.html._groups import worse_slices
from dynsnap.report.html._looks import Looks
from dynsnap.report.html._page import Page, bounded, page
from dynsnap.report.html._parts import (
    INTERVAL,
    Entry,
    Head,
    Listing,
    Section,
    listing,
    metric_term,
    picture,
)

_TONES = {"passed": "good", "failed": "bad", "not judged": "quiet"}


def gate_page(
    verdict: Verdict,
    comparison: Comparison,
    *,
    looks: Looks | None = None,
    learned_from: Mapping[str, int] | None = None,
) -> Page:
    """A verdict, and the comparison that it was given on, as one self-contained page.

    Args:
        verdict: What `dynsnap.gate.judge` returned.
        comparison: What it judged.
        looks: What inputs look like, by id, as `dynsnap.data.read_excerpts` gives it.
        learned_from: Training rows of each class, where that is known.

    Example:
        >>> import dynsnap
        >>> from dynsnap.gate import Rule, judge
        >>> old = dynsnap.Predictions(ids=[1, 2], classes=["a", "b"], labels=[0, 1], truth=[0, 1])
        >>> new = dynsnap.Predictions(ids=[1, 2], classes=["a", "b"], labels=[0, 0])
        >>> found = dynsnap.compare(old, new)
        >>> verdict = judge(found, [Rule(metric="lost", at_most=0.1)], min_count=2)
        >>> "FAIL" in gate_page(verdict, found).html
        True
    """
    return bounded(
        lambda rows: page(
            title=f"{clipped(verdict.old, 60)} → {clipped(verdict.new, 60)}",
            about=f"{setting(comparison)} {_verified(verdict)}".rstrip(),
            banner=[_banner(verdict), warning(comparison)],
            sections=(
                _verdict(verdict, comparison, rows),
                *sections(comparison, rows, looks or {}, learned_from),
            ),
            footer=signature(comparison),
        )
    )


def _verified(verdict: Verdict) -> str:
    return clipped(verification(verdict), 600) if verdict.verification else ""


def _banner(verdict: Verdict) -> Markup:
    judged = [outcome for outcome in verdict.outcomes if outcome.status != "not judged"]
    failed = len(verdict.failed)
    said = (
        f"{count(failed)} of {count(len(judged))} checks failed."
        if failed
        else f"All {count(len(judged))} checks passed."
    )
    left_out = len(verdict.outcomes) - len(judged)
    more = f" {count(left_out)} could not be judged." if left_out else ""
    return element(
        "div",
        element("strong", "PASS" if verdict.passed else "FAIL"),
        element("p", said + more),
        class_=f"verdict {'pass' if verdict.passed else 'fail'}",
        role="status",
    )


def _verdict(verdict: Verdict, comparison: Comparison, rows: int) -> Section:
    outcomes = worst_first(verdict.outcomes)
    drawn = rules(outcomes)
    next_steps = [element("li", step) for step in _next(verdict, comparison)]
    return Section(
        name="rules",
        title="Rules",
        lead="Dots are values, bars through them intervals, upright lines thresholds; "
        "what would fail is shaded.",
        body=[
            picture(drawn),
            _table(outcomes, rows),
            element("h3", "What to look at next"),
            element("ul", next_steps, class_="plain", id="next"),
        ],
        figures=(drawn,),
    )


def _table(outcomes: Sequence[RuleOutcome], rows: int) -> Markup:
    floor = any(outcome.noise_floor is not None for outcome in outcomes)
    heads = [
        Head("metric"),
        Head("outcome"),
        Head("of"),
        Head("asked for"),
        Head("value", True),
        INTERVAL,
        Head("inputs", True),
    ]
    if floor:
        heads.append(
            Head("same data", True, "The same between the old model and its twin, trained again.")
        )
    named = any(outcome.rule.name for outcome in outcomes)
    if named:
        heads.append(Head("rule"))
    lines = []
    for outcome in outcomes[:rows]:
        found = outcome.estimate
        value = None if found is None else found.value
        line = [
            Entry(metric_term(outcome.rule.metric)),
            Entry(outcome.status, tone=_TONES[outcome.status]),
            Entry(outcome.part, tone="text"),
            Entry(asked(outcome)),
            Entry(number(value), key=value),
            Entry(interval(found), tone="range"),
            Entry(count(outcome.inputs), key=outcome.inputs),
        ]
        if floor:
            twin = outcome.noise_floor
            line.append(Entry("" if twin is None else number(twin), key=twin))
        if named:
            line.append(Entry(outcome.rule.name, tone="text"))
        lines.append(line)
    return listing(
        Listing(
            name="rules-table",
            caption="Every check, failures first, of each rule the worst first",
            heads=tuple(heads),
            rows=lines,
            search=len(lines) > 12,
            whole=len(outcomes),
        )
    )


def _next(verdict: Verdict, comparison: Comparison) -> Iterator[Child]:
    """What a reviewer would turn to, from what was found."""
    pair = comparison.pairs[0]
    for outcome in worst_first(verdict.failed)[:3]:
        words = outcome.rule.metric
        said = sentence(outcome).replace(words, words.replace("_", " "), 1)
        yield said[:1].upper() + said[1:]
        floor = outcome.noise_floor
        if floor is not None and not _better(outcome, floor):
            yield (
                f"Training the old model again on the same data gives {number(floor)}, which would "
                "fail this rule too: chance in training alone may explain it."
            )
    if verdict.passed:
        yield _tightest(verdict)
    classes = [group for group in pair.groups if group.kind == "class" and group.transitions]
    worst = max(classes, key=lambda group: group.transitions.lost, default=None)  # type: ignore[union-attr]
    if worst is not None and worst.transitions and pair.transitions and worst.transitions.lost:
        share = worst.transitions.lost / pair.transitions.lost
        yield [
            f"Class {clipped(worst.name)} lost most: {count(worst.transitions.lost)} inputs, "
            f"{share:.0%} of all that were lost. ",
            element("a", "See classes.", href="#classes"),
        ]
    worse, tested = worse_slices(comparison, pair)
    if worse:
        yield [
            f"{len(worse)} of {tested} slices got worse beyond chance. ",
            element("a", "See slices.", href="#slices"),
        ]
    if pair.flipped:
        yield [
            "The inputs that the new model is wrong about with most confidence are listed. ",
            element("a", "See inputs.", href="#inputs"),
        ]


def _better(outcome: RuleOutcome, value: float) -> bool:
    if outcome.rule.at_least is not None:
        return value >= outcome.rule.threshold
    return value <= outcome.rule.threshold


def _tightest(verdict: Verdict) -> str:
    judged = [outcome for outcome in verdict.outcomes if outcome.judged is not None]
    nearest = min(judged, key=lambda one: abs((one.judged or 0.0) - one.rule.threshold))
    return f"Nearest to its threshold: {sentence(nearest)}"
