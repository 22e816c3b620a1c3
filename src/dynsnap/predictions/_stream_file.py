"""The predictions of one generation, read a piece at a time as often as it is asked for."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from dynsnap.predictions._digest import Verification, together
from dynsnap.predictions._ids import as_id_column, as_text, check_ids, one_id_column
from dynsnap.predictions._locate import Many, locate
from dynsnap.predictions._many import Chained, File, opened_together
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._published import open_published
from dynsnap.predictions._reading import reading
from dynsnap.predictions._schema import ColumnLayout, ColumnNames, interpret
from dynsnap.predictions._sources import ParquetBatches, opened
from dynsnap.predictions._stored import Address
from dynsnap.predictions._tables import Part, checked_rows, joined, parts_of, weights_in
from dynsnap.predictions._validate import check_some_weight, highest_class
from dynsnap.predictions._vocabulary import Batches, Vocabulary, vocabulary_of

_ID_ROWS = 1 << 17  # ids that are looked at together

_PROFUSE = 3  # files that a message names


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
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
    parts: tuple[Rows, ...]
    layout: ColumnLayout
    vocabulary: Vocabulary

    @classmethod
    def opened(cls, place: str | Path, columns: ColumnNames, until: ExitStack) -> "StreamedFile":
        """Open a file, until the stack is closed, and find out which names it uses."""
        found = locate(place)
        if not isinstance(found, Many):
            name = found if isinstance(found, Path) else str(found)
            with reading(name):
                source = until.enter_context(_opened(found, columns))
                layout = interpret(source.schema, columns)
                vocabulary = vocabulary_of(source, layout)
            one = (Rows(File(name, source)),)
            return cls(place=name, parts=one, layout=layout, vocabulary=vocabulary)
        files, layout = opened_together(found, columns)
        with reading(found.name):
            vocabulary = vocabulary_of(Chained(files), layout)
        parts = tuple(map(Rows, files))
        return cls(place=found.name, parts=parts, layout=layout, vocabulary=vocabulary)

    @property
    def verification(self) -> Verification:
        """Whether the files are as they were written."""
        return together([part.verification for part in self.parts])

    @property
    def travels(self) -> bool:
        """Whether it can be sent to another process, and some rows of it read without the rest."""
        return all(isinstance(part.file.source, ParquetBatches) for part in self.parts)

    def of_rows(self, start: int, stop: int) -> "StreamedFile":
        """These rows only, of a file that travels."""
        chosen, before = [], 0
        for part in self.parts:
            rows = part.file.source.rows  # type: ignore[attr-defined]  # of Parquet
            first, last = max(0, start - before), min(rows, stop - before)
            if first < last:
                chosen.append(Rows(part.file, first, last))
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

    def unchecked(self) -> Iterator[Part]:
        """All rows, brought into form."""
        for part in self.parts:
            with reading(part.file.place):
                yield from self._parts_of(part)

    def check_whole(self) -> None:
        """Raise if all rows together would take far more memory than their files have bytes."""
        for part in self.parts:
            with reading(part.file.place):
                if isinstance(part.file.source, ParquetBatches):
                    part.file.source.check_whole((*self.layout.essential, *self.vocabulary.slices))

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

    def _follows(self, part: Rows) -> bool:
        with reading(part.file.place):
            return all(
                some.scores is not None
                and some.labels is not None
                and np.array_equal(highest_class(some.scores), some.labels)
                for some in self._parts_of(part)
            )

    def _parts_of(self, part: Rows) -> Iterator[Part]:
        return parts_of(part, self.layout, self.vocabulary, before=part.start)


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
    names = [field.name for field in fields(Part)]
    whole = joined(Part(**{name: getattr(piece, name) for name in names}) for piece in pieces)
    return changed(pieces[0], **{name: getattr(whole, name) for name in names})
