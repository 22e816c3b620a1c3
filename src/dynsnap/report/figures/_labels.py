"""Names beside points, where they cover neither marks nor each other."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TypeAlias

from dynsnap.report.figures._drawing import Anchor, Stroke, Text, fitted, width_of

Bounds: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom

_SIZE = 11.0
_TALL = 14.0
_MARK = 6.0  # half the size of a mark
_NEAR = 24.0


def beside(
    points: Sequence[tuple[str, float, float]],
    bounds: Bounds,
    *,
    lines: Sequence[Bounds] = (),
) -> Iterator[Text | Stroke]:
    """A text for each named point, within these bounds, and a line to those that had to go far.

    Lines are better not crossed, but no text goes far to avoid them.

    Example:
        >>> [text.x for text in beside([("a", 50, 50), ("b", 54, 50)], (0, 0, 100, 100))]
        [41, 63]
    """
    taken = [(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for _, x, y in points]
    for name, x, y in sorted(points, key=lambda point: point[2]):
        word = fitted(name, 200, _SIZE)
        places = list(_around(x, y, width_of(word, _SIZE), bounds))
        free = [at for at in places if not any(_overlap(at[1], other) for other in taken)]
        clear = (
            at
            for at in free
            if abs(at[1][1] + _TALL / 2 - y) <= _NEAR
            and not any(_overlap(at[1], line) for line in lines)
        )
        # Where everything is taken, names may touch: beside their point they are still found.
        anchor, box = next(clear, (free or places or [_right_of(x, y, width_of(word, _SIZE))])[0])
        taken.append(box)
        at = {"start": box[0], "end": box[2], "middle": (box[0] + box[2]) / 2}[anchor]
        yield Text(x=at, y=box[3] - 3, text=word, anchor=anchor, size=_SIZE)
        middle = (box[1] + box[3]) / 2
        if abs(middle - y) > _NEAR:
            yield Stroke(
                points=((x, y), (max(box[0], min(x, box[2])), middle)), tone="muted", width=0.6
            )


def stacked(points: Sequence[tuple[str, float, float]], bounds: Bounds) -> Iterator[Text]:
    """A text to the right of each named point, the highest first, as near as their order allows.

    Example:
        >>> [text.y for text in stacked([("b", 50, 52), ("a", 50, 50)], (0, 0, 100, 100))]
        [48.0, 62.0]
    """
    # How far up each may move is what those above it leave: the means of those that would touch.
    blocks: list[list[float]] = []
    ordered = sorted(points, key=lambda point: point[2])
    for place, (_, _, y) in enumerate(ordered):
        blocks.append([y - place * _TALL])
        while len(blocks) > 1 and fmean(blocks[-2]) > fmean(blocks[-1]):
            touching = blocks.pop()
            blocks[-1] += touching
    starts = [fmean(block) for block in blocks for _ in block]
    highest = bounds[1] + _TALL / 2
    lowest = bounds[3] - _TALL / 2 - (len(ordered) - 1) * _TALL
    for place, (start, (name, x, _)) in enumerate(zip(starts, ordered, strict=True)):
        y = max(highest, min(lowest, start)) + place * _TALL
        word = fitted(name, bounds[2] - x - 9, _SIZE)
        yield Text(x=x + 9, y=y + _TALL / 2 - 3, text=word, anchor="start", size=_SIZE)


def _around(x: float, y: float, wide: float, bounds: Bounds) -> Iterator[tuple[Anchor, Bounds]]:
    """Places near a point, the best first: right of it, left, a little up or down, and further."""
    left, top, right, bottom = bounds
    for away in (0, -9, 9, *(sign * step for step in range(16, 113, 8) for sign in (-1, 1))):
        above = y - _TALL / 2 + away
        if not top <= above <= bottom - _TALL:
            continue
        if x + 9 + wide <= right:
            yield "start", (x + 9, above, x + 9 + wide, above + _TALL)
        if x - 9 - wide >= left:
            yield "end", (x - 9 - wide, above, x - 9, above + _TALL)
        if abs(away) > 12 and left <= x - wide / 2 and x + wide / 2 <= right:
            yield "middle", (x - wide / 2, above, x + wide / 2, above + _TALL)


def _right_of(x: float, y: float, wide: float) -> tuple[Anchor, Bounds]:
    return "start", (x + 9, y - _TALL / 2, x + 9 + wide, y + _TALL / 2)


def _overlap(one: Bounds, other: Bounds) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
