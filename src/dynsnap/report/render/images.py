"""Small images within a page, as PNG."""

import struct
import zlib

import numpy as np

from dynsnap._types import AnyArray


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
