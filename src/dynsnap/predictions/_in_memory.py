"""Predictions from what is in memory: frames and arrays, brought into the shape of a file."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dynsnap.errors import InputError
from dynsnap.predictions._arrow import is_list
from dynsnap.predictions._frames import FrameName, Table, as_table, is_table, slice_columns
from dynsnap.predictions._ids import as_id_column
from dynsnap.predictions._labels import as_slice, class_names_of
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._read import read
from dynsnap.predictions._reading import reading
from dynsnap.predictions._schema import ColumnNames, refuse_absent
from dynsnap.predictions._validate import as_float_rows


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
