"""One self-contained file: its own styles and script, and nothing from anywhere else."""

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from dynsnap.report._element import Child, Markup, clipped, element
from dynsnap.report.figures import Figure
from dynsnap.report.figures._palette import DARK, LIGHT, classes, properties
from dynsnap.report.html._parts import Section

MOST_BYTES = 1_500_000
_ROWS = (500, 200, 120, 60, 15)  # rows of the longest tables, until the page is small enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page, as HTML and as the figures on it."""

    html: str
    figures: tuple[Figure, ...]


def bounded(make: Callable[[int], Page]) -> Page:
    """The fullest page that is not too large; `make` is told how long tables may be."""
    page = make(_ROWS[0])
    for rows in _ROWS[1:]:
        if len(page.html.encode()) <= MOST_BYTES:
            break
        page = make(rows)
    return page


def page(
    *,
    title: str,
    about: str,
    sections: Sequence[Section],
    banner: Child = None,
    footer: str = "",
) -> Page:
    """Sections under a title."""
    script = _asset("page.js")
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        # Nothing is fetched from anywhere, and no script runs but the one below.
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        element("title", clipped(title, 200)),
        element("style", Markup(_styles())),
    ]
    contents = [
        element("li", element("a", section.short or section.title, href=f"#{section.name}"))
        for section in sections
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
            element("h1", clipped(title, 200)),
            element("p", about, class_="about"),
            banner,
        ),
        element("nav", element("ul", contents), aria_label="Contents"),
        element("main", [_section(section) for section in sections], id="content", tabindex="-1"),
        element("footer", element("p", footer)) if footer else None,
        element("div", id="tip", role="tooltip", hidden=True),
        element("script", Markup(script)),
    ]
    html = element("html", element("head", head), element("body", body), lang="en")
    return Page(
        html=f"<!doctype html>\n{html}\n",
        figures=tuple(figure for section in sections for figure in section.all_figures),
    )


def _section(section: Section, level: int = 2) -> Markup:
    heading = f"{section.name}-heading"
    return element(
        "section",
        element(f"h{level}", section.title, id=heading),
        element("p", section.lead, class_="lead") if section.lead else None,
        list(section.body),
        [_section(part, level + 1) for part in section.parts],
        id=section.name,
        aria_labelledby=heading,
    )


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
    return (resources.files("dynsnap.report.html") / "assets" / name).read_text(encoding="utf-8")
