"""A figure as PNG: the same shapes, drawn by matplotlib (the optional extra `report`)."""

import importlib.util
import io
from typing import Any

from dynsnap.errors import PlanError
from dynsnap.report.figures._drawing import Box, Dot, Figure, Ribbon, Shape, Stroke, Text
from dynsnap.report.render.svg import LIGHT

_INCH = 100.0  # units of a figure in an inch of paper
_POINTS = 72 / _INCH
_SIDES = {"start": "left", "middle": "center", "end": "right"}
_MARKS = {"circle": "o", "square": "s", "diamond": "D"}


def check_png() -> None:
    """Raise unless PNG files can be drawn, before any work is done for one."""
    if importlib.util.find_spec("matplotlib") is None:
        raise PlanError(
            "PNG files are drawn with matplotlib, which is not installed. "
            "Install it with `pip install 'dynsnap[report]'`, or ask for SVG."
        )


def to_png(figure: Figure, *, dots_per_inch: int = 200) -> bytes:
    """A figure as the bytes of a PNG file."""
    check_png()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(figure.width / _INCH, figure.height / _INCH), dpi=dots_per_inch)
    FigureCanvasAgg(canvas)
    canvas.set_facecolor(LIGHT["ground"])
    axes: Any = canvas.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, figure.width)
    axes.set_ylim(figure.height, 0)
    axes.axis("off")
    for order, shape in enumerate(figure.shapes):
        _draw(axes, shape, order)
    written = io.BytesIO()
    canvas.savefig(written, format="png")
    return written.getvalue()


def _draw(axes: Any, shape: Shape, order: int) -> None:
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    colour = LIGHT[shape.tone]
    if isinstance(shape, Box):
        axes.add_patch(
            Rectangle(
                (shape.x, shape.y),
                shape.width,
                shape.height,
                facecolor=colour,
                alpha=shape.opacity,
                linewidth=0,
                zorder=order,
            )
        )
    elif isinstance(shape, Stroke):
        axes.plot(
            [x for x, _ in shape.points],
            [y for _, y in shape.points],
            color=colour,
            linewidth=shape.width * _POINTS,
            linestyle=(0, (5, 4)) if shape.dashed else "-",
            zorder=order,
        )
    elif isinstance(shape, Dot):
        axes.plot(
            shape.x,
            shape.y,
            _MARKS[shape.shape],
            color=colour,
            markersize=2 * shape.radius * _POINTS,
            zorder=order,
        )
    elif isinstance(shape, Text):
        axes.text(
            shape.x,
            shape.y,
            shape.text,
            color=colour,
            fontsize=shape.size * _POINTS,
            fontweight="bold" if shape.bold else "normal",
            ha=_SIDES[shape.anchor],
            va="baseline",
            rotation=-shape.turned,
            rotation_mode="anchor",
            parse_math=False,
            zorder=order,
        )
    else:
        axes.add_patch(
            PathPatch(
                _band(shape, Path), facecolor=colour, alpha=shape.opacity, linewidth=0, zorder=order
            )
        )


def _band(shape: Ribbon, path: Any) -> Any:
    bend = (shape.left + shape.right) / 2
    low_left, low_right = shape.top_left + shape.height, shape.top_right + shape.height
    corners = [
        (shape.left, shape.top_left),
        (bend, shape.top_left),
        (bend, shape.top_right),
        (shape.right, shape.top_right),
        (shape.right, low_right),
        (bend, low_right),
        (bend, low_left),
        (shape.left, low_left),
        (shape.left, shape.top_left),
    ]
    curve = [path.CURVE4] * 3
    return path(corners, [path.MOVETO, *curve, path.LINETO, *curve, path.CLOSEPOLY])
