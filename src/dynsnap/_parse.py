"""TOML and JSON from outside: bounded in size, depth and numbers before anything is done with it.

A number of 5,000 digits, brackets within brackets or a key of 10,000 dots are no more than bad
input, but Python answers each with an error of its own, some of them long after the file was read.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 26
_TOML_BYTES = 1 << 20  # far beyond any file that people write
_DEEPEST = 50  # tables or lists within each other
_LARGEST = 1 << 64  # whole numbers beyond are no number of anything
_TOO_DEEP = "it is nested too deeply"
_TOO_LARGE = "a whole number in it has more than 64 bits"
_HALF = re.compile("[\ud800-\udfff]")  # half a character, which no file can be written with
# Keys are joined part by part, in a time that grows with the square of their number.
_DOTTED = re.compile(r"""(?:\.\s*+(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')\s*+){50}""")


class ParseError(ValueError):
    """What was read is not the format that it should be; the message says why."""


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds.

    Raises:
        OSError: The file cannot be read.
        ParseError: It is not TOML in UTF-8, or beyond what any such file needs.
    """
    content = _read(path, _TOML_BYTES)
    try:
        text = content.decode("utf-8")
        if _DOTTED.search(text):
            raise ParseError(_TOO_DEEP)
        found = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ParseError(f"it is not text in UTF-8 (byte {error.start:,})") from error
    except (ValueError, RecursionError) as error:
        raise ParseError(_reason(error)) from error
    _check(found)
    return found


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        OSError: The file cannot be read.
        ParseError: It is not JSON, or beyond what any file of dynsnap's own needs.
    """
    return parse_json(_read(path, MOST_BYTES))


def parse_json(content: bytes | str) -> Any:
    """What a JSON text says.

    Example:
        >>> parse_json('{"rows": [1, 2]}')
        {'rows': [1, 2]}
        >>> parse_json("[" * 100_000)
        Traceback (most recent call last):
        dynsnap._parse.ParseError: it is nested too deeply
    """
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ParseError(_reason(error)) from error
    _check(found)
    return found


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ParseError(f"it is larger than {most >> 20} MB")
    return content


def _check(found: Any) -> None:
    """Raise for what would end in an error of Python's wherever it is used or shown."""
    level = [found]
    for _ in range(_DEEPEST):
        deeper: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                deeper += value
                deeper += value.values()
            elif isinstance(value, list):
                deeper += value
            elif isinstance(value, int) and abs(value) >= _LARGEST:
                raise ParseError(_TOO_LARGE)
            elif isinstance(value, str) and _HALF.search(value):
                raise ParseError("a text in it is not valid Unicode")
        if not deeper:
            return
        level = deeper
    raise ParseError(_TOO_DEEP)


def _reason(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return _TOO_DEEP
    words = str(error)
    return _TOO_LARGE if "integer string conversion" in words else words.rstrip(".")
