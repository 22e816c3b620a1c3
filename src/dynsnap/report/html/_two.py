"""Two generations: the four cases, and every metric."""

from collections.abc import Iterator

from dynsnap.comparison import Comparison, Estimate, PairResult, TransitionCounts
from dynsnap.metrics import metric
from dynsnap.report._blocks import CASES, count, interval, number, said_p_value
from dynsnap.report._element import Markup, clipped, element
from dynsnap.report.figures import flow
from dynsnap.report.figures._drawing import Box, Dot, Figure, Shape, Stroke
from dynsnap.report.figures._svg import ornament
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

_TILES = ("lost", "gained", "consistency", "correct_consistency", "churn")
_DIRECTION = {"higher": "higher is better", "lower": "lower is better", "neither": ""}


def arrow(pair: PairResult) -> str:
    """Old to new, in short."""
    return f"{clipped(pair.old, 40)} → {clipped(pair.new, 40)}"


def moved(comparison: Comparison, pair: PairResult) -> Section:
    """Right and wrong before and now."""
    counts = pair.transitions
    assert counts is not None
    drawn = flow(pair)
    test = ""
    if pair.mcnemar is not None and counts.lost + counts.gained:
        test = (
            f" McNemar's exact test of lost against gained: {said_p_value(pair.mcnemar)}"
            f"{_reading(pair.mcnemar, counts.lost, counts.gained, 1 - comparison.confidence)}."
        )
    return Section(
        name="transitions",
        title=f"What changed, {arrow(pair)}",
        short="What changed",
        lead=(
            f"{_inputs(counts.lost)} right before and wrong now; "
            f"{_inputs(counts.gained).lower()} wrong before and right now.{test}"
        ),
        body=[
            tiles(comparison, pair),
            element("div", picture(drawn), _cases(pair, counts), class_="side"),
        ],
        figures=(drawn,),
    )


def _inputs(number_of: int) -> str:
    if not number_of:
        return "No input was"
    return "1 input was" if number_of == 1 else f"{count(number_of)} inputs were"


def _cases(pair: PairResult, counts: TransitionCounts) -> Markup:
    rows = []
    for name, was in CASES.items():
        found = pair.metrics[name]
        rows.append(
            [
                Entry(metric_term(name)),
                Entry(was, tone="quiet"),
                Entry(count(getattr(counts, name)), key=getattr(counts, name)),
                Entry(number(found.value), key=_key(found.value)),
                Entry(interval(found), tone="range"),
            ]
        )
    return listing(
        Listing(
            name="cases-of-pair",
            caption="The four cases",
            heads=(
                Head("case"),
                Head("was → is"),
                Head("inputs", True),
                Head("share", True),
                INTERVAL,
            ),
            rows=rows,
            sortable=False,
        )
    )


def _reading(p: float, lost: int, gained: int, level: float) -> str:
    if p >= level:
        return ", so the difference between the two may be chance"
    return f", so more inputs were {'lost than gained' if lost > gained else 'gained than lost'}"


def tiles(comparison: Comparison, pair: PairResult) -> Markup:
    """The numbers that are looked at first."""
    old = next(each for each in comparison.generations if each.name == pair.old)
    new = next(each for each in comparison.generations if each.name == pair.new)
    shown = []
    if "accuracy" in new.metrics:
        was = old.metrics["accuracy"].value
        shown.append(_tile("accuracy", new.metrics["accuracy"], f"was {number(was)}"))
    shown += [_tile(name, pair.metrics[name]) for name in _TILES if name in pair.metrics]
    return element("ul", shown[:5], class_="tiles")


def _tile(name: str, estimate: Estimate, more: str = "") -> Markup:
    tone = " bad" if name == "lost" and estimate.value > 0 else ""
    symbol = metric(name).symbol
    return element(
        "li",
        element(
            "span",
            metric_term(name),
            # Some are called by their symbol anyway.
            [" ", element("span", symbol, class_="symbol")] if symbol != name else None,
            class_="name",
        ),
        element("span", number(estimate.value), class_=f"value{tone}"),
        element("span", interval(estimate) or " ", class_="range"),
        element("span", more, class_="range") if more else None,
    )


def measured(comparison: Comparison, pair: PairResult) -> Section:
    """Every metric with its interval."""
    body = [_metrics(comparison, pair)]
    if pair.transitions is None:  # nothing above has shown them
        body.insert(0, tiles(comparison, pair))
    alone = _alone(comparison, pair)
    if alone is not None:
        body.append(alone)
    return Section(
        name="metrics",
        title="Metrics",
        lead="What a metric means is said when the pointer or the focus rests on its name.",
        body=body,
    )


def _metrics(comparison: Comparison, pair: PairResult) -> Markup:
    floor = pair.noise_floor or {}
    heads = [
        Head("metric"),
        Head("symbol"),
        Head("value", True),
        INTERVAL,
        Head("0 to 1", fixed=True),
    ]
    if floor:
        heads.append(
            Head(
                "same data",
                True,
                "What training the first generation again on the same data changes by itself.",
            )
        )
    heads.append(Head("better"))
    rows = []
    for name, estimate in _pair_and_all(comparison, pair):
        row = [
            Entry(metric_term(name)),
            Entry(metric(name).symbol, tone="quiet"),
            Entry(number(estimate.value), key=_key(estimate.value)),
            Entry(interval(estimate), tone="range"),
            Entry(_strip(estimate, floor.get(name))),
        ]
        if floor:
            twin = floor.get(name)
            row.append(
                Entry(number(twin.value), key=_key(twin.value)) if twin is not None else Entry("")
            )
        rows.append([*row, Entry(_DIRECTION[metric(name).direction], tone="quiet")])
    return listing(
        Listing(
            name="pair-metrics",
            caption=f"Every metric of {arrow(pair)}",
            heads=tuple(heads),
            rows=rows,
        )
    )


def _pair_and_all(comparison: Comparison, pair: PairResult) -> Iterator[tuple[str, Estimate]]:
    yield from pair.metrics.items()
    if len(comparison.generations) == 2:
        yield from comparison.agreement.items()


def _alone(comparison: Comparison, pair: PairResult) -> Markup | None:
    both = [each for each in comparison.generations if each.name in (pair.old, pair.new)]
    names = list(dict.fromkeys(name for each in both for name in each.metrics))
    if not names:
        return None
    heads = [Head("metric"), Head("symbol")]
    for each in both:
        heads += [Head(clipped(each.name, 40), True), INTERVAL]
    rows = []
    for name in names:
        row = [Entry(metric_term(name)), Entry(metric(name).symbol, tone="quiet")]
        for each in both:
            found = each.metrics.get(name)
            value = None if found is None else found.value
            row += [
                Entry(number(value), key=None if value is None else _key(value)),
                Entry(interval(found), tone="range"),
            ]
        rows.append(row)
    return listing(
        Listing(
            name="generation-metrics",
            caption="Each of the two on its own",
            heads=tuple(heads),
            rows=rows,
        )
    )


def _key(value: float) -> float | None:
    return value if abs(value) < float("inf") else None  # NaN fails this too


def _strip(estimate: Estimate, floor: Estimate | None) -> Markup | str:
    """A value and its interval between 0 and 1, as a small picture."""
    if not 0 <= estimate.value <= 1:
        return ""
    shapes: list[Shape] = [Box(x=0, y=7, width=128, height=2, tone="line")]
    if estimate.low is not None and estimate.high is not None:
        low, high = max(0.0, estimate.low), min(1.0, estimate.high)
        ends = ((4 + 120 * low, 8.0), (4 + 120 * high, 8.0))
        shapes.append(Stroke(points=ends, tone="one", width=4))
    if floor is not None and 0 <= floor.value <= 1:
        at = 4 + 120 * floor.value
        shapes.append(Stroke(points=((at, 2), (at, 14)), tone="muted", width=1.5))
    shapes.append(Dot(x=4 + 120 * estimate.value, y=8, tone="ink", radius=3.5))
    drawn = Figure(name="", title="", description="", width=128, height=16, shapes=tuple(shapes))
    return ornament(drawn, class_="strip")
