"""Pictures: plain shapes with the numbers behind them."""

from dynsnap.report.figures._cases import between_families, by_class, flow, grid, where_answers_went
from dynsnap.report.figures._drawing import (
    SERIES,
    Figure,
    Level,
    Point,
    Series,
    Tone,
    slug,
    tones,
)
from dynsnap.report.figures._lines import chart, doublings
from dynsnap.report.figures._rules import rules

__all__ = [
    "SERIES",
    "Figure",
    "Level",
    "Point",
    "Series",
    "Tone",
    "between_families",
    "by_class",
    "chart",
    "doublings",
    "flow",
    "grid",
    "rules",
    "slug",
    "tones",
    "where_answers_went",
]
