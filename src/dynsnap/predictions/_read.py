"""Read predictions from any source."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from dynsnap.errors import InputError, PlanError
from dynsnap.predictions._classes import check_rename, renamed
from dynsnap.predictions._frames import (
    Place,
    Table,
)
from dynsnap.predictions._models import OneModel
from dynsnap.predictions._predictions import Predictions
from dynsnap.predictions._reading import reading
from dynsnap.predictions._schema import ColumnNames
from dynsnap.predictions._slicing import Slicing
from dynsnap.predictions._stream_file import Source, StreamedFile, models_of
from dynsnap.predictions._tables import checked, joined
from dynsnap.predictions._text import listed, on_one_line
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
