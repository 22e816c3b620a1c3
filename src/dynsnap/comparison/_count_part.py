"""Some consecutive rows of all generations, counted: here or in another process."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from dynsnap.comparison._examples import Gallery
from dynsnap.comparison._families import Kinship
from dynsnap.metrics._tally import Tally
from dynsnap.metrics._tally_layout import TallyLayout
from dynsnap.predictions import AlignedStream, Predictions
from dynsnap.predictions._join_common import Common
from dynsnap.predictions._spill import OutOfReach
from dynsnap.predictions._stream_part import AlignedPart

Block: TypeAlias = tuple[Predictions, ...]


@dataclass(kw_only=True, eq=False)
class PartCounted:
    """The sums of some rows.

    Attributes:
        tally: The sums.
        gallery: Some of the inputs themselves.
        kinship: Which classes and values of slices occur together.
        slices: The values of each slice.
        differing: By slice, the inputs that generations have different values for.
        notes: What the predictions say about themselves.
    """

    tally: Tally
    gallery: Gallery
    kinship: Kinship
    slices: dict[str, tuple[str, ...]]
    differing: Counter[str]
    notes: tuple[str, ...]

    def merge(self, later: "PartCounted") -> None:
        """Add the sums of the rows that come next."""
        self.tally.merge(later.tally)
        self.gallery.merge(later.gallery)
        self.kinship.merge(later.kinship)
        self.differing.update(later.differing)


@dataclass(frozen=True, kw_only=True)
class PartCounter:
    """Counts parts of one comparison.

    Attributes:
        rows: Rows of all parts together.
        classes: How many classes there are.
        names: What the generations are called, the twin among them.
        top_k: The k of top-k metrics.
        twin: Whether the last generation is the first one trained again.
    """

    rows: int
    classes: int
    names: tuple[str, ...]
    top_k: tuple[int, ...]
    twin: bool

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

    def spread(
        self, stream: AlignedStream, spread: Callable[..., Iterator[Any]]
    ) -> Iterator[PartCounted]:
        """Have the parts of a stream counted elsewhere, and give them in their order."""
        parts, kept = itertools.tee(stream.parts())
        common = Common(self.names)
        found = spread(partial(_counted, self), parts)
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
        counted.tally.add(block, start=start)
        counted.gallery.add(block[: self._regular])
        counted.kinship.add(block[0])
        for name, column in block[0].slices.items():
            if column.differs is not None:
                counted.differing[name] += int(column.differs.sum())
        return counted

    def _begun(self, block: Block) -> PartCounted:
        first = block[0]
        slices = {name: column.values for name, column in first.slices.items()}
        pairs = tuple(itertools.combinations(range(self._regular), 2))
        layout = TallyLayout(
            rows=self.rows,
            classes=self.classes,
            scored=tuple(each.scores is not None for each in block),
            truth=first.truth is not None,
            weighted=first.weights is not None,
            slices={name: len(values) for name, values in slices.items()},
            top_k=self.top_k,
            pairs=(*pairs, (0, self._regular)) if self.twin else pairs,
            regular=self._regular,
        )
        said = (
            f"{name}: {note}"
            for name, each in zip(self.names, block, strict=True)
            for note in each.notes
        )
        return PartCounted(
            tally=Tally(layout),
            gallery=Gallery(self._regular),
            kinship=Kinship(),
            slices=slices,
            differing=Counter(),
            notes=tuple(dict.fromkeys(said)),
        )

    @property
    def _regular(self) -> int:
        return len(self.names) - self.twin


def _counted(
    counter: PartCounter, part: AlignedPart
) -> tuple[Common, PartCounted | None] | tuple[None, None]:
    """What another process makes of a part; nothing if it cannot get at it."""
    try:
        counted = counter._count(part, start=part.start)
    except OutOfReach:
        return None, None
    return part.common, counted
