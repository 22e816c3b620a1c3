"""Rules of a gate on bars: the value, its interval, and the threshold that it is held against."""

import math
from collections import Counter
from collections.abc import Sequence

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
)
from dynsnap.report.words import number

_ROWS = 24
_NEAREST = 3  # of each rule, those that passed and are drawn where there are many
_WIDE = 440.0
_STEP = 80.0  # from one rule to the next


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
            if outcome.status == "failed" or passed[outcome.rule] <= _NEAREST:
                judged.append(outcome)
        judged = judged[:_ROWS]
    shapes: list[Shape] = []
    for place, outcome in enumerate(judged):
        shapes += _bar(outcome, 8 + place * _STEP)
    failed = sum(outcome.status == "failed" for outcome in judged)
    return Figure(
        name="rules",
        title=f"{len(judged)} of {len(known)} checks on bars: failures, and what came nearest"
        if cut
        else "Every rule on a bar",
        description=(
            f"{len(judged)} {'checks' if cut else 'rules'}, of which {failed} failed. Dots are "
            "values, lines through them intervals, upright lines thresholds; what would fail is "
            "shaded."
        ),
        width=_WIDE,
        height=8 + len(judged) * _STEP,
        shapes=tuple(shapes),
    )


def asked(outcome: RuleOutcome) -> str:
    """What a rule asks for, in short."""
    rule = outcome.rule
    sign = "≥" if rule.at_least is not None else "≤"
    return f"{sign} {rule.threshold:g}" + (f" at {rule.confidence:g}" if rule.on == "bound" else "")


def limits(outcome: RuleOutcome) -> str:
    """The interval of an outcome, or nothing."""
    found = outcome.estimate
    if found is None or found.low is None or found.high is None:
        return ""
    return f"[{number(found.low)}, {number(found.high)}]"


def _bar(outcome: RuleOutcome, top: float) -> list[Shape]:
    rule, found = outcome.rule, outcome.estimate
    assert found is not None
    known = [found.value, found.low, found.high, rule.threshold, outcome.noise_floor]
    numbers = [each for each in known if each is not None and abs(each) < 1e9]
    low, high = min(numbers), max(numbers)
    air = (high - low) * 0.25 or 0.02
    low, high = low - air, high + air
    if rule.threshold <= 1 and all(0 <= each <= 1 for each in numbers):
        low, high = max(low, 0.0), min(high, 1.0)
    left, wide, y = 2.0, _WIDE - 4, top + 24

    def place(value: float) -> float:
        return left + (value - low) / (high - low) * wide

    bar = place(rule.threshold)
    tone: Tone = "bad" if outcome.status == "failed" else "good"
    fails = (left, bar) if rule.at_least is not None else (bar, left + wide)
    where = "" if outcome.part == "all inputs" else f", {outcome.part}"
    name = fitted(f"{rule.metric.replace('_', ' ')}{where}", 290, 13)
    value = f"{outcome.status} {number(found.value)}"
    shapes: list[Shape] = [
        Text(x=left, y=top + 12, text=name, bold=True, size=13),
        Text(x=left + wide, y=top + 12, text=value, anchor="end", bold=True, tone=tone),
        Text(x=left, y=y + 32, text=f"asked {asked(outcome)}", tone="muted", size=11),
        Text(x=left + wide, y=y + 32, text=limits(outcome), anchor="end", tone="muted", size=11),
        Box(x=left, y=y, width=wide, height=16, tone="panel"),
        Box(x=fails[0], y=y, width=fails[1] - fails[0], height=16, tone="lost", opacity=0.18),
    ]
    if found.low is not None and found.high is not None:
        ends = ((place(found.low), y + 8), (place(found.high), y + 8))
        shapes.append(Stroke(points=ends, tone="ink", width=3))
    shapes += [
        Stroke(points=((bar, y - 4), (bar, y + 20)), tone="ink", width=2,
               label=f"threshold {rule.threshold:g}"),
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
