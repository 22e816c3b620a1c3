"""Inputs as a reader sees them: small pictures within the page, and the beginnings of texts."""

import base64
import struct
import zlib
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.data import Excerpt
from dynsnap.report._element import Markup, clipped, element
from dynsnap.report.html._parts import Entry, Head

Looks: TypeAlias = Mapping[str, Excerpt]  # by id

PICTURED = 200  # rows of a table with pictures, which are larger than words
_LETTERS = 240
_SIDE = 48  # pixels on the screen


def looks_head() -> Head:
    """The head of a column of inputs."""
    return Head("input", fixed=True)


def look(looks: Looks, name: str) -> Entry:
    """A cell that shows an input, empty where nothing is known of it."""
    found = looks.get(name)
    if found is None:
        return Entry("")
    if isinstance(found, str):
        return Entry(element("span", clipped(found, _LETTERS)), tone="excerpt")
    high, wide = found.shape[:2]
    scale = _SIDE / max(high, wide)
    source = f"data:image/png;base64,{base64.b64encode(png(found)).decode()}"
    drawn = element(
        "img",
        src=Markup(source),
        alt=clipped(name, 80),
        width=max(1, round(wide * scale)),
        height=max(1, round(high * scale)),
        class_="pixels" if scale > 1 else None,
    )
    return Entry(drawn, tone="picture")


def most_rows(looks: Looks, rows: int) -> int:
    """How many rows a table may have that shows these."""
    pictures = any(not isinstance(found, str) for found in looks.values())
    return min(rows, PICTURED) if pictures else rows


def png(image: AnyArray) -> bytes:
    """A picture (height, width, 1 or 3 channels) of uint8 as the bytes of a PNG file.

    Example:
        >>> png(np.zeros((2, 2, 1), np.uint8))[:4]
        b'\\x89PNG'
    """
    high, wide, channels = image.shape
    head = struct.pack(">IIBBBBB", wide, high, 8, 0 if channels == 1 else 2, 0, 0, 0)
    # Of the filters that PNG knows, the one that this picture is smallest with.
    flat = image.reshape(high, -1).astype(np.int16)
    left = np.pad(flat, ((0, 0), (channels, 0)))[:, : flat.shape[1]]
    above = np.pad(flat, ((1, 0), (0, 0)))[:high]
    filtered = enumerate((flat, flat - left, flat - above))
    packed = (_packed(number, rows) for number, rows in filtered)
    body = min(packed, key=len)
    parts = ((b"IHDR", head), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in parts)


def _packed(number: int, rows: AnyArray) -> bytes:
    marked = np.pad(rows % 256, ((0, 0), (1, 0)), constant_values=number)
    return zlib.compress(marked.astype(np.uint8).tobytes(), 9)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(
        ">I", zlib.crc32(name + content)
    )  # fmt: skip
