"""Pools of texts from JSON lines."""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.data._dataset import DataSet, class_order, numbered, opened, positions
from dynsnap.data._pool import Pool
from dynsnap.errors import DataError, did_you_mean, one_line


def read_jsonl(
    path: str | Path,
    *,
    test: str | Path | None = None,
    label: str = "label",
    text: str = "text",
    id: str | None = None,  # noqa: A002  the field is called so
    slices: Sequence[str] = (),
) -> DataSet:
    """Texts from JSON lines (plain or .gz): one object with a label and a text on each line.

    Args:
        path: The rows to learn from.
        test: The test rows, in a file of the same kind.
        label: The field of class names; whole numbers are taken as text.
        text: The field of texts.
        id: The field of ids, unique in both files; by default rows are numbered.
        slices: Further fields for breakdowns.
    """
    files = {"train": Path(path)} | ({"test": Path(test)} if test is not None else {})
    fields = [label, text, *slices, *([id] if id is not None else [])]
    columns = {split: _fields(file, fields, text) for split, file in files.items()}
    classes = class_order(name for found in columns.values() for name in found[label])
    pools = {
        split: Pool(
            name=split,
            inputs=_objects(found[text]),
            labels=positions(found[label], classes, what=split),
            classes=classes,
            ids=numbered(split, len(found[text])) if id is None else np.array(found[id]),
            slices={name: np.array(found[name]) for name in slices},
        )
        for split, found in columns.items()
    }
    return DataSet(train=pools["train"], test=pools.get("test"))


def _fields(path: Path, names: Sequence[str], text: str) -> dict[str, list[str]]:
    """Fields of JSON lines, as text."""
    found: dict[str, list[str]] = {name: [] for name in names}
    try:
        with opened(path) as handle:
            for number, line in enumerate(handle, start=1):
                if line.strip():
                    row = _object(line, f"{path}, line {number}")
                    for name in names:
                        found[name].append(_word(row, name, f"{path}, line {number}", name == text))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"Cannot read {path}: {one_line(str(error))}.") from error
    if not found[text]:
        raise DataError(f"{path} has no rows.")
    return found


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON: {one_line(str(error))}.") from error
    if not isinstance(row, dict):
        raise DataError(f"{where} is not a JSON object with fields.")
    return row


def _word(row: dict[str, Any], name: str, where: str, text_only: bool) -> str:
    if name not in row:
        raise DataError(f"{where} has no field {name!r}. {did_you_mean(name, row)}")
    value = row[name]
    if not isinstance(value, str) and (text_only or not isinstance(value, int)):
        raise DataError(f"{where}: field {name!r} must be text, but is {type(value).__name__}.")
    return str(value)


def _objects(texts: list[str]) -> AnyArray:
    made = np.empty(len(texts), dtype=object)
    made[:] = texts
    return made
