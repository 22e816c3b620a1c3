"""Reports as Markdown, for pull requests and wikis."""

import re

from dynsnap.errors import one_line
from dynsnap.report._blocks import (
    Bullets,
    Cell,
    Document,
    Heading,
    Line,
    Paragraph,
    Table,
    without_plots,
)

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$]|^\s*[-+=]|(?<=^\d)[.)](?=\s))")
# Names that would notify people, link to issues or become links are cut by an empty comment.
_CALLING = re.compile(r"(@|://|www\.|(?<=#)(?=\d))")


def markdown(document: Document) -> str:
    r"""A report as Markdown, in which every text is plain data.

    Example:
        >>> print(markdown((Heading("old → new"), Paragraph("Class <b>frog</b> is new."))))
        ## old → new
        <BLANKLINE>
        Class \<b\>frog\</b\> is new.
        <BLANKLINE>
    """
    # Plots made of letters are for terminals.
    said = (block for block in document if not isinstance(block, Line))
    return "\n\n".join(_block(block) for block in said) + "\n"


def escaped(raw: str) -> str:
    r"""A text in which nothing is Markdown or HTML.

    Example:
        >>> print(escaped("a|b *c* @team"))
        a\|b \*c\* @<!-- -->team
    """
    words = _SPECIAL.sub(r"\\\1", one_line(raw)).replace("&", "&amp;")
    return _CALLING.sub(r"\1<!-- -->", words)


def _block(block: Heading | Paragraph | Bullets | Table) -> str:
    if isinstance(block, Heading):
        return f"## {escaped(block.text)}"
    if isinstance(block, Paragraph):
        words = escaped(block.text)
        return f"**{words}**" if block.tone in ("bad", "strong") else words
    if isinstance(block, Bullets):
        return "\n".join([f"### {escaped(block.title)}", "", *_items(block)])
    return _table(without_plots(block))


def _items(block: Bullets) -> list[str]:
    return [f"* {escaped(item)}" for item in block.items]


def _table(table: Table) -> str:
    head = "| " + " | ".join(escaped(column.title) for column in table.columns) + " |"
    rule = (
        "| " + " | ".join("---:" if column.numeric else ":---" for column in table.columns) + " |"
    )
    rows = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in table.rows]
    lines = [head, rule, *rows]
    if table.title:
        lines = [f"### {escaped(table.title)}", "", *lines]
    if table.footer:
        lines += ["", escaped(table.footer)]
    return "\n".join(lines)


def _cell(cell: Cell) -> str:
    words = escaped(cell.text)
    return f"**{words}**" if words and cell.tone in ("bad", "strong") else words
