"""The inputs behind the rates: every one that was lost or gained."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dynsnap import _files
from dynsnap._types import AnyArray
from dynsnap.comparison._count import AlignedBlocks, InMemory
from dynsnap.errors import PlanError
from dynsnap.predictions import Predictions, align
from dynsnap.predictions._schema import metadata_of

_AT_ONCE = 1 << 22  # scores that are looked up together


def flips(
    *generations: Predictions,
    names: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
) -> pa.Table:
    """Every input that a retrain lost or gained, as an Arrow table.

    Of more than two generations, each is compared with the one before it. Without truth, every
    input whose label changed is listed. Columns: `id`, `old` and `new` (the generations),
    `kind` ("lost", "gained" or "changed"), `truth`, `old_label`, `new_label`; with scores
    `old_confidence` and `new_confidence` (the score of the label given), `old_scores` and
    `new_scores` (all classes, named in the table's metadata under "dynsnap.classes"); then
    `weight`, and `slice:<column>` for each slice.

    Example:
        >>> old = Predictions(ids=["a", "b"], classes=["cat", "dog"], labels=[0, 1], truth=[0, 1])
        >>> new = Predictions(ids=["a", "b"], classes=["cat", "dog"], labels=[0, 0])
        >>> flips(old, new).select(["id", "kind", "old_label", "new_label"]).to_pylist()
        [{'id': 'b', 'kind': 'lost', 'old_label': 'dog', 'new_label': 'cat'}]
    """
    if len(generations) < 2:
        raise PlanError("There is nothing to compare with. Give at least two generations.")
    blocks = InMemory(align(*generations, names=names, rename=rename))
    return pa.concat_tables(
        table for block in blocks for table in _tables(block, blocks.report.names)
    )


def write_flips(blocks: AlignedBlocks, path: str | Path, *, twin: bool = False) -> int:
    """Write every input that was lost or gained to a Parquet file, and say how many there are.

    Args:
        blocks: The generations, oldest first, block by block.
        path: The file; an earlier one is replaced once the new one is whole.
        twin: Whether the last generation is the first one trained again; it is left out.

    Example:
        >>> import pathlib, tempfile
        >>> old = Predictions(ids=["a", "b"], classes=["cat", "dog"], labels=[0, 1], truth=[0, 1])
        >>> new = Predictions(ids=["a", "b"], classes=["cat", "dog"], labels=[0, 0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_flips(InMemory(align(old, new)), pathlib.Path(folder, "flips.parquet"))
        1
    """
    import pyarrow.parquet as pq

    names = blocks.report.names[: len(blocks.report.names) - twin]
    rows = 0
    with _files.replacing(Path(path)) as aside:
        writer = None
        try:
            for block in blocks:
                for table in _tables(block[: len(names)], names):
                    # Made with the first table, which may be empty, so that columns are there.
                    writer = writer or pq.ParquetWriter(aside, table.schema, compression="zstd")
                    writer.write_table(table)
                    rows += len(table)
        finally:
            if writer is not None:
                writer.close()
    return rows


def _tables(block: Sequence[Predictions], names: Sequence[str]) -> Iterator[pa.Table]:
    """The flips of a block, a table for each retrain and each few of its rows."""
    step = max(1, _AT_ONCE // len(block[0].classes))
    for (old, new), pair in zip(itertools.pairwise(block), itertools.pairwise(names), strict=True):
        rows = _flipped(old, new)
        for first in range(0, max(len(rows), 1), step):
            yield _table(old, new, pair, rows[first : first + step])


def _flipped(old: Predictions, new: Predictions) -> AnyArray:
    if old.truth is None:
        return np.flatnonzero(old.labels != new.labels)
    return np.flatnonzero((old.labels == old.truth) != (new.labels == old.truth))


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
    if old.weights is not None:
        columns["weight"] = pa.array(old.weights[rows])
    for name, column in old.slices.items():
        values = pa.array(column.values, pa.string())
        columns[f"slice:{name}"] = _coded(column.codes[rows], values)
    table = pa.table(columns)
    if not any(scored):
        return table
    return table.replace_schema_metadata(metadata_of(old.classes))


def _kinds(new: Predictions, rows: AnyArray) -> pa.Array:
    kinds = pa.array(["lost", "gained", "changed"])
    if new.truth is None:
        return _coded(np.full(len(rows), 2, np.int32), kinds)
    return _coded((new.labels[rows] == new.truth[rows]).astype(np.int32), kinds)


def _constant(text: str, rows: int) -> pa.Array:
    return _coded(np.zeros(rows, np.int32), pa.array([text]))


def _coded(codes: AnyArray, values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), values)
