"""A table as a picture: the larger a number, the stronger its colour."""

from collections.abc import Callable, Sequence

from dynsnap.report.figures._drawing import (
    Box,
    Figure,
    Letters,
    Shape,
    Text,
    Tone,
    fitted,
    width_of,
)


def grid(
    *,
    name: str,
    title: str,
    description: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    said: Callable[[float], str],
    tone: Tone,
    down: str = "",
    across: str = "",
    floor: float = 0.0,
    letters: Letters = "none",
) -> Figure:
    """Numbers with rows and columns that have names; None leaves a cell empty.

    Args:
        name: What the figure's file is called.
        title: What it shows.
        description: The same for those who do not see it.
        rows: Names of the rows.
        columns: Names of the columns.
        values: The numbers.
        said: How a number is written.
        tone: The colour of the largest number.
        down: What the rows are.
        across: What the columns are.
        floor: The number that has no colour.
        letters: How a terminal shows it.
    """
    known = [value for row in values for value in row if value is not None]
    most = max([*known, floor])
    wide = max(34.0, *(width_of(said(value), 11) + 12 for value in known), 0.0)
    tall = 28.0
    left = min(240.0, max([width_of(each) for each in (*rows, down)]) + 22)
    above = 34.0 + 0.72 * min(130.0, max(width_of(each) for each in columns))
    shapes: list[Shape] = []
    if across:
        shapes.append(Text(x=left, y=14, text=f"{across} →", tone="muted", size=11))
    if down:
        shapes.append(
            Text(x=left - 8, y=above - 8, text=f"{down} ↓", anchor="end", tone="muted", size=11)
        )
    for place, each in enumerate(columns):
        x = left + (place + 0.5) * wide
        shapes.append(Text(x=x, y=above - 8, text=fitted(each, 130), turned=-45))
    for i, row in enumerate(rows):
        y = above + i * tall
        shapes.append(Text(x=left - 8, y=y + 18, text=fitted(row, left - 18), anchor="end"))
        for j, value in enumerate(values[i]):
            x = left + j * wide
            strength = 0.0 if value is None or most <= floor else (value - floor) / (most - floor)
            words = "" if value is None else f"{row}, {columns[j]}: {said(value)}"
            if value is None:
                empty = Box(x=x + 1, y=y + 1, width=wide - 2, height=tall - 2, tone="panel")
                shapes.append(empty)
            else:
                shapes += [
                    Box(
                        x=x + 1,
                        y=y + 1,
                        width=wide - 2,
                        height=tall - 2,
                        tone=tone,
                        # Never so strong that the ink on it cannot be read, light or dark.
                        opacity=0.08 + 0.42 * max(0.0, min(1.0, strength)),
                        label=words,
                    ),
                    Text(x=x + wide / 2, y=y + 18, text=said(value), anchor="middle", size=11),
                ]
    return Figure(
        name=name,
        title=title,
        description=description,
        width=left + len(columns) * wide + 96,
        height=above + len(rows) * tall + 6,
        shapes=tuple(shapes),
        head=(down or "", *columns),
        rows=tuple(
            (row, *("" if value is None else said(value) for value in values[i]))
            for i, row in enumerate(rows)
        ),
        letters=letters,
    )
