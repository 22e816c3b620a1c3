"""One pass over aligned generations, wherever they come from, counted part by part."""

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np

from dynsnap._types import Flags
from dynsnap.comparison._examples import ExampleInputs
from dynsnap.comparison._families import ClassFamilies
from dynsnap.comparison._results import ClassChange, UnknownLabels
from dynsnap.comparison._settings import Settings
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.metrics._ranking import ClassRanks
from dynsnap.metrics._row_tally import RowLayout, RowTally
from dynsnap.metrics._tally import Tally
from dynsnap.metrics._tally_layout import TallyLayout
from dynsnap.predictions import Aligned, AlignedStream, AlignmentReport, Predictions
from dynsnap.predictions._join import Common
from dynsnap.predictions._spill import TemporaryFileGone
from dynsnap.predictions._stream import AlignedPart, rows_of_part
from dynsnap.predictions.tasks import AnswerTask

Block: TypeAlias = tuple[Predictions, ...]


@dataclass(kw_only=True, eq=False)
class PartCounted:
    """The sums of some rows.

    Attributes:
        tally: The sums.
        unlabelled: Those of rows without a true class, where there may be such beside others.
        gallery: Some of the inputs themselves.
        kinship: Which classes and values of slices occur together.
        slices: The values of each slice.
        differing: By slice, the inputs that generations have different values for.
        notes: What the predictions say about themselves.
        known: Which classes each generation knows, the twin left out.
    """

    tally: Tally
    unlabelled: Tally | None
    gallery: ExampleInputs
    kinship: ClassFamilies
    slices: dict[str, tuple[str, ...]]
    differing: Counter[str]
    notes: tuple[str, ...]
    known: list[Flags]

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return self.tally.rows + (0 if self.unlabelled is None else self.unlabelled.rows)

    def merge(self, later: "PartCounted") -> None:
        """Add the sums of the rows that come next."""
        self.tally.merge(later.tally)
        if self.unlabelled is not None and later.unlabelled is not None:
            self.unlabelled.merge(later.unlabelled)
        self.gallery.merge(later.gallery)
        self.kinship.merge(later.kinship)
        self.differing.update(later.differing)
        for known, more in zip(self.known, later.known, strict=True):
            known |= more


@dataclass(frozen=True, kw_only=True)
class PartCounter:
    """Counts parts of one comparison.

    Attributes:
        rows: Rows of all parts together.
        classes: How many classes there are.
        names: What the generations are called, the twin among them.
        top_k: The k of top-k metrics.
        twin: Whether the last generation is the first one trained again.
        truth_gaps: Whether some rows may have no true class beside others that have one.
        classification: Whether log loss and the Brier score are counted.
        ranking: Whether AUROC and average precision are.
    """

    rows: int
    classes: int
    names: tuple[str, ...]
    top_k: tuple[int, ...]
    twin: bool
    truth_gaps: bool = False
    classification: bool = False
    ranking: bool = False

    def in_turn(self, blocks: Iterable[Block], *, rows_in_part: int) -> Iterator[PartCounted]:
        """Count one part after another, whatever the size of the blocks."""
        counted: PartCounted | None = None
        start = 0
        for block in blocks:
            first, rows = 0, len(block[0])
            while first < rows:
                last = min(rows, first + rows_in_part - start % rows_in_part)
                whole = last - first == rows
                some = block if whole else tuple(each.slice(first, last) for each in block)
                counted = self._add(some, counted, start=start)
                start += last - first
                first = last
                if start % rows_in_part == 0:
                    yield counted
                    counted = None
        if counted is not None:
            yield counted

    def in_parallel(
        self, stream: AlignedStream, parallel: Callable[..., Iterator[Any]]
    ) -> Iterator[PartCounted]:
        """Have the parts of a stream counted elsewhere, and give them in their order."""
        parts, kept = itertools.tee(stream.parts())
        common = Common(self.names)
        found = parallel(partial(_counted, self), parts)
        for part, (facts, counted) in zip(kept, found, strict=True):
            if facts is None:  # it rests on temporary files that only this process has
                counted, facts = self._count(part, start=part.start), part.common
            common.merge(facts)
            if counted is not None:
                yield counted
        common.refuse_contradictions()

    def _count(self, blocks: Iterable[Block], *, start: int) -> PartCounted | None:
        counted: PartCounted | None = None
        for block in blocks:
            counted = self._add(block, counted, start=start)
            start += len(block[0])
        return counted

    def _add(self, block: Block, counted: PartCounted | None, *, start: int) -> PartCounted:
        counted = counted or self._begun(block)
        self._tally(block, counted, start=start)
        counted.gallery.add(block[: self._regular])
        if block[0].task is None:
            counted.kinship.add(block[0])
        for name, column in block[0].slices.items():
            if column.differs is not None:
                counted.differing[name] += int(column.differs.sum())
        for known, each in zip(counted.known, block, strict=False):
            _learn(known, each)
        return counted

    def _tally(self, block: Block, counted: PartCounted, *, start: int) -> None:
        """Count rows with a true class and rows without one apart."""
        known = block[0].labelled
        if counted.unlabelled is None or known is None:
            counted.tally.add(block, start=start)
            return
        for tally, chosen in ((counted.tally, known), (counted.unlabelled, ~known)):
            rows = np.flatnonzero(chosen)
            if len(rows) == len(known):
                tally.add(block, start=start)
            elif len(rows):
                some = tuple(each.take(rows) for each in block)
                tally.add(some, start=start, places=start + rows)

    def _begun(self, block: Block) -> PartCounted:
        first = block[0]
        slices = {name: column.values for name, column in first.slices.items()}
        pairs = tuple(itertools.combinations(range(self._regular), 2))
        shape = TallyLayout(
            rows=self.rows,
            classes=max(1, self.classes),
            scored=tuple(each.scores is not None for each in block),
            truth=first.truth is not None,
            weighted=first.weights is not None,
            slices={name: len(values) for name, values in slices.items()},
            top_k=self.top_k,
            pairs=(*pairs, (0, self._regular)) if self.twin else pairs,
            regular=self._regular,
            classification=self.classification,
            ranking=self.ranking,
            precision=tuple(
                float(np.finfo(np.float64 if each.scores is None else each.scores.dtype).eps)
                for each in block
            ),
        )
        # Rows that are not consecutive are for the kernel of numpy while each is its own block.
        compiled = False if self.truth_gaps and shape.exact else None
        unlabelled: Tally | None = None
        if first.task is None:
            tally = Tally(shape, compiled=compiled)
            if self.truth_gaps and shape.truth:
                unlabelled = Tally(replace(shape, truth=False), compiled=compiled)
        else:
            tally = of_task = _of_task(shape, first.task, block)
            if self.truth_gaps and shape.truth:
                unlabelled = RowTally(replace(of_task.layout, truth=False))
        said = (
            f"{name}: {note}"
            for name, each in zip(self.names, block, strict=True)
            for note in each.notes
        )
        return PartCounted(
            tally=tally,
            unlabelled=unlabelled,
            gallery=ExampleInputs(self._regular),
            kinship=ClassFamilies(),
            slices=slices,
            differing=Counter(),
            notes=tuple(dict.fromkeys(said)),
            known=[np.zeros(self.classes, bool) for _ in range(self._regular)],
        )

    @property
    def _regular(self) -> int:
        return len(self.names) - self.twin


def _of_task(shape: TallyLayout, task: AnswerTask, block: Block) -> RowTally:
    """The tally of answers that are no classes.

    Where the first generation has several answers to an input, two of them are a pair too: what
    differs there differs without any retrain.
    """
    asked = {each.name: getattr(shape, each.name) for each in fields(shape)}
    several = task.repeated and not any(shape.regular in pair for pair in shape.pairs)
    pairs = (*shape.pairs, (0, 0)) if several else shape.pairs
    whole = all(each.task is not None and each.task.whole for each in block)
    asked |= {"truth": shape.truth or task.graded, "pairs": pairs, "top_k": ()}
    layout = RowLayout(
        **(asked | {"classification": False, "ranking": False}),
        task=task,
        whole=whole,
    )
    return RowTally(layout)


def _learn(known: Flags, said: Predictions) -> None:
    """Note the classes that a generation has a score above 0 for or, without scores, a label."""
    if said.task is not None:
        if said.task.per_label and said.values is not None:  # items of rankings come and go
            known[said.values[said.values >= 0]] = True
        return
    if said.scores is None:
        known |= np.bincount(said.labels, minlength=len(known)) > 0
        return
    for rows in (slice(0, _GLANCE), slice(_GLANCE, None)):  # a few rows tell of most classes
        missing = np.flatnonzero(~known)
        if len(missing) and len(said.scores[rows]):
            known[missing] = (said.scores[rows][:, missing] > 0).any(axis=0)


def _counted(
    counter: PartCounter, part: AlignedPart
) -> tuple[Common, PartCounted | None] | tuple[None, None]:
    """What another process makes of a part; nothing if it cannot get at it."""
    try:
        counted = counter._count(part, start=part.start)
    except TemporaryFileGone:
        return None, None
    return part.common, counted


_GLANCE = 1_000

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
        tally: The sums; where some rows have no true class, of those that have one.
        unlabelled: The sums of those that have none; None where there are no two kinds.
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
        new_classes: Classes that the first generation does not know and a later one does.
        dropped_classes: Classes that the last generation does not know and an earlier one does.
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
    gallery: ExampleInputs
    families: dict[str, dict[str, str]]
    unknown_labels: tuple[UnknownLabels, ...] = ()
    new_classes: tuple[ClassChange, ...] = ()
    dropped_classes: tuple[ClassChange, ...] = ()
    unlabelled: Tally | None = None
    _ranked: dict[int, ClassRanks] = field(default_factory=dict)

    @property
    def floor(self) -> int | None:
        """The pair that is the noise floor: the first generation and its twin, or two answers of it
        to each input; None without either."""
        pairs, regular = self.tally.layout.pairs, len(self.names)
        return len(pairs) - 1 if len(pairs) > regular * (regular - 1) // 2 else None

    @property
    def heaviest(self) -> float:
        """The largest weight of an input."""
        return float(self.tally.heaviest_of(self.tally.layout.groupings[0]).max())

    def ranks(self, generation: int) -> ClassRanks | None:
        """How a generation ranks the inputs of each class; None where that is not measured."""
        tally = self.tally
        if tally.ranks is None or not tally.layout.scored[generation]:
            return None
        if generation not in self._ranked:
            # Sorting takes a while, and every level and every pair asks.
            self._ranked[generation] = tally.ranks.generation(generation, self.heaviest)
        return self._ranked[generation]


def task_in(tally: Tally) -> AnswerTask | None:
    """What the answers are that were counted; None for classes."""
    return tally.layout.task if isinstance(tally, RowTally) else None


class ParallelMap(Protocol):
    """Maps a function over items, in this process or in others, and keeps their order.

    Items are taken as they are needed. Function, items and results must be picklable.
    """

    def __call__(
        self, function: Callable[[Any], Any], things: Iterable[Any], /
    ) -> Iterator[Any]: ...


def count(
    blocks: AlignedBlocks, settings: Settings, *, parallel: ParallelMap | None = None
) -> Counted:
    """Count all that metrics are made of, in one pass over the blocks.

    Rows are counted in parts of a fixed size, and the parts are added up in their order. So it does
    not matter to the last bit who counts them.

    Args:
        blocks: The generations, oldest first.
        settings: What may be chosen; `top_k`, `families` and `twin` tell what is counted.
        parallel: Has the parts of files counted elsewhere, if they are such that others can read.
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
        truth_gaps=report.truth_gaps,
        classification=settings.measures(
            "classification", rows=report.shared, classes=len(blocks.classes)
        ),
        ranking=settings.measures("ranking", rows=report.shared, classes=len(blocks.classes)),
    )
    total: PartCounted | None = None
    for part in _parts_of(blocks, counter, parallel):
        if total is None:
            total = part
        else:
            total.merge(part)
    came = 0 if total is None else total.rows
    if total is None or came != report.shared:
        raise ComparisonError(
            f"{report.shared:,} inputs were announced, but {came:,} came. Compare again."
        )
    tally, unlabelled = total.tally, total.unlabelled
    if unlabelled is not None and not unlabelled.rows:
        unlabelled = None
    elif unlabelled is not None and not tally.rows:  # no input that all share has a true class
        tally, unlabelled = unlabelled, None
    return Counted(
        tally=tally,
        unlabelled=unlabelled,
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
        new_classes=_arrivals(total.known, blocks.classes, report.names),
        dropped_classes=_arrivals(total.known[::-1], blocks.classes, report.names[:regular][::-1]),
    )


def _arrivals(
    known: Sequence[Flags], classes: Sequence[str], names: Sequence[str]
) -> tuple[ClassChange, ...]:
    """The classes that the first of some generations does not know, and the first that does."""
    table = np.array(known)
    later = np.flatnonzero(~table[0] & table.any(axis=0))
    return tuple(
        ClassChange(classes[place], names[int(table[:, place].argmax())])
        for place in later.tolist()
    )


def _parts_of(
    blocks: AlignedBlocks, counter: PartCounter, parallel: ParallelMap | None
) -> Iterator[PartCounted]:
    rows = rows_of_part(len(blocks.classes))
    if isinstance(blocks, AlignedStream):
        if parallel is not None and blocks.is_portable:
            return counter.in_parallel(blocks, parallel)
        rows = blocks.rows_in_part
    if parallel is not None:
        log.warning("Not all generations are Parquet files, so one process counts them.")
    return counter.in_turn(blocks, rows_in_part=rows)
