"""Cells and columns that several reports have."""

from dynsnap.comparison import Comparison, Estimate
from dynsnap.metrics import metric
from dynsnap.report.document import Cell, Column, Detail, Tone
from dynsnap.report.words import count, interval, number

SAME_DATA = "same data"
ABOUT_SAME_DATA = (
    "Same data (the noise floor): the same model retrained on the same data changes this much."
)
ABOUT_OWN_ANSWERS = (
    "Same data (the noise floor): two answers of the old model to the same input differ this much."
)


def about_floor(comparison: Comparison) -> str:
    """Where the noise floor comes from: a twin is read as one more generation."""
    twin = len(comparison.alignment.names) > len(comparison.generations)
    own = comparison.task == "graded" and not twin
    return ABOUT_OWN_ANSWERS if own else ABOUT_SAME_DATA


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
