"""From the columns of a file to predictions, a batch of rows at a time.

The layout (which column is what) and the vocabulary (the names that the file uses) must be known
first; then each batch stands on its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray, Floats, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.predictions._ids import as_id_column, check_ids, one_id_column
from dynsnap.predictions._labels import (
    Slice,
    as_coded_slice,
    encoded,
    positions_in,
)
from dynsnap.predictions._predictions import Predictions, trusted
from dynsnap.predictions._schema import ColumnLayout
from dynsnap.predictions._text import positions_of, shown
from dynsnap.predictions._validate import (
    as_float_rows,
    check_scores,
    check_some_weight,
    check_weights,
    highest_class,
)
from dynsnap.predictions._vocabulary import Batches, Vocabulary

_BLOCK = 8_192  # rows: their scores stay in the cache while columns are turned into rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchPart:
    """Some rows of a file, brought into form but not yet checked."""

    id_column: pa.Array
    labels: Labels | None
    truth: Labels | None
    scores: Scores | None
    weights: Floats | None
    values: AnyArray | None = None
    slices: Mapping[str, Slice] = field(default_factory=dict)


def parts_of(
    source: Batches, layout: ColumnLayout, vocabulary: Vocabulary, *, before: int = 0
) -> Iterator[BatchPart]:
    """A whole file, a batch of rows at a time; or what comes after so many rows of it."""
    for batch in source.batches((*layout.essential, *vocabulary.slice_columns)):
        yield _part(batch, layout, vocabulary, before=before)
        before += batch.num_rows


def _part(
    batch: pa.RecordBatch, layout: ColumnLayout, vocabulary: Vocabulary, *, before: int = 0
) -> BatchPart:
    """The rows of one batch, with labels, truth and slices as positions in the vocabulary.

    Args:
        before: How many rows of the file came before, so that a message can name a row.
    """
    slices = {name: _slice(batch, vocabulary, name) for name in vocabulary.slices}
    weights = None if layout.weight is None else weights_in(batch.column(layout.weight))
    if layout.task is not None:
        found = layout.task.read(batch, layout, vocabulary, before)
        return BatchPart(
            id_column=as_id_column(batch.column(layout.id)),
            labels=found.labels,
            truth=found.truth,
            scores=found.scores,
            values=found.values,
            weights=weights,
            slices=slices,
        )
    classes = positions_of(vocabulary.classes)

    def positions(column: str | None, what: str) -> Labels | None:
        if column is None:
            return None
        return positions_in(*encoded(batch.column(column)), classes, what=what)

    return BatchPart(
        id_column=as_id_column(batch.column(layout.id)),
        labels=positions(layout.label, "label"),
        truth=positions(layout.truth, "truth") if vocabulary.has_truth else None,
        scores=_scores(batch, layout, vocabulary, before) if layout.has_scores else None,
        weights=weights,
        slices=slices,
    )


def _slice(batch: pa.RecordBatch, vocabulary: Vocabulary, name: str) -> Slice:
    cut = vocabulary.cuts.get(name)
    if cut is not None:
        return cut.coded({column: batch.column(column) for column in cut.columns})
    values = vocabulary.slices[name]
    return as_coded_slice(*encoded(batch.column(name)), values, name=name)


def joined(parts: Iterable[BatchPart]) -> BatchPart:
    """Parts one below the other."""
    every = [part for part in parts if len(part.id_column)]
    if not every:
        raise InputError("There are no rows.")
    if len(every) == 1:
        return every[0]
    first = every[0]
    columns: dict[str, Any] = {
        name: None
        if getattr(first, name) is None
        else np.concatenate([getattr(part, name) for part in every])
        for name in ("labels", "truth", "weights", "values")
    }
    columns["slices"] = {
        name: Slice(column.values, np.concatenate([part.slices[name].codes for part in every]))
        for name, column in first.slices.items()
    }
    columns["id_column"] = one_id_column([part.id_column for part in every])
    blocks = [part.scores for part in every if part.scores is not None]
    del every, first  # so that the blocks are the only hold on the scores
    return BatchPart(**columns, scores=_stacked(blocks) if blocks else None)


def checked(part: BatchPart, vocabulary: Vocabulary) -> Predictions:
    """Predictions from all rows of a file, checked as the constructor checks."""
    made = checked_rows(part, vocabulary)
    check_ids(part.id_column)
    if part.weights is not None:
        check_some_weight(bool(part.weights.any()))
    return made


def checked_rows(part: BatchPart, vocabulary: Vocabulary, *, before: int = 0) -> Predictions:
    """Predictions from some rows of a file, checked but for what only all rows together can tell.

    That is: no id occurs twice, and not every weight is zero.
    """
    check_ids(part.id_column, unique=False)
    labels = part.labels
    if part.scores is not None:
        check_scores(part.scores, classes=vocabulary.classes, before=before)
        labels = highest_class(part.scores) if labels is None else labels
    assert labels is not None  # a layout has labels or scores
    if part.weights is not None:
        check_weights(part.weights, before=before)
    return trusted(
        id_column=part.id_column,
        classes=vocabulary.classes,
        labels=labels,
        scores=part.scores,
        truth=part.truth,
        slices=part.slices,
        weights=part.weights,
        notes=vocabulary.notes,
        values=part.values,
        task=vocabulary.task,
    )


def _scores(
    batch: pa.RecordBatch, layout: ColumnLayout, vocabulary: Vocabulary, before: int
) -> Scores:
    """The scores of a batch; classes that only the truth names come last and get zeros."""
    width, scored = len(vocabulary.classes), vocabulary.scored
    if layout.score_list is not None:
        column = batch.column(layout.score_list)
        given = _listed_scores(column, scored, name=layout.score_list, before=before)
        if scored == width:
            return given
        wide = np.zeros((len(given), width), given.dtype)
        wide[:, :scored] = given
        return wide
    columns = [_numbers(batch.column(name)) for name in layout.score_columns]
    small = all(column.dtype.kind == "f" and column.dtype.itemsize <= 4 for column in columns)
    rows = batch.num_rows
    scores = np.zeros((rows, width), np.float32 if small else np.float64)
    for start in range(0, rows, _BLOCK):
        block = slice(start, start + _BLOCK)
        for place, column in enumerate(columns):
            scores[block, place] = column[block]
    return scores


def _listed_scores(column: pa.Array, scored: int, *, name: str, before: int) -> Scores:
    if column.null_count:
        raise InputError(
            f"{shown(name)} is missing for {column.null_count:,} rows. Drop those rows."
        )
    sizes = np.asarray(pc.list_value_length(column))
    wrong = sizes != scored
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{shown(name)} must hold {scored:,} scores per row, one for each class, "
            f"but holds {sizes[row]:,} in row {before + row} (counted from 0)."
        )
    return as_float_rows(_numbers(column.flatten()).reshape(len(column), scored))


def _numbers(column: pa.Array) -> AnyArray:
    """Numbers as numpy, without a copy where possible; missing ones are NaN."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    numbers: AnyArray = column.to_numpy(zero_copy_only=False)
    return numbers


def weights_in(column: pa.Array) -> Floats:
    """A column of weights; missing ones are NaN."""
    return np.asarray(_numbers(column), np.float64)


def _stacked(blocks: list[Scores]) -> Scores:
    """Blocks of rows in one array. Each is let go once it is copied: memory is not needed twice."""
    rows = sum(len(block) for block in blocks)
    whole = np.empty((rows, blocks[0].shape[1]), blocks[0].dtype)
    stop = rows
    while blocks:
        block = blocks.pop()
        whole[stop - len(block) : stop] = block
        stop -= len(block)
    return whole
