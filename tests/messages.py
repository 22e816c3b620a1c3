"""Messages are matched by what they name: the argument, the value found, the way out."""

import re


def naming(*parts):
    """A pattern for a message that has each of these parts, in any order and wording.

    A part is itself a pattern; one that is only a number must stand alone.
    """
    alone = (
        rf"(?<![\w.]){part}(?![\w]|\.\d)" if re.fullmatch(r"[\d,\\.]+", part) else part
        for part in parts
    )
    return "(?s)^" + "".join(f"(?=.*(?:{part}))" for part in alone)
