"""The inputs themselves: those that were lost, and those that change again and again."""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import TypeAlias

from dynsnap.comparison import Comparison, PairResult, UnstableInput
from dynsnap.data import Excerpt
from dynsnap.report.document import Cell, Column, Section, Table
from dynsnap.report.words import UNDEFINED, count

Excerpts: TypeAlias = Mapping[str, Excerpt]  # by id

_GENERATIONS = 12  # columns of labels


def flipped(comparison: Comparison, pair: PairResult, excerpts: Excerpts) -> Section:
    """The inputs lost, or without truth those whose label changed."""
    known = comparison.has_truth
    what = "lost" if known else "changed"
    whole = how_many(comparison, pair)
    if not pair.flipped:
        none = "No input was lost." if known else "No label changed."
        return Section(name="inputs", title=f"Inputs {what}", lead=none, detail="full")
    constant = {group.column for group in pair.groups if group.whole}
    shown = [column not in constant for column in comparison.slices]
    scored = any(one.new_confidence is not None for one in pair.flipped)
    # What was lost was right before: the old label is the truth, but where near it is right too.
    beside = known and comparison.task in ("regression", "ranking")
    columns = [
        Column("id"),
        Column("input", "input"),
        *([Column("truth", "words")] if beside else []),
        Column("was, rightly" if known and comparison.task != "graded" else "was", "words"),
        Column("is now", "words"),
        Column("confidence then", "number", "The old score of the old label."),
        Column(
            "confidence now",
            "number",
            "The new score of the new label.",
            order="descending" if scored else "",
        ),
        *(Column(column, "words") for column in compress(comparison.slices, shown)),
    ]
    rows = tuple(
        (
            Cell(one.id),
            _excerpt(excerpts, one.id),
            *([Cell(one.truth or "")] if beside else []),
            Cell(one.old_label),
            Cell(one.new_label),
            *(_sure(each, scored) for each in (one.old_confidence, one.new_confidence)),
            *(Cell(value) for value in compress(one.slices, shown)),
        )
        for one in pair.flipped
    )
    order = "those with the most confident wrong label first" if scored else "in file order"
    order = order if known or not scored else "those with the most confident new label first"
    order = order if comparison.task == "classification" else "those that changed most first"
    table = Table(
        name="flipped-table",
        title=f"Inputs {what}",
        columns=tuple(columns),
        rows=rows,
        search=True,
        whole=whole,
        rest="All of them: dynsnap compare --flips flips.parquet.",
    )
    return Section(
        name="inputs",
        title=f"Inputs {what}",
        lead=f"{count(whole)} inputs, {order}." if whole else "",
        body=(table,),
        detail="full",
    )


def unstable(found: Sequence[UnstableInput], names: Sequence[str], excerpts: Excerpts) -> Table:
    """The inputs whose label changes again and again."""
    known = any(one.truth is not None for one in found)
    # Not "the" inputs: others may have changed as often as the last.
    footer = f"{count(len(found))} inputs, most changes first"
    if len(names) > _GENERATIONS:
        footer = f"{footer}, with the last {_GENERATIONS} of {len(names)} generations"
    return Table(
        name="unstable-table",
        title="Inputs that change again and again, with their labels",
        columns=(
            Column("id"),
            Column("input", "input"),
            Column("changes", "number", order="descending"),
            Column("truth"),
            *(Column(name) for name in names[-_GENERATIONS:]),
        ),
        rows=tuple(
            (
                Cell(one.id),
                _excerpt(excerpts, one.id),
                Cell(str(one.changes), one.changes),
                Cell(one.truth or ""),
                *(
                    Cell(label, tone="plain" if one.truth in (None, label) else "bad")
                    for label in one.labels[-_GENERATIONS:]
                ),
            )
            for one in found
        ),
        search=True,
        footer=f"{footer}; coloured where the label is wrong." if known else f"{footer}.",
        detail="full",
    )


def _excerpt(excerpts: Excerpts, name: str) -> Cell:
    """What an input looks like, empty where that is not known."""
    found = excerpts.get(name)
    if found is None:
        return Cell()
    return Cell(found) if isinstance(found, str) else Cell(name, image=found)


def _sure(value: float | None, scored: bool) -> Cell:
    if value is None:
        return Cell(UNDEFINED if scored else "")
    return Cell(f"{value:.3f}", value)


def how_many(comparison: Comparison, pair: PairResult) -> int:
    """How many inputs were lost; without truth, how many labels changed."""
    if pair.transitions is not None:
        return pair.transitions.lost
    if comparison.weighted:  # shares go by weight; what is named is what is known
        return len(pair.flipped)
    return round(pair.metrics["churn"].value * comparison.inputs)
