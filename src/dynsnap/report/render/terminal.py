"""Reports for the terminal: coloured there, plain and of one width in a pipe."""

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING

from dynsnap.comparison import Estimate
from dynsnap.errors import one_line
from dynsnap.report.document import (
    Bullets,
    Cell,
    Column,
    Details,
    Document,
    Fold,
    Level,
    Marks,
    Node,
    Prose,
    Section,
    Side,
    Stack,
    Strip,
    Table,
    Tiles,
    Tone,
    select,
)
from dynsnap.report.figures import Figure
from dynsnap.report.render import letters
from dynsnap.report.words import counted, interval, number

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

PIPE_WIDTH = 100

_STYLES: dict[Tone, str] = {
    "plain": "",
    "good": "green",
    "bad": "bold red",
    "quiet": "dim",
    "strong": "bold",
    "best": "bold",
    "second": "underline",
}
_GAP = 2  # between columns
_STRIP = 16  # cells of a small plot beside a number


def to_terminal(
    document: Document, *, width: int = PIPE_WIDTH, colour: bool = False, level: Level = "brief"
) -> str:
    """A report as text, without trailing blanks.

    Example:
        >>> print(to_terminal(Document.of("old → new", Prose("Nothing changed."))))
        old → new
        Nothing changed.
    """
    from rich.console import Console

    page = io.StringIO()
    console = Console(
        file=page,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for part in _document(select(document, level), width):
        console.print(part)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n")


def _document(document: Document, width: int) -> "Iterator[RenderableType]":
    banner = document.banner
    if document.title:
        word = f"{banner.word}: " if banner else ""
        yield _words(f"{word}{document.title}", "strong")
    if banner:
        yield _words(banner.text, "plain" if banner.good else "bad")
        if banner.reasons:
            yield _list([reason.text for reason in banner.reasons])
    if document.about:
        yield _words(document.about, "quiet")
    for warning in document.warnings:
        yield _words(warning, "bad")
    yield from _nodes(document.sections, width)


def _nodes(nodes: Iterable[Node], width: int) -> "Iterator[RenderableType]":
    for node in nodes:
        yield from _node(node, width)


def _node(node: Node, width: int) -> "Iterator[RenderableType]":
    if isinstance(node, Section):  # tables have titles of their own
        if node.lead:
            yield _words(node.lead, "plain")
        yield from _nodes(node.body, width)
    elif isinstance(node, Side | Fold):
        yield from _nodes(node.nodes, width)
    elif isinstance(node, Prose):
        yield _words(node.text, node.tone)
    elif isinstance(node, Bullets):
        yield ""
        yield _words(node.title, "strong")
        yield _list([item.text for item in node.items])
    elif isinstance(node, Details):
        yield ""
        yield _words(node.title, "strong")
        for line in node.text.splitlines():
            yield _indented(_words(line, "plain"))
    elif isinstance(node, Stack):
        yield ""
        for cells in letters.stack(node.parts):
            yield _pieces(cells)
    elif isinstance(node, Tiles):
        yield from _table(_tiles(node), width)
    elif isinstance(node, Figure):
        if node.letters in ("lines", "table"):
            drawn = letters.lines(node) if node.letters == "lines" else letters.numbers(node)
            yield from _table(drawn, width)
        elif node.letters == "plane":
            yield ""
            for line in letters.plane(node):
                yield _words(line, "plain")
    else:
        yield from _table(node, width)


def _tiles(node: Tiles) -> Table:
    """Tiles as rows, with their values on a few scales."""
    scales, said = _scales([tile.estimate for tile in node.tiles])
    columns = (
        Column(""),
        Column("", key=True),
        Column("value", "number"),
        Column("interval", "interval"),
        Column(said, "plot"),
        Column(""),
        Column(node.reference, "number"),
    )
    rows = (
        (
            Cell(tile.name),
            Cell(tile.symbol if tile.symbol != tile.name else "", tone="quiet"),
            Cell(number(tile.estimate.value), tone=tile.tone if tile.tone == "bad" else "strong"),
            Cell(interval(tile.estimate), tone="quiet"),
            Cell(plot=Strip(estimate=tile.estimate, start=scale[0], end=scale[1])),
            Cell(tile.note, tone="quiet"),
            Cell("" if tile.reference is None else number(tile.reference)),
        )
        for tile, scale in zip(node.tiles, scales, strict=True)
    )
    table = Table(name="", title=node.title, columns=columns, rows=tuple(rows), footer=node.footer)
    kept = [
        place < 2 or any(not row[place].empty for row in table.rows)
        for place in range(len(columns))
    ]
    return _with_columns(table, kept)


def _scales(shown: Sequence[Estimate]) -> tuple[list[tuple[float, float]], str]:
    """The scale that each value is drawn on, and how the two are shown.

    Shares of most inputs end at 1, shares of few begin at 0: on one line from 0 to 1 all of them
    would be points at its ends.
    """
    ends = [(each.value if each.low is None else each.low,
             each.value if each.high is None else each.high) for each in shown]  # fmt: skip
    ends = [end if all(map(math.isfinite, end)) else (0.0, 1.0) for end in ends]
    start = min([low for low, high in ends if high > 0.5], default=0.0)
    end = max([high for _, high in ends if high <= 0.5], default=1.0)
    start, end = math.floor(10 * start) / 10, math.ceil(10 * end) / 10
    scales = [(start, 1.0) if high > 0.5 else (0.0, end) for _, high in ends]
    return scales, ", ".join(f"{low:g}–{high:g}" for low, high in dict.fromkeys(scales))


def _list(items: Iterable[str]) -> "RenderableType":
    from rich.table import Table as RichTable

    drawn = RichTable.grid(padding=(0, 1, 0, 0))
    for item in items:
        drawn.add_row("  ·", _words(item, "plain"))
    return drawn


def _indented(words: "Text") -> "RenderableType":
    from rich.padding import Padding

    return Padding(words, (0, 0, 0, 2))


def _words(raw: str, tone: Tone) -> "Text":
    from rich.text import Text

    # A path that is longer than a line must be shown in full: it is to be copied.
    return Text(one_line(raw), style=_STYLES[tone], overflow="fold")


def _pieces(cells: Iterable[Cell]) -> "Text":
    from rich.text import Text

    return Text.assemble(*(_words(cell.text, cell.tone) for cell in cells))


def _table(table: Table, width: int) -> "Iterator[RenderableType]":
    """A table; small plots are left out where they do not fit, and what is too wide is cut."""
    if table.folded:
        said = f"{table.title}: {counted(len(table.rows), 'row')} in --html, --markdown and --json."
        yield _indented(_words(said, "quiet"))
        return
    yield ""
    if table.title:
        yield _words(table.title, "strong")
    rows = tuple(tuple(_lettered(cell) for cell in row) for row in table.rows)
    if table.grouped:
        names = [row[0].text for row in rows]
        rows = tuple(
            (Cell(), *row[1:]) if names[place - 1 : place] == [row[0].text] else row
            for place, row in enumerate(rows)
        )
    table = replace(table, rows=rows)
    if _needed(table) > width:
        table = _with_columns(table, [column.kind != "plot" for column in table.columns])
    for place, columns in enumerate(_fitting(table, width)):
        if place:
            yield ""
        yield _drawn(table, columns)
    if table.footer:
        yield _indented(_words(table.footer, "quiet"))


def _lettered(cell: Cell) -> Cell:
    if isinstance(cell.plot, Strip):
        return Cell(letters.strip(cell.plot, _STRIP), tone=cell.tone)
    if isinstance(cell.plot, Marks):
        return Cell(letters.marks(cell.plot), tone=cell.tone)
    return cell


def _with_columns(table: Table, kept: Sequence[bool]) -> Table:
    return replace(
        table,
        columns=tuple(compress(table.columns, kept)),
        rows=tuple(tuple(compress(row, kept)) for row in table.rows),
    )


def _room(table: Table, position: int) -> int:
    from rich.cells import cell_len

    texts = [table.columns[position].title, *(row[position].text for row in table.rows)]
    return max(cell_len(one_line(words)) for words in texts) + _GAP


def _needed(table: Table) -> int:
    """How wide a table is in one piece."""
    return sum(_room(table, position) for position in range(len(table.columns))) - _GAP


def _fitting(table: Table, width: int) -> list[list[int]]:
    """The columns of each part that the table has to be cut into; key columns are in all."""
    every = range(len(table.columns))
    keys = [place for place in every if not place or table.columns[place].key]
    room = width - sum(_room(table, place) for place in keys) + _GAP  # none after the last
    parts: list[list[int]] = [[]]
    used = 0
    for together in _units(table, [place for place in every if place not in keys]):
        size = sum(_room(table, place) for place in together)
        if parts[-1] and used + size > room:
            parts.append([])
            used = 0
        parts[-1].extend(together)
        used += size
    return [sorted(keys + part) for part in parts]


def _units(table: Table, places: Iterable[int]) -> Iterator[list[int]]:
    """Columns that are not cut apart."""
    unit: list[int] = []
    for place in places:
        column = table.columns[place]
        if unit and not (column.joined or column.kind == "interval"):
            yield unit
            unit = []
        unit.append(place)
    if unit:
        yield unit


def _drawn(table: Table, positions: list[int]) -> "RenderableType":
    from rich.box import Box
    from rich.table import Table as RichTable

    # A rule under the head and nothing else.
    rule = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
    drawn = RichTable(box=rule, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for position in positions:
        column = table.columns[position]
        drawn.add_column(
            _words(column.title, "quiet"),
            justify="right" if column.kind == "number" else "left",
            overflow="fold",
            no_wrap=False,
        )
    for row in table.rows:
        drawn.add_row(*(_words(row[place].text, row[place].tone) for place in positions))
    return drawn
