"""The predictions of one generation, read a piece at a time as often as it is asked for."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from dynsnap.predictions._digest import IN_MEMORY, Verification, together
from dynsnap.predictions._frames import FrameName, Place, Table, as_table, refuse_other_kinds
from dynsnap.predictions._ids import as_id_column, as_text, check_ids, one_id_column
from dynsnap.predictions._locate import Chained, File, FileSet, locate, opened_together
from dynsnap.predictions._models import OneModel, models_in, one_model
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._published import open_published
from dynsnap.predictions._reading import reading
from dynsnap.predictions._schema import ColumnLayout, ColumnNames, interpret
from dynsnap.predictions._slicing import Slicing
from dynsnap.predictions._sources import ParquetBatches, TableBatches, opened
from dynsnap.predictions._stored import Address
from dynsnap.predictions._tables import BatchPart, checked_rows, joined, parts_of, weights_in
from dynsnap.predictions._validate import check_some_weight, highest_class
from dynsnap.predictions._vocabulary import Batches, Vocabulary, vocabulary_of
from dynsnap.predictions.tasks import Task, grouped

_ID_ROWS = 1 << 17  # ids that are looked at together

_PROFUSE = 3  # files that a message names


Source: TypeAlias = Place | Table | OneModel


class Opened(NamedTuple):
    """An input as named columns: what everything is read from, whatever it came as.

    Attributes:
        place: What it is called in messages: a path, or a `FrameName` for a table in memory.
        files: The files that hold it together, or the one table.
    """

    place: Path | str
    files: tuple[File, ...]

    @property
    def table(self) -> Batches:
        """All rows: the schema, and batches of the columns that are asked for."""
        return self.files[0].source if len(self.files) == 1 else Chained(self.files)


def open_input(
    source: Source, columns: ColumnNames, until: ExitStack, *, name: str = "The table"
) -> Opened:
    """Open predictions of any kind as named columns, in batches of rows.

    Args:
        source: A frame of pandas or polars, anything with `__arrow_c_stream__`, a dict of arrays;
            the place of a file or of many, see `locate`; or one model of any of these.
        columns: What the columns are called.
        until: Files stay open until it is closed.
        name: What to call a table in memory in messages.

    Example:
        >>> with ExitStack() as until:
        ...     found = open_input({"id": [1, 2], "label": ["cat", "dog"]}, ColumnNames(), until)
        ...     [batch.to_pylist() for batch in found.table.batches(["label"])]
        [[{'label': 'cat'}, {'label': 'dog'}]]
    """
    if isinstance(source, OneModel):
        whole = open_input(source.source, columns, until, name=name)
        with reading(whole.files[0].place):
            files = [
                File(file.place, one_model(file.source, source, columns)) for file in whole.files
            ]
        return Opened(whole.place, tuple(files))
    if not isinstance(source, str | Path):
        title = FrameName(name)
        with reading(title):
            refuse_other_kinds(source, what="It")
            batches = TableBatches(as_table(source, columns), IN_MEMORY)
        return Opened(title, (File(title, batches),))
    found = locate(source)
    if isinstance(found, FileSet):
        return Opened(found.name, tuple(opened_together(found)))
    place = found if isinstance(found, Path) else str(found)
    with reading(place):
        return Opened(place, (File(place, until.enter_context(_opened(found, columns))),))


def models_of(source: Place | Table, columns: ColumnNames, *, name: str) -> list[OneModel]:
    """The models of a table that holds several, each as a source of its own."""
    if not isinstance(source, str | Path):
        with reading(FrameName(name)):
            refuse_other_kinds(source, what="It")
            source = as_table(source, columns)  # a stream is read only once
    with ExitStack() as until:
        found = open_input(source, columns, until, name=name)
        with reading(found.place):
            models = models_in(found.table, columns)
    wide = bool(columns.labels)
    return [OneModel(source, each, each if wide else columns.model or "", wide) for each in models]


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    """Some rows of a file: from `start` up to `stop`, None for all that are left."""

    file: File
    start: int = 0
    stop: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return self.file.source.schema

    @property
    def verification(self) -> Verification:
        """Whether the file is as it was written."""
        return self.file.source.verification

    def batches(self, columns: Sequence[str], /) -> Iterator[pa.RecordBatch]:
        """The rows, a batch at a time."""
        source = self.file.source
        if isinstance(source, ParquetBatches):
            return source.batches(columns, start=self.start, stop=self.stop)
        return source.batches(columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamedFile:
    """Open files whose names are known. Whatever is wrong with one is said with its path.

    Attributes:
        place: The file, or what its files are called together.
        parts: The files, and which rows of them.
        layout: Which column is what, in every file.
        vocabulary: The names that all files use together.
    """

    place: Path | str
    parts: tuple[FileRows, ...]
    layout: ColumnLayout
    vocabulary: Vocabulary

    @classmethod
    def opened(
        cls,
        source: Source,
        columns: ColumnNames,
        until: ExitStack,
        *,
        name: str = "The table",
        slicing: Slicing | None = None,
        task: Task | None = None,
    ) -> "StreamedFile":
        """Open predictions, until the stack is closed, and find out which names they use."""
        if isinstance(source, OneModel) and task is not None:
            source = source._replace(role=getattr(columns, task.role))
        found = open_input(source, columns, until, name=name)
        with reading(found.files[0].place):
            layout = interpret(found.table.schema, columns.of_one, task)
        parts = tuple(map(FileRows, found.files))
        with reading(found.place):
            whole = found.table
            table = _by_id(whole, layout)
            vocabulary = vocabulary_of(table, layout, slicing)
        if table is not whole:
            parts = (FileRows(File(found.place, table)),)
        return cls(place=found.place, parts=parts, layout=layout, vocabulary=vocabulary)

    @property
    def verification(self) -> Verification:
        """Whether the files are as they were written."""
        return together([part.verification for part in self.parts])

    @property
    def is_portable(self) -> bool:
        """Whether it can be sent to another process, and some rows of it read without the rest."""
        return all(isinstance(part.file.source, ParquetBatches) for part in self.parts)

    def of_rows(self, start: int, stop: int) -> "StreamedFile":
        """These rows only, of a file that is_portable."""
        chosen, before = [], 0
        for part in self.parts:
            rows = part.file.source.rows  # type: ignore[attr-defined]  # of Parquet
            first, last = max(0, start - before), min(rows, stop - before)
            if first < last:
                chosen.append(FileRows(part.file, first, last))
            before += rows
        return replace(self, parts=tuple(chosen))

    def ids(self) -> Iterator[pa.Array]:
        """All ids, in pieces of one size but for the last."""
        waiting: list[pa.Array] = []
        rows = 0
        for part in self.parts:
            with reading(part.file.place):
                for batch in part.batches([self.layout.id]):
                    ids = as_id_column(batch.column(0))
                    check_ids(ids, unique=False)
                    while rows + len(ids) >= _ID_ROWS:
                        yield one_id_column([*waiting, ids[: _ID_ROWS - rows]])
                        ids = ids[_ID_ROWS - rows :]
                        waiting, rows = [], 0
                    waiting.append(ids)
                    rows += len(ids)
        if rows:
            yield one_id_column(waiting)

    def pieces(self, *, text: bool = False) -> Iterator[Predictions]:
        """All predictions, checked, in pieces as the files have them.

        Args:
            text: Whether ids are text in the generation as a whole, if not in every piece of it.
        """
        for part in self.parts:
            with reading(part.file.place):
                before = part.start
                for some in self._parts_of(part):
                    if not len(some.id_column):
                        continue
                    piece = checked_rows(some, self.vocabulary, before=before)
                    before += len(piece)
                    yield changed(piece, id_column=as_text(piece.id_column)) if text else piece

    def unchecked(self) -> Iterator[BatchPart]:
        """All rows, brought into form."""
        for part in self.parts:
            with reading(part.file.place):
                yield from self._parts_of(part)

    def check_whole(self) -> None:
        """Raise if all rows together would take far more memory than their files have bytes."""
        for part in self.parts:
            with reading(part.file.place):
                if isinstance(part.file.source, ParquetBatches):
                    part.file.source.check_whole(self._columns)

    def check_weights(self) -> None:
        """Raise if there are weights, and all are zero."""
        if self.layout.weight is None:
            return
        with reading(self.place):
            check_some_weight(
                any(
                    weights_in(batch.column(0)).any()
                    for part in self.parts
                    for batch in part.batches([self.layout.weight])
                )
            )

    def labels_follow(self) -> bool:
        """Whether every label is the class with the highest score; see `_classes`."""
        if self.layout.label is None or not self.layout.has_scores:
            return self.layout.has_scores
        return all(map(self._follows, self.parts))

    def where(self, rows: Sequence[int]) -> str:
        """In which files some rows are, where there are several; for a message."""
        if len(self.parts) == 1:
            return ""
        ends = np.cumsum([part.file.source.rows for part in self.parts])  # type: ignore[attr-defined]
        numbers = dict.fromkeys(np.searchsorted(ends, rows, side="right").tolist())
        places = [str(self.parts[number].file.place) for number in numbers]
        if len(places) > _PROFUSE:
            places[_PROFUSE:] = [f"{len(places) - _PROFUSE} more"]
        return " and ".join(places)

    def _follows(self, part: FileRows) -> bool:
        with reading(part.file.place):
            return all(
                some.scores is not None
                and some.labels is not None
                and np.array_equal(highest_class(some.scores), some.labels)
                for some in self._parts_of(part)
            )

    @property
    def _columns(self) -> tuple[str, ...]:
        return (*self.layout.essential, *self.vocabulary.slice_columns)

    def _parts_of(self, part: FileRows) -> Iterator[BatchPart]:
        return parts_of(part, self.layout, self.vocabulary, before=part.start)


def _by_id(source: Batches, layout: ColumnLayout) -> Batches:
    """A file with a row for each id, where a task takes several answers to an input."""
    if layout.task is None or not layout.task.graded:
        return source
    return grouped(source, layout)


def _opened(found: Path | Address, columns: ColumnNames) -> AbstractContextManager[Batches]:
    if isinstance(found, Path):
        return opened(found, columns)
    return nullcontext(open_published(found.folder, found.key, columns))


def in_blocks(pieces: Iterable[Predictions], rows: int) -> Iterator[Predictions]:
    """The same predictions in blocks of one size, but for the last. Pieces that fit stay as is."""
    waiting: list[Predictions] = []
    have = 0
    for piece in pieces:
        start = 0
        while have + len(piece) - start >= rows:
            waiting.append(piece.slice(start, start + rows - have))
            start += rows - have
            yield _stacked(waiting)
            waiting, have = [], 0
        if start < len(piece):
            waiting.append(piece.slice(start, len(piece)))
            have += len(piece) - start
    if waiting:
        yield _stacked(waiting)


def _stacked(pieces: list[Predictions]) -> Predictions:
    if len(pieces) == 1:
        return pieces[0]
    names = [field.name for field in fields(BatchPart)]
    whole = joined(BatchPart(**{name: getattr(piece, name) for name in names}) for piece in pieces)
    return changed(pieces[0], **{name: getattr(whole, name) for name in names})
