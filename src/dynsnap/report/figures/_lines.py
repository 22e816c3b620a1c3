"""Lines over time, over a setting, or over epochs; and points against cost."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from dynsnap.report.figures._drawing import (
    Dot,
    Figure,
    Letters,
    Level,
    Series,
    Shape,
    Stroke,
    Text,
    Tone,
    fitted,
    tick_texts,
    ticks,
    width_of,
)
from dynsnap.report.figures._labels import beside, stacked

_Shape: TypeAlias = Literal["circle", "square", "diamond"]

_SHAPES: tuple[_Shape, ...] = ("circle", "square", "diamond")
_BESIDE = 130.0  # room for names to the right of the last point
_NAMES = 12  # that the usual height has room for
_LINE = 14.0  # of height, for each more
_DASH = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The plane that points are drawn on."""

    left: float
    top: float
    width: float
    height: float
    x_from: float
    x_to: float
    y_from: float
    y_to: float
    logarithmic: bool = False

    def x(self, value: float) -> float:
        """Where a value stands, from the left."""
        low, high, at = self.x_from, self.x_to, value
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(value)
        return self.left + (at - low) / (high - low or 1) * self.width

    def y(self, value: float) -> float:
        """Where a value stands, from the top."""
        share = (value - self.y_from) / (self.y_to - self.y_from or 1)
        return self.top + (1 - share) * self.height


def doublings(low: float, high: float) -> list[float]:
    """The powers of two between two numbers.

    Example:
        >>> doublings(0.9, 5)
        [1.0, 2.0, 4.0]
    """
    first = math.floor(math.log2(low) + 1e-9)
    powers = (2.0**k for k in range(first, math.ceil(math.log2(high)) + 1))
    return [value for value in powers if low - 1e-9 <= value <= high * 1.0001]


def chart(
    *,
    name: str,
    title: str,
    description: str,
    series: Sequence[Series],
    across: str,
    up: str,
    places: Sequence[tuple[float, str]] = (),
    levels: Sequence[Level] = (),
    logarithmic: bool = False,
    named_points: bool = False,
    floor: float | None = None,
    said: Callable[[float], str] = "{:.3f}".format,
    width: float = 660.0,
    height: float = 300.0,
    letters: Letters = "none",
) -> Figure:
    """Series on one plane.

    Args:
        name: What the figure's file is called.
        title: What it shows.
        description: The same for those who do not see it.
        series: What is drawn.
        across: What x is.
        up: What y is.
        places: Names along x, instead of numbers.
        levels: Dashed lines.
        logarithmic: Whether x grows by factors.
        named_points: Whether names stand beside points, instead of a key.
        floor: Where y begins; what lies below is cut off.
        said: How a value is written.
        width: Of the whole figure.
        height: Of the whole figure.
        letters: How a terminal shows the series.
    """
    every_series, series = tuple(series), [one for one in series if one.drawn]
    every = [point for one in series for point in one.points]
    heights = [level.y for level in levels]
    for point in every:
        heights += [value for value in (point.y, point.low, point.high) if value is not None]
    low, high = min(heights) if floor is None else floor, max(heights)
    air = (high - low) * 0.08 or 0.01
    xs = [point.x for point in every] + [place for place, _ in places]
    x_from, x_to = min(xs), max(xs)
    if x_from == x_to:
        x_from, x_to = (
            x_from * 0.5 if logarithmic else x_from - 1,
            x_to * 2 if logarithmic else x_to + 1,
        )
    if named_points:  # every name has a line of its own, if need be
        height += _LINE * max(0, len(series) - _NAMES)
    # Names beside points, or below the last one, reach over the edge.
    right = _beside(series) if named_points else 48.0 if places else 20.0
    frame = Frame(
        left=62,
        top=44,
        width=width - 62 - right,
        height=height - 44 - 46,
        x_from=x_from,
        x_to=x_to,
        y_from=low - air if floor is None else floor,
        y_to=high + air,
        logarithmic=logarithmic,
    )
    shapes = [*_axes(frame, across, up, places)]
    for level in levels:
        y = frame.y(level.y)
        ends = ((frame.left, y), (frame.left + frame.width, y))
        shapes.append(Stroke(points=ends, tone=level.tone, dashed=True, width=1.5))
    for one, shape in zip(series, _shapes(series), strict=True):
        shapes += _drawn(frame, one, shape, said)
    shapes += _names(frame, series) if named_points else _key(series, levels)
    return Figure(
        name=name,
        title=title,
        description=description,
        width=width,
        height=height,
        shapes=tuple(shapes),
        head=("", across, up, "interval"),
        rows=tuple(
            (
                one.name,
                dict(places).get(point.x, f"{point.x:g}"),
                said(point.y),
                "" if point.low is None or point.high is None
                else f"[{said(point.low)}, {said(point.high)}]",
            )
            for one in series
            for point in one.points
        ),
        series=every_series,
        letters=letters,
    )  # fmt: skip


def _axes(
    frame: Frame,
    across: str,
    up: str,
    places: Sequence[tuple[float, str]],
) -> list[Shape]:
    bottom, end = frame.top + frame.height, frame.left + frame.width
    whole = frame.x_from % 1 == frame.x_to % 1 == 0 and frame.x_to - frame.x_from > 4
    shapes: list[Shape] = []
    values = ticks(frame.y_from, frame.y_to)
    for value, text in zip(values, tick_texts(values), strict=True):
        y = frame.y(value)
        shapes += [
            Stroke(points=((frame.left, y), (end, y))),
            Text(x=frame.left - 8, y=y + 4, text=text, anchor="end", tone="muted", size=11),
        ]
    marks = list(places) or [
        (value, f"{value:g}")
        for value in (
            doublings(frame.x_from, frame.x_to)
            if frame.logarithmic
            else ticks(frame.x_from, frame.x_to, 8, whole=whole)
        )
    ]
    room = frame.width / max(len(marks), 1)
    every = max(1, math.ceil(46 / room)) if room else 1
    for place, (value, word) in enumerate(marks):
        if place % every:
            continue
        x = frame.x(value)
        shapes += [
            Stroke(points=((x, bottom), (x, bottom + 4)), tone="muted"),
            Text(
                x=x,
                y=bottom + 18,
                text=fitted(word, max(room * every, 46), 11),
                anchor="middle",
                tone="muted",
                size=11,
            ),
        ]
    shapes += [
        Stroke(points=((frame.left, bottom), (end, bottom)), tone="muted"),
        Text(x=end, y=bottom + 38, text=across, anchor="end", tone="muted", size=11),
        Text(x=8, y=16, text=up, tone="muted", size=11),
    ]
    return shapes


def _shapes(series: Sequence[Series]) -> list[_Shape]:
    """A shape for the marks of each series; those of one colour have different ones, if they can.

    Example:
        >>> alike = Series(name="one of two", points=(), tone="one")
        >>> _shapes([alike, alike])
        ['circle', 'square']
    """
    taken: Counter[tuple[Tone, _Shape]] = Counter()
    found: list[_Shape] = []
    for place, one in enumerate(series):
        turned = _SHAPES[place % 3 :] + _SHAPES[: place % 3]
        found.append(min(turned, key=lambda shape: taken[one.tone, shape]))
        taken[one.tone, found[-1]] += 1
    return found


def _drawn(frame: Frame, one: Series, shape: _Shape, said: Callable[[float], str]) -> list[Shape]:
    shapes: list[Shape] = []
    line = tuple((frame.x(point.x), frame.y(point.y)) for point in one.points)
    if one.joined and len(line) > 1:
        shapes += [
            Stroke(points=part, tone=one.tone, width=1.8, label=one.name, dashed=one.dashed)
            for part in _above(line, frame.top + frame.height)
        ]
    for point, (x, y) in zip(one.points, line, strict=True):
        if point.low is not None and point.high is not None:
            ends = ((x, frame.y(point.low)), (x, frame.y(point.high)))
            shapes.append(Stroke(points=ends, tone=one.tone, width=1.4))
        if one.marks:
            words = point.label or f"{one.name}: {said(point.y)}"
            shapes.append(Dot(x=x, y=y, tone=one.tone, shape=shape, label=words))
    return shapes


def _above(
    line: Sequence[tuple[float, float]], edge: float
) -> Iterator[tuple[tuple[float, float], ...]]:
    """The parts of a line that do not lie below an edge; heights are from the top.

    Example:
        >>> list(_above([(0, 0), (1, 2), (2, 0)], 1))
        [((0, 0), (0.5, 1)), ((1.5, 1), (2, 0))]
    """
    part = [line[0]] if line[0][1] <= edge else []
    for (x, y), (next_x, next_y) in pairwise(line):
        if (y > edge) != (next_y > edge):
            part.append((x + (next_x - x) * (edge - y) / (next_y - y), edge))
        if next_y <= edge:
            part.append((next_x, next_y))
        elif part:
            yield tuple(part)
            part = []
    if part:
        yield tuple(part)


def _key(series: Sequence[Series], levels: Sequence[Level]) -> list[Shape]:
    """What each series and level is, as it is drawn."""
    shapes: list[Shape] = []
    x = 62.0
    marks = _shapes(series)
    shown: list[Series | Level] = [*series, *levels]
    for place, one in enumerate(shown):
        word = fitted(one.name, 230)
        ends = ((x, 30.0), (x + 16, 30.0))
        if isinstance(one, Level):
            shapes.append(Stroke(points=ends, tone=one.tone, width=1.5, dashed=True))
        elif one.joined:
            shapes.append(Stroke(points=ends, tone=one.tone, width=3, dashed=one.dashed))
        else:
            shapes.append(Dot(x=x + 8, y=30, tone=one.tone, shape=marks[place]))
        shapes.append(Text(x=x + 21, y=34, text=word, size=12))
        x += 21 + width_of(word) + 18
    return shapes


def _names(frame: Frame, series: Sequence[Series]) -> list[Shape]:
    """The name of each series beside its last point; of lines, with a piece of them."""
    lines = _lines(series)
    dash = _DASH if lines else 0.0
    ends = [(frame.x(one.points[-1].x) + dash, frame.y(one.points[-1].y)) for one in series]
    right = frame.left + frame.width + _beside(series) - 4
    bounds = (frame.left, 0.0, right, frame.top + frame.height)
    names = [(one.name, *end) for one, end in zip(series, ends, strict=True)]
    if not lines:
        return list(beside(names, bounds, lines=_intervals(frame, series)))
    shapes: list[Shape] = []
    # Names come from the top down.
    ordered = sorted(zip(ends, series, _shapes(series), strict=True), key=_height)
    for text, (_, one, mark) in zip(stacked(names, bounds), ordered, strict=True):
        first, last, y = text.x - dash + 1, text.x - 4, text.y - 4
        shapes.append(Stroke(points=((first, y), (last, y)), tone=one.tone, width=1.8))
        shapes.append(Dot(x=(first + last) / 2, y=y, tone=one.tone, shape=mark))
        shapes.append(text)
    return shapes


def _intervals(frame: Frame, series: Sequence[Series]) -> list[tuple[float, float, float, float]]:
    """Where the upright lines through points are: left, top, right, bottom."""
    return [
        (frame.x(point.x) - 1, frame.y(point.high), frame.x(point.x) + 1, frame.y(point.low))
        for one in series
        for point in one.points
        if point.low is not None and point.high is not None
    ]


def _height(item: tuple[tuple[float, float], Series, _Shape]) -> float:
    return item[0][1]


def _lines(series: Sequence[Series]) -> bool:
    return any(one.joined and len(one.points) > 1 for one in series)


def _beside(series: Sequence[Series]) -> float:
    """The room for names beside points; beside the ends of lines they have nowhere else to go."""
    if not _lines(series):
        return _BESIDE
    return min(240.0, max(width_of(one.name, 11) for one in series) + 14 + _DASH)
