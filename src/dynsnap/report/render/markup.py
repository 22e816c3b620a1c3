"""HTML that is escaped unless it was made here: the one place where text becomes markup."""

import html
import re
from typing import Any, TypeAlias

# What no page may hold, or what turns the order of letters around to deceive a reader.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "path", "rect", "circle", "line"})


class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


Child: TypeAlias = Any  # Markup, text, a number, None, or a list of these


def element(tag: str, /, *children: Child, **attributes: Any) -> Markup:
    """One element; everything in it that is not `Markup` is escaped.

    Attributes that are None or False are left out, True stands alone. Underscores become hyphens,
    and a last one is dropped, so that `class_` can be said.

    Example:
        >>> element("td", "<script>", class_="name", title='"')
        '<td class="name" title="&quot;">&lt;script&gt;</td>'
    """
    said = "".join(
        f" {_name(name)}" if value is True else f' {_name(name)}="{escaped(value)}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _VOID and not children:
        return Markup(
            f"<{tag}{said}>"
            if tag in ("br", "hr", "img", "input", "link", "meta")
            else f"<{tag}{said}/>"
        )
    return Markup(f"<{tag}{said}>{joined(children)}</{tag}>")


def joined(children: Child) -> Markup:
    """Several children one after another.

    Example:
        >>> joined(["a < b", None, element("b", 1)])
        'a &lt; b<b>1</b>'
    """
    if children is None:
        return Markup("")
    if isinstance(children, Markup):
        return children
    if isinstance(children, list | tuple):
        return Markup("".join(joined(child) for child in children))
    return escaped(children)


def escaped(value: object) -> Markup:
    """Text made harmless.

    Example:
        >>> escaped("a\\x00 & b")
        'a� &amp; b'
    """
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_UNPRINTABLE.sub("\ufffd", str(value)), quote=True))


def term(word: str, meaning: str) -> Markup:
    """A word with its meaning on hover and on focus."""
    return element("span", word, class_="term", tabindex="0", title=meaning)


def _name(name: str) -> str:
    return name.removesuffix("_").replace("_", "-")
