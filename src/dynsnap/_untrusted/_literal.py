"""The Python literals that numpy writes into the header of an array, read without Python's parser.

`ast.literal_eval` is not safe in threads on Python 3.11: two that parse at the same time can end in
`SystemError: AST constructor recursion depth mismatch`. What a header may hold is little: text,
whole numbers, True, False, None, and tuples, lists and dictionaries of them.
"""

import re
from typing import Any

_DEEPEST = 64  # levels; a type of values may have fields, which have fields
# Text with the escapes that `repr` writes, words, numbers (Python 2 ended long ones in L), signs.
_TEXT = r"(?:\\(?:[\\'\"nrt]|x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}})|[^\\{0}\n\r])*+"
_TOKEN = re.compile(
    rf"""[ \t\n\r\f]*+(?:
        '(?P<single>{_TEXT.format("'")})'
      | "(?P<double>{_TEXT.format('"')})"
      | (?P<number>(?:0|[1-9][0-9]{{0,18}})L?(?![\w.]))
      | (?P<word>(?:True|False|None)(?!\w))
      | (?P<sign>[()\[\]{{}},:])
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\([\\'\"nrt]|x..|u....|U........)")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"True": True, "False": False, "None": None}
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


def parse_literal(text: str) -> Any:
    """The value of a literal.

    Raises:
        ValueError: It is no literal that numpy writes.

    Example:
        >>> parse_literal("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }")
        {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}
    """
    reader = _Reader(text)
    value = reader.value(0)
    if reader.kind != "end":
        raise ValueError("it goes on behind its end")
    return value


class _Reader:
    """Stands at one token of a text."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._next()

    def value(self, depth: int) -> Any:
        """The value that begins here; the reader goes on behind it."""
        kind, found = self.kind, self._found
        if kind in ("single", "double"):
            self._next()
            return _ESCAPE.sub(_unescaped, found)
        if kind == "number":
            self._next()
            return int(found.removesuffix("L"))
        if kind == "word":
            self._next()
            return _WORDS[found]
        if kind != "sign" or found not in _CLOSED_BY or depth == _DEEPEST:
            raise ValueError("it is not what numpy writes")
        self._next()
        return self._dictionary(depth) if found == "{" else self._sequence(found, depth)

    def _sequence(self, opened: str, depth: int) -> Any:
        items: list[Any] = []
        commas = 0
        while not self._takes(_CLOSED_BY[opened]):
            if len(items) > commas:
                raise ValueError("two values lie side by side")
            items.append(self.value(depth + 1))
            commas += self._takes(",")
        if opened == "[":
            return items
        # Parentheses around one value, without a comma, are no tuple.
        return items[0] if len(items) == 1 and not commas else tuple(items)

    def _dictionary(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        ended = True
        while not self._takes("}"):
            key = self.value(depth + 1) if ended else None
            if not isinstance(key, str) or key in found or not self._takes(":"):
                raise ValueError("a name is missing, or is there twice")
            found[key] = self.value(depth + 1)
            ended = self._takes(",")
        return found

    def _takes(self, sign: str) -> bool:
        if self.kind != "sign" or self._found != sign:
            return False
        self._next()
        return True

    def _next(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            raise ValueError("it is not what numpy writes")
        self.kind, self._found, self._at = match.lastgroup, match[match.lastgroup], match.end()


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _PLAIN.get(code, code)
