"""Writes all predictions of a study to two Parquet files: see `_published` for what they hold."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dynsnap import _files
from dynsnap._types import Labels
from dynsnap.errors import FileError
from dynsnap.predictions._digest import BLANK, DIGEST_KEY, digest_of, seal
from dynsnap.predictions._keys import PredictionKey
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._published import INPUTS, LABELS, SCORES, SLICE
from dynsnap.predictions._read import read
from dynsnap.predictions._schema import PUBLISHED_KEY, metadata_of
from dynsnap.predictions._stored import Address, stored_places
from dynsnap.predictions._text import on_one_line
from dynsnap.predictions._write import short

_ROWS = 1 << 20  # of a row group of labels
_PACKING: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 19,
    "write_page_checksum": True,
}


def write_published(
    source: Path, folder: Path, *, scored: Callable[[PredictionKey], bool]
) -> tuple[Path, ...]:
    """Write all predictions of a study to two files of a folder, and return these.

    Args:
        source: A run folder, or published results.
        folder: Where the files go; it must exist.
        scored: Whose scores are kept, in half precision; of the others labels are enough.

    Raises:
        FileError: Predictions are of different inputs or classes, or a file cannot be written.
    """
    found = stored_places(source)
    if not found:
        return ()
    keys = sorted(found)
    known: dict[str, tuple[Path | Address, Predictions]] = {}
    labels: dict[PredictionKey, Labels] = {}
    with ExitStack() as until:
        scores = _ScoreWriter(folder / SCORES, until)
        for key in keys:
            place = found[key]
            said = read(str(place))
            first, base = known.setdefault(key.inputs, (place, said))
            _check_alike(base, said, f"{on_one_line(place)} and {on_one_line(first)}")
            labels[key] = said.labels
            if scored(key) and said.scores is not None:
                scores.add(key, said)
        digest = scores.finish()
    bases = [known[name][1] for name in INPUTS if name in known]
    if len({base.classes for base in bases}) > 1:
        raise FileError(f"{folder}: test inputs and new classes name different classes.")
    about = {
        "version": 1,
        "rows": {name: len(known[name][1]) if name in known else 0 for name in INPUTS},
        "labels": [str(key) for key in keys],
        "scores": [str(key) for key in scores.keys],
        "scores_digest": digest,
    }
    _write_labels(folder / LABELS, known, labels, about)
    return (folder / LABELS, folder / SCORES) if scores.keys else (folder / LABELS,)


class _ScoreWriter:
    """Writes the scores of one ensemble after another; no file where there are none."""

    def __init__(self, path: Path, until: ExitStack) -> None:
        self.keys: list[PredictionKey] = []
        self._path, self._until = path, until
        self._aside: Path | None = None
        self._writer: Any = None

    def add(self, key: PredictionKey, said: Predictions) -> None:
        assert said.scores is not None
        flat = pa.array(short(said.scores).reshape(-1))
        address = pa.array([str(key)] * len(said)).dictionary_encode()
        table = pa.table(
            {
                "address": address,
                "scores": pa.FixedSizeListArray.from_arrays(flat, len(said.classes)),
            },
            metadata=metadata_of(said.classes) | {PUBLISHED_KEY: b"{}", DIGEST_KEY: BLANK},
        )
        if self._writer is None:
            import pyarrow.parquet as pq

            self._aside = self._until.enter_context(_files.replacing(self._path))
            self._writer = pq.ParquetWriter(
                self._aside, table.schema, use_dictionary=["address"], **_PACKING
            )
        # One row group, however long it is: reading it touches nothing else.
        self._writer.write_table(table, row_group_size=max(1, len(table)))
        self.keys.append(key)

    def finish(self) -> str | None:
        """Close the file; its digest shows whether labels belong to it."""
        if self._aside is None:
            _files.remove(self._path)
            return None
        self._writer.close()
        seal(self._aside, "Parquet")
        return digest_of(self._aside, "Parquet")


def _write_labels(
    path: Path,
    known: Mapping[str, tuple[Path | Address, Predictions]],
    labels: Mapping[PredictionKey, Labels],
    about: Mapping[str, Any],
) -> None:
    import pyarrow.parquet as pq

    bases = {name: known[name][1] for name in INPUTS if name in known}
    first = next(iter(bases.values()))
    ids = pa.chunked_array([base.id_column for base in bases.values()]).combine_chunks()
    rows = [np.full(len(base), INPUTS.index(name)) for name, base in bases.items()]
    columns: dict[str, pa.Array] = {"id": ids, "inputs": _coded(np.concatenate(rows), INPUTS)}
    if all(base.truth is not None for base in bases.values()):
        truth = np.concatenate([np.asarray(base.truth) for base in bases.values()])
        columns["truth"] = _coded(truth, first.classes)
    if all(base.weights is not None for base in bases.values()):
        columns["weight"] = pa.array(np.concatenate([base.weights for base in bases.values()]))
    for name in dict.fromkeys(name for base in bases.values() for name in base.slices):
        pieces = [_slice(base, name) for base in bases.values()]
        columns[SLICE + name] = pa.chunked_array(pieces).combine_chunks().dictionary_encode()
    by_column: dict[str, dict[str, Labels]] = {}
    for key, said in labels.items():
        by_column.setdefault(key.column, {})[key.inputs] = said
    for column, parts in by_column.items():
        none = {name: np.full(len(base), -1) for name, base in bases.items()}
        codes = [parts.get(name, none[name]) for name in bases]
        columns[column] = _coded(np.concatenate(codes), first.classes)
    text = json.dumps(about, separators=(",", ":"), ensure_ascii=False).encode()
    metadata = metadata_of(first.classes) | {PUBLISHED_KEY: text, DIGEST_KEY: BLANK}
    table = pa.table(columns, metadata=metadata)
    repeated = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    with _files.replacing(path) as aside:
        pq.write_table(table, aside, row_group_size=_ROWS, use_dictionary=repeated, **_PACKING)
        seal(aside, "Parquet")


def _coded(codes: Any, names: Sequence[str]) -> pa.DictionaryArray:
    """Positions in some names, -1 for none."""
    codes = np.asarray(codes, np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(names))


def _slice(base: Predictions, name: str) -> pa.Array:
    if (column := base.slices.get(name)) is None:
        return pa.nulls(len(base), pa.string())
    return _coded(column.codes, column.values).dictionary_decode().cast(pa.string())


def _check_alike(base: Predictions, said: Predictions, names: str) -> None:
    if base is said:
        return
    different = [
        what
        for what, same in (
            ("ids", base.id_column.equals(said.id_column)),
            ("classes", base.classes == said.classes),
            ("truth", _same(base.truth, said.truth)),
            ("weights", _same(base.weights, said.weights)),
            ("slices", _slices(base) == _slices(said)),
        )
        if not same
    ]
    if different:
        raise FileError(
            f"{names} are not of one study: their {' and '.join(different)} differ. Run the study "
            "again, and publish it then."
        )


def _same(one: Any, other: Any) -> bool:
    return (one is None) == (other is None) and (one is None or np.array_equal(one, other))


def _slices(said: Predictions) -> dict[str, tuple[tuple[str, ...], bytes]]:
    return {name: (one.values, one.codes.tobytes()) for name, one in said.slices.items()}
