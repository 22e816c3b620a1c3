"""Rules of a gate on bars: the value, its interval, and the threshold that it is held against."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from dynsnap.gate import Rule, RuleOutcome
from dynsnap.report.figures._drawing import (
    Box,
    Dot,
    Figure,
    Shape,
    Stroke,
    Text,
    Tone,
    fitted,
    ticks,
    width_of,
)
from dynsnap.report.words import number

_ROWS = 24
_NEAREST = 3  # of each rule, those that passed and are drawn where there are many
_WIDE = 1080.0  # of a page
_NARROW = 400.0  # of a phone
_TALL = 92.0  # from one check to the next, where its name takes two lines
_STEP = 74.0  # from one rule to the next


_Span: TypeAlias = tuple[float, float]


def rules(outcomes: Sequence[RuleOutcome]) -> Figure:
    """Each outcome on a bar of its own, in their order; what would fail is shaded."""
    known = [
        outcome
        for outcome in outcomes
        if outcome.estimate is not None and math.isfinite(outcome.estimate.value)
    ]
    cut = len(known) > _ROWS
    judged = known
    if cut:
        passed: Counter[Rule] = Counter()
        judged = []
        for outcome in known:
            passed[outcome.rule] += outcome.status == "passed"
            if outcome.status in ("failed", "unresolved") or passed[outcome.rule] <= _NEAREST:
                judged.append(outcome)
        judged = judged[:_ROWS]
    spans = _spans(judged)
    failed = sum(outcome.status == "failed" for outcome in judged)
    whole = Figure(
        name="rules",
        title=f"{len(judged)} of {len(known)} checks on bars: failures, and what came nearest"
        if cut
        else "Every check on a bar",
        description=(
            f"{len(judged)} checks, of which {failed} failed. Dots are values, lines through them "
            "intervals, upright lines thresholds; what would fail is shaded. Checks of one metric "
            "share a scale."
        ),
        width=_WIDE,
        height=8 + len(judged) * _STEP,
        shapes=_bars(judged, spans, _WIDE),
    )
    small = replace(
        whole,
        width=_NARROW,
        height=8 + len(judged) * _TALL,
        shapes=_bars(judged, spans, _NARROW),
    )
    return replace(whole, narrow=small)


def _bars(
    judged: Sequence[RuleOutcome], spans: Mapping[str, _Span], wide: float
) -> tuple[Shape, ...]:
    shapes: list[Shape] = []
    for place, outcome in enumerate(judged):
        step = _STEP if wide > _NARROW else _TALL
        shapes += _bar(outcome, 8 + place * step, wide, spans[outcome.rule.metric])
    return tuple(shapes)


def _spans(outcomes: Sequence[RuleOutcome]) -> dict[str, _Span]:
    """For each metric, from where to where its bars go."""
    found: dict[str, list[float]] = {}
    for outcome in outcomes:
        estimate = outcome.estimate
        assert estimate is not None
        known = (
            estimate.value, estimate.low, estimate.high, outcome.threshold, outcome.noise_floor
        )  # fmt: skip
        own = found.setdefault(outcome.rule.metric, [])
        own += [each for each in known if each is not None and abs(each) < 1e9]
    spans = {}
    for name, numbers in found.items():
        low, high = min(numbers), max(numbers)
        air = (high - low) * 0.1 or 0.02
        within = low >= 0 and high <= 1
        low, high = low - air, high + air
        spans[name] = (max(low, 0.0), min(high, 1.0)) if within else (low, high)
    return spans


def asked(outcome: RuleOutcome) -> str:
    """What a rule asks for, in short."""
    rule = outcome.rule
    sign = "≥" if rule.at_least is not None else "≤"
    level = outcome.confidence or rule.confidence
    return f"{sign} {rule.asked}" + (f" at {level:.5g}" if rule.on == "bound" else "")


def limits(outcome: RuleOutcome) -> str:
    """The interval of an outcome, or nothing."""
    found = outcome.estimate
    if found is None or found.low is None or found.high is None:
        return ""
    return f"[{number(found.low)}, {number(found.high)}]"


def _bar(outcome: RuleOutcome, top: float, page: float, span: _Span) -> list[Shape]:
    rule, found = outcome.rule, outcome.estimate
    assert found is not None
    threshold = outcome.threshold
    low, high = span
    narrow = page <= _NARROW
    left, wide, y = 2.0, page - 4, top + (40 if narrow else 22)

    def place(value: float) -> float:
        return left + (min(max(value, low), high) - low) / (high - low) * wide

    bar = place(threshold)
    tone: Tone = {"failed": "bad", "unresolved": "ink"}.get(outcome.status, "good")  # type: ignore[assignment]
    fails = (left, bar) if rule.at_least is not None else (bar, left + wide)
    what = f"{rule.metric.replace('_', ' ')} {asked(outcome)}"
    where = "" if outcome.part == "all inputs" else f", {outcome.part}"
    value = f"{outcome.status} {number(found.value)}"
    if not narrow and limits(outcome):
        value += f" {limits(outcome)}"
    room = wide - width_of(value, 13) - 24
    title = f"{rule.name}: {what}{where}" if rule.name else f"{what}{where}"
    below = ""
    if narrow:
        title, below = (rule.name, f"{what}{where}") if rule.name else (what, outcome.part)
    shapes: list[Shape] = [
        Text(x=left, y=top + 12, text=fitted(title, room, 13), bold=True, size=13),
        Text(x=left + wide, y=top + 12, text=value, anchor="end", bold=True, tone=tone, size=13),
        *([Text(x=left, y=top + 29, text=fitted(below, wide), tone="muted")] if narrow else []),
        Box(x=left, y=y, width=wide, height=16, tone="panel"),
        Box(x=fails[0], y=y, width=fails[1] - fails[0], height=16, tone="lost", opacity=0.18),
    ]
    for tick in ticks(low, high, 4 if narrow else 10):
        at, text = place(tick), f"{tick:g}"
        half = width_of(text, 11) / 2
        middle = min(max(at, left + half), left + wide - half)
        shapes += [
            Stroke(points=((at, y + 16), (at, y + 20)), tone="muted"),
            Text(x=middle, y=y + 31, text=text, anchor="middle", tone="muted", size=11),
        ]
    if found.low is not None and found.high is not None:
        ends = ((place(found.low), y + 8), (place(found.high), y + 8))
        shapes.append(Stroke(points=ends, tone="ink", width=3))
    shapes += [
        Stroke(points=((bar, y - 4), (bar, y + 20)), tone="ink", width=2,
               label=f"threshold {threshold:g}"),
        Dot(x=place(found.value), y=y + 8, tone=tone, radius=6,
            shape="diamond" if outcome.status == "failed" else "circle",
            label=f"value {number(found.value)} {limits(outcome)}"),
    ]  # fmt: skip
    if outcome.noise_floor is not None:
        at = place(outcome.noise_floor)
        shapes.append(
            Stroke(points=((at, y), (at, y + 16)), tone="muted", width=1.5, dashed=True,
                   label=f"same data, trained twice: {number(outcome.noise_floor)}")
        )  # fmt: skip
    return shapes
