"""Reports as one self-contained page: its own styles and script, and nothing from anywhere else."""

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib import resources

from dynsnap.errors import InputError
from dynsnap.report.document import (
    Bullet,
    Bullets,
    Details,
    Document,
    Fold,
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
from dynsnap.report.render.signature import signature
from dynsnap.report.render.svg import DARK, LIGHT, classes, inline, properties
from dynsnap.report.words import clipped, count, interval, number

MOST_BYTES = 1_500_000

_ROWS = (500, 200, 120, 60, 15)  # rows of the longest tables, until the page is small enough
_SENTENCE = 600  # characters of a sentence that names come into
_TITLE = 200
_ITEMS = 40  # of a list
_FILE = 8000  # characters of a file
_SCOPE = "dynsnap-result"  # of a part of another page
_INNER = re.compile(r' (?:id|for|aria-labelledby|aria-describedby)="[^"]*"')
_DATA = 120  # rows of the numbers behind a figure


def to_html(document: Document) -> str:
    """A report as one page of at most 1.5 MB: its tables are as long as that allows.

    Example:
        >>> "&lt;b&gt; is new" in to_html(Document.of("old → new", Prose("<b> is new.")))
        True
    """
    if not isinstance(document, Document):
        raise InputError(
            "`to_html` takes a document, such as `comparison_document(comparison)`, got a "
            f"{type(document).__name__}."
        )
    full = select(document, "full")
    page = _page(full, _ROWS[0])
    for rows in _ROWS[1:]:
        if len(page.encode()) <= MOST_BYTES:
            break
        page = _page(full, rows)
    return page


def to_fragment(document: Document) -> str:
    """A report as part of another page, such as a notebook: no script, and styles of its own.

    Example:
        >>> to_fragment(Document.of("old → new", Prose("<b> is new."))).startswith("<div")
        True
    """
    full = select(document, "full")
    made = element(
        "div",
        element("style", Markup(_scoped_styles())),
        element("h2", clipped(full.title, _TITLE)),
        element("p", clipped(full.about, 2 * _SENTENCE), class_="about"),
        _banner(full),
        [element("p", clipped(each, _SENTENCE), class_="warning") for each in full.warnings],
        [_section(section, Room(_ROWS[-1]), 3) for section in full.sections],
        class_=_SCOPE,
    )
    # Several of them may be on one page, so they have no ids.
    return _INNER.sub("", str(made))


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
        element("nav", element("ul", contents), aria_label="Contents") if contents[1:] else None,
        element(
            "main",
            [_section(section, Room(rows), 2, document.title) for section in document.sections],
            id="content",
            tabindex="-1",
        ),
        element("footer", element("p", signature(document.made_from))),
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
        element("ul", [element("li", _reason(each)) for each in banner.reasons])
        if banner.reasons
        else None,
        class_=f"verdict {'pass' if banner.good else 'fail'}",
        role="status",
    )


def _reason(reason: Bullet) -> Child:
    words = clipped(reason.text, _SENTENCE)
    return element("a", words, href=f"#{reason.section}") if reason.section else words


def _section(section: Section, room: Room, level: int, above: str = "") -> Markup:
    heading = f"{section.name}-heading"
    hidden = "unseen" if section.title == above else None  # the title of the page is enough
    room = Room(room.rows, shared=section.rows_together)
    return element(
        "section",
        element(f"h{level}", clipped(section.title, _TITLE), id=heading, class_=hidden),
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
    if isinstance(node, Fold):
        body = _nodes(node.nodes, section, room, level)
        return element("details", element("summary", node.title), body, class_="fold")
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
    words = tile.symbol
    if tile.also:
        words = f"{tile.also} ({tile.symbol})" if tile.symbol else tile.also
    # Some are called by their symbol anyway.
    symbol = (
        [" ", element("span", words, class_="symbol")] if words and words != tile.name else None
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
    narrow = None
    if figure.narrow is not None:
        narrow = _drawn(replace(figure.narrow, name=f"{figure.name}-narrow"), title, "narrow")
    return element(
        "figure",
        element("figcaption", title),
        _drawn(figure, title, "wide" if narrow else ""),
        narrow,
        element("details", element("summary", "The numbers behind this picture"), _behind(figure))
        if figure.rows
        else None,
        id=f"figure-{figure.name}",
    )


def _drawn(figure: Figure, title: str, screen: str) -> Markup:
    # Hardly larger than drawn, so that letters have one size in all pictures.
    least, most = 0.74 * figure.width, 1.15 * figure.width
    return element(
        "div",
        element("div", inline(figure), style=f"min-width:{least:.0f}px;max-width:{most:.0f}px"),
        class_=f"scroll {screen}".rstrip(),
        tabindex="0",
        role="region",
        aria_label=title,
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


def _scoped_styles() -> str:
    return (
        f".{_SCOPE}{{{properties(LIGHT)};color-scheme:light;color:var(--ink);"
        "background:var(--ground);padding:0.5rem;font-family:system-ui,sans-serif}"
        f".{_SCOPE} section{{padding:0.5rem 0}}"
        f"@scope (.{_SCOPE}){{{classes()}\n{_asset('page.css')}}}"
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
