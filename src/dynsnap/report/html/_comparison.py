"""A comparison as a page."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from dynsnap import __version__
from dynsnap._registry import Registry
from dynsnap.comparison import Comparison
from dynsnap.report._blocks import count
from dynsnap.report._element import Markup, clipped, element
from dynsnap.report.html._groups import answers, classes, slices
from dynsnap.report.html._inputs import flipped
from dynsnap.report.html._looks import Looks
from dynsnap.report.html._many import many
from dynsnap.report.html._page import Page, bounded, page
from dynsnap.report.html._parts import Section
from dynsnap.report.html._two import measured, moved

_NOTES = 40

BuildSection: TypeAlias = Callable[[Comparison], Section | None]

# Sections that code has added, by name.
SECTIONS: Registry[BuildSection] = Registry("page section", {})


def register_section(name: str, build: BuildSection) -> None:
    """Add a section to the pages of comparisons and gates, in this process.

    Args:
        name: The name of the section, where links lead to.
        build: Makes it of a comparison; None leaves it out.
    """
    SECTIONS.add(name, build)


def comparison_page(
    comparison: Comparison,
    *,
    looks: Looks | None = None,
    learned_from: Mapping[str, int] | None = None,
) -> Page:
    """Everything that a comparison found, as one self-contained page of at most 1.5 MB.

    Of more than two generations, what is about two is about the last retrain.

    Args:
        comparison: What `dynsnap.compare` returned.
        looks: What inputs look like, by id, as `dynsnap.data.read_excerpts` gives it.
        learned_from: Training rows of each class, where that is known.

    Example:
        >>> import dynsnap
        >>> old = dynsnap.Predictions(ids=[1, 2], classes=["<b>", "c"], labels=[0, 1], truth=[0, 1])
        >>> new = dynsnap.Predictions(ids=[1, 2], classes=["<b>", "c"], labels=[0, 0])
        >>> made = comparison_page(dynsnap.compare(old, new))
        >>> "<b>" in made.html, "&lt;b&gt;" in made.html
        (False, True)
    """
    names = " → ".join(_short([each.name for each in comparison.generations]))
    return bounded(
        lambda rows: page(
            title=names,
            about=setting(comparison),
            banner=warning(comparison),
            sections=tuple(sections(comparison, rows, looks or {}, learned_from)),
            footer=signature(comparison),
        )
    )


def sections(
    comparison: Comparison,
    rows: int,
    looks: Looks,
    learned_from: Mapping[str, int] | None = None,
) -> Iterator[Section]:
    """The sections of a comparison; tables have at most so many rows."""
    pair = comparison.pairs[-1]
    several = len(comparison.generations) > 2
    if several:
        yield many(comparison, rows, looks)
    if pair.transitions is not None:
        yield moved(comparison, pair)
    yield measured(comparison, pair)
    if groups := [group for group in pair.groups if group.kind == "class"]:
        yield classes(comparison, pair, groups, rows, learned_from or {})
    yield answers(comparison, pair, rows)
    if groups := [group for group in pair.groups if group.kind == "slice"]:
        yield slices(comparison, pair, groups, rows)
    yield flipped(comparison, pair, rows, looks)
    yield from (made for build in SECTIONS.values() if (made := build(comparison)) is not None)
    if comparison.notes:
        yield Section(name="notes", title="Notes", body=[_bullets(comparison.notes)])


def setting(comparison: Comparison) -> str:
    """What was compared, in a line."""
    weighted = ", weighted" if comparison.weighted else ""
    return (
        f"{count(comparison.inputs)} inputs, {count(len(comparison.classes))} classes{weighted}. "
        f"Intervals, in brackets, hold with {comparison.confidence:g} confidence, from "
        f"{count(comparison.resamples)} resamples of the inputs."
    )


def warning(comparison: Comparison) -> Markup | None:
    """That ids are missing, aloud."""
    if not comparison.alignment.partial:
        return None
    return element("p", clipped(comparison.alignment.sentence(), 600), class_="warning")


def signature(comparison: Comparison) -> str:
    """What made the page."""
    return (
        f"Made by dynsnap {__version__} from the same results as its terminal and JSON output. "
        "Nothing on this page is fetched from anywhere."
    )


def _bullets(texts: tuple[str, ...]) -> Markup:
    shown = [element("li", clipped(text, 600)) for text in texts[:_NOTES]]
    return element("ul", shown, class_="plain")


def _short(names: list[str]) -> list[str]:
    names = [clipped(name, 40) for name in names]
    return names if len(names) <= 5 else [*names[:2], "…", *names[-2:]]
