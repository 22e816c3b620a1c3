"""What a report is made of, before anyone decides whether it becomes a terminal or a page.

Texts here are plain data: each renderer escapes them for its own language, so that markup in a
class name is shown and never obeyed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Literal, TypeAlias

from dynsnap.comparison import Estimate

Tone: TypeAlias = Literal["plain", "good", "bad", "quiet", "strong"]

UNDEFINED = "–"
CASES = {
    "kept": "right → right",
    "gained": "wrong → right",
    "lost": "right → wrong",
    "never": "wrong → wrong",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with the tone it is said in."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column; numbers are set right-aligned.

    Attributes:
        plot: Whether it holds small plots, which are for terminals that have room for them.
    """

    title: str
    numeric: bool = False
    plot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a title.

    Attributes:
        keys: How many leading columns name the row; they are repeated where a table is too wide
            and has to be cut into several.
        unit: How many of the other columns belong together and are not cut apart.
        footer: A sentence below, such as how many rows were left out.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    keys: int = 1
    unit: int = 1
    footer: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """The first line of a report."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or two."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Line:
    """Pieces of one line, each in its tone: a small plot for terminals."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    """A short list under a title."""

    title: str
    items: tuple[str, ...]


Block: TypeAlias = Heading | Paragraph | Line | Bullets | Table
Document: TypeAlias = tuple[Block, ...]


def without_empty_columns(table: Table) -> Table:
    """The table, less the columns in which nothing stands. Key columns stay."""
    return _with_columns(
        table,
        [
            place < table.keys or any(row[place].text for row in table.rows)
            for place in range(len(table.columns))
        ],
    )


def without_plots(table: Table) -> Table:
    """The table, less the columns of small plots."""
    return _with_columns(table, [not column.plot for column in table.columns])


def _with_columns(table: Table, kept: Sequence[bool]) -> Table:
    return replace(
        table,
        columns=tuple(compress(table.columns, kept)),
        rows=tuple(tuple(compress(row, kept)) for row in table.rows),
    )


def number(value: float | None) -> str:
    """A value with four decimals, so that columns line up.

    Example:
        >>> number(0.5), number(float("inf")), number(None)
        ('0.5000', '∞', '–')
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.4f}"


def interval(estimate: Estimate | None) -> str:
    """The interval of an estimate, empty where there is none.

    Example:
        >>> interval(Estimate(0.5, 0.25, 0.75))
        '[0.2500, 0.7500]'
    """
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"[{number(estimate.low)}, {number(estimate.high)}]"


def said_p_value(value: float | None) -> str:
    """A p-value in a sentence.

    Example:
        >>> said_p_value(0.25), said_p_value(1e-9)
        ('p = 0.2500', 'p < 0.0001')
    """
    said = p_value(value)
    return f"p < {said[1:]}" if said.startswith("<") else f"p = {said}"


def p_value(value: float | None) -> str:
    """A p-value, which is never zero.

    Example:
        >>> p_value(0.25), p_value(1e-9)
        ('0.2500', '<0.0001')
    """
    return "<0.0001" if value is not None and value < 0.0001 else number(value)


def count(value: float) -> str:
    """A number of inputs, or their weight.

    Example:
        >>> count(12345), count(2.5)
        ('12,345', '2.5')
    """
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def counted(number_of: int, thing: str) -> str:
    """A number of things, in the singular for one.

    Example:
        >>> counted(1, "class"), counted(1200, "class"), counted(2, "input")
        ('1 class', '1,200 classes', '2 inputs')
    """
    if number_of == 1:
        return f"1 {thing}"
    return f"{count(number_of)} {thing}{'es' if thing.endswith('s') else 's'}"
