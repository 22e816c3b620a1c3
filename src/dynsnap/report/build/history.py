"""All retrains of a project as a document: what each gained, lost and cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dynsnap.errors import some_of
from dynsnap.report.build.cells import count_cell
from dynsnap.report.document import (
    Banner,
    Bullets,
    Cell,
    Column,
    Document,
    Node,
    Prose,
    Section,
    Side,
    Table,
    Tone,
)
from dynsnap.report.figures import Figure, Point, Series, chart
from dynsnap.report.figures._drawing import Tone as FigureTone
from dynsnap.report.words import counted, kappa, percent, percent_interval

Values = Mapping[str, Sequence[float | None]]
_TONES: dict[str, Tone] = {"passed": "good", "failed": "bad", "unresolved": "strong"}
_OUTCOMES = {
    "none": "first",
    "passed": "deployed",
    "failed": "failed",
    "unresolved": "unresolved",
}
_PLACES = 12  # names along a chart
_GAPS = 10  # periods without rows that are named
_CLASSES = 6  # lines in a chart of class shares
_LINES: tuple[FigureTone, ...] = ("one", "two", "three", "four", "gained", "lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrainRow:
    """One retrain.

    Attributes:
        period: The first day of its newest period.
        name: What the retrain is called.
        generation: The generation that it made.
        held_against: The generation that was deployed then, None for the first.
        decision: "first", "promoted" or "kept".
        verdict: Of the gate, "none" for the first.
        train: Rows that it learned from.
        evaluated: Held-out rows that both generations were scored on.
        held_out: Metrics on them: value, low, high.
        newest: The same on those of the newest period.
        shares: Class shares of the newest period.
        drift: How far these are from those that the deployed generation was made with.
        seconds: What the training took.
        cost: The same in trainings (κ), where the trainer knows it.
        skipped: Periods without rows before it.
    """

    period: str
    name: str
    generation: int
    held_against: int | None
    decision: str
    verdict: str
    train: int
    evaluated: int
    held_out: Values
    newest: Values
    shares: Mapping[str, float]
    drift: float | None = None
    seconds: float | None = None
    cost: float | None = None
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFindings:
    """All retrains of a project.

    Attributes:
        cadence: The period between two retrains.
        deployed: The deployed generation.
        rows: The retrains, oldest first.
        advice: Whether the cadence fits.
        by_hand: Moves of the pointer that no retrain made, a sentence each.
    """

    name: str
    cadence: str
    deployed: int | None
    rows: tuple[RetrainRow, ...]
    advice: str
    by_hand: tuple[str, ...] = field(default=())


def history_document(found: HistoryFindings) -> Document:
    """The history of a project.

    Example:
        >>> found = HistoryFindings(name="mail", cadence="week", deployed=None, rows=(), advice="")
        >>> history_document(found).title
        'mail: no retrain yet'
    """
    rows = found.rows
    if not rows:
        start = "Start with: dynsnap retrain PROJECT"
        return Document.of(f"{found.name}: no retrain yet", Prose(start))
    promoted = sum(row.decision != "kept" for row in rows)
    last = rows[-1]
    sections = [
        Section(
            name="retrains",
            title=f"Every {found.cadence}",
            short="Retrains",
            lead="A new generation and the deployed one on the same held-out rows, on which no "
            "generation was trained.",
            body=(Side(tuple(_lines(rows))), _table(found)),
        ),
        Section(
            name="classes",
            title="Class shares",
            lead="How often each class occurs in the labelled rows of each period.",
            body=tuple(_classes(rows)),
        ),
    ]
    if found.by_hand:
        sections.append(
            Section(
                name="by-hand",
                title="Moved by hand",
                body=(Bullets.of("Promotions and rollbacks", found.by_hand),),
            )
        )
    return Document(
        title=f"{found.name}: {counted(len(rows), 'retrain')}",
        about=f"Deployed: generation {found.deployed}. {counted(promoted, 'generation')} deployed "
        f"by {counted(len(rows), 'retrain')}, {len(rows) - promoted} kept back.",
        banner=Banner(
            f"GENERATION {found.deployed}", found.advice, good=last.verdict in ("passed", "none")
        ),
        sections=tuple(sections),
    )


def _value(values: Values, name: str) -> float | None:
    found = values.get(name)
    value = None if found is None else found[0]
    return None if value is None or math.isnan(value) else value


def _cells(values: Values, name: str) -> tuple[Cell, Cell]:
    found = values.get(name) or (None, None, None)
    return Cell(percent(found[0]), found[0]), Cell(percent_interval(found[1], found[2]))


def _table(found: HistoryFindings) -> Table:
    metrics = (
        ("accuracy_old", "accuracy, deployed", "Accuracy of the deployed generation, in percent."),
        ("accuracy_new", "accuracy, new", "Accuracy of the new generation, in percent."),
        ("accuracy_change", "change", "The difference of the two, in points."),
        ("lost", "lost", "Right before and wrong now (negative flips, NFR), in percent."),
        ("gained", "gained", "Wrong before and right now (positive flips, PFR), in percent."),
    )
    priced = any(row.cost is not None for row in found.rows)
    columns = [Column(found.cadence, "date", key=True), Column("generation", "number")]
    columns += [
        Column("outcome", meaning="failed, unresolved: the deployed generation was kept."),
        Column("trained on", "number"),
    ]
    for name, title, meaning in metrics:
        columns.append(Column(title, "number", meaning))
        if name == "accuracy_change":
            columns.append(Column("interval", "interval", detail="full"))
    columns += [
        Column("newest: change", "number", "The change on rows of the newest period alone."),
        Column(
            "drift",
            "number",
            "How far class shares are from those that the deployed "
            "generation was made with: 0 the same, 100 nothing in common.",
        ),
        Column("cost (κ)", "number", "What the training took, in trainings from scratch.")
        if priced
        else Column("seconds", "number", "What the training took."),
    ]
    rows = []
    for row in found.rows:
        cells = [Cell(row.period), count_cell(row.generation)]
        cells += [
            Cell(_OUTCOMES.get(row.verdict, row.verdict), tone=_TONES.get(row.verdict, "plain")),
            count_cell(row.train),
        ]
        for name, _, _ in metrics:
            value, interval = _cells(row.held_out, name)
            cells.append(value)
            if name == "accuracy_change":
                cells.append(interval)
        cells.append(_cells(row.newest, "accuracy_change")[0])
        cells.append(Cell("" if row.drift is None else percent(row.drift), row.drift))
        price = row.cost if priced else row.seconds
        said = kappa if priced else "{:.1f}".format
        cells.append(Cell("" if price is None else said(price), price))
        rows.append(tuple(cells))
    took = sum(row.seconds or 0.0 for row in found.rows)
    skipped = list(dict.fromkeys(period for row in found.rows for period in row.skipped))
    gaps = f" Skipped, without rows: {some_of(skipped, _GAPS)}." if skipped else ""
    return Table(
        name="retrains-table",
        title="Every retrain",
        columns=tuple(columns),
        rows=tuple(rows),
        footer=f"In percent of held-out rows. Training took {took:.1f} s in all.{gaps}",
    )


def _places(rows: Sequence[RetrainRow]) -> list[tuple[float, str]]:
    every = max(1, math.ceil(len(rows) / _PLACES))
    years = {row.period[:4] for row in rows}
    # Charts stand side by side: where the year tells nothing, there is no room for it.
    start = len("2013-") if len(years) == 1 else 0
    names = [(float(place), row.period[start:]) for place, row in enumerate(rows)]
    return names[::-1][::every][::-1]


def _lines(rows: Sequence[RetrainRow]) -> list[Figure]:
    """Accuracy on one plane, what changed on another."""
    accuracy = [
        Series(name="deployed", points=_points(rows, "accuracy_old"), tone="two"),
        Series(name="new", points=_points(rows, "accuracy_new"), tone="one"),
        Series(
            name="new, newest rows",
            points=_points(rows, "accuracy_new", newest=True),
            tone="three",
            dashed=True,
        ),
    ]
    flips = [
        Series(name="lost", points=_points(rows, "lost"), tone="lost"),
        Series(name="gained", points=_points(rows, "gained"), tone="gained"),
    ]
    made = []
    for name, title, series in (
        ("accuracy-over-time", "Accuracy on held-out rows", accuracy),
        ("flips-over-time", "Lost and gained in each retrain", flips),
    ):
        drawn = [one for one in series if one.points]
        if drawn:
            made.append(_chart(name, title, drawn, rows, "share of held-out rows"))
    return made


def _points(rows: Sequence[RetrainRow], name: str, *, newest: bool = False) -> tuple[Point, ...]:
    found = []
    for place, row in enumerate(rows):
        values = row.newest if newest else row.held_out
        if (value := _value(values, name)) is not None:
            low, high = values[name][1:] if not newest else (None, None)
            found.append(Point(x=float(place), y=value, low=low, high=high))
    return tuple(found)


def _classes(rows: Sequence[RetrainRow]) -> list[Node]:
    totals: dict[str, float] = {}
    for row in rows:
        for name, share in row.shares.items():
            totals[name] = totals.get(name, 0.0) + share
    shown = sorted(totals, key=lambda name: -totals[name])[:_CLASSES]
    series = [
        Series(
            name=name,
            points=tuple(
                Point(x=float(at), y=row.shares.get(name, 0.0)) for at, row in enumerate(rows)
            ),
            tone=tone,
        )
        for name, tone in zip(shown, _LINES, strict=False)
    ]
    made: list[Node] = [
        _chart("class-shares", "Class shares of the newest rows", series, rows, "share of rows")
    ]
    if len(totals) > len(shown):
        made.append(Prose(f"The {len(shown)} most frequent of {len(totals)} classes.", "quiet"))
    worst = max((row for row in rows if row.drift is not None), key=_drift, default=None)
    if worst is not None:
        made.append(
            Prose(
                f"Furthest from the shares that the deployed generation was made with: "
                f"{worst.period}, {percent(worst.drift)} % (total variation distance)."
            )
        )
    return made


def _drift(row: RetrainRow) -> float:
    return row.drift or 0.0


def _chart(
    name: str, title: str, series: list[Series], rows: Sequence[RetrainRow], up: str
) -> Figure:
    ends = ", ".join(f"{one.name} ends at {percent(one.points[-1].y)} %" for one in series)
    return chart(
        name=name,
        title=title,
        description=f"{ends[:1].upper()}{ends[1:]}.",
        series=series,
        across="period",
        up=up,
        places=_places(rows),
        said="{:.3f}".format,
        letters="lines",
    )
