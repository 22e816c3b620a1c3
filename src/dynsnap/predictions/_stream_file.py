"""One file of predictions, read a piece at a time as often as it is asked for."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from dynsnap.predictions._ids import as_id_column, as_text, check_ids, one_id_column
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._read import reading
from dynsnap.predictions._schema import ColumnNames, Layout, interpret
from dynsnap.predictions._sources import opened
from dynsnap.predictions._tables import Part, checked_rows, joined, parts_of
from dynsnap.predictions._validate import check_some_weight, highest_class
from dynsnap.predictions._vocabulary import Batches, Vocabulary, vocabulary_of

_ID_ROWS = 1 << 17  # ids that are looked at together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamedFile:
    """An open file whose names are known. Whatever is wrong with it is said with its path."""

    path: Path
    source: Batches
    layout: Layout
    vocabulary: Vocabulary

    @classmethod
    def opened(cls, path: Path, columns: ColumnNames, until: ExitStack) -> "StreamedFile":
        """Open a file, until the stack is closed, and find out which names it uses."""
        with reading(path):
            source = until.enter_context(opened(path, columns))
            layout = interpret(source.schema, columns)
            vocabulary = vocabulary_of(source, layout)
        return cls(path=path, source=source, layout=layout, vocabulary=vocabulary)

    def ids(self) -> Iterator[pa.Array]:
        """All ids, in pieces of one size but for the last."""
        with reading(self.path):
            waiting: list[pa.Array] = []
            rows = 0
            for batch in self.source.batches([self.layout.id]):
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
        """All predictions, checked, in pieces as the file has them.

        Args:
            text: Whether ids are text in this file as a whole, if not in every piece of it.
        """
        with reading(self.path):
            before = 0
            weighed = self.layout.weight is None
            for part in parts_of(self.source, self.layout, self.vocabulary):
                if not len(part.id_column):
                    continue
                piece = checked_rows(part, self.vocabulary, before=before)
                before += len(piece)
                weighed = weighed or bool(piece.weights is not None and piece.weights.any())
                yield changed(piece, id_column=as_text(piece.id_column)) if text else piece
            check_some_weight(weighed)

    def labels_follow(self) -> bool:
        """Whether every label is the class with the highest score; see `_classes`."""
        if self.layout.label is None or not self.layout.has_scores:
            return self.layout.has_scores
        with reading(self.path):
            return all(
                part.scores is not None
                and part.labels is not None
                and np.array_equal(highest_class(part.scores), part.labels)
                for part in parts_of(self.source, self.layout, self.vocabulary)
            )


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
