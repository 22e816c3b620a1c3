"""JSON from a file: bounded, strict, and never a traceback."""

import json
from typing import Any, NoReturn

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
