"""Write predictions to a file of any of the formats."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dynsnap import _files
from dynsnap._types import AnyArray, Scores
from dynsnap._untrusted import POSITIONS
from dynsnap.errors import FileError, InputError
from dynsnap.predictions._digest import BLANK, DIGEST_KEY, seal
from dynsnap.predictions._labels import Slice
from dynsnap.predictions._npz import CLASSES, write_arrays
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._schema import ColumnNames, metadata_of
from dynsnap.predictions._sources import Format, format_of
from dynsnap.predictions._text import on_one_line, shown
from dynsnap.predictions._text_files import compression_of

TEXT: tuple[Format, ...] = ("CSV", "TSV", "JSON Lines")  # formats without types and metadata

_ROWS = 1 << 20  # in one batch, which is one row group of a Parquet file
_MOST_SCORE_COLUMNS = 100  # with more classes, scores are one column of lists


def write(
    predictions: Predictions,
    path: str | Path,
    *,
    columns: ColumnNames | None = None,
    compact: bool = False,
) -> None:
    """Write predictions so that `read` gives them back; the file's ending shows the format.

    Scores are columns `score:<class>`, and one list column `scores` (not in text) beyond 100
    classes. The file is either wholly written or left as it was. All but text (CSV, TSV, JSON
    Lines) carries a digest, which reading checks.

    Args:
        predictions: What to write.
        path: The file: .parquet, .arrow, .feather, .csv, .tsv, .jsonl (the last three also with
            .gz), or .npz.
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
    if predictions.task is not None:
        raise InputError(
            f"These are answers of the task {predictions.task.name}, and only classes can be "
            "written. Keep the file that they were read from."
        )
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
        else:
            packing = {"compression": "zstd", "compression_level": 19} if compact else {}
            packed = compression_of(file) is not None
            plain = kind in TEXT
            with TableWriter(aside, kind, packed=packed, packing=packing) as writer:
                for batch in _batches(predictions, names, plain=plain, compact=compact):
                    writer.write(batch)
        if kind in ("Parquet", "Arrow", "NPZ"):
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
    """Some rows as columns; `plain` has only what text can hold."""
    scores = part.scores if part.scores is None or not compact else short(part.scores)

    def named(column: Slice) -> pa.Array:
        codes = pa.array(column.codes, mask=column.codes < 0)  # no value: a truth not known
        coded = pa.DictionaryArray.from_arrays(codes, pa.array(column.values))
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


class TableWriter:
    """Writes tables of one schema to a file, one below the other; their format is the file's.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "rows.jsonl")
        ...     with TableWriter(file, "JSON Lines") as writer:
        ...         writer.write(pa.table({"id": [7, 8]}))
        ...     file.read_text()
        '{"id": 7}\\n{"id": 8}\\n'
    """

    def __init__(
        self,
        path: Path,
        kind: Format,
        *,
        packed: bool = False,
        packing: Mapping[str, Any] | None = None,
    ) -> None:
        """Args:
        path: The file, which may be called otherwise until it is whole.
        kind: Its format.
        packed: Whether text is packed by gzip.
        packing: How Parquet is packed.
        """
        self._path, self._kind, self._packed = path, kind, packed
        self._packing = packing or {}
        self._until = ExitStack()
        self._write: Callable[[Any], object] | None = None

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self._until.close()

    def write(self, table: Any) -> None:
        """Write a table or a record batch below those before."""
        if self._write is None:  # made with the first one, which shows the columns
            self._write = self._opened(table.schema)
        self._write(table)

    def _opened(self, schema: pa.Schema) -> Callable[[Any], object]:
        enter = self._until.enter_context
        if self._kind == "Parquet":
            import pyarrow.parquet as pq

            repeated = [field.name for field in schema if pa.types.is_dictionary(field.type)]
            # Scores hardly repeat: trying to make a dictionary of them costs time and gives
            # nothing.
            settings = {"use_dictionary": repeated, "write_page_checksum": True, **self._packing}
            return enter(pq.ParquetWriter(self._path, schema, **settings)).write  # type: ignore[no-any-return]
        if self._kind == "Arrow":
            sink = enter(pa.OSFile(str(self._path), "wb"))
            return enter(pa.ipc.new_file(sink, schema)).write  # type: ignore[no-any-return]
        packing = "gzip" if self._packed else None
        sink = enter(pa.output_stream(str(self._path), compression=packing))
        if self._kind == "JSON Lines":
            return lambda table: sink.write(_json_lines(table))
        from pyarrow import csv

        mark = "\t" if self._kind == "TSV" else ","
        options = csv.WriteOptions(delimiter=mark)
        return enter(csv.CSVWriter(sink, schema, write_options=options)).write  # type: ignore[no-any-return]


def _json_lines(table: Any) -> bytes:
    rows = (json.dumps(row, ensure_ascii=False) for row in table.to_pylist())
    return "".join(f"{row}\n" for row in rows).encode()
