"""docs/extending.md, so that tests can follow it."""

import contextlib
import re
from pathlib import Path
from typing import NamedTuple

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
_FENCE = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```',
    flags=re.DOTALL | re.MULTILINE,
)


class Step(NamedTuple):
    """A block of the page: a file where it has a title, otherwise something to run."""

    language: str
    title: str | None
    text: str


def steps(section):
    """The blocks under a heading, in their order."""
    _, _, rest = PAGE.partition(f"\n## {section}\n")
    assert rest, section
    return [
        Step(found["language"], found["title"], found["text"])
        for found in _FENCE.finditer(rest.partition("\n## ")[0])
    ]


def files(section):
    """The files that a section has its readers write, by name."""
    return {step.title: step.text for step in steps(section) if step.title}


@contextlib.contextmanager
def registries():
    """Forget at the end what is registered within."""
    from dynsnap.data import SOURCES
    from dynsnap.ensemble import METHOD_KINDS
    from dynsnap.gate import RULE_KEYS
    from dynsnap.metrics import catalogue
    from dynsnap.report import SECTIONS
    from dynsnap.trainers import BACKENDS

    with contextlib.ExitStack() as stack:
        for registry in (SOURCES, METHOD_KINDS, RULE_KEYS, catalogue, SECTIONS, BACKENDS):
            stack.enter_context(registry.restored())
        yield
