"""Tables with the predictions of several models: a row, or a column, for each.

A table is *long* where a column names the model of a row, and *wide* where every model has a column
of labels. Either way one model of it is read as a file of its own would be, a batch at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dynsnap.errors import InputError
from dynsnap.predictions._arrow import is_list, unpacked
from dynsnap.predictions._digest import Verification
from dynsnap.predictions._labels import encoded
from dynsnap.predictions._schema import ColumnNames
from dynsnap.predictions._text import check_name, listed, shown
from dynsnap.predictions._vocabulary import Batches

MOST_MODELS = 200  # each is compared with every other one


class OneModel(NamedTuple):
    """The predictions of one model in a table of several.

    Attributes:
        source: The table: a frame, or the place of a file.
        model: The model.
        column: The column that names models, or this one's column of labels.
        wide: Whether each model has a column.
        role: What that column is called elsewhere, where answers are no classes.
    """

    source: Any
    model: str
    column: str
    wide: bool
    role: str = ""

    def __str__(self) -> str:
        return self.model


def models_in(source: Batches, columns: ColumnNames) -> list[str]:
    """The models of a table, as they first come; in a wide one, as `columns` has them."""
    wanted = columns.labels or (columns.model,)
    names = source.schema.names
    for name in wanted:
        if name not in names:
            raise InputError(
                f"There is no column {shown(name)}; the columns are {listed(names, most=12)}. Name "
                "the column of models with `--model-column`, or those of labels with "
                "`--label-columns` (in Python: `ColumnNames(model=..., labels=...)`)."
            )
    if columns.labels:
        return list(columns.labels)
    assert columns.model is not None
    found: dict[str, None] = {}
    missing = 0
    for batch in source.batches([columns.model]):
        some, codes = encoded(batch.column(0))
        used, first = np.unique(codes[codes >= 0], return_index=True)
        found |= {some[used[place]]: None for place in np.argsort(first)}
        missing += int((codes < 0).sum())
        if len(found) > MOST_MODELS:
            raise InputError(
                f"The column {shown(columns.model)} names more than {MOST_MODELS} models, such as "
                f"{listed(list(found), most=2)}. Is it the column of models?"
            )
    if missing:
        raise InputError(
            f"{shown(columns.model)} is missing for {missing:,} rows. Drop those rows."
        )
    if not found:
        raise InputError("There are no rows.")
    return [check_name(name, kind="model") for name in found]


def one_model(source: Batches, chosen: OneModel, columns: ColumnNames) -> Batches:
    """The rows or the column of one model, as a table of its own."""
    if chosen.wide:
        return _ModelColumn(source, chosen.column, columns, chosen.role)
    return _ModelRows(source, chosen.column, chosen.model)


@dataclass(frozen=True, slots=True, eq=False)
class _ModelRows:
    """The rows of one model in a long table."""

    source: Batches
    column: str
    model: str

    @property
    def schema(self) -> pa.Schema:
        schema = self.source.schema
        return schema.remove(schema.get_field_index(self.column))

    @property
    def verification(self) -> Verification:
        return self.source.verification

    def batches(self, columns: Sequence[str], /) -> Iterator[pa.RecordBatch]:
        for batch in self.source.batches([*columns, self.column]):
            names, codes = encoded(batch.column(len(columns)))
            rows = np.flatnonzero(codes == names.index(self.model) if self.model in names else [])
            if len(rows):
                chosen = pa.array(rows)
                every = (unpacked(batch.column(place)) for place in range(len(columns)))
                found = [column.take(chosen) for column in every]
                yield pa.RecordBatch.from_arrays(found, names=list(columns))


@dataclass(frozen=True, slots=True, eq=False)
class _ModelColumn:
    """The column of one model in a wide table, under the name that labels have elsewhere."""

    source: Batches
    column: str
    columns: ColumnNames
    role: str = ""

    @property
    def _role(self) -> str:
        if self.role:
            return self.role
        kind = self.source.schema.field(self.column).type
        return self.columns.scores if is_list(kind) else self.columns.label

    @property
    def schema(self) -> pa.Schema:
        aside = {*self.columns.labels, self.columns.label, self._role} - {self.column}
        every = (field for field in self.source.schema if field.name not in aside)
        fields = [
            field.with_name(self._role) if field.name == self.column else field for field in every
        ]
        return pa.schema(fields, metadata=self.source.schema.metadata)

    @property
    def verification(self) -> Verification:
        return self.source.verification

    def batches(self, columns: Sequence[str], /) -> Iterator[pa.RecordBatch]:
        role = self._role
        wanted = [self.column if name == role else name for name in columns]
        for batch in self.source.batches(wanted):
            yield batch.rename_columns(list(columns))
