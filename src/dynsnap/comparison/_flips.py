"""The inputs behind the rates: every one that was lost or gained."""

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap import _files
from dynsnap._types import AnyArray
from dynsnap.comparison._count import AlignedBlocks, InMemory
from dynsnap.errors import FileError, PlanError
from dynsnap.predictions import ColumnNames, Predictions, Source, align, as_predictions
from dynsnap.predictions._schema import metadata_of
from dynsnap.predictions._sources import Format, format_of
from dynsnap.predictions._text import on_one_line
from dynsnap.predictions._text_files import compression_of
from dynsnap.predictions._write import TableWriter
from dynsnap.predictions.tasks import KINDS

_AT_ONCE = 1 << 22  # scores that are looked up together


def flips(
    *generations: Predictions | Source,
    names: Sequence[str] | None = None,
    columns: ColumnNames | Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
) -> pa.Table:
    """Every input that a retrain lost or gained, as an Arrow table.

    Generations are predictions, frames or files, as for `compare`. Of more than two, each is
    compared with the one before it. Of inputs without truth, every one whose label changed is
    listed. Columns: `id`, `old` and `new` (the generations),
    `kind` ("lost", "gained" or "changed"), `truth`, `old_label`, `new_label`; with scores
    `old_confidence` and `new_confidence` (the score of the label given), `old_scores` and
    `new_scores` (all classes, named in the table's metadata under "dynsnap.classes"); then
    `weight`, and `slice:<column>` for each slice. Of a task whose answers are no classes, both are
    text, and `change` is by how much they differ.

    Example:
        >>> old = Predictions(ids=["a", "b"], classes=["cat", "dog"], labels=[0, 1], truth=[0, 1])
        >>> new = Predictions(ids=["a", "b"], classes=["cat", "dog"], labels=[0, 0])
        >>> flips(old, new).select(["id", "kind", "old_label", "new_label"]).to_pylist()
        [{'id': 'b', 'kind': 'lost', 'old_label': 'dog', 'new_label': 'cat'}]
    """
    if len(generations) < 2:
        raise PlanError("There is nothing to compare with. Give at least two generations.")
    held = [as_predictions(each, columns) for each in generations]
    blocks = InMemory(align(*held, names=names, rename=rename))
    return pa.concat_tables(
        table for block in blocks for table in _tables(block, blocks.report.names)
    )


def write_flips(blocks: AlignedBlocks, path: str | Path, *, twin: bool = False) -> int:
    """Write every input that was lost or gained to a file, and say how many there are.

    Args:
        blocks: The generations, oldest first, block by block.
        path: The file: Parquet, Arrow, CSV, TSV or JSON Lines, as its ending shows; an earlier one
            is replaced once the new one is whole. CSV and TSV have a column for the score of each
            class, `old_score:<class>`, instead of lists.
        twin: Whether the last generation is the first one trained again; it is left out.

    Example:
        >>> import pathlib, tempfile
        >>> old = Predictions(ids=["a", "b"], classes=["cat", "dog"], labels=[0, 1], truth=[0, 1])
        >>> new = Predictions(ids=["a", "b"], classes=["cat", "dog"], labels=[0, 0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_flips(InMemory(align(old, new)), pathlib.Path(folder, "flips.parquet"))
        1
    """
    file = Path(path)
    kind = flips_format(file)
    names = blocks.report.names[: len(blocks.report.names) - twin]
    rows = 0
    packed = compression_of(file) is not None
    with (
        _files.replacing(file) as aside,
        TableWriter(aside, kind, packed=packed, packing={"compression": "zstd"}) as writer,
    ):
        for block in blocks:
            # The first table may be empty, and is written all the same: it has the columns.
            for table in _tables(block[: len(names)], names):
                writer.write(_plain(table, block[0].classes) if kind in ("CSV", "TSV") else table)
                rows += len(table)
    return rows


def flips_format(path: Path) -> Format:
    """The format of a file of flips, if flips can be written so."""
    with contextlib.suppress(FileError):
        if (kind := format_of(path)) != "NPZ":
            return kind
    raise PlanError(
        f"Flips are written to a file that ends in .parquet, .arrow, .csv, .tsv or .jsonl, got "
        f"{on_one_line(path)}."
    )


def _plain(table: pa.Table, classes: Sequence[str]) -> pa.Table:
    """The same with a column for each class instead of lists, and text instead of dictionaries."""
    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = pc.cast(column, column.type.value_type)
        if not pa.types.is_fixed_size_list(column.type):
            columns[name] = column
            continue
        flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
        rows = flat.reshape(len(column), len(classes))
        for place, each in enumerate(classes):
            columns[f"{name.removesuffix('s')}:{each}"] = pa.array(rows[:, place])
    return pa.table(columns)


def _tables(block: Sequence[Predictions], names: Sequence[str]) -> Iterator[pa.Table]:
    """The flips of a block, a table for each retrain and each few of its rows."""
    step = max(1, _AT_ONCE // max(1, len(block[0].classes)))
    for (old, new), pair in zip(itertools.pairwise(block), itertools.pairwise(names), strict=True):
        if new.task is not None:
            yield _table_of_task(old, new, pair)
            continue
        rows = _flipped(old, new)
        for first in range(0, max(len(rows), 1), step):
            yield _table(old, new, pair, rows[first : first + step])


def _flipped(old: Predictions, new: Predictions) -> AnyArray:
    changed = old.labels != new.labels
    if old.truth is None:
        return np.flatnonzero(changed)
    flipped = (old.labels == old.truth) != (new.labels == old.truth)
    return np.flatnonzero(np.where(old.truth < 0, changed, flipped))


def _table(old: Predictions, new: Predictions, names: tuple[str, str], rows: AnyArray) -> pa.Table:
    classes = pa.array(old.classes, pa.string())
    scored = [each.scores is not None for each in (old, new)]
    columns: dict[str, Any] = {
        "id": old.id_column.take(pa.array(rows)),
        "old": _constant(names[0], len(rows)),
        "new": _constant(names[1], len(rows)),
        "kind": _kinds(new, rows),
    }
    if old.truth is not None:
        columns["truth"] = _coded(old.truth[rows], classes)
    for side, each in (("old", old), ("new", new)):
        columns[f"{side}_label"] = _coded(each.labels[rows], classes)
    for side, each in (("old", old), ("new", new)):
        if each.scores is not None:
            found = each.scores[rows]
            label = each.labels[rows]
            columns[f"{side}_confidence"] = pa.array(found[np.arange(len(rows)), label])
            flat = pa.array(found.reshape(-1))
            columns[f"{side}_scores"] = pa.FixedSizeListArray.from_arrays(flat, found.shape[1])
    columns |= _further(old, rows)
    table = pa.table(columns)
    if not any(scored):
        return table
    return table.replace_schema_metadata(metadata_of(old.classes))


def _table_of_task(old: Predictions, new: Predictions, names: tuple[str, str]) -> pa.Table:
    """The same of answers that are no classes: both as text, and by how much they differ."""
    assert new.task is not None and old.values is not None and new.values is not None
    task = new.task
    found = task.flipped(old.values, new.values, old.truth)
    rows = found.rows
    columns: dict[str, Any] = {
        "id": old.id_column.take(pa.array(rows)),
        "old": _constant(names[0], len(rows)),
        "new": _constant(names[1], len(rows)),
        "kind": _coded(found.kinds, pa.array(KINDS)),
    }
    if old.truth is not None:
        columns["truth"] = pa.array(task.truth_texts(old.truth[rows], old.classes), pa.string())
    for side, values in (("old", old.values), ("new", new.values)):
        texts = task.texts(values[rows], old.classes)
        columns[f"{side}_label"] = pa.array(texts, pa.string())
    columns["change"] = pa.array(found.size, pa.float64())
    return pa.table(columns | _further(old, rows))


def _further(old: Predictions, rows: AnyArray) -> dict[str, Any]:
    """What is known of inputs beside the answers."""
    columns: dict[str, Any] = {}
    if old.weights is not None:
        columns["weight"] = pa.array(old.weights[rows])
    for name, column in old.slices.items():
        values = pa.array(column.values, pa.string())
        columns[f"slice:{name}"] = _coded(column.codes[rows], values)
    return columns


def _kinds(new: Predictions, rows: AnyArray) -> pa.Array:
    kinds = pa.array(["lost", "gained", "changed"])
    if new.truth is None:
        return _coded(np.full(len(rows), 2, np.int32), kinds)
    truth = new.truth[rows]
    return _coded(np.where(truth < 0, 2, new.labels[rows] == truth), kinds)


def _constant(text: str, rows: int) -> pa.Array:
    return _coded(np.zeros(rows, np.int32), pa.array([text]))


def _coded(codes: AnyArray, values: pa.Array) -> pa.Array:
    # No value is a truth that is not known.
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=codes < 0), values)
