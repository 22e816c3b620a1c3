"""Tables of a page: whole without a script, sorted and searched with one."""

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.report.document import Cell, Column, Strip, Table, Tone
from dynsnap.report.figures import Figure
from dynsnap.report.figures._drawing import Box, Dot, Shape, Stroke
from dynsnap.report.render.letters import marks
from dynsnap.report.render.markup import Child, Markup, element, term
from dynsnap.report.render.svg import ornament
from dynsnap.report.words import clipped, count

_NAME = 80  # characters of a name
_HEAD = 40  # characters of a head
_TEXT = 240  # characters of the beginning of an input
_LONG = 22  # characters from which on a name needs a wide column
_SIDE = 48  # pixels of an image on the screen
_PICTURED = 200  # rows of a table with images, which are larger than words
_ROOM = 60  # rows from which on a page has room for longer tables

_KINDS = {
    "name": "",
    "date": "date",
    "number": "number",
    "interval": "range",
    "words": "text",
    "claim": "claim",
    "plot": "",
    "input": "excerpt",
}
_TONES: dict[Tone, str] = {"plain": "", "strong": ""}


@dataclass(slots=True)
class Room:
    """How many rows tables may have; where they share them, how many are left."""

    rows: int
    shared: bool = False


def table(found: Table, room: Room) -> Markup:
    """A table as HTML, with as many rows as there is room for."""
    if room.rows <= 0:
        return Markup("")
    rows = found.rows[: _most(found, room.rows)]
    full = ""
    if room.shared:
        room.rows -= len(found.rows)
        full = "" if room.rows > 0 else "Further tables are left out: the page has no room."
    caption = f"{found.name}-caption"
    names = [row[0].text for row in rows]
    again = [
        found.grouped and names[place - 1 : place] == [name] for place, name in enumerate(names)
    ]
    lines = [
        element(
            "tr",
            _cells(found, row),
            class_="again" if repeated else None,
            id=found.row_names[place] if place < len(found.row_names) else None,
        )
        for place, (row, repeated) in enumerate(zip(rows, again, strict=True))
    ]
    every = max(found.whole, len(found.rows))
    cut = every > len(rows)
    shown = f"Showing {count(len(rows))} of {count(every)}." if cut else ""
    said = (shown, found.rest if cut else "", found.footer, full)
    note = " ".join(part for part in said if part)
    whole = element(
        "div",
        _search(found) if found.search else None,
        element(
            "div",
            element(
                "table",
                element("caption", element("span", clipped(found.title, 200)), id=caption),
                element("thead", element("tr", [_head(each) for each in found.columns])),
                element("tbody", lines),
                id=found.name,
                data_sortable=found.sortable,
                data_grouped=found.grouped,
            ),
            class_="scroll tall" if len(rows) > found.tall else "scroll",
            tabindex="0",
            role="region",
            aria_labelledby=caption,
        ),
        element("p", note, class_="note") if note else None,
        class_="table",
    )
    if not found.folded:
        return whole
    return element("details", element("summary", clipped(found.title, 200)), whole, class_="fold")


def _most(found: Table, rows: int) -> int:
    if any(cell.image is not None for row in found.rows for cell in row):
        return min(rows, _PICTURED)
    return max(rows, found.roomy) if rows >= _ROOM else rows


def _head(column: Column) -> Markup:
    title, beside = clipped(column.title, _HEAD), column.kind == "interval"
    word: Child = term(title, column.meaning) if column.meaning else title
    if beside:  # behind its value in brackets, or after ±: the eye needs no word
        word = element("span", column.meaning or title, class_="unseen")
    return element(
        "th",
        word,
        scope="col",
        class_="number" if column.kind == "number" else None,
        aria_sort=column.order or None,
        data_fixed=column.fixed or column.kind in ("interval", "plot", "input"),
    )


def _cells(found: Table, row: tuple[Cell, ...]) -> list[Markup]:
    made = []
    for place, (column, cell) in enumerate(zip(found.columns, row, strict=True)):
        said = _said(column, cell)
        long = "long" if not place and not cell.hint and len(cell.text) > _LONG else ""
        kind = "picture" if cell.image is not None else _KINDS[column.kind]
        tone = _TONES.get(cell.tone, cell.tone)
        if column.kind in ("interval", "input"):
            tone = ""
        if not place and kind not in ("number", "date"):
            kind = ""
        classes = " ".join(part for part in (kind, tone, long) if part)
        known = cell.value is not None and abs(cell.value) < float("inf")  # NaN fails this too
        made.append(
            element(
                "td" if place else "th",
                said,
                scope=None if place else "row",
                class_=classes or None,
                data_key=f"{cell.value:.10g}" if known else None,
            )
        )
    return made


def _said(column: Column, cell: Cell) -> Child:
    if isinstance(cell.plot, Strip):
        return _strip(cell.plot)
    if cell.plot is not None:
        return marks(cell.plot)
    if cell.image is not None:
        return _image(cell.image, cell.text)
    if cell.hint:
        return term(clipped(cell.text, _NAME), cell.hint)
    if column.kind == "claim":  # dynsnap's own words are never cut short
        return cell.text
    return clipped(cell.text, _TEXT if column.kind == "input" else _NAME)


def _image(image: AnyArray, name: str) -> Markup:
    high, wide = image.shape[:2]
    scale = _SIDE / max(high, wide)
    source = f"data:image/png;base64,{base64.b64encode(png_of(image)).decode()}"
    return element(
        "img",
        src=Markup(source),
        alt=clipped(name, _NAME) or "input",
        width=max(1, round(wide * scale)),
        height=max(1, round(high * scale)),
        class_="pixels" if scale > 1 else None,
    )


def _strip(plot: Strip) -> Markup | str:
    """A value and its interval on a line, as a small picture."""
    found, span = plot.estimate, plot.end - plot.start
    if not plot.start <= found.value <= plot.end or not span:
        return ""

    def place(value: float) -> float:
        return 4 + 120 * (min(max(value, plot.start), plot.end) - plot.start) / span

    shapes: list[Shape] = [Box(x=0, y=7, width=128, height=2, tone="line")]
    if found.low is not None and found.high is not None:
        ends = ((place(found.low), 8.0), (place(found.high), 8.0))
        shapes.append(Stroke(points=ends, tone="one", width=4))
    for value, width in ((plot.reference, 1.5), (plot.threshold, 2.0)):
        if value is not None and plot.start <= value <= plot.end:
            ends = ((place(value), 2), (place(value), 14))
            shapes.append(Stroke(points=ends, tone="muted", width=width))
    shapes.append(Dot(x=place(found.value), y=8, tone="ink", radius=3.5))
    drawn = Figure(name="", title="", description="", width=128, height=16, shapes=tuple(shapes))
    return ornament(drawn, class_="strip")


def _search(found: Table) -> Markup:
    """A field that the script uncovers: without it there is nothing that would search."""
    field_name = f"{found.name}-search"
    return element(
        "div",
        element("label", "Search ", for_=field_name),
        element(
            "input",
            type="search",
            id=field_name,
            data_filter=found.name,
            autocomplete="off",
            aria_describedby=f"{found.name}-caption",
        ),
        element("output", for_=field_name, aria_live="polite"),
        class_="search",
        hidden=True,
    )


def png_of(image: AnyArray) -> bytes:
    """An image (height, width, 1 or 3 channels) of uint8 as the bytes of a PNG file.

    Example:
        >>> png_of(np.zeros((2, 2, 1), np.uint8))[:4]
        b'\\x89PNG'
    """
    high, wide, channels = image.shape
    head = struct.pack(">IIBBBBB", wide, high, 8, 0 if channels == 1 else 2, 0, 0, 0)
    # Of PNG's filters, the one that this image is smallest with.
    flat = image.reshape(high, -1).astype(np.int16)
    left = np.pad(flat, ((0, 0), (channels, 0)))[:, : flat.shape[1]]
    above = np.pad(flat, ((1, 0), (0, 0)))[:high]
    filtered = enumerate((flat, flat - left, flat - above))
    body = min((_packed(number, rows) for number, rows in filtered), key=len)
    parts = ((b"IHDR", head), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in parts)


def _packed(number: int, rows: AnyArray) -> bytes:
    marked = np.pad(rows % 256, ((0, 0), (1, 0)), constant_values=number)
    return zlib.compress(marked.astype(np.uint8).tobytes(), 9)


def _chunk(name: bytes, content: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + checksum
