"""Write predictions to a file of any of the formats."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dynsnap import _files
from dynsnap._types import AnyArray, Scores
from dynsnap._untrusted import POSITIONS
from dynsnap.errors import FileError
from dynsnap.predictions._digest import BLANK, DIGEST_KEY, seal
from dynsnap.predictions._labels import Slice
from dynsnap.predictions._npz import CLASSES, write_arrays
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._schema import ColumnNames, metadata_of
from dynsnap.predictions._sources import compression_of, format_of
from dynsnap.predictions._text import on_one_line, shown

_ROWS = 1 << 20  # in one batch, which is one row group of a Parquet file
_MOST_SCORE_COLUMNS = 100  # with more classes, scores are one column of lists


def write(
    predictions: Predictions,
    path: str | Path,
    *,
    columns: ColumnNames | None = None,
    compact: bool = False,
) -> None:
    """Write predictions so that `read` gives them back; the file's ending tells the format.

    Scores are columns `score:<class>`, and one list column `scores` (not in CSV) beyond 100
    classes. The file is either wholly written or left as it was. All but CSV carry a digest, which
    reading checks.

    Args:
        predictions: What to write.
        path: The file: .parquet, .arrow, .feather, .csv, .csv.gz or .npz.
        columns: What to call the columns, where it is not as `read` expects.
        compact: Keep scores in half precision (three digits), and pack Parquet as hard as it goes:
            for files that are stored for long. Labels stay what they are.

    Raises:
        FileError: The file cannot be written, or a slice has the name of another column.

    Example:
        >>> import pathlib, tempfile
        >>> from dynsnap.predictions import read
        >>> made = Predictions(ids=["a", "b"], classes=["cat", "dog"], labels=["dog", "cat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "new.parquet")
        ...     write(made, file)
        ...     print(read(file).ids)
        ['a' 'b']
    """
    file = Path(path)
    names = columns or ColumnNames()
    kind = format_of(file)
    for name in predictions.slices:
        taken = name in names.reserved or name.startswith(names.score_prefix)
        if taken or (kind == "NPZ" and name in (CLASSES, POSITIONS)):
            raise FileError(
                f"Cannot write {on_one_line(file)}: a slice is called {shown(name)}, as a column "
                "of another kind is. Call the slice otherwise."
            )
    with _files.replacing(file) as aside:
        if kind == "NPZ":
            write_arrays(aside, _arrays(predictions, names, compact), comment=BLANK)
        elif kind == "CSV":
            _write_csv(aside, _batches(predictions, names, plain=True))
        elif kind == "Arrow":
            _write_arrow(aside, _batches(predictions, names, compact=compact))
        else:
            packing = {"compression": "zstd", "compression_level": 19} if compact else {}
            _write_parquet(aside, _batches(predictions, names, compact=compact), packing)
        if kind != "CSV":
            seal(aside, kind)


def _batches(
    predictions: Predictions, names: ColumnNames, *, plain: bool = False, compact: bool = False
) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(predictions), _ROWS):
        part = predictions.slice(start, start + _ROWS)
        yield _batch(part, names, plain=plain, compact=compact)


def _batch(
    part: Predictions, names: ColumnNames, *, plain: bool, compact: bool = False
) -> pa.RecordBatch:
    """Some rows as columns; `plain` has only what CSV can hold."""
    scores = part.scores if part.scores is None or not compact else short(part.scores)

    def named(column: Slice) -> pa.Array:
        coded = pa.DictionaryArray.from_arrays(pa.array(column.codes), pa.array(column.values))
        return coded.dictionary_decode() if plain else coded

    columns: dict[str, pa.Array] = {names.id: part.id_column}
    if part.truth is not None:
        columns[names.truth] = named(Slice(part.classes, part.truth))
    columns[names.label] = named(Slice(part.classes, part.labels))
    if scores is not None:
        if plain or len(part.classes) <= _MOST_SCORE_COLUMNS:
            for place, name in enumerate(part.classes):
                columns[names.score_prefix + name] = pa.array(scores[:, place])
        else:
            flat = pa.array(scores.reshape(-1))
            columns[names.scores] = pa.FixedSizeListArray.from_arrays(flat, len(part.classes))
    if part.weights is not None:
        columns[names.weight] = pa.array(part.weights)
    columns |= {name: named(column) for name, column in part.slices.items()}
    metadata = metadata_of(part.classes) | ({} if plain else {DIGEST_KEY: BLANK})
    return pa.record_batch(columns, metadata=metadata)


def short(scores: Scores) -> AnyArray:
    """Scores in half precision, without digits that are too small to matter but hard to pack."""
    grid = 1 / 8192
    # Of very many classes the small scores would add up to something.
    fine = scores.shape[1] <= _MOST_SCORE_COLUMNS
    return (np.rint(scores / grid) * grid if fine else scores).astype(np.float16)


def _arrays(predictions: Predictions, names: ColumnNames, compact: bool) -> dict[str, AnyArray]:
    ids, scores = predictions.ids, predictions.scores
    arrays = {
        names.id: ids.astype(str) if ids.dtype == object else ids,
        CLASSES: np.array(predictions.classes),
        POSITIONS: np.array(True),
        names.truth: predictions.truth,
        names.label: predictions.labels,
        names.scores: short(scores) if compact and scores is not None else scores,
        names.weight: predictions.weights,
    }
    for name, column in predictions.slices.items():
        arrays[name] = np.array(column.values)[column.codes]
    return {name: array for name, array in arrays.items() if array is not None}


def _write_parquet(
    path: Path, batches: Iterator[pa.RecordBatch], packing: Mapping[str, Any]
) -> None:
    import pyarrow.parquet as pq

    first = next(batches)
    repeated = [field.name for field in first.schema if pa.types.is_dictionary(field.type)]
    # Scores hardly repeat: trying to make a dictionary of them costs time and gives nothing.
    with pq.ParquetWriter(
        path, first.schema, use_dictionary=repeated, write_page_checksum=True, **packing
    ) as writer:
        for batch in chain([first], batches):
            writer.write_batch(batch)


def _write_arrow(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
        for batch in chain([first], batches):
            writer.write_batch(batch)


def _write_csv(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    from pyarrow import csv

    first = next(batches)
    with (
        pa.output_stream(str(path), compression=compression_of(path)) as sink,
        csv.CSVWriter(sink, first.schema) as writer,
    ):
        for batch in chain([first], batches):
            writer.write_batch(batch)
