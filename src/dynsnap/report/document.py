"""What a report is made of: a small tree that every renderer reads.

Builders (`dynsnap.report.build`) make it, renderers (`dynsnap.report.render`) write it. Texts are
plain data: each renderer escapes them for its own language, so markup in a class name is shown and
never obeyed. Parts can be marked `brief` (terminal and Markdown only) or `full` (page only);
`select` leaves what one of the two shows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import compress
from typing import Literal, TypeAlias

from dynsnap._types import AnyArray
from dynsnap.comparison import Estimate
from dynsnap.report.figures import Figure
from dynsnap.report.words import count

Level: TypeAlias = Literal["brief", "full"]
Detail: TypeAlias = Literal["all", "brief", "full"]
Tone: TypeAlias = Literal["plain", "good", "bad", "quiet", "strong", "best", "second"]
Order: TypeAlias = Literal["", "ascending", "descending"]
# What a column holds. Names, words and claims are text, of one line, several, or many; an interval
# belongs to the column before it; an input is a small image or the beginning of a text.
Kind: TypeAlias = Literal["name", "date", "number", "interval", "words", "claim", "plot", "input"]
Status: TypeAlias = Literal["passed", "failed", "unresolved", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A small plot: a value and its interval on a line.

    Attributes:
        start: What the line begins with.
        end: What it ends with.
        threshold: What the value is held against.
        fails_above: Whether values above the threshold fail, or those below.
        reference: Another value on the line, such as the noise floor.
    """

    estimate: Estimate
    start: float = 0.0
    end: float = 1.0
    threshold: float | None = None
    fails_above: bool = False
    failed: bool = False
    reference: float | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """A small plot: inputs lost and gained, beside the most that any row has."""

    lost: int
    gained: int
    most: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: What stands there.
        value: The number that the text is of: what a table is sorted by.
        hint: An explanation, which a page shows on hover and on focus.
        plot: A small plot instead of the text.
        image: A small image (height, width, channels); the text is then its name.
    """

    text: str = ""
    value: float | None = None
    tone: Tone = "plain"
    hint: str = ""
    plot: Strip | Marks | None = None
    image: AnyArray | None = None

    @property
    def empty(self) -> bool:
        """Whether it shows nothing."""
        return not self.text and self.plot is None and self.image is None


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column.

    Attributes:
        meaning: An explanation, which a page shows on hover and on focus.
        detail: Who shows the column.
        key: Whether it names the row, like the first column: it is repeated where a table has to be
            cut into several.
        joined: Whether it is never cut off from the column before it.
        fixed: Whether a page does not sort by it.
        order: Whether the rows come sorted by it.
    """

    title: str
    kind: Kind = "name"
    meaning: str = ""
    detail: Detail = "all"
    key: bool = False
    joined: bool = False
    fixed: bool = False
    order: Order = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a title. Columns in which every cell is empty are dropped when it is shown.

    Attributes:
        name: Its id on a page.
        row_names: The ids of its rows on a page, where links lead to them; empty for none.
        full_rows: Positions of rows that only a page shows.
        brief_rows: The most rows that terminal and Markdown show; 0 for all.
        footer: A sentence below it.
        brief_footer: The same for terminal and Markdown; None where it is the same.
        whole: How many rows there are in all, where the builder has left out some.
        rest: Where the rows are that are left out.
        roomy: Rows that a page shows while it has room, where that is more than usual.
        tall: Rows from which on it scrolls on its own.
        search: Whether a page has a field to search it.
        sortable: Whether a page sorts it.
        grouped: Whether the first column is shown once for rows that share it.
        folded: Whether it is unfolded on demand, on a page and in Markdown; the terminal states
            only how long it is.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    row_names: tuple[str, ...] = ()
    full_rows: frozenset[int] = frozenset()
    brief_rows: int = 0
    footer: str = ""
    brief_footer: str | None = None
    whole: int = 0
    rest: str = ""
    roomy: int = 0
    tall: int = 40
    search: bool = False
    sortable: bool = True
    grouped: bool = False
    folded: bool = False
    detail: Detail = "all"


@dataclass(frozen=True, slots=True)
class Prose:
    """A sentence or two."""

    text: str
    tone: Tone = "plain"
    detail: Detail = "all"


@dataclass(frozen=True, slots=True)
class Bullet:
    """An item of a list, with the section (or the row of a table) that it leads to."""

    text: str
    section: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets:
    """A list under a title."""

    title: str
    items: tuple[Bullet, ...]
    detail: Detail = "all"

    @staticmethod
    def of(title: str, items: Iterable[str], detail: Detail = "all") -> "Bullets":
        """A list of plain sentences."""
        return Bullets(title=title, items=tuple(Bullet(item) for item in items), detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One of the numbers that are looked at first.

    Attributes:
        also: Another word for it, which a page shows beside the symbol.
        note: What else belongs to it, such as how many inputs.
        reference: The value that it is held against, such as the noise floor.
    """

    name: str
    estimate: Estimate
    symbol: str = ""
    also: str = ""
    meaning: str = ""
    note: str = ""
    reference: float | None = None
    tone: Tone = "plain"
    detail: Detail = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """The numbers that are looked at first.

    Attributes:
        reference: What the references are called.
        footer: What they are.
    """

    tiles: tuple[Tile, ...]
    title: str = ""
    reference: str = ""
    footer: str = ""
    detail: Detail = "all"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a whole, and how many inputs it has."""

    name: str
    inputs: int
    tone: str  # kept, gained, lost or never


@dataclass(frozen=True, slots=True)
class Stack:
    """The parts of a whole, as one bar."""

    parts: tuple[Part, ...]
    detail: Detail = "all"


@dataclass(frozen=True, slots=True)
class Side:
    """Parts that stand side by side where there is room."""

    nodes: tuple["Node", ...]
    detail: Detail = "all"


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that a page folds away until a reader asks for them; elsewhere they are just shown."""

    title: str
    nodes: tuple["Node", ...]
    detail: Detail = "all"


@dataclass(frozen=True, slots=True)
class Details:
    """A text that is unfolded on demand, such as a file."""

    title: str
    text: str
    detail: Detail = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report that has a place in its contents.

    Attributes:
        name: Its id on a page, where links lead to.
        short: Its name in the contents, where the title is long.
        lead: What it is about, in a sentence or two.
        lead_detail: Who shows the lead.
        rows_together: Whether its tables together have as many rows on a page as a table elsewhere.
    """

    name: str
    title: str
    body: tuple["Node", ...] = ()
    short: str = ""
    lead: str = ""
    lead_detail: Detail = "full"
    rows_together: bool = False
    detail: Detail = "all"


Node: TypeAlias = Table | Prose | Bullets | Tiles | Stack | Side | Fold | Details | Section | Figure


@dataclass(frozen=True, slots=True)
class Banner:
    """The decision that a report is about.

    Attributes:
        reasons: Why it is as it is, each with the place on the page that it leads to.
    """

    word: str
    text: str
    good: bool
    reasons: tuple[Bullet, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Something that was checked, for machines that collect test results."""

    title: str
    status: Status
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report.

    Attributes:
        about: What it was made from, in a line or two.
        warnings: What a reader must not miss.
        made_from: Where its numbers come from; date and versions end every page anyway.
        suite: What the checks are called together.
        properties: What else is known of the checks, by name.
    """

    title: str
    sections: tuple[Section, ...]
    about: str = ""
    banner: Banner | None = None
    warnings: tuple[str, ...] = ()
    made_from: str = ""
    suite: str = ""
    checks: tuple[Check, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(title: str, *nodes: Node, about: str = "") -> "Document":
        """A report without sections to speak of."""
        return Document(
            title=title, about=about, sections=(Section(name="report", title=title, body=nodes),)
        )


def select(document: Document, level: Level) -> Document:
    """What is shown at one level of detail.

    Example:
        >>> whole = Document.of("A study", Prose("For all."), Prose("On the page.", detail="full"))
        >>> [node.text for node in select(whole, "brief").sections[0].body]
        ['For all.']
    """
    sections = (one for one in _kept(document.sections, level) if isinstance(one, Section))
    return replace(document, sections=tuple(sections))


def figures_of(document: Document) -> tuple[Figure, ...]:
    """The figures of a report, in their order."""
    return tuple(node for node in walk(document.sections) if isinstance(node, Figure))


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """These nodes and all within them."""
    for node in nodes:
        yield node
        if isinstance(node, Section):
            yield from walk(node.body)
        elif isinstance(node, Side | Fold):
            yield from walk(node.nodes)


def _kept(nodes: Iterable[Node], level: Level) -> Iterator[Node]:
    for node in nodes:
        if node.detail not in ("all", level):
            continue
        if isinstance(node, Section):
            lead = node.lead if node.lead_detail in ("all", level) else ""
            yield replace(node, lead=lead, body=tuple(_kept(node.body, level)))
        elif isinstance(node, Side | Fold):
            yield replace(node, nodes=tuple(_kept(node.nodes, level)))
        elif isinstance(node, Tiles):
            tiles = (tile for tile in node.tiles if tile.detail in ("all", level))
            yield replace(node, tiles=tuple(tiles))
        elif isinstance(node, Table):
            yield _shown(node, level)
        else:
            yield node


def _shown(table: Table, level: Level) -> Table:
    rows = table.rows
    footer = table.footer
    if level == "brief":
        footer = footer if table.brief_footer is None else table.brief_footer
        rows = tuple(row for place, row in enumerate(rows) if place not in table.full_rows)
        if table.brief_rows and len(rows) > table.brief_rows:
            more = f"and {count(len(rows) - table.brief_rows)} more"
            footer = f"{more}; {footer}" if footer else more
            rows = rows[: table.brief_rows]
    kept = [
        column.detail in ("all", level) and (not place or any(not row[place].empty for row in rows))
        for place, column in enumerate(table.columns)
    ]
    return replace(
        table,
        columns=tuple(compress(table.columns, kept)),
        rows=tuple(tuple(compress(row, kept)) for row in rows),
        footer=footer,
        brief_footer=None,
        full_rows=frozenset(),
        brief_rows=0,
    )
