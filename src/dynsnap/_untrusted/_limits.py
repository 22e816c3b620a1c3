"""How much a compressed file may become."""

import gzip
import io
from typing import IO

_RATIO = 64  # times its own size: honest arrays and tables stay far below, a bomb far above
_FLOOR = 64 << 20  # bytes that any file may unpack to


def allowance(packed: int) -> int:
    """The most bytes that a file of this size may unpack to.

    Example:
        >>> allowance(1_000) == 64 << 20
        True
        >>> allowance(10_000_000)
        640000000
    """
    return max(_FLOOR, _RATIO * packed)


def megabytes(size: int) -> str:
    """A size as people read it.

    Example:
        >>> megabytes(3_000_000_000)
        '3,000.0 MB'
    """
    return f"{size / 1e6:,.1f} MB"


class Bounded(io.RawIOBase):
    """A stream of unpacked bytes that ends in an OSError where it passes its allowance.

    Args:
        stream: The unpacked bytes.
        most: How many there may be.
    """

    def __init__(self, stream: "IO[bytes] | gzip.GzipFile", most: int) -> None:
        self._stream = stream
        self._most = self._left = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview[int]", /) -> int:  # type: ignore[override]
        content = self._stream.read(min(len(buffer), self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise OSError(
                f"it unpacks to more than {megabytes(self._most)}, which is too much for its size"
            )
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()
