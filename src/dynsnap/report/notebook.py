"""Results in notebooks: the most important of them as HTML, their pages, and single pictures.

`dynsnap._registry.Displayed` asks for these: results know nothing of reports.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynsnap import _files
from dynsnap._registry import set_renderer
from dynsnap.comparison import Comparison
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.gate import Verdict
from dynsnap.report.build.comparison import comparison_document
from dynsnap.report.build.verdict import verdict_document
from dynsnap.report.document import Document, Node, Section, Table, figures_of, walk
from dynsnap.report.figures import Figure
from dynsnap.report.render.html import to_fragment, to_html
from dynsnap.report.render.png import to_png
from dynsnap.report.render.svg import to_svg

_ROWS = 8  # of a table in a notebook
_PARTS = {  # of each section, the nodes that a notebook shows by their names; None for all
    "rules": ("rules", "rules-table"),
    "generations": ("over-time", "lost-over-time"),
    "transitions": ("transitions", ""),
    "classes": ("class-table",),
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that a notebook shows."""

    figure: Figure

    def __repr__(self) -> str:
        return f"<Picture: {self.figure.title}. {self.figure.description}>"

    def _repr_svg_(self) -> str:
        return to_svg(self.figure).partition("?>\n")[2]

    def save(self, path: str | Path) -> Path:
        """Write it as SVG or, with matplotlib, as PNG: the file's ending shows which."""
        target = Path(path)
        if target.suffix.lower() == ".svg":
            _files.write_text(target, to_svg(self.figure))
        elif target.suffix.lower() == ".png":
            _files.write_bytes(target, to_png(self.figure))
        else:
            raise PlanError(f"A picture is an .svg or a .png file, got {str(path)!r}.")
        return target


class Pages:
    """Shows comparisons and verdicts."""

    def fragment(self, result: Any) -> str:
        """The most important of a result, as HTML within a notebook."""
        whole = _document(result)
        banner = whole.banner
        if banner is not None:  # links lead nowhere in a notebook
            reasons = tuple(replace(reason, section="") for reason in banner.reasons)
            banner = replace(banner, reasons=reasons)
        return to_fragment(replace(whole, banner=banner, sections=tuple(_summary(whole))))

    def write_page(self, result: Any, path: Path) -> None:
        """Write the page of a result."""
        _files.write_text(path, to_html(_document(result)))

    def picture(self, result: Any, name: str | None) -> Picture:
        """A figure of a result."""
        figures = {figure.name: figure for figure in figures_of(_document(result))}
        if not figures:
            raise PlanError("There is no picture of this result.")
        if name is None:
            return Picture(next(iter(figures.values())))
        if name not in figures:
            raise PlanError(f"There is no picture {name!r}. {did_you_mean(name, figures)}")
        return Picture(figures[name])


def _document(result: Any) -> Document:
    if isinstance(result, Comparison):
        return comparison_document(result)
    if isinstance(result, Verdict):
        return verdict_document(result)
    raise PlanError(f"There is no page of a {type(result).__name__}.")


def _summary(whole: Document) -> Iterator[Section]:
    """The sections that a notebook has room for."""
    for section in whole.sections:
        wanted = _PARTS.get(section.name)
        if wanted is None:
            continue
        nodes = tuple(_few(node) for node in walk(section.body) if _name(node) in wanted)
        yield replace(section, body=nodes, detail="all")


def _name(node: Node) -> str | None:
    if isinstance(node, Table | Figure):
        return node.name
    return "" if type(node).__name__ == "Tiles" else None


def _few(node: Node) -> Node:
    if isinstance(node, Table):
        every = max(node.whole, len(node.rows))
        names = node.row_names[:_ROWS]
        return replace(
            node, rows=node.rows[:_ROWS], row_names=names, whole=every, search=False, sortable=False
        )
    return node


set_renderer(Pages())
