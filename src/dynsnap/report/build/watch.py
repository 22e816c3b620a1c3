"""What watching two models on live traffic gave, as a document: alarms first, then the days."""

import math
from collections.abc import Sequence
from datetime import date

from dynsnap.report.build.cells import count_cell
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
    Side,
    Table,
)
from dynsnap.report.figures import Figure, Level, Point, Series, chart
from dynsnap.report.words import clipped, counted, percent, percent_interval
from dynsnap.watch import ROLLING, Watch, Watched, calendar

_PLACES = 12  # names along a chart
_SHOWN = 14  # days that the terminal shows
_PICTURED = 4  # slices with an alarm that have a chart


def watch_document(found: Watch) -> Document:
    """Alarms, the rate of every day, and the slices.

    Example:
        >>> from dynsnap.watch import ALL, Counts, judge
        >>> counts = Counts()
        >>> counts.add(ALL, "2024-05-06", 1000, 12)
        >>> watch_document(judge(counts, limit=0.05)).banner.word
        'NO ALARM'
    """
    alarms = found.alarms
    body: list[Node] = [_chart(found.whole, found.limit), _days(found.whole)]
    sections = [Section(name="days", title="Every day", body=tuple(body))]
    if found.slices:
        # What rings is looked at first; a picture of every slice would hide it.
        loud = [part for part in found.slices if part.alarm is not None][:_PICTURED]
        charts = [_chart(part, found.limit, at) for at, part in enumerate(loud, 1)]
        body = [Side(tuple(charts))] if charts else []
        body.append(_slices(found.slices))
        sections.append(Section(name="slices", title="Slices", body=tuple(body)))
    if found.notes:
        notes = Bullets.of("Notes", found.notes)
        sections.append(Section(name="notes", title="Notes", body=(notes,)))
    limit = percent(found.limit)
    return Document(
        title="Deployed and candidate on live traffic",
        about=f"Labels differ on {percent(found.whole.differing / found.whole.rows)} % of "
        f"{counted(found.whole.rows, 'row')} in {counted(len(found.whole.days), 'day')}. Limit: "
        f"{limit} %. The chance of any false alarm, on all days and slices together, is at most "
        f"{percent(found.alpha)} %.",
        banner=Banner(
            "ALARM" if alarms else "NO ALARM",
            f"Labels differ on more than {limit} % of the rows in "
            f"{counted(len(alarms), 'part')} of the traffic."
            if alarms
            else f"No evidence that labels differ on more than {limit} %.",
            not alarms,
            tuple(
                Bullet(f"{part.title}: since {part.alarm}", "slices" if part.column else "days")
                for part in alarms
            ),
        ),
        sections=tuple(sections),
        suite="watch",
        checks=tuple(
            Check(
                title=part.title,
                status="failed" if part.alarm else "passed",
                text=f"Alarm on {part.alarm}." if part.alarm else "No alarm.",
            )
            for part in (found.whole, *found.slices)
        ),
    )


def _chart(part: Watched, limit: float, number: int = 0) -> Figure:
    places = [float(calendar(day.day)) for day in part.days]
    every = max(1, math.ceil((places[-1] - places[0]) / _PLACES))
    start = len("2024-") if part.days[0].day[:4] == part.days[-1].day[:4] else 0
    shown = range(int(places[-1]), int(places[0]) - 1, -every)
    daily = [Point(x=at, y=day.rate) for at, day in zip(places, part.days, strict=True)]
    rolling = [Point(x=at, y=day.rolling) for at, day in zip(places, part.days, strict=True)]
    of = f" ({clipped(part.title, 40)})" if part.column else ""
    return chart(
        name=f"disagreement-{number}" if number else "disagreement",
        title=f"Share of rows on which the labels differ{of}",
        description=f"The last day is at {percent(daily[-1].y)} %, the last {ROLLING} days at "
        f"{percent(rolling[-1].y)} %.",
        series=[
            Series(name="each day", points=tuple(daily), tone="muted"),
            Series(name=f"last {ROLLING} days", points=tuple(rolling), tone="one"),
        ],
        levels=[Level(name="limit", y=limit, tone="bad")],
        across="day",
        up="share of rows",
        places=[(float(at), str(date.fromordinal(at))[start:]) for at in reversed(shown)],
        letters="lines",
    )


def _days(part: Watched) -> Table:
    rows = tuple(
        (
            Cell(day.day),
            count_cell(day.rows),
            count_cell(day.differing),
            Cell(percent(day.rate), day.rate),
            Cell(percent(day.rolling), day.rolling),
            Cell(percent(day.mean), day.mean),
            Cell(percent_interval(day.low, day.high)),
            Cell(_evidence(day.evidence), day.evidence),
            Cell("alarm" if part.alarm is not None and day.day >= part.alarm else "", tone="bad"),
        )
        for day in reversed(part.days)
    )
    return Table(
        name="days-table",
        title="All rows, the newest day first",
        columns=(
            Column("day", "date", order="descending"),
            Column("rows", "number"),
            Column("differing", "number"),
            Column("%", "number", "Rows of the day on which the labels differ."),
            Column(f"last {ROLLING} days, %", "number"),
            Column("all days so far, %", "number"),
            Column("interval", "interval", "It holds on all days together."),
            Column(
                "evidence",
                "number",
                f"Of a rate above the limit: 1 is none, {part.needed:.0f} or more an alarm.",
            ),
            Column("alarm"),
        ),
        rows=rows,
        brief_rows=_SHOWN,
    )


def _slices(parts: Sequence[Watched]) -> Table:
    rows = tuple(
        (
            Cell(part.column),
            Cell(part.value),
            count_cell(part.rows),
            Cell(percent(part.differing / part.rows), part.differing / part.rows),
            Cell(percent(part.days[-1].rolling), part.days[-1].rolling),
            Cell(_evidence(part.days[-1].evidence), part.days[-1].evidence),
            Cell(_evidence(part.needed), part.needed),
            Cell(part.alarm or "", tone="bad"),
        )
        for part in parts
    )
    return Table(
        name="slices-table",
        title="Values of slices, those with an alarm first",
        columns=(
            Column("slice"),
            Column("value", key=True),
            Column("rows", "number"),
            Column("%", "number", "Rows of all days on which the labels differ."),
            Column(f"last {ROLLING} days, %", "number"),
            Column("evidence", "number"),
            Column("alarm from", "number", "More is asked of many slices than of one."),
            Column("first alarm"),
        ),
        rows=rows,
        search=len(rows) > _SHOWN,
    )


def _evidence(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.3g}"
