"""Reports as Markdown, for pull requests and wikis."""

import re
from collections.abc import Iterable, Iterator

from dynsnap.errors import one_line
from dynsnap.report.document import (
    Bullets,
    Cell,
    Details,
    Document,
    Fold,
    Level,
    Node,
    Prose,
    Section,
    Side,
    Stack,
    Table,
    Tiles,
    select,
)
from dynsnap.report.figures import Figure
from dynsnap.report.render import letters
from dynsnap.report.words import count, interval, number

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$]|^\s*[-+=]|(?<=^\d)[.)](?=\s))")
# Names that would notify people, link to issues or become links are cut by an empty comment.
_CALLING = re.compile(r"(@|://|www\.|(?<=#)(?=\d))")
_LOUD = ("bad", "strong", "best")


def to_markdown(document: Document, *, level: Level = "brief") -> str:
    r"""A report as Markdown, in which every text is plain data.

    Example:
        >>> print(to_markdown(Document.of("old → new", Prose("Class <b>frog</b> is new."))))
        ## old → new
        <BLANKLINE>
        Class \<b\>frog\</b\> is new.
        <BLANKLINE>
    """
    return "\n\n".join(_document(select(document, level))) + "\n"


def markdown_table(table: Table, *, level: Level = "full") -> str:
    """One table as Markdown, without its title, for pages that are written around it."""
    (section,) = select(Document.of("", table), level).sections
    (shown,) = (node for node in section.body if isinstance(node, Table))
    return "\n".join(_lines(shown))


def escaped(raw: str) -> str:
    r"""A text in which nothing is Markdown or HTML.

    Example:
        >>> print(escaped("a|b *c* @team"))
        a\|b \*c\* @<!-- -->team
    """
    words = _SPECIAL.sub(r"\\\1", one_line(raw)).replace("&", "&amp;")
    return _CALLING.sub(r"\1<!-- -->", words)


def _document(document: Document) -> Iterator[str]:
    banner = document.banner
    if document.title:
        yield f"## {escaped(f'{banner.word}: {document.title}' if banner else document.title)}"
    if banner:
        yield escaped(banner.text) if banner.good else f"**{escaped(banner.text)}**"
        if banner.reasons:
            yield "\n".join(f"* {escaped(reason.text)}" for reason in banner.reasons)
    if document.about:
        yield escaped(document.about)
    for warning in document.warnings:
        yield f"**{escaped(warning)}**"
    yield from _nodes(document.sections)


def _nodes(nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        yield from _node(node)


def _node(node: Node) -> Iterator[str]:
    if isinstance(node, Section):
        if node.lead:
            yield escaped(node.lead)
        yield from _nodes(node.body)
    elif isinstance(node, Side | Fold):
        yield from _nodes(node.nodes)
    elif isinstance(node, Prose):
        words = escaped(node.text)
        yield f"**{words}**" if node.tone in _LOUD else words
    elif isinstance(node, Bullets):
        items = (f"* {escaped(item.text)}" for item in node.items)
        yield "\n".join([f"### {escaped(node.title)}", "", *items])
    elif isinstance(node, Details):
        file = (f"    {one_line(line)}" for line in node.text.splitlines())
        yield "\n".join([f"### {escaped(node.title)}", "", *file])
    elif isinstance(node, Stack):
        yield escaped(", ".join(f"{count(part.inputs)} {part.name}" for part in node.parts))
    elif isinstance(node, Tiles):
        yield "\n".join(_tiles(node))
    elif isinstance(node, Figure):
        if node.letters in ("lines", "table"):
            drawn = letters.lines(node) if node.letters == "lines" else letters.numbers(node)
            yield from _node(drawn)
        elif node.letters == "plane":  # which takes letters of one width; its words are for all
            yield escaped(node.description)
    else:
        title = [f"### {escaped(node.title)}", ""] if node.title else []
        footer = ["", escaped(node.footer)] if node.footer else []
        if node.folded:
            title = [f"<details><summary>{escaped(node.title)}</summary>", ""]
            footer += ["", "</details>"]
        yield "\n".join([*title, *_lines(node), *footer])


def _lines(table: Table) -> Iterator[str]:
    shown = [place for place, column in enumerate(table.columns) if column.kind != "plot"]
    yield _row(escaped(table.columns[place].title) for place in shown)
    yield _row("---:" if table.columns[place].kind == "number" else ":---" for place in shown)
    for row in table.rows:
        yield _row(_cell(row[place]) for place in shown)


def _tiles(node: Tiles) -> Iterator[str]:
    if node.title:
        yield f"### {escaped(node.title)}"
        yield ""
    noted = any(tile.note for tile in node.tiles)
    referred = any(tile.reference is not None for tile in node.tiles)
    yield _row(["", "value", "interval", *([""] if noted else []),
                *([escaped(node.reference)] if referred else [])])  # fmt: skip
    yield _row([":---", "---:", ":---", *([":---"] if noted else []),
                *(["---:"] if referred else [])])  # fmt: skip
    for tile in node.tiles:
        value = number(tile.estimate.value)
        cells = [escaped(tile.name), f"**{value}**", escaped(interval(tile.estimate))]
        cells += [escaped(tile.note)] if noted else []
        cells += ["" if tile.reference is None else number(tile.reference)] if referred else []
        yield _row(cells)
    if node.footer:
        yield ""
        yield escaped(node.footer)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    words = escaped(cell.text)
    return f"**{words}**" if words and cell.tone in _LOUD else words
