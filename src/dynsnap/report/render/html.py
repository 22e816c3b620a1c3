"""Reports as one self-contained page: its own styles and script, and nothing from anywhere else."""

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib import resources

from dynsnap.report.document import (
    Bullet,
    Bullets,
    Details,
    Document,
    Node,
    Prose,
    Section,
    Side,
    Stack,
    Tile,
    Tiles,
    select,
)
from dynsnap.report.figures import Figure
from dynsnap.report.render.html_table import Room, table
from dynsnap.report.render.letters import numbers
from dynsnap.report.render.markup import Child, Markup, element, term
from dynsnap.report.render.svg import DARK, LIGHT, classes, inline, properties
from dynsnap.report.words import clipped, count, interval, number

MOST_BYTES = 1_500_000

_ROWS = (500, 200, 120, 60, 15)  # rows of the longest tables, until the page is small enough
_SENTENCE = 600  # characters of a sentence that names come into
_TITLE = 200
_ITEMS = 40  # of a list
_FILE = 8000  # characters of a file
_DATA = 120  # rows of the numbers behind a figure


def to_html(document: Document) -> str:
    """A report as one page of at most 1.5 MB: its tables are as long as that allows.

    Example:
        >>> "&lt;b&gt; is new" in to_html(Document.of("old → new", Prose("<b> is new.")))
        True
    """
    full = select(document, "full")
    page = _page(full, _ROWS[0])
    for rows in _ROWS[1:]:
        if len(page.encode()) <= MOST_BYTES:
            break
        page = _page(full, rows)
    return page


def _page(document: Document, rows: int) -> str:
    script = _asset("page.js")
    title = clipped(document.title, _TITLE)
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        # Nothing is fetched from anywhere, and no script runs but the one below.
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        element("title", title),
        element("style", Markup(_styles())),
    ]
    contents = [
        element("li", element("a", section.short or section.title, href=f"#{section.name}"))
        for section in document.sections
    ]
    body = [
        element("a", "Skip to the content", class_="skip", href="#content"),
        element(
            "header",
            element(
                "div",
                element("p", "dynsnap", class_="brand"),
                element("button", "Dark", type="button", id="theme", hidden=True),
                class_="top",
            ),
            element("h1", title),
            element("p", clipped(document.about, 2 * _SENTENCE), class_="about"),
            _banner(document),
            [
                element("p", clipped(warning, _SENTENCE), class_="warning")
                for warning in document.warnings
            ],
        ),
        element("nav", element("ul", contents), aria_label="Contents"),
        element(
            "main",
            [_section(section, Room(rows), 2) for section in document.sections],
            id="content",
            tabindex="-1",
        ),
        element("footer", element("p", document.footer)) if document.footer else None,
        element("div", id="tip", role="tooltip", hidden=True),
        element("script", Markup(script)),
    ]
    html = element("html", element("head", head), element("body", body), lang="en")
    return f"<!doctype html>\n{html}\n"


def _banner(document: Document) -> Markup | None:
    banner = document.banner
    if banner is None:
        return None
    return element(
        "div",
        element("strong", banner.word),
        element("p", banner.text),
        class_=f"verdict {'pass' if banner.good else 'fail'}",
        role="status",
    )


def _section(section: Section, room: Room, level: int) -> Markup:
    heading = f"{section.name}-heading"
    room = Room(room.rows, shared=section.rows_together)
    return element(
        "section",
        element(f"h{level}", clipped(section.title, _TITLE), id=heading),
        element("p", clipped(section.lead, 3 * _SENTENCE), class_="lead") if section.lead else None,
        _nodes(section.body, section, room, level),
        id=section.name,
        aria_labelledby=heading,
    )


def _nodes(nodes: Iterable[Node], section: Section, room: Room, level: int) -> list[Child]:
    return [_node(node, section, room, level) for node in nodes]


def _node(node: Node, section: Section, room: Room, level: int) -> Child:
    if isinstance(node, Section):
        return _section(node, room, level + 1)
    if isinstance(node, Side):
        return element("div", _nodes(node.nodes, section, room, level), class_="side")
    if isinstance(node, Prose):
        looks = {"quiet": "note", "bad": "warning", "plain": "lead"}
        return element("p", clipped(node.text, 3 * _SENTENCE), class_=looks.get(node.tone))
    if isinstance(node, Bullets):
        # A list that has a section of its own needs no second heading.
        head = element(f"h{level + 1}", node.title) if node.title != section.title else None
        items = [element("li", _item(item)) for item in node.items[:_ITEMS]]
        return [head, element("ul", items, class_="plain")]
    if isinstance(node, Details):
        text = element("pre", element("code", clipped(node.text, _FILE)), tabindex="0")
        return element("details", element("summary", node.title), text)
    if isinstance(node, Stack):
        parts = ", ".join(f"{count(part.inputs)} {part.name}" for part in node.parts)
        return element("p", f"{parts}.")
    if isinstance(node, Tiles):
        tiles = [_tile(tile, node.reference) for tile in node.tiles]
        footer = element("p", node.footer, class_="note") if node.footer else None
        return [element("ul", tiles, class_="tiles", aria_label=node.title or None), footer]
    if isinstance(node, Figure):
        return _figure(node)
    return table(node, room)


def _item(item: Bullet) -> list[Child]:
    link = element("a", f"See {item.section}.", href=f"#{item.section}") if item.section else None
    return [clipped(item.text, _SENTENCE), " " if link else None, link]


def _tile(tile: Tile, reference: str) -> Markup:
    name = term(tile.name, tile.meaning) if tile.meaning else tile.name
    # Some are called by their symbol anyway.
    symbol = (
        [" ", element("span", tile.symbol, class_="symbol")]
        if tile.symbol and tile.symbol != tile.name
        else None
    )
    said = None if tile.reference is None else f"{reference} {number(tile.reference)}"
    return element(
        "li",
        element("span", name, symbol, class_="name"),
        element(
            "span",
            number(tile.estimate.value),
            class_="value bad" if tile.tone == "bad" else "value",
        ),
        element("span", interval(tile.estimate) or " ", class_="range"),
        element("span", tile.note, class_="range") if tile.note else None,
        element("span", said, class_="range") if said else None,
    )


def _figure(figure: Figure) -> Markup:
    """A figure with the numbers behind it."""
    title = clipped(figure.title, _TITLE)
    # Hardly larger than drawn, so that letters have one size in all pictures.
    least, most = 0.74 * figure.width, 1.15 * figure.width
    size = f"min-width:{least:.0f}px;max-width:{most:.0f}px"
    return element(
        "figure",
        element("figcaption", title),
        element(
            "div",
            element("div", inline(figure), style=size),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label=title,
        ),
        element("details", element("summary", "The numbers behind this picture"), _behind(figure))
        if figure.rows
        else None,
        id=f"figure-{figure.name}",
    )


def _behind(figure: Figure) -> Markup:
    behind = replace(numbers(figure), name=f"{figure.name}-data", sortable=False)
    return table(behind, Room(_DATA))


def _styles() -> str:
    light = f"{properties(LIGHT)};color-scheme:light"
    dark = f"{properties(DARK)};color-scheme:dark"
    return (
        f":root{{{light}}}"
        # Paper is white, whatever the screen is.
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}"
        f"{classes()}\n{_asset('page.css')}"
    )


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(name: str) -> str:
    return (resources.files("dynsnap.report.render") / "assets" / name).read_text(encoding="utf-8")
