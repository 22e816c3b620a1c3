"""Read predictions from a file of any of the formats."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from dynsnap.errors import InputError, PlanError
from dynsnap.predictions._arrow import is_list
from dynsnap.predictions._classes import check_rename, renamed
from dynsnap.predictions._frames import (
    FrameName,
    Place,
    Table,
    as_table,
    is_table,
    slice_columns,
)
from dynsnap.predictions._ids import as_id_column
from dynsnap.predictions._labels import as_slice, class_names_of
from dynsnap.predictions._models import OneModel
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._reading import reading
from dynsnap.predictions._schema import ColumnNames, refuse_absent
from dynsnap.predictions._slicing import Slicing
from dynsnap.predictions._stream_file import Source, StreamedFile, models_of
from dynsnap.predictions._tables import checked, joined
from dynsnap.predictions._text import listed, on_one_line
from dynsnap.predictions._validate import as_float_rows
from dynsnap.predictions.tasks import Task, task_of


def read(
    source: Source,
    *,
    columns: ColumnNames | Mapping[str, Any] | None = None,
    rename: Mapping[str, str] | None = None,
    slices: Slicing | Sequence[str] | None = None,
    task: "str | Task | None" = None,
    **settings: Any,
) -> Predictions:
    """Read predictions from a frame, a dict of arrays, or a file.

    A file is Parquet, Arrow or Feather, CSV, TSV, JSON Lines or NPZ; its ending shows which. A
    frame is one of pandas or polars, an Arrow table, or anything with `__arrow_c_stream__`.

    Columns: `id`; `label` or scores (`score:<class>` columns, or one list column `scores` with the
    class names in the file's metadata under "dynsnap.classes", as a JSON list); `truth` and
    `weight` where known. Another column with at most 50 values is a slice. Files hold class names:
    a whole number in `label` or `truth` is read as its text. The one exception is an NPZ archive
    whose array `positions` is true. Without class names for a list of scores, classes are called
    "0", "1", and so on. Rows without truth are kept.

    Args:
        source: The table; or a file; or a directory, a pattern or a URI of Parquet files, see
            `stream`.
        columns: What the columns are called, where it is not as above: a `ColumnNames`, or a
            mapping such as {"id": "image"}.
        rename: New names for some classes. Two classes that get one name are added up.
        slices: The slices to make, and no others: `region` is a column, `age:10` its ten quantile
            bins, `time:week` the weeks of a time (or `:day`, `:month`), and `region*age:4` every
            combination of two.
        task: What answers are, where they are not classes: "binary", "multilabel", "ranking",
            "regression" or "graded", or a task of `dynsnap.predictions.tasks`.
        settings: What is set of the task, such as `threshold` or `tolerance`.

    Raises:
        FileError: The file cannot be read, or does not hold predictions.
        InputError: The table does not hold predictions.
        PlanError: `rename` names a class that the file does not have.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "new.csv")
        ...     _ = file.write_text("id,truth,label\\n7,cat,dog\\n8,dog,dog\\n")
        ...     print(read(file).classes)
        ('cat', 'dog')
    """
    kind = task_of(task, settings)
    names = ColumnNames.of(columns)
    slicing = Slicing.of(slices)
    if names.many_models and not isinstance(source, OneModel):
        models = models_of(source, names, name="The table")
        if len(models) > 1:
            raise InputError(
                f"There are {len(models)} models: {listed([each.model for each in models])}. Read "
                "them with `dynsnap.predictions.read_models`."
            )
        (source,) = models
    with ExitStack() as until:
        file = StreamedFile.opened(source, names, until, slicing=slicing, task=kind)
        if slicing is not None and not isinstance(slices, Slicing):  # which may have other files
            slicing.refuse_unmet()
        file.check_whole()
        with reading(file.place):
            predictions = checked(joined(file.unchecked()), file.vocabulary)
    check_rename(rename or {}, predictions.classes, where=on_one_line(file.place))
    return renamed(predictions, rename or {})


def as_predictions(
    source: "Predictions | Source",
    columns: ColumnNames | Mapping[str, Any] | None = None,
    slicing: Slicing | None = None,
    *,
    task: "Task | None" = None,
) -> Predictions:
    """Predictions as they are, or with the slices that were asked for; everything else read."""
    if isinstance(source, Predictions):
        return source if slicing is None else slicing.applied(source)
    return read(source, columns=columns, slices=slicing, task=task)


def read_models(
    source: Place | Table,
    *,
    columns: ColumnNames | Mapping[str, Any],
    rename: Mapping[str, str] | None = None,
) -> dict[str, Predictions]:
    """The predictions of every model in a table that holds several.

    Args:
        source: As for `read`.
        columns: With `model`, the column that names the model of a row; or with `labels`, the
            columns of labels, one for each model, oldest first.
        rename: New names for some classes.

    Example:
        >>> table = {"id": [7, 8], "truth": ["cat", "dog"], "v1": ["cat", "cat"],
        ...          "v2": ["cat", "dog"]}
        >>> found = read_models(table, columns={"labels": ["v1", "v2"]})
        >>> {name: each.names_of(each.labels).tolist() for name, each in found.items()}
        {'v1': ['cat', 'cat'], 'v2': ['cat', 'dog']}
    """
    names = ColumnNames.of(columns)
    if not names.many_models:
        raise PlanError(
            "Name the column of models (`model`), or those of labels (`labels`), in `columns`."
        )
    models = models_of(source, names, name="The table")
    return {each.model: read(each, columns=names, rename=rename) for each in models}


def from_frame(
    frame: Table,
    *,
    id: str,  # noqa: A002  the role is called so
    truth: str | None,
    label: str | None,
    scores: str | Sequence[Any] | Mapping[Any, Any] | None,
    weight: str | None,
    slices: Sequence[str] | None,
) -> Predictions:
    """See `Predictions.from_frame`."""
    if isinstance(frame, str | Path) or not is_table(frame):
        raise InputError(
            f"`from_frame` takes a frame, an Arrow table or a dict of arrays, got "
            f"{type(frame).__name__}. `dynsnap.read` takes files too."
        )
    plain = ColumnNames()
    table = as_table(frame, plain)
    given = {"id": id, "truth": truth, "label": label, "weight": weight}
    roles: dict[str, str] = {role: str(name) for role, name in given.items() if name is not None}
    with reading(FrameName("The frame")):
        for role, name in roles.items():
            refuse_absent(table.schema, name, role=role)
        if scores is not None:
            if isinstance(scores, str):  # a column with a role of its own is no score
                own = set(roles.values())
                scores = _scores_after(scores, table, own) or scores
            table, more = _with_scores(table, scores, plain.score_prefix)
            roles |= more
        if slices is not None:
            wanted = [str(name) for name in slices]
            for name in wanted:
                refuse_absent(table.schema, name, role="slice")
            names = ColumnNames.of(roles)
            own = {*names.reserved, *wanted}
            kept = [
                name
                for name in table.column_names
                if name in own or name.startswith(names.score_prefix)
            ]
            table = table.select(kept)
    return read(table, columns=ColumnNames.of(roles))


def _scores_after(prefix: str, table: pa.Table, others: Collection[str]) -> dict[str, str]:
    """The columns of scores with this prefix, by class, where others with it are something else."""
    if prefix in table.column_names or not any(name.startswith(prefix) for name in others):
        return {}
    return {
        name.removeprefix(prefix): name
        for name in table.column_names
        if name.startswith(prefix) and name not in others
    }


def _with_scores(
    table: pa.Table, scores: str | Sequence[Any] | Mapping[Any, Any], prefix: str
) -> tuple[pa.Table, dict[str, str]]:
    """The table with its scores where they are looked for, and the roles that name them."""
    if isinstance(scores, str):
        if scores in table.column_names and is_list(table.schema.field(scores).type):
            return table, {"scores": scores}
        if not any(name.startswith(scores) for name in table.column_names):
            refuse_absent(table.schema, scores, role="scores")
        return table, {"score_prefix": scores}
    if not isinstance(scores, Iterable):
        raise InputError(
            f"`scores` must be a prefix, a list of columns, a mapping of classes to columns or a "
            f"column of lists, got {scores!r}."
        )
    given = scores if isinstance(scores, Mapping) else {name: name for name in scores}
    classes = class_names_of(list(given), what="scores")
    columns = [str(name) for name in given.values()]
    for name in columns:
        refuse_absent(table.schema, name, role="scores")
    new = dict(zip(columns, classes, strict=True))
    if len(new) < len(columns):
        raise InputError("`scores` names one column for two classes. Give each class its own.")
    # Other columns that look like scores are none: these were named.
    kept = [name for name in table.column_names if name in new or not name.startswith(prefix)]
    table = table.select(kept)
    # Scores keep the order in which they were named, as the columns of predict_proba do.
    names = [name for name in kept if name not in new] + columns
    return table.select(names).rename_columns(
        [prefix + new[name] if name in new else name for name in names]
    ), {}


def from_arrays(
    ids: Any,
    proba: Any,
    classes: Any,
    truth: Any,
    *,
    labels: Any,
    weights: Any,
    slices: Any,
    positions: bool | None,
) -> Predictions:
    """See `Predictions.from_arrays`."""
    names = class_names_of(classes, what="classes")
    id_column = as_id_column(ids)
    columns: dict[str, Any] = {"id": id_column, "classes": names, "positions": positions}
    if proba is not None:
        rows = as_float_rows(proba)
        if rows.ndim == 1:
            raise InputError(
                "`proba` has one number per input. Hand in a column for each class, as "
                "`predict_proba` gives them: not predict_proba(X)[:, 1], but predict_proba(X)."
            )
        if rows.shape != (len(id_column), len(names)):
            raise InputError(
                f"`proba` must be (inputs, classes) = ({len(id_column)}, {len(names)}), but has "
                f"the shape {rows.shape}."
            )
        columns["scores"] = rows
    columns |= {
        name: values
        for name, values in (("truth", truth), ("label", labels), ("weight", weights))
        if values is not None
    }
    made = read(columns)
    if slices is None:
        return made
    own = slice_columns(slices, made.id_column)
    return changed(
        made,
        slices={name: as_slice(values, name=name, rows=len(made)) for name, values in own.items()},
    )
