"""Predictions side by side, block by block: files that need not fit into memory."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dynsnap.errors import InputError, PlanError
from dynsnap.predictions._align import (
    AlignmentReport,
    gaps_in,
    holders_of,
    named,
    refuse_disjoint_ids,
    refuse_other_tasks,
    titles_of,
)
from dynsnap.predictions._classes import reorders, union_of, with_classes
from dynsnap.predictions._join import Common
from dynsnap.predictions._join_disk import (
    Chosen,
    IdPartitioning,
    IdScan,
    PartitionedIds,
    Places,
    Sorted,
    SortedRows,
    kept,
    match,
    places_of,
    scan_ids,
)
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._reading import reading
from dynsnap.predictions._same import same_files
from dynsnap.predictions._schema import ColumnNames
from dynsnap.predictions._slicing import Slicing
from dynsnap.predictions._spill import Spill
from dynsnap.predictions._stream_file import Source, StreamedFile, in_blocks
from dynsnap.predictions._vocabulary import NoRowsError

if TYPE_CHECKING:
    from dynsnap.predictions.tasks import Task


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamedGeneration:
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
    def is_portable(self) -> bool:
        """Whether some rows of it can be sent to another process."""
        return self.moved is not None or self.file.is_portable

    def within(self, start: int, stop: int) -> "StreamedGeneration":
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
    generations: tuple[StreamedGeneration, ...]
    common: Common

    def __iter__(self) -> Iterator[tuple[Predictions, ...]]:
        generations = [
            in_blocks(self._pieces(generation), self.rows_at_once)
            for generation in self.generations
        ]
        for block in zip(*generations, strict=True):
            made = self.common.add(block, id_column=block[0].id_column)
            # Once two files contradict each other, what is left is only counted.
            if not self.common.contradictions:
                yield made

    def _pieces(self, generation: StreamedGeneration) -> Iterator[Predictions]:
        for piece in generation.pieces():
            yield with_classes(piece, self.classes, rename=self.rename, follow=generation.follow)


ROWS_AT_ONCE = 1 << 17
ROWS_IN_PART = 1 << 20
_BLOCK_SCORES = 1 << 24  # with thousands of classes, fewer rows come at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignedStream:
    """What `Aligned` holds, block by block, as often as it is iterated.

    A block is one `Predictions` per generation: the same inputs in the same order over the same
    classes, with the same truth, weights and slices. What is wrong with some row of a file, or
    with two files together, is said when the iteration comes to it.

    Attributes:
        classes: The union of all class names, those of the first generation in front.
        report: How well the ids cover each other.
        rows_at_once: Rows of a block; the last may have fewer.
        rows_in_part: Rows of a part, a multiple of those.
    """

    classes: tuple[str, ...]
    report: AlignmentReport
    rows_at_once: int
    rows_in_part: int
    _generations: tuple[StreamedGeneration, ...]
    _rename: Mapping[str, str]
    _open: ExitStack

    @property
    def rows(self) -> int:
        """Inputs that all generations share."""
        return self.report.shared

    @property
    def slices(self) -> dict[str, tuple[str, ...]]:
        """The values of every slice column, each from the first generation that has it."""
        found: dict[str, tuple[str, ...]] = {}
        for generation in self._generations:
            for name, values in generation.file.vocabulary.slices.items():
                found.setdefault(name, values)
        return found

    def __iter__(self) -> Iterator[tuple[Predictions, ...]]:
        whole = self._part(0, self._generations)
        yield from whole
        whole.common.refuse_contradictions()

    @property
    def is_portable(self) -> bool:
        """Whether other processes can read it by themselves: all files are Parquet."""
        return all(generation.is_portable for generation in self._generations)

    def parts(self) -> Iterator[AlignedPart]:
        """The same rows in parts, which may be sent to other processes where it `is_portable`.

        Contradictions are left in the parts: together, they are for the caller to refuse.
        """
        for start in range(0, self.rows, self.rows_in_part):
            stop = min(self.rows, start + self.rows_in_part)
            yield self._part(
                start, tuple(generation.within(start, stop) for generation in self._generations)
            )

    def _part(self, start: int, generations: tuple[StreamedGeneration, ...]) -> AlignedPart:
        return AlignedPart(
            start=start,
            classes=self.classes,
            rename=self._rename,
            rows_at_once=self.rows_at_once,
            generations=generations,
            common=Common(self.report.names),
        )

    def close(self) -> None:
        """Close the files and remove what was put on disk."""
        self._open.close()

    def __enter__(self) -> "AlignedStream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def stream(
    paths: Sequence[Source],
    *,
    names: Sequence[str] | None = None,
    columns: ColumnNames | Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
    slices: Slicing | Sequence[str] | None = None,
    tasks: "Sequence[Task | None] | None" = None,
    rows_at_once: int = ROWS_AT_ONCE,
    rows_in_part: int = ROWS_IN_PART,
) -> AlignedStream:
    """Line up the predictions of several files without loading any of them as a whole.

    It gives what `align` gives for the same files read with `read`, block by block. Parquet and
    Arrow files are read a batch at a time (others are loaded). Ids in the same order cost one look
    at them; ids in another order, or only partly shared, are joined with the help of temporary
    files, about as large as the predictions themselves, in a private folder below TMPDIR. `close`
    removes it; after `kill -9`, the next join does.

    Args:
        paths: Where the predictions of each generation are, oldest first: a file; or Parquet files
            that hold a generation together, as a directory, a pattern ("old/*.parquet"), or a URI
            that pyarrow knows (s3://, gs://, file://) of a file, a directory or a pattern; or a
            table in memory, see `read`.
        names: What to call the generations in reports and messages.
        columns: What the columns are called, where it is not as `read` expects.
        rename: New names for some classes, in all generations.
        slices: The slices to make, and no others, see `read`.
        tasks: What the answers of each generation are, where they are no classes.
        rows_at_once: Rows of a block, at most; fewer with thousands of classes.
        rows_in_part: Rows of a part, about; see `AlignedStream.parts`.

    Raises:
        FileError: A file cannot be read, does not hold predictions, or there is no room on disk.
        ComparisonError: No id is shared, or two files contradict each other.
        PlanError: `rename` names a class that no file has.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dynsnap.predictions import write
        >>> old = Predictions(ids=[1, 2, 3], classes=["cat", "dog"], labels=[0, 1, 1])
        >>> new = Predictions(ids=[3, 1], classes=["cat", "dog"], labels=[0, 0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = [Path(folder, "old.parquet"), Path(folder, "new.parquet")]
        ...     write(old, files[0])
        ...     write(new, files[1])
        ...     with stream(files) as both:
        ...         for before, after in both:
        ...             print(before.ids, before.labels, after.labels)
        [1 3] [0 1] [0 0]
    """
    if not paths:
        raise InputError("There is nothing to align. Hand in at least one set of predictions.")
    for name, rows in (("rows_at_once", rows_at_once), ("rows_in_part", rows_in_part)):
        if rows < 1:
            raise PlanError(f"`{name}` must be at least 1, got {rows}.")
    titles = titles_of(names, len(paths))
    rename = rename or {}
    with ExitStack() as until:
        kinds = [None] * len(paths) if tasks is None else tasks
        slicing = Slicing.of(slices)
        own_names = ColumnNames.of(columns)
        files = [
            StreamedFile.opened(path, own_names, until, name=title, slicing=slicing, task=task)
            for path, title, task in zip(paths, titles, kinds, strict=True)
        ]
        if slicing is not None:
            slicing.refuse_unmet()
        refuse_other_tasks(titles, [file.layout.task for file in files])
        files = _named_alike(files)
        for file in files:
            file.check_weights()
        own = [file.vocabulary.classes for file in files]
        classes = union_of(own, rename, task=files[0].vocabulary.task)
        follow = [
            reorders(each, classes, rename) and file.labels_follow()
            for each, file in zip(own, files, strict=True)
        ]
        generations, report = _line_up(files, titles, follow, until)
        report = replace(
            report,
            weights_of=named(titles, [file.layout.weight is not None for file in files]),
            truth_of=named(titles, [file.vocabulary.has_truth for file in files]),
            truth_gaps=gaps_in(
                (file.vocabulary.has_truth, file.vocabulary.truth_gaps) for file in files
            ),
            slices_of=holders_of(titles, [file.vocabulary.slices for file in files]),
            same=tuple(same_files(titles, paths)),
            files=tuple(str(file.place) for file in files),
        )
        return AlignedStream(
            classes=classes,
            report=report,
            rows_at_once=rows_of_block(len(classes), rows_at_once),
            rows_in_part=rows_of_part(len(classes), rows_at_once, rows_in_part),
            _generations=generations,
            _rename=rename,
            _open=until.pop_all(),
        )


def _named_alike(files: list[StreamedFile]) -> list[StreamedFile]:
    """The same files; those of a binary task have the names that the truth of any gives."""
    own = [file.vocabulary for file in files]
    if not any(each.made_up for each in own):
        return files
    from dynsnap.predictions.tasks import named_alike

    names = named_alike([each.classes for each in own], [each.made_up for each in own])
    return [
        replace(file, vocabulary=replace(file.vocabulary, classes=classes))
        for file, classes in zip(files, names, strict=True)
    ]


def rows_of_block(classes: int, rows_at_once: int = ROWS_AT_ONCE) -> int:
    """Rows of a block with so many classes.

    Example:
        >>> rows_of_block(10), rows_of_block(100_000)
        (131072, 167)
    """
    return min(rows_at_once, max(1, _BLOCK_SCORES // max(1, classes)))


def rows_of_part(
    classes: int, rows_at_once: int = ROWS_AT_ONCE, rows_in_part: int = ROWS_IN_PART
) -> int:
    """Rows of a part: at least so many, and a whole number of blocks.

    Example:
        >>> rows_of_part(3, rows_at_once=300, rows_in_part=1000)
        1200
    """
    rows = rows_of_block(classes, rows_at_once)
    return rows * math.ceil(rows_in_part / rows)


def _line_up(
    files: Sequence[StreamedFile],
    titles: tuple[str, ...],
    follow: Sequence[bool],
    until: ExitStack,
) -> tuple[tuple[StreamedGeneration, ...], AlignmentReport]:
    look = scan_ids([file.ids() for file in files])
    for file, rows in zip(files, look.rows, strict=True):
        if not rows:
            with reading(file.place):
                raise NoRowsError
    generations = [
        StreamedGeneration(file=file, text=text, follow=own)
        for file, text, own in zip(files, look.text, follow, strict=True)
    ]
    if look.alike:
        if not look.increasing:
            with Spill() as spill:
                _parted(files[:1], look, spill)
        nothing: tuple[()] = ()
        report = AlignmentReport(
            names=titles,
            rows=tuple(look.rows),
            shared=look.rows[0],
            missing=(0,) * len(files),
            examples=(nothing,) * len(files),
            same_order=True,
            verification=tuple(file.verification for file in files),
        )
        return tuple(generations), report
    spill = until.enter_context(Spill())
    parted = _parted(files, look, spill)
    matches = match(parted, spill)
    for ids in parted:
        ids.close()
    if not matches.shared:
        refuse_disjoint_ids(titles, look.first)
    every = places_of(matches, look.rows, spill)
    report = AlignmentReport(
        names=titles,
        rows=tuple(look.rows),
        shared=matches.shared,
        missing=matches.missing,
        examples=tuple(tuple(lost.id for lost in some) for some in matches.lacking),
        same_order=all(places.in_order for places in every),
        verification=tuple(file.verification for file in files),
    )
    placed = (
        _placed(generation, places, spill, rows=rows, shared=matches.shared)
        for generation, places, rows in zip(generations, every, look.rows, strict=True)
    )
    return tuple(placed), report


def _parted(files: Sequence[StreamedFile], look: IdScan, spill: Spill) -> list[PartitionedIds]:
    """The ids of each file on disk, where they were found to be unique."""
    made = []
    for file, rows in zip(files, look.rows, strict=False):
        with reading(file.place):
            ids = PartitionedIds(file.ids(), spill, IdPartitioning.after(look), rows=rows)
            ids.check_unique(file.where)
        made.append(ids)
    return made


def _placed(
    generation: StreamedGeneration, places: Places, spill: Spill, *, rows: int, shared: int
) -> StreamedGeneration:
    """The lane with its rows in their places: as they are, some left out, or sorted on disk."""
    if places.in_order and rows > shared:
        return replace(generation, places=places)
    moved = None
    if not places.in_order:
        moved = Sorted(generation.pieces(), places, spill, shared=shared)
    places.close()
    return replace(generation, moved=moved)
