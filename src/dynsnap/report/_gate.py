"""A gate's verdict as a report, and as JUnit XML for the machines that collect test results."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from dynsnap.errors import one_line
from dynsnap.gate import Rule, RuleOutcome, Verdict
from dynsnap.report._blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Heading,
    Paragraph,
    Table,
    Tone,
    count,
    counted,
    interval,
    number,
    without_empty_columns,
)
from dynsnap.report._plots import strip

_COLUMNS = (
    Column(""),
    Column("metric"),
    Column("of"),
    Column("asked for"),
    Column("value", numeric=True),
    Column("interval"),
    Column("░ fails", plot=True),
    Column("inputs", numeric=True),
    Column("same data", numeric=True),
    Column("rule"),
)
_TONES: dict[str, Tone] = {"failed": "bad", "passed": "good", "not judged": "quiet"}


def gate_report(verdict: Verdict, *, limit: int = 0) -> Document:
    """A verdict: what was decided, then every check: failures, worst first, then the others.

    Args:
        verdict: What `dynsnap.gate.judge` returned.
        limit: Of each rule, the most checks that are shown besides the failures, those nearest to
            the threshold first; 0 for all.

    Example:
        >>> from dynsnap.gate import Rule, RuleOutcome
        >>> outcome = RuleOutcome(rule=Rule(metric="lost", at_most=0.02), part="all inputs",
        ...                       inputs=50, status="passed", judged=0.0)
        >>> verdict = Verdict(old="monday", new="tuesday", inputs=50, outcomes=(outcome,))
        >>> [block.text for block in gate_report(verdict)[:2]]
        ['PASS: monday → tuesday', '0 of 1 checks failed, on 50 inputs.']
    """
    return tuple(_blocks(verdict, limit))


def worst_first(outcomes: Sequence[RuleOutcome]) -> list[RuleOutcome]:
    """Failures first, then what passed, then what was not judged; of each rule the worst first."""
    rules = list(dict.fromkeys(outcome.rule for outcome in outcomes))
    statuses = list(_TONES)
    return sorted(
        outcomes,
        key=lambda one: (statuses.index(one.status), rules.index(one.rule), -_excess(one)),
    )


def _excess(outcome: RuleOutcome) -> float:
    """How far beyond its threshold a value lies; below zero if it passed."""
    if outcome.judged is None:
        return 0.0
    beyond = outcome.judged - outcome.rule.threshold
    return beyond if outcome.rule.at_most is not None else -beyond


def _blocks(verdict: Verdict, limit: int) -> Iterator[Block]:
    yield Heading(f"{'PASS' if verdict.passed else 'FAIL'}: {verdict.old} → {verdict.new}")
    yield Paragraph(_summary(verdict), "plain" if verdict.passed else "bad")
    if verdict.verification:
        yield Paragraph(verification(verdict), "quiet")
    shown: list[RuleOutcome] = []
    times: Counter[tuple[Rule, str]] = Counter()
    for outcome in worst_first(verdict.outcomes):
        times[outcome.rule, outcome.status] += 1
        often = times[outcome.rule, outcome.status]
        if outcome.status == "failed" or not limit or often <= limit:
            shown.append(outcome)
    left_out = len(verdict.outcomes) - len(shown)
    yield without_empty_columns(
        Table(
            title="",
            columns=_COLUMNS,
            rows=tuple(_row(outcome) for outcome in shown),
            keys=3,
            footer=f"and {count(left_out)} more that did not fail" if left_out else "",
        )
    )
    unjudged = [outcome for outcome in shown if outcome.status == "not judged"]
    if unjudged:
        yield Bullets("Not judged", tuple(sentence(outcome) for outcome in unjudged))
    if verdict.notes:
        yield Bullets("Notes", verdict.notes)


def _summary(verdict: Verdict) -> str:
    judged = [outcome for outcome in verdict.outcomes if outcome.status != "not judged"]
    failed = len(verdict.failed)
    left_out = len(verdict.outcomes) - len(judged)
    more = f", {count(left_out)} not judged" if left_out else ""
    return (
        f"{count(failed)} of {count(len(judged))} checks failed{more}, "
        f"on {counted(verdict.inputs, 'input')}."
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


def _row(outcome: RuleOutcome) -> tuple[Cell, ...]:
    rule, estimate = outcome.rule, outcome.estimate
    on_bound = rule.on == "bound"
    sign = "≥" if rule.at_least is not None else "≤"
    level = f" at {rule.confidence:g}" if on_bound else ""
    return (
        Cell(outcome.status, _TONES[outcome.status]),
        Cell(rule.metric),
        Cell(outcome.part),
        Cell(f"{sign} {rule.threshold:g}{level}"),
        # The number that is held against the threshold stands out.
        Cell(number(estimate.value if estimate else None), "quiet" if on_bound else "strong"),
        Cell(interval(estimate), "strong" if on_bound else "quiet"),
        Cell(_plot(outcome), _TONES[outcome.status]),
        Cell(count(outcome.inputs)),
        Cell("" if outcome.noise_floor is None else number(outcome.noise_floor), "quiet"),
        Cell(rule.name, "quiet"),
    )


def _plot(outcome: RuleOutcome) -> str:
    """The value and its interval beside the threshold, on a scale of their own."""
    found, rule = outcome.estimate, outcome.rule
    if found is None:
        return ""
    known = [found.value, found.low, found.high, rule.threshold]
    numbers = [each for each in known if each is not None and math.isfinite(each)]
    air = (max(numbers) - min(numbers)) / 4 or 0.02
    return strip(
        found,
        start=min(numbers) - air,
        end=max(numbers) + air,
        mark="◆" if outcome.status == "failed" else "●",
        threshold=rule.threshold,
        fails_above=rule.at_most is not None,
    )


def junit(verdict: Verdict) -> str:
    """A verdict as JUnit XML: one test case for each rule and part of the inputs.

    Example:
        >>> from dynsnap.gate import Rule, RuleOutcome
        >>> outcome = RuleOutcome(rule=Rule(metric="lost", at_most=0.02), part="all inputs",
        ...                       inputs=50, status="passed", judged=0.0)
        >>> verdict = Verdict(old="monday", new="tuesday", inputs=50, outcomes=(outcome,))
        >>> print(junit(verdict).splitlines()[3].strip())
        <testcase classname="dynsnap.gate" name="lost ≤ 0.02 (all inputs)">
    """
    unjudged = sum(outcome.status == "not judged" for outcome in verdict.outcomes)
    suite = ElementTree.Element(
        "testsuite",
        name=one_line(f"dynsnap gate: {verdict.old} → {verdict.new}"),
        tests=str(len(verdict.outcomes)),
        failures=str(len(verdict.failed)),
        errors="0",
        skipped=str(unjudged),
    )
    if verdict.verification:
        properties = ElementTree.SubElement(suite, "properties")
        for name, each in verdict.verification.items():
            of = one_line(f"verification of {name}")
            ElementTree.SubElement(properties, "property", name=of, value=one_line(str(each)))
    for outcome in verdict.outcomes:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname="dynsnap.gate",
            name=one_line(f"{outcome.rule.title} ({outcome.part})"),
        )
        told = one_line(sentence(outcome))
        if outcome.status == "failed":
            failure = ElementTree.SubElement(case, "failure", message=told, type="threshold")
            failure.text = told
        elif outcome.status == "not judged":
            ElementTree.SubElement(case, "skipped", message=told)
        else:
            ElementTree.SubElement(case, "system-out").text = told
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    drawn: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{drawn}\n'


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
