"""TOML from a file: bounded in size, depth and numbers, and never a traceback.

A number of 5,000 digits, brackets within brackets or a key of 10,000 dots are no more than bad
input, but Python answers each with an error of its own, some long after the file was read.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from dynsnap._untrusted._regular import regular

_MOST = 1 << 20  # bytes, far beyond any file that people write
_DEEPEST = 50  # tables or lists within each other
_LARGEST = 1 << 63  # whole numbers beyond are none to TOML
_TOO_DEEP = "it is nested too deeply"
_TOO_LARGE = "a whole number in it has more than 64 bits"
# Keys are joined part by part, in a time that grows with the square of their number.
_DOTTED = re.compile(r"""(?:\.\s*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')\s*+){50}""")


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not TOML in UTF-8, too long or too deep, or holds a number that is none.
    """
    with regular(path).open("rb") as file:
        content = file.read(_MOST + 1)
    if len(content) > _MOST:
        raise ValueError(f"it has more than {_MOST:,} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text in UTF-8 (byte {error.start:,})") from error
    if _DOTTED.search(text):
        raise ValueError(_TOO_DEEP)
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError as error:
        if "integer string conversion" in str(error):
            raise ValueError(_TOO_LARGE) from error
        raise
    _check(found)
    return found


def _check(found: dict[str, Any]) -> None:
    """Raise for what would end in an error of Python's wherever it is used or shown."""
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        deeper: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                deeper += value.values()
            elif isinstance(value, list):
                deeper += value
            elif isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
                raise ValueError(_TOO_LARGE)
        if not deeper:
            return
        level = deeper
    raise ValueError(_TOO_DEEP)
