"""One pass over aligned generations, wherever they come from."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dynsnap.comparison._count_part import PartCounted, PartCounter
from dynsnap.comparison._examples import Gallery
from dynsnap.comparison._results import UnknownLabels
from dynsnap.comparison._settings import Settings
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.metrics._tally import Tally
from dynsnap.predictions import Aligned, AlignedStream, AlignmentReport, Predictions
from dynsnap.predictions._stream import rows_of_part

log = logging.getLogger("dynsnap.comparison")


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
        differing: By slice, the inputs that generations have different values for.
        report: How the generations were lined up.
        twin: Whether the last generation is the first one trained again.
        left_out: The k of top-k metrics that there are too few classes for.
        notes: What the predictions say about themselves.
        gallery: Some of the inputs themselves.
        families: For each slice that is made of whole classes, the value of each class.
        unknown_labels: For each generation that has any, the labels that are no true class.
    """

    tally: Tally
    names: tuple[str, ...]
    classes: tuple[str, ...]
    slices: dict[str, tuple[str, ...]]
    differing: Mapping[str, int]
    report: AlignmentReport
    twin: bool
    left_out: tuple[int, ...]
    notes: tuple[str, ...]
    gallery: Gallery
    families: dict[str, dict[str, str]]
    unknown_labels: tuple[UnknownLabels, ...] = ()


class Spread(Protocol):
    """Does the same to many things, maybe in other processes.

    It gives what the function gives for each, in the order of the things, which it takes as it
    needs them. Function, things and results must be able to travel.
    """

    def __call__(
        self, function: Callable[[Any], Any], things: Iterable[Any], /
    ) -> Iterator[Any]: ...


def count(blocks: AlignedBlocks, settings: Settings, *, spread: Spread | None = None) -> Counted:
    """Count all that metrics are made of, in one pass over the blocks.

    Rows are counted in parts of a fixed size, and the parts are added up in their order. So it does
    not matter to the last bit who counts them.

    Args:
        blocks: The generations, oldest first.
        settings: What may be chosen; `top_k`, `families` and `twin` tell what is counted.
        spread: Has the parts of files counted elsewhere, if they are such that others can read.
    """
    report = blocks.report
    regular = len(report.names) - settings.twin
    if regular < 2:
        raise PlanError("There is nothing to compare with. Give at least two generations.")
    wanted = settings.top_k_of(len(blocks.classes))
    counter = PartCounter(
        rows=report.shared,
        classes=len(blocks.classes),
        names=report.names,
        top_k=tuple(k for k in wanted if k <= len(blocks.classes)),
        twin=settings.twin,
    )
    total: PartCounted | None = None
    for part in _counted(blocks, counter, spread):
        if total is None:
            total = part
        else:
            total.merge(part)
    if total is None or total.tally.rows != report.shared:
        came = 0 if total is None else total.tally.rows
        raise ComparisonError(
            f"{report.shared:,} inputs were announced, but {came:,} came. Compare again."
        )
    return Counted(
        tally=total.tally,
        names=report.names[:regular],
        classes=blocks.classes,
        slices=total.slices,
        differing=total.differing,
        report=report,
        twin=settings.twin,
        left_out=tuple(k for k in wanted if k > len(blocks.classes)),
        notes=total.notes,
        gallery=total.gallery,
        families=total.kinship.families(blocks.classes, total.slices, settings.families),
    )


def _counted(
    blocks: AlignedBlocks, counter: PartCounter, spread: Spread | None
) -> Iterator[PartCounted]:
    rows = rows_of_part(len(blocks.classes))
    if isinstance(blocks, AlignedStream):
        if spread is not None and blocks.travels:
            return counter.spread(blocks, spread)
        rows = blocks.rows_in_part
    if spread is not None:
        log.warning("Not all generations are Parquet files, so one process counts them.")
    return counter.in_turn(blocks, rows_in_part=rows)
