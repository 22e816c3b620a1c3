"""A picture as a few plain shapes: drawn as SVG by hand, or as PNG by matplotlib, from the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Tone: TypeAlias = Literal[
    "ink", "muted", "line", "panel", "kept", "gained", "lost", "never", "accent", "good", "bad",
    "one", "two", "three", "four", "five", "six",
]  # fmt: skip
Letters: TypeAlias = Literal["none", "lines", "plane", "table"]
Anchor: TypeAlias = Literal["start", "middle", "end"]

SERIES: tuple[Tone, ...] = ("one", "two", "three", "four", "five", "six")


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    tone: Tone
    opacity: float = 1.0
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A line through some points."""

    points: tuple[tuple[float, float], ...]
    tone: Tone = "line"
    width: float = 1.0
    dashed: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A circle or, so that colour is not the only sign, a square or a diamond."""

    x: float
    y: float
    tone: Tone
    radius: float = 4.0
    shape: Literal["circle", "square", "diamond"] = "circle"
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A line of text; y is its baseline."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    tone: Tone = "ink"
    size: float = 12.0
    bold: bool = False
    turned: float = 0.0  # degrees, clockwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Ribbon:
    """A band that runs from one upright edge to another."""

    left: float
    right: float
    top_left: float
    top_right: float
    height: float
    tone: Tone
    opacity: float = 1.0
    label: str = ""


Shape: TypeAlias = Box | Stroke | Dot | Text | Ribbon


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A value at a place, with its interval where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points under one name.

    Attributes:
        marks: Whether each point is marked, or the line alone is drawn.
        drawn: Whether it is in the picture, or in letters only.
        dashed: Whether its line is dashed.
    """

    name: str
    points: tuple[Point, ...]
    tone: Tone
    joined: bool = True
    marks: bool = True
    drawn: bool = True
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A dashed line at a height."""

    y: float
    name: str
    tone: Tone = "muted"


def tones(names: Sequence[str]) -> dict[str, Tone]:
    """A colour for each name; shapes tell apart those that share one."""
    return {name: SERIES[place % len(SERIES)] for place, name in enumerate(names)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture with everything that is needed to do without it.

    Attributes:
        name: What its file is called.
        title: What it shows.
        description: The same in a sentence or two, for those who do not see it.
        head: The columns of the numbers behind it.
        rows: The numbers behind it, as text.
        series: What a chart is drawn from.
        letters: How a terminal shows it: not at all, each series as a small line, all of them on
            one plane, or the numbers behind it as a table.
        narrow: The same drawn for a narrow screen.
    """

    name: str
    title: str
    description: str
    width: float
    height: float
    shapes: tuple[Shape, ...]
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    series: tuple[Series, ...] = ()
    letters: Letters = "none"
    detail: Literal["all", "brief", "full"] = "all"
    narrow: "Figure | None" = None


def width_of(text: str, size: float = 12.0) -> float:
    """About how wide a text will be; wide letters count double.

    Example:
        >>> width_of("cat") < width_of("elephant")
        True
    """
    return sum(1.1 if ord(mark) > 0x2E80 else 0.56 for mark in text) * size


def fitted(text: str, room: float, size: float = 12.0) -> str:
    """A text cut to the room that it has.

    Example:
        >>> fitted("a very long name", 60)
        'a very …'
    """
    while len(text) > 1 and width_of(text, size) > room:
        text = text.removesuffix("…")[:-1] + "…"
    return text


def ticks(low: float, high: float, about: int = 5, *, whole: bool = False) -> list[float]:
    """Round numbers between two; whole ones, if asked for.

    Example:
        >>> ticks(0.71, 0.93)
        [0.75, 0.8, 0.85, 0.9]
    """
    span = high - low
    if not span > 0:
        return [low]
    unit = 10.0**-20
    for power in range(-12, 13):
        for step in (1, 2, 2.5, 5):
            unit = step * 10.0**power
            if whole and unit % 1:
                continue
            if span / unit <= about:
                first = int(low / unit) - 1
                places = (round((first + k) * unit, 12) for k in range(about + 5))
                return [place for place in places if low - 1e-9 <= place <= high + 1e-9]
    return [low, high]


def tick_texts(values: Sequence[float]) -> list[str]:
    """Ticks of one axis as text, with as many decimals as the longest of them needs.

    Example:
        >>> tick_texts([0.05, 0.075, 0.1]), tick_texts([-10, 0, 10])
        (['0.050', '0.075', '0.100'], ['-10', '0', '10'])
    """
    needed = (len(f"{value:.10f}".rstrip("0").partition(".")[2]) for value in values)
    decimals = max(needed, default=0)
    return [f"{value:.{decimals}f}" for value in values]


def slug(name: str) -> str:
    """A name as part of a file's name, and unlike any other name's.

    Example:
        >>> slug("members"), slug("a/b"), slug("a b")
        ('members', 'a-b-612f62', 'a-b-612062')
    """
    kept = (mark if mark.isascii() and (mark.isalnum() or mark in "-=") else "-" for mark in name)
    safe = "".join(kept)
    return safe if safe == name else f"{safe[:40]}-{name.encode().hex()[:24]}"
