"""The plane of a chart, and what is drawn on it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dynsnap.report.figures._drawing import SERIES, Tone


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
    """

    name: str
    points: tuple[Point, ...]
    tone: Tone
    joined: bool = True
    marks: bool = True


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
