"""Renderers: a report as terminal text, Markdown, a page or JUnit XML; a figure as SVG or PNG."""

from dynsnap.report.render.html import MOST_BYTES, to_html
from dynsnap.report.render.junit import to_junit
from dynsnap.report.render.markdown import markdown_table, to_markdown
from dynsnap.report.render.png import check_png, to_png
from dynsnap.report.render.svg import to_svg
from dynsnap.report.render.terminal import PIPE_WIDTH, to_terminal

__all__ = [
    "MOST_BYTES",
    "PIPE_WIDTH",
    "check_png",
    "markdown_table",
    "to_html",
    "to_junit",
    "to_markdown",
    "to_png",
    "to_svg",
    "to_terminal",
]
