"""Reports for the terminal: coloured there, plain and of one width in a pipe."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dynsnap.errors import one_line
from dynsnap.report._blocks import (
    Block,
    Bullets,
    Cell,
    Document,
    Heading,
    Line,
    Paragraph,
    Table,
    Tone,
    without_plots,
)

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
}
_GAP = 2  # between columns


def text(document: Document, *, width: int = PIPE_WIDTH, colour: bool = False) -> str:
    """A report as text, without trailing blanks.

    Example:
        >>> print(text((Heading("old → new"), Paragraph("Nothing changed."))))
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
    for block in document:
        for part in _parts(block, width):
            console.print(part)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).rstrip("\n")


def _parts(block: Block, width: int) -> "Iterator[RenderableType]":
    if isinstance(block, Heading):
        yield _words(block.text, "strong")
    elif isinstance(block, Paragraph):
        yield _words(block.text, block.tone)
    elif isinstance(block, Line):
        yield _pieces(block)
    elif isinstance(block, Bullets):
        yield ""
        yield _words(block.title, "strong")
        yield _list(block.items)
    else:
        yield ""
        if block.title:
            yield _words(block.title, "strong")
        table = block if _needed(block) <= width else without_plots(block)
        for number, columns in enumerate(_fitting(table, width)):
            if number:
                yield ""
            yield _table(table, columns)
        if block.footer:
            yield _indented(_words(block.footer, "quiet"))


def _list(items: tuple[str, ...]) -> "RenderableType":
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

    # A path that is longer than a line must be told in full: it is to be copied.
    return Text(one_line(raw), style=_STYLES[tone], overflow="fold")


def _pieces(line: Line) -> "Text":
    from rich.text import Text

    return Text.assemble(*(_words(cell.text, cell.tone) for cell in line.cells))


def _room(table: Table, position: int) -> int:
    from rich.cells import cell_len

    texts = [table.columns[position].title, *(row[position].text for row in table.rows)]
    return max(cell_len(one_line(words)) for words in texts) + _GAP


def _needed(table: Table) -> int:
    """How wide a table is in one piece."""
    return sum(_room(table, position) for position in range(len(table.columns))) - _GAP


def _fitting(table: Table, width: int) -> list[list[int]]:
    """The columns of each part that the table has to be cut into."""
    keys = list(range(table.keys))
    room = width - sum(_room(table, position) for position in keys) + _GAP  # none after the last
    parts: list[list[int]] = [[]]
    used = 0
    for start in range(table.keys, len(table.columns), table.unit):
        together = range(start, min(start + table.unit, len(table.columns)))
        size = sum(_room(table, position) for position in together)
        if parts[-1] and used + size > room:
            parts.append([])
            used = 0
        parts[-1].extend(together)
        used += size
    return [keys + part for part in parts]


def _table(table: Table, positions: list[int]) -> "RenderableType":
    from rich.box import Box
    from rich.table import Table as RichTable

    # A rule under the head and nothing else.
    rule = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
    drawn = RichTable(box=rule, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for position in positions:
        column = table.columns[position]
        drawn.add_column(
            _words(column.title, "quiet"),
            justify="right" if column.numeric else "left",
            overflow="fold",
            no_wrap=False,
        )
    for row in table.rows:
        drawn.add_row(*(_cell(row[position]) for position in positions))
    return drawn


def _cell(cell: Cell) -> "Text":
    return _words(cell.text, cell.tone)
