"""Cells and columns that several reports have."""

from dynsnap.comparison import Estimate
from dynsnap.metrics import metric
from dynsnap.report.document import Cell, Column, Detail, Tone
from dynsnap.report.words import count, interval, number

SAME_DATA = "same data"
ABOUT_SAME_DATA = (
    "Same data (the noise floor): the same model retrained on the same data changes this much."
)
MADE = "Nothing on this page is fetched from anywhere."


def interval_column(detail: Detail = "all") -> Column:
    """The head of the intervals of the column before it."""
    return Column("interval", "interval", detail=detail)


def metric_cell(name: str) -> Cell:
    """A metric's name, as rules and JSON have it, with its meaning."""
    return Cell(name, hint=metric(name).meaning)


def value_cell(value: float | None, tone: Tone = "plain") -> Cell:
    """A value."""
    return Cell(number(value), value, tone)


def count_cell(value: float, tone: Tone = "plain") -> Cell:
    """A number of inputs, or their weight."""
    return Cell(count(value), value, tone)


def interval_cell(estimate: Estimate | None, tone: Tone = "quiet") -> Cell:
    """An interval."""
    return Cell(interval(estimate), tone=tone)


def estimate_cells(estimate: Estimate | None, tone: Tone = "plain") -> tuple[Cell, Cell]:
    """A value and its interval."""
    return value_cell(None if estimate is None else estimate.value, tone), interval_cell(estimate)
