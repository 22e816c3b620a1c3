"""A study as a page: the paper's tables, what consistency costs, and what lies behind it."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynsnap import __version__
from dynsnap.ensemble import METHODS
from dynsnap.metrics import catalogue
from dynsnap.report._blocks import UNDEFINED
from dynsnap.report._element import Markup, clipped, element
from dynsnap.report.figures import Figure, Level, Point, Series, chart, tones
from dynsnap.report.html._audit import audited
from dynsnap.report.html._page import Page, bounded, page
from dynsnap.report.html._parts import Entry, Head, Listing, Section, listing, picture
from dynsnap.study import NEVER_RETRAIN, NOISE_FLOOR, Row, SweepRow
from dynsnap.theory import Audit

HEADLINE = {"accuracy": "ACC", "consistency": "CON", "correct_consistency": "ACC-CON"}
SHORT = {
    "majority": "MV",
    "weighted_majority": "WMV",
    "average": "AVG",
    "weighted_average": "WAVG",
}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFindings:
    """What a run folder holds about a finished study.

    Attributes:
        rows: The study's table.
        sweeps: The points of its sweeps.
        about: What it was run with, as in `about.json`.
        curves: Some of its rounds.
        audits: The theorems on the members of two generations, by what was looked at.
        notes: What was left out and why, a sentence each.
    """

    name: str
    rows: Sequence[Row]
    sweeps: Sequence[SweepRow] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    curves: Sequence[Curve] = ()
    audits: Mapping[str, Audit] = field(default_factory=dict)
    notes: Sequence[str] = ()


def study_page(study: StudyFindings) -> Page:
    """A finished study as one self-contained page of at most 1.5 MB."""
    return bounded(
        lambda rows: page(
            title=study.name,
            about=_about(study.about),
            sections=tuple(_sections(study, rows)),
            footer=(
                f"Made by dynsnap {__version__} from the tables and rounds of the run folder. "
                "Nothing on this page is fetched from anywhere."
            ),
        )
    )


def _about(about: Mapping[str, Any]) -> str:
    parts = []
    if isinstance(sizes := about.get("generations"), list):
        grown = " → ".join(f"{size:,}" for size in sizes if isinstance(size, int))
        parts.append(f"{len(sizes)} generations of {grown} training inputs")
    if isinstance(tested := about.get("test_inputs"), int):
        parts.append(f"{tested:,} test inputs")
    if isinstance(often := about.get("replicates"), int):
        parts.append(f"{often} replicate{'s' if often > 1 else ''}")
    if isinstance(rounds := about.get("rounds"), int):
        parts.append(f"{rounds:,} rounds of training")
    return ", ".join(parts) + "." if parts else ""


def _sections(study: StudyFindings, rows: int) -> Iterator[Section]:
    own = [row for row in study.rows if not _is_ablation(row.method)]
    yield _methods(own, study)
    yield _cost(study.rows)
    if study.sweeps:
        yield _sweeps(study.sweeps)
    if any(_is_ablation(row.method) for row in study.rows):
        yield _ablations(study.rows)
    if study.curves:
        yield _curves(study.curves)
    if study.audits:
        yield audited(study.audits)
    yield _everything(study.rows, rows)
    if study.notes:
        said = [element("li", clipped(note, 400)) for note in study.notes]
        yield Section(name="notes", title="Notes", body=[element("ul", said, class_="plain")])


def _is_reference(method: str) -> bool:
    return method == NOISE_FLOOR or method.startswith(NEVER_RETRAIN)


def _is_ablation(method: str) -> bool:
    return method not in METHODS and not _is_reference(method)


def _methods(rows: Sequence[Row], study: StudyFindings) -> Section:
    lead = (
        "In percent. ACC is the mean over generations, CON (labelled alike) and ACC-CON (alike and "
        "right) over all pairs of generations. κ: trainings from scratch that a generation takes. "
        "Best of a column bold, second best underlined."
    )
    return Section(
        name="methods",
        title="Methods",
        lead=lead,
        body=[headline("methods-table", "Methods, by how their members are combined", rows)],
    )


def headline(name: str, caption: str, rows: Sequence[Row]) -> Markup:
    """The paper's table: best and second best marked, intervals, cost."""
    found = {(row.method, row.combination, row.metric): row for row in rows}
    ranks = {
        metric: sorted(
            {
                round(row.value, 6)
                for row in rows
                if row.metric == metric and not _is_reference(row.method)
            },
            reverse=True,
        )[:2]
        for metric in HEADLINE
    }
    heads = [Head("method"), Head("by"), Head("κ", True, "Trainings from scratch per generation.")]
    for metric, symbol in HEADLINE.items():
        heads += [Head(symbol, True, catalogue[metric].meaning), Head("interval", fixed=True)]
    made = []
    for method, how, alike in _lines(rows, found):
        present = [found.get((method, how, metric)) for metric in HEADLINE]
        cost = next((row.cost for row in present if row is not None), None)
        line = [
            Entry(method, tone="quiet" if _is_reference(method) else ""),
            Entry("all" if alike else SHORT.get(how, how)),
            Entry("" if cost is None else f"{cost:.1f}", key=cost),
        ]
        for metric, row in zip(HEADLINE, present, strict=True):
            place = _rank(row, ranks[metric]) if not _is_reference(method) else ""
            line += [
                Entry(_percent(_value(row)), key=_value(row), tone=place),
                Entry(_limits(row), tone="quiet"),
            ]
        made.append(line)
    return listing(
        Listing(
            name=name,
            caption=caption,
            heads=tuple(heads),
            rows=made,
            note="MV, WMV: majority and weighted majority vote. AVG, WAVG: average and weighted "
            "average.",
        )
    )


def _lines(
    rows: Sequence[Row], found: Mapping[tuple[str, str, str], Row]
) -> Iterator[tuple[str, str, bool]]:
    """Method, combination, and whether it stands for all combinations; references come last."""
    methods = dict.fromkeys(row.method for row in rows)
    ways = list(dict.fromkeys(row.combination for row in rows))
    for method in sorted(methods, key=_is_reference):
        said = {
            tuple(_value(found.get((method, how, metric))) for metric in HEADLINE) for how in ways
        }
        alike = len(said) == 1 and len(ways) > 1
        for how in ways[:1] if alike else ways:
            if any((method, how, metric) in found for metric in HEADLINE):
                yield method, how, alike


def _rank(row: Row | None, best: Sequence[float]) -> str:
    if row is None or round(row.value, 6) not in best:
        return ""
    return "best" if round(row.value, 6) == best[0] else "second"


def _value(row: Row | None) -> float | None:
    return None if row is None else row.value


def _percent(value: float | None) -> str:
    return UNDEFINED if value is None else f"{100 * value:.2f}"


def _limits(row: Row | None) -> str:
    if row is None or row.low is None or row.high is None:
        return ""
    return f"[{_percent(row.low)}, {_percent(row.high)}]"


def _preferred(rows: Sequence[Row]) -> str:
    known = list(dict.fromkeys(row.combination for row in rows))
    return "average" if "average" in known else known[0]


def _cost(rows: Sequence[Row]) -> Section:
    how = _preferred(rows)
    drawn = []
    for metric, symbol in (("correct_consistency", "ACC-CON"), ("consistency", "CON")):
        shown = [row for row in rows if row.metric == metric and row.combination == how]
        shown = [row for row in shown if row.cost > 0]
        if not shown:
            continue
        colours = tones([row.method for row in shown])
        trained = [row for row in shown if not _is_reference(row.method)] or shown
        best = max(trained, key=lambda row: row.value)
        drawn.append(
            chart(
                name=f"{metric.replace('_', '-')}-cost",
                title=f"{symbol} against cost, members combined by {how.replace('_', ' ')}",
                description=(
                    f"Every method by its cost in trainings per generation and its {symbol} in "
                    f"percent. The highest that is retrained is {best.method}: "
                    f"{_percent(best.value)} for {best.cost:.1f}κ."
                ),
                series=[
                    Series(
                        name=row.method,
                        tone=colours[row.method],
                        points=(
                            Point(
                                x=row.cost,
                                y=100 * row.value,
                                low=None if row.low is None else 100 * row.low,
                                high=None if row.high is None else 100 * row.high,
                                label=f"{row.method}: {_percent(row.value)} at {row.cost:.1f}κ",
                            ),
                        ),
                    )
                    for row in shown
                ],
                across="cost, κ (each step doubles)",
                up=f"{symbol}, percent",
                logarithmic=True,
                named_points=True,
                said="{:.1f}".format,
                height=340,
            )
        )
    return Section(
        name="cost",
        title="What consistency costs",
        lead=drawn[0].description if drawn else "",
        body=[picture(figure) for figure in drawn],
        figures=tuple(drawn),
    )


def _sweeps(points: Sequence[SweepRow]) -> Section:
    drawn: list[Figure] = []
    body: list[Markup] = []
    for name, group in itertools.groupby(points, key=lambda point: point.sweep):
        some = list(group)
        figure = _sweep(name, some)
        drawn.append(figure)
        body += [picture(figure), _sweep_table(name, some)]
    return Section(
        name="sweeps",
        title="Sweeps",
        lead="One setting varied, all else equal. Cost moves with it, so it is shown beside.",
        body=body,
        figures=tuple(drawn),
    )


def _slug(name: str) -> str:
    """A name as part of a file's name, and unlike any other name's.

    Example:
        >>> _slug("members"), _slug("a/b"), _slug("a b")
        ('members', 'a-b-612f62', 'a-b-612062')
    """
    kept = (mark if mark.isascii() and (mark.isalnum() or mark in "-=") else "-" for mark in name)
    safe = "".join(kept)
    return safe if safe == name else f"{safe[:40]}-{name.encode().hex()[:24]}"


def _sweep(name: str, points: Sequence[SweepRow]) -> Figure:
    over = points[0].over
    labels = list(dict.fromkeys(point.point for point in points))
    costs = {point.point: point.row.cost for point in points}
    found = {(point.point, point.row.metric): point.row for point in points}
    colours = tones(list(HEADLINE))
    series = []
    for metric, symbol in HEADLINE.items():
        line = [
            Point(
                x=float(place),
                y=100 * row.value,
                low=None if row.low is None else 100 * row.low,
                high=None if row.high is None else 100 * row.high,
            )
            for place, label in enumerate(labels)
            if (row := found.get((label, metric))) is not None
        ]
        if line:
            series.append(Series(name=symbol, points=tuple(line), tone=colours[metric]))
    return chart(
        name=f"sweep-{_slug(name)}",
        title=f"Sweep over {over}" if name == over else f"Sweep over {over}: {name}",
        description=f"ACC, CON and ACC-CON in percent for {len(labels)} values of {over}.",
        series=series,
        across=f"{over}, with its cost",
        up="percent",
        places=[(float(i), f"{label} ({costs[label]:.1f}κ)") for i, label in enumerate(labels)],
        said="{:.1f}".format,
    )


def _sweep_table(name: str, points: Sequence[SweepRow]) -> Markup:
    labels = list(dict.fromkeys(point.point for point in points))
    found = {(point.point, point.row.metric): point.row for point in points}
    costs = {point.point: point.row.cost for point in points}
    heads = [Head(points[0].over), Head("κ", True)]
    for symbol in HEADLINE.values():
        heads += [Head(symbol, True), Head("interval", fixed=True)]
    lines = []
    for label in labels:
        line = [Entry(label), Entry(f"{costs[label]:.1f}", key=costs[label])]
        for metric in HEADLINE:
            row = found.get((label, metric))
            line += [
                Entry(_percent(_value(row)), key=_value(row)),
                Entry(_limits(row), tone="quiet"),
            ]
        lines.append(line)
    return listing(
        Listing(
            name=f"sweep-{_slug(name)}-table",
            caption=f"{name}, with cost",
            heads=tuple(heads),
            rows=lines,
        )
    )


def _ablations(rows: Sequence[Row]) -> Section:
    beside = [row for row in rows if _is_ablation(row.method) or row.method == "dynsnap-cyc"]
    return Section(
        name="ablations",
        title="Ablations",
        lead="DynSnap with an idea taken away or changed, beside the whole of it.",
        body=[headline("ablations-table", "Ablations", beside)],
    )


def _curves(curves: Sequence[Curve]) -> Section:
    drawn = tuple(_curve(curve) for curve in curves)
    return Section(
        name="curves",
        title="Rounds of training",
        lead="Validation accuracy after every epoch. Marks are snapshots; those below the pruning "
        "threshold τ are not kept.",
        body=[picture(figure) for figure in drawn],
        figures=drawn,
    )


def _curve(curve: Curve) -> Figure:
    bar = curve.threshold
    taken = sorted(zip(curve.epochs, curve.snapshots, strict=True))
    kept = [at for at in taken if bar is None or at[1] >= bar]
    pruned = [at for at in taken if at not in kept]
    line = tuple(Point(x=epoch + 1.0, y=value) for epoch, value in enumerate(curve.accuracy))
    series = [Series(name="validation accuracy", points=line, tone="one", marks=False)]
    for name, some, tone in (("kept", kept, "three"), ("pruned", pruned, "two")):
        if some:
            points = tuple(Point(x=epoch + 1.0, y=value) for epoch, value in some)
            series.append(Series(name=f"snapshot {name}", points=points, tone=tone, joined=False))  # type: ignore[arg-type]
    said = "nothing is pruned" if bar is None else f"τ is {bar:.4f}"
    return chart(
        name=f"curve-{_slug(curve.method)}",
        title=f"{curve.method}, {curve.name}",
        description=(
            f"{len(line)} epochs; {len(kept)} of {len(taken)} snapshots are kept, {said}."
        ),
        series=series,
        across="epoch",
        up="validation accuracy",
        levels=() if bar is None else [Level(y=bar, name=f"τ = {bar:.4f}", tone="ink")],
        said="{:.3f}".format,
    )


def _everything(rows: Sequence[Row], most: int) -> Section:
    lines = [
        [
            Entry(row.method),
            Entry(SHORT.get(row.combination, row.combination)),
            Entry(row.metric.replace("_", " ")),
            Entry(f"{row.value:.4f}", key=row.value),
            Entry(
                "" if row.low is None or row.high is None else f"[{row.low:.4f}, {row.high:.4f}]",
                tone="quiet",
            ),
            Entry(f"{row.cost:.1f}", key=row.cost),
        ]
        for row in rows
    ]
    return Section(
        name="everything",
        title="All metrics",
        body=[
            listing(
                Listing(
                    name="everything-table",
                    caption="Every method, combination and metric, as fractions",
                    heads=(
                        Head("method"),
                        Head("by"),
                        Head("metric"),
                        Head("value", True),
                        Head("interval", fixed=True),
                        Head("κ", True),
                    ),
                    rows=lines[: 2 * most],
                    search=True,
                    whole=len(lines),
                    note="All of them: table.csv in the run folder."
                    if len(lines) > 2 * most
                    else "",
                )
            )
        ],
    )
