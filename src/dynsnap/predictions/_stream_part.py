"""Generations side by side, from one row to another: here, or in another process."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dynsnap.predictions._classes import with_classes
from dynsnap.predictions._join_common import Common
from dynsnap.predictions._join_disk import Chosen, Places, Sorted, SortedRows, kept
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._stream_file import StreamedFile, in_blocks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lane:
    """One generation on its way to the blocks.

    Attributes:
        text: Whether its ids are text.
        follow: Whether labels follow the scores when classes change places.
        places: Which rows to keep, in their order; None for all.
        moved: Its rows in the order of the first generation, where they came in another.
    """

    file: StreamedFile
    text: bool
    follow: bool
    places: Places | Chosen | None = None
    moved: Sorted | SortedRows | None = None

    def pieces(self) -> Iterator[Predictions]:
        """The shared rows in the order of the first file, over the file's own classes."""
        if self.moved is not None:
            return self.moved.pieces()
        pieces = self.file.pieces(text=self.text)
        return pieces if self.places is None else kept(pieces, self.places)

    @property
    def travels(self) -> bool:
        """Whether some rows of it can be sent to another process."""
        return self.moved is not None or self.file.travels

    def within(self, start: int, stop: int) -> "Lane":
        """Only the shared rows from `start` up to `stop`, for another process."""
        if isinstance(self.moved, Sorted):
            nothing = replace(self.file, parts=())
            return replace(self, file=nothing, moved=self.moved.within(start, stop))
        if isinstance(self.places, Places):
            rows = self.places.rows(start, stop)
            first, last = int(rows[0]), int(rows[-1]) + 1
            chosen = Chosen(rows - first) if last - first > len(rows) else None
            return replace(self, file=self.file.of_rows(first, last), places=chosen)
        return replace(self, file=self.file.of_rows(start, stop))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignedPart:
    """Some consecutive rows of all generations, block by block.

    Attributes:
        start: How many rows come before.
        common: What the generations know of these rows together, filled by the iteration.
    """

    start: int
    classes: tuple[str, ...]
    rename: Mapping[str, str]
    rows_at_once: int
    lanes: tuple[Lane, ...]
    common: Common

    def __iter__(self) -> Iterator[tuple[Predictions, ...]]:
        lanes = [in_blocks(self._pieces(lane), self.rows_at_once) for lane in self.lanes]
        for block in zip(*lanes, strict=True):
            made = self.common.add(block, id_column=block[0].id_column)
            # Once two files contradict each other, what is left is only counted.
            if not self.common.contradictions:
                yield made

    def _pieces(self, lane: Lane) -> Iterator[Predictions]:
        for piece in lane.pieces():
            yield with_classes(piece, self.classes, rename=self.rename, follow=lane.follow)
