"""A study in pictures: what consistency costs, sweeps, and rounds of training."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dynsnap.comparison import CONFIDENCE
from dynsnap.report.build.study_tables import is_reference, sweep_table
from dynsnap.report.build.study_words import HEADLINE, NEW, preferred
from dynsnap.report.document import Node, Section, Side
from dynsnap.report.figures import (
    SERIES,
    Figure,
    Level,
    Point,
    Series,
    Tone,
    chart,
    slug,
    tones,
)
from dynsnap.report.words import kappa, percent
from dynsnap.study import Row, SweepRow

WIDTH = 540.0  # of figures that stand side by side

_LONG = 50  # epochs, of which the first are far below the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One round of training: its validation accuracy epoch by epoch, and its snapshots.

    Attributes:
        method: Whose round it is.
        name: Which round.
        accuracy: After every epoch.
        epochs: The epoch of each snapshot, from 0.
        snapshots: The validation accuracy of each snapshot.
        threshold: The pruning threshold τ of the round, None where nothing is pruned.
    """

    method: str
    name: str
    accuracy: tuple[float, ...]
    epochs: tuple[int, ...]
    snapshots: tuple[float, ...]
    threshold: float | None = None


def colours_of(methods: Iterable[str]) -> dict[str, Tone]:
    """A colour for each method, the same in all pictures; references have the sixth, a grey."""
    trained = [method for method in methods if not is_reference(method)]
    return {name: SERIES[place % 5] for place, name in enumerate(trained)}


def point_of(row: Row, x: float, label: str = "") -> Point:
    """A row in percent, with its interval."""
    return Point(
        x=x,
        y=100 * row.value,
        low=None if row.low is None else 100 * row.low,
        high=None if row.high is None else 100 * row.high,
        label=label,
    )


def cost(rows: Sequence[Row], rounds: str) -> Section:
    """Consistency against cost, with every method, and what is said of their rounds."""
    how = preferred(rows)
    drawn = []
    for metric in ("correct_consistency", "consistency"):
        shown = [row for row in rows if row.metric == metric and row.combination == how]
        shown = [row for row in shown if row.cost > 0]
        if not shown:
            continue
        symbol = HEADLINE[metric]
        colours = colours_of(row.method for row in shown)
        trained = [row for row in shown if not is_reference(row.method)] or shown
        best = max(trained, key=lambda row: row.value)
        series = []
        for row in shown:
            label = f"{row.method}: {percent(row.value)} at {kappa(row.cost)}κ"
            point = point_of(row, row.cost, label)
            tone = colours.get(row.method, "six")
            series.append(Series(name=row.method, tone=tone, points=(point,)))
        drawn.append(
            chart(
                name=f"{metric.replace('_', '-')}-cost",
                title=f"{symbol} against cost, members combined by {how.replace('_', ' ')}",
                description=(
                    f"Every method by its cost in trainings per generation and its {symbol} in "
                    f"percent. The highest that is retrained is {best.method}: "
                    f"{percent(best.value)} for {kappa(best.cost)}κ."
                ),
                series=series,
                across="cost, κ (each step doubles)",
                up=f"{symbol}, percent",
                logarithmic=True,
                named_points=True,
                said="{:.1f}".format,
                width=WIDTH,
                height=340,
            )
        )
    return Section(
        name="cost",
        title="What consistency costs",
        short="Cost",
        lead=f"{drawn[0].description} {rounds}".strip() if drawn else "",
        body=(Side(tuple(drawn)),),
    )


def sweeps(points: Sequence[SweepRow], windows: Mapping[str, str]) -> Section:
    """Every sweep as a picture and a table, with what is said of its windows."""
    body: list[Node] = []
    shown = [point for point in points if point.row.metric in HEADLINE | NEW]
    for name in dict.fromkeys(point.sweep for point in shown):
        some = [point for point in shown if point.sweep == name]
        more = windows.get(name, "")
        table = sweep_table(name, f"sweep-{slug(name)}-table", some, more)
        body.append(Side((_sweep(name, some, more), table)))
    return Section(
        name="sweeps",
        title="Sweeps",
        lead="One setting varied, all else equal. Cost moves with it, so it is shown beside. "
        f"Upright lines are {CONFIDENCE:.0%} intervals.",
        body=tuple(body),
    )


def _sweep(name: str, points: Sequence[SweepRow], windows: str) -> Figure:
    over = points[0].over
    labels = list(dict.fromkeys(point.point for point in points))
    costs = {point.point: point.row.cost for point in points}
    found = {(point.point, point.row.metric): point.row for point in points}
    colours = tones(list(HEADLINE))
    series = []
    for metric, symbol in HEADLINE.items():
        line = [
            point_of(row, float(place))
            for place, label in enumerate(labels)
            if (row := found.get((label, metric))) is not None
        ]
        if line:
            series.append(Series(name=symbol, points=tuple(line), tone=colours[metric]))
    return chart(
        name=f"sweep-{slug(name)}",
        title=(f"Sweep over {over}" if name == over else f"Sweep over {over}: {name}") + windows,
        description=f"ACC, CON and ACC-CON in percent for {len(labels)} values of {over}{windows}.",
        series=series,
        across=f"{over} (with its cost){windows}",
        up="percent",
        width=WIDTH,
        places=[(float(i), f"{label} ({kappa(costs[label])}κ)") for i, label in enumerate(labels)],
        said="{:.1f}".format,
    )


def curves(curves: Sequence[Curve]) -> Section:
    """Rounds of training with their snapshots."""
    return Section(
        name="curves",
        title="Rounds of training",
        short="Rounds",
        lead="Validation accuracy after every epoch. Marks are snapshots; those below the pruning "
        "threshold τ are not kept. Of a long round up to a tenth of its epochs, the worst, lie "
        "below the picture.",
        body=(Side(tuple(_curve(curve) for curve in curves)),),
    )


def _curve(curve: Curve) -> Figure:
    bar = curve.threshold
    taken = sorted(zip(curve.epochs, curve.snapshots, strict=True))
    kept = [at for at in taken if bar is None or at[1] >= bar]
    pruned = [at for at in taken if at not in kept]
    line = tuple(Point(x=epoch + 1.0, y=value) for epoch, value in enumerate(curve.accuracy))
    series = [Series(name="accuracy", points=line, tone="one", marks=False)]
    for name, some, tone in (("kept", kept, "three"), ("pruned", pruned, "two")):
        if some:
            points = tuple(Point(x=epoch + 1.0, y=value) for epoch, value in some)
            series.append(Series(name=f"snapshot {name}", points=points, tone=tone, joined=False))  # type: ignore[arg-type]
    said = "nothing is pruned" if bar is None else f"τ is {bar:.4f}"
    floor = _floor(curve)
    below = 0 if floor is None else sum(value < floor for value in curve.accuracy)
    return chart(
        name=f"curve-{slug(curve.method)}",
        title=f"{curve.method}, {curve.name}",
        description=(
            f"{len(line)} epochs; {len(kept)} of {len(taken)} snapshots are kept, {said}."
            + (f" {below} epochs lie below the picture." if below else "")
        ),
        series=series,
        across="epoch",
        up="validation accuracy",
        width=WIDTH,
        height=260,
        levels=() if bar is None else [Level(y=bar, name=f"τ = {bar:.4f}", tone="ink")],
        floor=floor,
        said="{:.3f}".format,
    )


def _floor(curve: Curve) -> float | None:
    """Where the picture of a long round begins: its first epochs would flatten the rest."""
    if len(curve.accuracy) < _LONG:
        return None
    lowest = sorted(curve.accuracy)[len(curve.accuracy) // 10]
    return min(lowest, *curve.snapshots, *([] if curve.threshold is None else [curve.threshold]))
