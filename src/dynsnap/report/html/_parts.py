"""What a page is made of: sections, tables that can be sorted and searched, figures."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dynsnap.metrics import metric
from dynsnap.report._blocks import count
from dynsnap.report._element import Child, Markup, clipped, element
from dynsnap.report.figures import Figure, inline

_NAME = 80  # characters of a name in a table
_TALL = 40  # rows that a table may have before it scrolls on its own
_LONG = 22  # characters from which on a name needs a wide column
_DATA = 120  # rows of the numbers behind a figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page that has a place in its contents.

    Attributes:
        name: Where links lead to.
        short: What it is called in the contents, where its title is long.
        lead: What it is about, in a sentence or two.
        body: What follows.
        figures: The figures in it, for files of their own.
        parts: Sections within this one, which are not in the contents.
    """

    name: str
    title: str
    short: str = ""
    lead: str = ""
    body: Sequence[Child] = ()
    figures: tuple[Figure, ...] = ()
    parts: tuple["Section", ...] = ()

    @property
    def all_figures(self) -> tuple[Figure, ...]:
        """The figures of this section, then those of its parts."""
        within = (figure for part in self.parts for figure in part.all_figures)
        return (*self.figures, *within)


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column.

    Attributes:
        meaning: What is said on hover or focus.
        fixed: Whether the table cannot be sorted by it.
        unseen: Whether it is said to screen readers only, where the eye needs no word.
    """

    title: str
    numeric: bool = False
    meaning: str = ""
    fixed: bool = False
    unseen: bool = False


INTERVAL = Head("interval", fixed=True, unseen=True)  # in brackets, behind its value


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell: what stands there, what it is sorted by, how it is said."""

    said: Child
    key: float | None = None
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A table.

    Attributes:
        rows: Its rows; plain text stands for an entry without a key.
        sorted_by: The column that it comes sorted by, with "ascending" or "descending".
        search: Whether it has a field to search it by.
        whole: How many rows there are in all, where some were left out.
        grouped: Whether rows of one name belong together, which is then said once to the eye.
        most_seen: Rows that it may have before it scrolls on its own.
    """

    name: str
    caption: str
    heads: tuple[Head, ...]
    rows: Sequence[Sequence[Entry | str]]
    sorted_by: tuple[int, str] | None = None
    search: bool = False
    sortable: bool = True
    whole: int | None = None
    grouped: bool = False
    most_seen: int = _TALL
    note: str = field(default="")


def listing(table: Listing) -> Markup:
    """A table as HTML: whole without a script, sorted and searched with one."""
    caption = f"{table.name}-caption"
    heads = [
        element(
            "th",
            _head(head),
            scope="col",
            class_="number" if head.numeric else None,
            aria_sort=_sorting(table, place),
            data_fixed=head.fixed,
        )
        for place, head in enumerate(table.heads)
    ]
    names = [row[0].said if isinstance(row[0], Entry) else row[0] for row in table.rows]
    again = [
        table.grouped and names[place - 1 : place] == [name] for place, name in enumerate(names)
    ]
    rows = [
        element("tr", _cells(table, row), class_="again" if repeated else None)
        for row, repeated in zip(table.rows, again, strict=True)
    ]
    left_out = (table.whole or 0) - len(table.rows)
    more = f"Showing {count(len(table.rows))} of {count(table.whole or 0)}." if left_out > 0 else ""
    note = " ".join(part for part in (more, table.note) if part)
    return element(
        "div",
        _search(table) if table.search else None,
        element(
            "div",
            element(
                "table",
                element("caption", element("span", table.caption), id=caption),
                element("thead", element("tr", heads)),
                element("tbody", rows),
                id=table.name,
                data_sortable=table.sortable,
                data_grouped=table.grouped,
            ),
            class_="scroll tall" if len(table.rows) > table.most_seen else "scroll",
            tabindex="0",
            role="region",
            aria_labelledby=caption,
        ),
        element("p", note, class_="note") if note else None,
        class_="table",
    )


def _head(head: Head) -> Child:
    if head.unseen:
        return element("span", head.title, class_="unseen")
    return term(head.title, head.meaning) if head.meaning else head.title


def _sorting(table: Listing, place: int) -> str | None:
    if table.sorted_by is None or table.sorted_by[0] != place:
        return None
    return table.sorted_by[1]


def _cells(table: Listing, row: Sequence[Entry | str]) -> list[Markup]:
    made = []
    for place, (head, cell) in enumerate(zip(table.heads, row, strict=True)):
        entry = cell if isinstance(cell, Entry) else Entry(cell)
        marked = isinstance(entry.said, Markup)
        said = entry.said if marked else clipped(str(entry.said), _NAME)
        long = "long" if not place and not marked and len(said) > _LONG else ""
        parts = ("number" if head.numeric else "", entry.tone, long)
        classes = " ".join(part for part in parts if part)
        made.append(
            element(
                "td" if place else "th",
                said,
                scope=None if place else "row",
                class_=classes or None,
                data_key=None if entry.key is None else f"{entry.key:.10g}",
            )
        )
    return made


def _search(table: Listing) -> Markup:
    """A field that the script uncovers: without it there is nothing that would search."""
    field_name = f"{table.name}-search"
    return element(
        "div",
        element("label", "Search ", for_=field_name),
        element(
            "input",
            type="search",
            id=field_name,
            data_filter=table.name,
            autocomplete="off",
            aria_describedby=f"{table.name}-caption",
        ),
        element("output", for_=field_name, aria_live="polite"),
        class_="search",
        hidden=True,
    )


def term(word: str, meaning: str) -> Markup:
    """A word with its meaning on hover and on focus."""
    return element("span", word, class_="term", tabindex="0", title=meaning)


def metric_term(name: str) -> Markup:
    """A metric's name with its meaning from the catalogue."""
    return term(name.replace("_", " "), metric(name).meaning)


def picture(figure: Figure) -> Markup:
    """A figure with the numbers behind it."""
    rows = [
        [Entry(cell, key=_key(cell)) if place else Entry(cell) for place, cell in enumerate(row)]
        for row in figure.rows[:_DATA]
    ]
    behind = listing(
        Listing(
            name=f"{figure.name}-data",
            caption=figure.title,
            heads=tuple(Head(title, numeric=place > 0) for place, title in enumerate(figure.head)),
            rows=rows,
            whole=len(figure.rows),
            sortable=False,
        )
    )
    # Hardly larger than drawn, so that letters have one size in all pictures.
    least, most = 0.74 * figure.width, 1.15 * figure.width
    size = f"min-width:{least:.0f}px;max-width:{most:.0f}px"
    return element(
        "figure",
        element("figcaption", clipped(figure.title, 200)),
        element(
            "div",
            element("div", inline(figure), style=size),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label=clipped(figure.title, 200),
        ),
        element("details", element("summary", "The numbers behind this picture"), behind)
        if figure.rows
        else None,
        id=f"figure-{figure.name}",
    )


def _key(cell: str) -> float | None:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None
