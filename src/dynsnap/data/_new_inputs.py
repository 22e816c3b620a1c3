"""Inputs to predict on: read like those of a data set, but their labels may be missing."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap._untrusted import ArrayArchive
from dynsnap.data._arrays import check_meaning, checked_inputs, positions_said
from dynsnap.data._frame import Frame, FrameType, frame_type_from_json, frame_type_to_json
from dynsnap.data._images import IMAGE_SUFFIXES, ImageReader, image_files
from dynsnap.data._sources import SOURCES
from dynsnap.data._tables import TABLE_SUFFIXES, TableFile
from dynsnap.data._texts import json_fields, json_objects, text_array
from dynsnap.errors import DataError

_ARRAYS = ("inputs", "labels", "classes", "ids")
_ID = "id"
_LINES = (".jsonl", ".jsonl.gz")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NewInputs:
    """Inputs that a classifier has not seen.

    Attributes:
        inputs: One per row, as a pool holds them.
        ids: A name for each row.
        labels: The true class names, None where they are not known.
    """

    inputs: Any
    ids: AnyArray
    labels: AnyArray | None = None


def read_inputs(
    path: str | Path,
    *,
    label: str = "label",
    text: str | None = None,
    features: Sequence[str] | None = None,
    id: str | None = None,  # noqa: A002  the column is called so
    size: tuple[int, int] | None = None,
    grey: bool = False,
    frame: Sequence[Mapping[str, Any]] | None = None,
    allow_missing: bool = False,
) -> NewInputs:
    """Inputs from an NPZ file, a CSV or Parquet table, JSON lines, or a folder of images.

    Options that do not apply to the kind of file are ignored, so all options of a data set can be
    passed.

    Args:
        path: An NPZ file with `inputs` (and `labels`, `ids`); a table; JSON lines; or a folder of
            images, which lie in it or in one subfolder for each class.
        label: The column of true classes, used where it is there.
        text: The column of texts, where the inputs are texts.
        features: Else the columns of numbers; by default all that have no other role.
        id: The column of ids. By default rows are numbered; but if no columns are named, a column
            `id` of a table holds ids and is no feature.
        size: (height, width) to bring images to.
        grey: Read images as one channel.
        frame: Else the columns of numbers, categories and texts that a model was trained on, as
            `frame_type_to_json` gives them.
        allow_missing: Accept missing numbers, as NaN.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "new.csv"
        >>> _ = file.write_text("width,height\\n1,2\\n3,4\\n")
        >>> read_inputs(file).inputs
        array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    path = Path(path)
    if path.is_dir():
        found = _of_images(path, size, grey)
    elif path.suffix == ".npz":
        found = _of_arrays(path)
    elif path.name.endswith(_LINES):
        found = _of_lines(path, label, text or "text", id)
    elif path.name.endswith(TABLE_SUFFIXES):
        columns = None if frame is None else frame_type_from_json(frame)
        found = _of_table(path, label, text, features, id, columns, allow_missing)
    else:
        known = ", ".join((".npz", *TABLE_SUFFIXES, *_LINES))
        raise DataError(f"{path} must be a folder of images, or end in one of {known}.")
    _check_rows(found, path)
    return found


def _check_rows(found: NewInputs, path: Path) -> None:
    rows = len(found.inputs)
    if not rows:
        raise DataError(f"{path} holds no inputs: it has no rows.")
    for name, column in {"ids": found.ids, "labels": found.labels}.items():
        if column is not None and column.shape != (rows,):
            raise DataError(
                f"{path}: `{name}` must hold one value for each of the {rows:,} inputs, but has "
                f"the shape {column.shape}."
            )


def reading_options(
    source: str, path: Path | None, options: Mapping[str, Any], *, inputs: Any = None
) -> dict[str, Any]:
    """The options that read new inputs as a source reads its own.

    For a table the feature columns are named, so that columns in another order are no other inputs.

    Args:
        source: The source.
        path: Where it has its rows.
        options: What it was read with.
        inputs: What it gave: a frame states its columns itself.
    """
    kept = ("label", "text", "features", "id", "size", "grey", "allow_missing")
    found = {name: options[name] for name in kept if options.get(name) is not None}
    if SOURCES.find(source).texts:
        found.setdefault("text", "text")
    if isinstance(inputs, Frame):
        found.pop("features", None)
        return found | {"frame": frame_type_to_json(inputs.type)}
    if source == "table" and path is not None and not {"text", "features"} & found.keys():
        roles = {"label": "label", **found}
        taken = {roles["label"], roles.get("id"), options.get("time"), *options.get("slices", ())}
        table = TableFile(path, [roles["label"]])
        found["features"] = _feature_columns(table.columns, taken)
    return found


def _feature_columns(columns: Sequence[str], taken: Collection[str | None]) -> list[str]:
    # An index that pandas wrote down is a row number, not a feature.
    return [c for c in columns if c not in taken and not c.startswith("__index_level_")]


def _of_arrays(path: Path) -> NewInputs:
    with ArrayArchive(path) as archive:
        if "inputs" not in archive.headers:
            found = sorted(archive.headers)
            raise DataError(f"{path} must hold the array `inputs`, but has {found}.")
        arrays = {name: archive.read(name) for name in _ARRAYS if name in archive.headers}
        positions = positions_said(archive, path)
    rows = checked_inputs(arrays["inputs"], str(path))
    labels = arrays.get("labels")
    numbered = labels is not None and "classes" in arrays and labels.dtype.kind in "iu"
    if labels is not None and numbered and positions is not False:
        classes = arrays["classes"]
        if positions is None:
            check_meaning(classes.astype(str).tolist(), path)
        outside = labels[(labels < 0) | (labels >= len(classes))]
        if len(outside):
            raise DataError(
                f"{path}: `labels` must be positions among its {len(classes)} classes, from 0 on, "
                f"but {outside[0]} is not. If they are class names, leave `classes` out."
            )
        labels = classes[labels]
    return NewInputs(
        inputs=rows,
        ids=arrays.get("ids", np.arange(len(rows))),
        labels=None if labels is None else labels.astype(str).astype(object),
    )


def _of_table(
    path: Path,
    label: str,
    text: str | None,
    features: Sequence[str] | None,
    id_column: str | None,
    columns: FrameType | None,
    allow_missing: bool,
) -> NewInputs:
    words = [name for name in (text, id_column) if name is not None]
    if columns is not None and text is None:
        words += [one.name for one in columns if one.kind != "number"]
    table = TableFile(path, words)
    nameless = text is None and features is None and columns is None
    numbered = nameless and id_column is None and _ID in table.columns
    if numbered:  # a model of arrays would take it for a number like the others
        id_column = _ID
        words.append(_ID)
    labelled = label in table.columns
    if numbered or labelled:  # again, so that ids and labels stay as they are written
        table = TableFile(path, [*words, label] if labelled else words)
    if features is None:
        features = _feature_columns(table.columns, {*words, label})
    rows: Any
    if text is not None:
        rows = table.texts(text)
    elif columns is not None:
        rows = table.as_trained(columns, allow_missing)
    else:
        rows = table.numbers(features, allow_missing)
    return NewInputs(
        inputs=rows,
        ids=np.arange(len(rows)) if id_column is None else table.texts(id_column),
        labels=table.texts(label) if labelled else None,
    )


def _of_lines(path: Path, label: str, text: str, id_field: str | None) -> NewInputs:
    labelled = any(label in row for _, row in itertools.islice(json_objects(path), 1))
    fields = [text, *([label] if labelled else []), *([id_field] if id_field else [])]
    found = json_fields(path, fields, text)
    return NewInputs(
        inputs=text_array(found[text]),
        ids=np.arange(len(found[text])) if id_field is None else np.array(found[id_field]),
        labels=text_array(found[label]) if labelled else None,
    )


def _of_images(folder: Path, size: tuple[int, int] | None, grey: bool) -> NewInputs:
    flat = sorted(
        file
        for file in folder.iterdir()
        if file.is_file() and file.suffix.lower() in IMAGE_SUFFIXES
    )
    files = flat or image_files(folder)[0]
    names = [str(file.relative_to(folder)) for file in files]
    return NewInputs(
        inputs=ImageReader(None if size is None else (size[0], size[1]), grey).read(files),
        ids=np.array(names),
        labels=None if flat else text_array([file.parent.name for file in files]),
    )
