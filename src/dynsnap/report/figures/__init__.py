"""Pictures: plain shapes with the numbers behind them, as SVG or PNG."""

from dynsnap.report.figures._cases import between_families, by_class, flow, where_answers_went
from dynsnap.report.figures._drawing import Figure
from dynsnap.report.figures._grid import grid
from dynsnap.report.figures._lines import chart
from dynsnap.report.figures._plane import Level, Point, Series, tones
from dynsnap.report.figures._png import check_png, png
from dynsnap.report.figures._rules import rules
from dynsnap.report.figures._svg import inline, svg

__all__ = [
    "Figure",
    "Level",
    "Point",
    "Series",
    "between_families",
    "by_class",
    "chart",
    "check_png",
    "flow",
    "grid",
    "inline",
    "png",
    "rules",
    "svg",
    "tones",
    "where_answers_went",
]
