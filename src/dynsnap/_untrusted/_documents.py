"""JSON and TOML from a file: bounded in size, depth and numbers, and never a traceback."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, NoReturn

from dynsnap._untrusted._limits import regular

MOST_JSON = 32 << 20  # bytes; Python takes up to forty times as much memory for them


def parse_json(content: bytes, *, most: int = MOST_JSON) -> Any:
    """The value of a JSON document.

    Raises:
        ValueError: It is not JSON, too long or too deep, names a key twice, or holds NaN.

    Example:
        >>> parse_json(b'{"a": [1, 2]}')
        {'a': [1, 2]}
    """
    if len(content) > most:
        raise ValueError(f"it has {len(content):,} bytes of JSON; {most:,} are the most")
    try:
        return json.loads(content, object_pairs_hook=_table, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # two readers could take two values for it
        raise ValueError("its JSON names a key twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"its JSON holds {constant}, which is no number")


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
        text = content.decode("utf-8-sig")  # editors on Windows put a byte order mark in front
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
