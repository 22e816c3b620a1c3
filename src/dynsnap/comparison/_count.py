"""One pass over aligned generations, wherever they come from."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from dynsnap.comparison._examples import Gallery
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.metrics._tally import Tally
from dynsnap.metrics._tally_layout import Layout
from dynsnap.predictions import Aligned, AlignmentReport, Predictions


class AlignedBlocks(Protocol):
    """Generations of the same inputs, in one order, over the same classes, block by block.

    Attributes:
        classes: The names of the classes.
        report: How the generations were lined up; `report.shared` is the number of inputs.
    """

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def report(self) -> AlignmentReport: ...

    def __iter__(self) -> Iterator[tuple[Predictions, ...]]: ...


@dataclass(frozen=True, slots=True, eq=False)
class InMemory:
    """Aligned generations as a single block."""

    aligned: Aligned

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.aligned.classes

    @property
    def report(self) -> AlignmentReport:
        """How the generations were lined up."""
        return self.aligned.report

    def __iter__(self) -> Iterator[tuple[Predictions, ...]]:
        yield self.aligned.generations


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """All sums behind a comparison.

    Attributes:
        tally: The sums.
        names: What the generations are called, without the twin.
        classes: The names of the classes.
        slices: The values of each slice.
        report: How the generations were lined up.
        twin: Whether the last generation is the first one trained again.
        left_out: The k of top-k metrics that there are too few classes for.
        notes: What the predictions say about themselves.
        gallery: Some of the inputs themselves.
    """

    tally: Tally
    names: tuple[str, ...]
    classes: tuple[str, ...]
    slices: dict[str, tuple[str, ...]]
    report: AlignmentReport
    twin: bool
    left_out: tuple[int, ...]
    notes: tuple[str, ...]
    gallery: Gallery


def count(blocks: AlignedBlocks, *, twin: bool = False, top_k: Sequence[int] = (2,)) -> Counted:
    """Count all that metrics are made of, in one pass over the blocks.

    Args:
        blocks: The generations, oldest first.
        twin: Whether the last one is the first one trained again on the same data.
        top_k: The k of top-k metrics.
    """
    report = blocks.report
    regular = len(report.names) - twin
    if regular < 2:
        raise PlanError("There is nothing to compare with. Give at least two generations.")
    if any(k < 1 for k in top_k):
        raise PlanError(f"`top_k` must be at least 1, got {min(top_k)}.")
    wanted = tuple(sorted(set(top_k)))
    pairs = tuple(itertools.combinations(range(regular), 2))
    tally: Tally | None = None
    slices: dict[str, tuple[str, ...]] = {}
    notes: dict[str, None] = {}
    gallery = Gallery(regular)
    start = 0
    for block in blocks:
        one = block[0]
        if tally is None:
            slices = {name: column.values for name, column in one.slices.items()}
            layout = Layout(
                rows=report.shared,
                classes=len(blocks.classes),
                scored=tuple(each.scores is not None for each in block),
                truth=one.truth is not None,
                weighted=one.weights is not None,
                slices={name: len(values) for name, values in slices.items()},
                top_k=tuple(k for k in wanted if k <= len(blocks.classes)),
                pairs=(*pairs, (0, regular)) if twin else pairs,
                regular=regular,
            )
            tally = Tally(layout)
            for name, each in zip(report.names, block, strict=True):
                notes |= dict.fromkeys(f"{name}: {note}" for note in each.notes)
        tally.add(block, start=start)
        gallery.add(block[:regular])
        start += len(one)
    if tally is None or tally.rows != report.shared:
        raise ComparisonError(
            f"{report.shared:,} inputs were announced, but {start:,} came. Compare again."
        )
    return Counted(
        tally=tally,
        names=report.names[:regular],
        classes=blocks.classes,
        slices=slices,
        report=report,
        twin=twin,
        left_out=tuple(k for k in wanted if k > len(blocks.classes)),
        notes=tuple(notes),
        gallery=gallery,
    )
