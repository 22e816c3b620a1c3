"""Small plots made of letters: in a terminal a glance at a bar shows more than four decimals."""

import math
from collections.abc import Sequence

from dynsnap.report.document import Cell, Column, Marks, Part, Strip, Table, Tone
from dynsnap.report.figures import Figure
from dynsnap.report.words import count

_LEVELS = "▁▂▃▄▅▆▇█"
_PARTS: dict[str, tuple[str, Tone]] = {
    "kept": ("█", "plain"),
    "gained": ("▲", "good"),
    "lost": ("▼", "bad"),
    "never": ("░", "quiet"),
}
_MARKS = 10  # of the longest row of marks
_POINTS = "○●◆■▲"  # of the series on a plane
_WIDE, _HIGH = 64, 14  # cells of a plane


def spark(values: Sequence[float]) -> str:
    """Values one after another, from the lowest to the highest of them.

    Example:
        >>> spark([0.1, 0.2, 0.4, 0.3])
        '▁▃█▆'
        >>> spark([0.5, 0.5, float("nan")])
        '▁▁ '
    """
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known)
    return "".join(
        _LEVELS[round((value - low) / span * 7) if span else 0] if math.isfinite(value) else " "
        for value in values
    )


def strip(plot: Strip, cells: int = 20) -> str:
    """A value and its interval on a line, and what would fail beyond a threshold.

    Example:
        >>> from dynsnap.comparison import Estimate
        >>> strip(Strip(estimate=Estimate(0.5, 0.25, 0.75)), cells=9)
        '··──●──··'
        >>> strip(Strip(estimate=Estimate(0.75), threshold=0.5), cells=9)
        '░░░░│·●··'
    """

    def place(value: float) -> int:
        share = (value - plot.start) / (plot.end - plot.start) if plot.end > plot.start else 0.5
        return round(max(0.0, min(1.0, share)) * (cells - 1))

    found = plot.estimate
    if not math.isfinite(found.value):
        return ""
    line = ["·"] * cells
    if plot.threshold is not None:
        at = place(plot.threshold)
        for cell in range(at + 1, cells) if plot.fails_above else range(at):
            line[cell] = "░"
    if found.low is not None and found.high is not None:
        for cell in range(place(found.low), place(found.high) + 1):
            line[cell] = "─"
    if plot.threshold is not None:
        line[place(plot.threshold)] = "│"
    line[place(found.value)] = "◆" if plot.failed else "●"
    return "".join(line)


def marks(plot: Marks) -> str:
    """A mark for each input lost and gained, or for as many as a mark stands for.

    Example:
        >>> marks(Marks(lost=2, gained=1, most=2)), marks(Marks(lost=40, gained=1, most=40))
        ('▼▼▲', '▼▼▼▼▼▼▼▼▼▼▲')
    """
    each = max(1, math.ceil(plot.most / _MARKS))
    return "▼" * math.ceil(plot.lost / each) + "▲" * math.ceil(plot.gained / each)


def stack(parts: Sequence[Part], cells: int = 60) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
    """The parts of a whole as one bar, each at least a cell, and what they are.

    Example:
        >>> for line in stack([Part("kept", 7, "kept"), Part("lost", 2, "lost")], 9):
        ...     print("".join(cell.text for cell in line))
        ███████▼▼
        █ 7 kept  ▼ 2 lost
    """
    present = [part for part in parts if part.inputs]
    if not present:
        return (), ()
    total = sum(part.inputs for part in present)
    wide = [max(1, int(part.inputs / total * cells)) for part in present]
    # What rounding left over, or took too much, is the largest part's.
    largest = max(range(len(present)), key=lambda place: present[place].inputs)
    wide[largest] += cells - sum(wide)
    looks = [_PARTS[part.tone] for part in present]
    drawn = tuple(
        Cell(mark * cells, tone=tone) for (mark, tone), cells in zip(looks, wide, strict=True)
    )
    said = tuple(
        Cell(f"{'  ' if place else ''}{mark} {count(part.inputs)} {part.name}", tone=tone)
        for place, (part, (mark, tone)) in enumerate(zip(present, looks, strict=True))
    )
    return drawn, said


def lines(figure: Figure) -> Table:
    """The series of a chart as small lines, with where each begins, ends, and turns."""

    def say(value: float) -> Cell:
        return Cell(f"{value:.4f}", value)

    rows = []
    for one in figure.series:
        values = [point.y for point in one.points]
        ends = (say(values[0]), Cell(spark(values)), say(values[-1]))
        rows.append((Cell(one.name), *ends, say(min(values)), say(max(values))))
    titles = ("first", "", "last", "least", "most")
    return Table(
        name=figure.name,
        title=figure.title,
        columns=(
            Column(""),
            *(Column(title, "number" if title else "plot") for title in titles),
        ),
        rows=tuple(rows),
    )


def numbers(figure: Figure) -> Table:
    """The numbers behind a figure."""
    return Table(
        name=figure.name,
        title=figure.title,
        columns=tuple(
            Column(title, "number" if place else "name") for place, title in enumerate(figure.head)
        ),
        rows=tuple(tuple(Cell(text) for text in row) for row in figure.rows),
    )


def plane(figure: Figure) -> tuple[str, ...]:
    """The series of a chart on one plane, x on a logarithmic scale; lines without marks dotted."""
    points = [point for one in figure.series for point in one.points]
    first, last = min(point.x for point in points), max(point.x for point in points)
    low, high = min(point.y for point in points), max(point.y for point in points)
    canvas = [[" "] * _WIDE for _ in range(_HIGH)]
    named: list[str] = []
    for one in sorted(figure.series, key=lambda each: each.marks):  # marks come last, on top
        mark = _POINTS[len(named) % len(_POINTS)] if one.marks else "·"
        if one.marks:
            named.append(f"{mark} {one.name}")
        for point in one.points:
            across = math.log(point.x / first) / math.log(last / first) if last > first else 0.5
            up = (point.y - low) / (high - low) if high > low else 0.5
            canvas[_HIGH - 1 - round(up * (_HIGH - 1))][round(across * (_WIDE - 1))] = mark
    drawn = [f"{figure.title}: {', '.join(named)}"]
    for place, row in enumerate(canvas):
        value = high - (high - low) * place / (_HIGH - 1)
        shown = f"{value:.2f}" if place in (0, _HIGH // 2, _HIGH - 1) else ""
        drawn.append(f"{shown:>6} │{''.join(row)}")
    drawn.append(f"{'':>6} └{'─' * _WIDE}")
    drawn.append(f"{'':>8}{first:<{_WIDE - 6}g}{last:>6g}")
    return tuple(drawn)
