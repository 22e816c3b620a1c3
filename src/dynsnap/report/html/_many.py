"""Many generations: every two side by side, and how it went over time."""

import itertools
import math

from dynsnap.comparison import Comparison, PairResult
from dynsnap.metrics import metric
from dynsnap.report._blocks import interval, number
from dynsnap.report._element import Child, clipped, element
from dynsnap.report.figures import Figure, Point, Series, chart, grid
from dynsnap.report.html._inputs import restless
from dynsnap.report.html._looks import Looks
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

_MOST = 20  # generations in a matrix
_GLANCE = ("lost", "gained", "consistency", "correct_consistency")


def many(comparison: Comparison, rows: int, looks: Looks) -> Section:
    """All generations: matrices, time lines, and the inputs that cannot rest."""
    names = [each.name for each in comparison.generations]
    drawn = [_over_time(comparison), *_matrices(comparison)]
    body: list[Child] = [
        _agreement(comparison),
        picture(drawn[0]),
        element("div", [picture(each) for each in drawn[1:]], class_="side"),
        _retrains(comparison, rows),
    ]
    if comparison.unstable:
        body.append(restless(comparison.unstable, names, rows, looks))
    else:
        body.append(element("p", "No input changed its label more than once.", class_="note"))
    if len(names) > _MOST:
        note = f"Matrices show the last {_MOST} of {len(names)} generations."
        body.append(element("p", note, class_="note"))
    return Section(
        name="generations",
        title=f"All {len(names)} generations",
        short="Generations",
        lead="Everything below this section is about the last retrain.",
        body=body,
        figures=tuple(drawn),
    )


def retrains(comparison: Comparison) -> list[PairResult]:
    """The pairs of a generation and the next."""
    names = [each.name for each in comparison.generations]
    following = set(itertools.pairwise(names))
    return [pair for pair in comparison.pairs if (pair.old, pair.new) in following]


def _over_time(comparison: Comparison) -> Figure:
    names = _apart([each.name for each in comparison.generations])
    places = [(float(i), clipped(name, 24)) for i, name in enumerate(names)]
    series = []
    points = [
        _point(float(i), each.metrics.get("accuracy"))
        for i, each in enumerate(comparison.generations)
    ]
    known = tuple(point for point in points if point is not None)
    if known:
        series.append(Series(name="accuracy", points=known, tone="one"))
    last = retrains(comparison)
    measure = "correct_consistency" if comparison.has_truth else "consistency"
    points = [_point(float(i), pair.metrics.get(measure)) for i, pair in enumerate(last, 1)]
    known = tuple(point for point in points if point is not None)
    series.append(
        Series(name=f"{metric(measure).symbol} with the one before", points=known, tone="two")
    )
    if comparison.ambiguity_so_far:
        series.append(
            Series(
                name="ambiguity so far",
                points=tuple(
                    Point(x=float(i), y=value)
                    for i, value in enumerate(comparison.ambiguity_so_far)
                ),
                tone="three",
            )
        )
    ends = ", ".join(f"{one.name} ends at {number(one.points[-1].y)}" for one in series)
    return chart(
        name="over-time",
        title="Over time",
        description=f"{ends[:1].upper()}{ends[1:]}.",
        series=series,
        across="generation",
        up="share of inputs",
        places=places,
        said="{:.2f}".format,
    )


def _apart(names: list[str]) -> list[str]:
    """Names without what all begin with: where there is little room, the rest tells them apart.

    Example:
        >>> _apart(["model-2024-01", "model-2024-02"]), _apart(["old", "new"])
        (['01', '02'], ['old', 'new'])
    """
    shared = "".join(
        marks[0]
        for marks in itertools.takewhile(
            lambda each: len(set(each)) == 1, zip(*names, strict=False)
        )
    )
    start = max(shared.rfind(mark) for mark in " -_/.:") + 1
    return [name[start:] for name in names]


def _point(x: float, found: object) -> Point | None:
    value = getattr(found, "value", math.nan)
    if math.isnan(value):
        return None
    return Point(x=x, y=value, low=getattr(found, "low", None), high=getattr(found, "high", None))


def _matrices(comparison: Comparison) -> list[Figure]:
    names = _apart([each.name for each in comparison.generations][-_MOST:])
    drawn = []
    for name in ("consistency", "correct_consistency"):
        if name not in comparison.pairs[-1].metrics:
            continue
        values = comparison.matrix(name)[-_MOST:, -_MOST:].tolist()
        known = [value for row in values for value in row if not math.isnan(value)]
        entry = metric(name)
        drawn.append(
            grid(
                name=name.replace("_", "-"),
                title=f"{entry.symbol} of every two generations",
                description=(
                    f"{entry.meaning} Between {min(known):.3f} and {max(known):.3f}; the diagonal "
                    f"holds {'1' if name == 'consistency' else 'the accuracy of each generation'}."
                ),
                rows=names,
                columns=names,
                values=[[None if math.isnan(value) else value for value in row] for row in values],
                said="{:.3f}".format,
                tone="one",
                floor=min(known) - 0.02,
            )
        )
    return drawn


def _agreement(comparison: Comparison) -> Child:
    shown = [
        element(
            "li",
            element("span", metric_term(name), class_="name"),
            element("span", number(found.value), class_="value"),
            element("span", interval(found) or " ", class_="range"),
        )
        for name, found in comparison.agreement.items()
    ]
    return element("ul", shown, class_="tiles")


def _retrains(comparison: Comparison, rows: int) -> Child:
    pairs = retrains(comparison)
    names = [name for name in _GLANCE if name in pairs[-1].metrics]
    heads = [Head("retrain")]
    for name in names:
        entry = metric(name)
        word = name if name in ("lost", "gained") else entry.symbol
        heads += [Head(word, True, entry.meaning), INTERVAL]
    lines = []
    for pair in pairs[-rows:]:
        line = [Entry(f"{clipped(pair.old, 30)} → {clipped(pair.new, 30)}")]
        for name in names:
            found = pair.metrics[name]
            line += [
                Entry(number(found.value), key=found.value),
                Entry(interval(found), tone="range"),
            ]
        lines.append(line)
    return listing(
        Listing(
            name="retrains-table",
            caption="Every retrain: a generation and the one before it",
            heads=tuple(heads),
            rows=lines,
            whole=len(pairs),
        )
    )
