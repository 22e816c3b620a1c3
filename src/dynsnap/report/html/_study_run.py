"""How a study was run: software, hardware, time, what it was trained on, and its file."""

from collections.abc import Iterator, Mapping
from typing import Any

from dynsnap.report._element import clipped, element
from dynsnap.report.html._parts import Entry, Head, Listing, Section, listing

_FILE = 8000  # letters of the study file
_FACTS = {
    "generations": "rows of each generation",
    "rounds_trained_last": "rounds trained by the last run",
    "wall_seconds_last": "seconds of the last run",
}
_NAMED = 4  # classes with equally many training rows that are named; of more their number is told


def how_it_was_run(about: Mapping[str, Any], file: str) -> Section:
    """The section about a run: what `about.json` has, and the study file."""
    facts = list(_facts(about))
    body = []
    if facts:
        body.append(
            listing(
                Listing(
                    name="run-table",
                    caption="Software, hardware, time",
                    heads=(Head("what"), Head("which")),
                    rows=[[Entry(name), Entry(value, tone="text")] for name, value in facts],
                    sortable=False,
                )
            )
        )
    if file:
        said = element("pre", element("code", clipped(file, _FILE)), tabindex="0")
        body.append(element("details", element("summary", "The study file"), said))
    return Section(name="run", title="How it was run", short="Run", body=body)


def _facts(about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is known of a run, one fact a line."""
    for name, value in about.items():
        word = _FACTS.get(name, name.replace("_", " "))
        if name == "training_rows" and isinstance(value, Mapping):
            alike: dict[str, list[str]] = {}  # a hundred lines would hide all others
            for key, rows in value.items():
                alike.setdefault(_listed(rows), []).append(str(key))
            for said, classes in alike.items():
                many = len(classes) > _NAMED
                who = f"each of {len(classes)} classes" if many else ", ".join(classes)
                yield f"{word} of {who}", said
        elif isinstance(value, Mapping):
            yield from _facts({key: each for key, each in value.items() if key != "dynsnap"})
        elif isinstance(value, list):
            yield word, _listed(value)
        elif isinstance(value, float):
            yield word, f"{value:,.1f}"
        elif isinstance(value, int):
            yield word, f"{value:,}"
        else:
            yield word, str(value)


def _listed(values: Any) -> str:
    each = values if isinstance(values, list) else [values]
    return ", ".join(f"{one:,}" if isinstance(one, int) else str(one) for one in each)
