"""Pools from tables: CSV and Parquet files with a label column."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.data._dataset import DataSet, class_order, numbered, opened, positions
from dynsnap.data._pool import Pool
from dynsnap.errors import DataError, InputError, PlanError, did_you_mean, one_line

_SUFFIXES = (".csv", ".csv.gz", ".parquet")


def read_table(
    path: str | Path,
    *,
    test: str | Path | None = None,
    label: str = "label",
    text: str | None = None,
    features: Sequence[str] | None = None,
    id: str | None = None,  # noqa: A002  the column is called so
    slices: Sequence[str] = (),
    allow_missing: bool = False,
) -> DataSet:
    """A data set from CSV (plain or .gz) or Parquet files.

    Args:
        path: The rows to learn from.
        test: The test rows, in a file with the same columns.
        label: The column of class names; whole numbers are taken as text.
        text: The column of texts, where the inputs are texts.
        features: Else the columns of numbers; by default all that have no other role.
        id: The column of ids, unique in both files; by default rows are numbered.
        slices: Further columns for breakdowns.
        allow_missing: Accept missing numbers, as NaN: boosted trees can use them, networks cannot.
    """
    if text is not None and features is not None:
        raise PlanError("`text` and `features` were both named: the inputs are one or the other.")
    words = [name for name in (label, text, id, *slices) if name is not None]
    if len(set(words)) != len(words):
        raise PlanError(f"A column can have one role only, but these were named: {words}.")
    tables = {"train": _Table(Path(path), words)}
    if test is not None:
        tables["test"] = _Table(Path(test), words)
    names = {split: table.texts(label) for split, table in tables.items()}
    classes = class_order(name for column in names.values() for name in column)
    if features is None and text is None:
        features = [name for name in tables["train"].columns if name not in words]
    pools = {
        split: Pool(
            name=split,
            inputs=table.numbers(features or (), allow_missing)
            if text is None
            else table.texts(text),
            labels=positions(names[split].tolist(), classes, what=split),
            classes=classes,
            ids=numbered(split, len(names[split])) if id is None else table.texts(id),
            slices={column: table.texts(column) for column in slices},
        )
        for split, table in tables.items()
    }
    return DataSet(train=pools["train"], test=pools.get("test"))


class _Table:
    """A table in a file, which its messages name."""

    def __init__(self, path: Path, words: Sequence[str]) -> None:
        self.path, self.table = path, _arrow(path, words)
        # An index that pandas wrote down is a row number, not a feature.
        self.columns: list[str] = [
            name for name in self.table.column_names if not name.startswith("__index_level_")
        ]
        if not self.table.num_rows:
            raise DataError(f"{path} has no rows.")
        for name in words:
            self._check(name)

    def texts(self, name: str) -> AnyArray:
        """A column as text."""
        import pyarrow as pa

        column = self.table.column(name)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        word = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not (word or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise DataError(f"{self._at(name)} must be text or whole numbers, but is {kind}.")
        values = column.cast(kind).cast(pa.string()).to_numpy()
        if empty := sum(value is None for value in values):
            raise DataError(f"{self._at(name)} has no value in {empty} rows. Fill or drop them.")
        return np.asarray(values, dtype=object)

    def numbers(self, names: Sequence[str], allow_missing: bool) -> AnyArray:
        """Columns of numbers side by side, as float32."""
        if not names:
            raise DataError(
                f"{self.path} has no feature columns. For texts, name their column with `text`."
            )
        made = np.empty((self.table.num_rows, len(names)), dtype=np.float32)
        for place, name in enumerate(names):
            made[:, place] = self._floats(name, allow_missing)
        return made

    def _floats(self, name: str, allow_missing: bool) -> AnyArray:
        import pyarrow as pa

        self._check(name)
        column = self.table.column(name)
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        if not any(fits(column.type) for fits in kinds):
            raise DataError(
                f"{self._at(name)} is {column.type}, not numbers. Leave it out of `features`, "
                "make it one of `slices`, or name it as `id`, or as `text` if texts are the inputs."
            )
        values = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float32)
        if np.isinf(values).any():
            raise DataError(f"{self._at(name)} holds numbers beyond float32.")
        if not allow_missing and (empty := int(np.isnan(values).sum())):
            raise DataError(
                f"{self._at(name)} has no number in {empty} rows. Fill or drop them, or set "
                "`allow_missing` for models that can use them."
            )
        return values

    def _check(self, name: str) -> None:
        if name not in self.columns:
            raise DataError(
                f"{self.path} has no column {name!r}. {did_you_mean(name, self.columns)}"
            )

    def _at(self, name: str) -> str:
        return f"{self.path}, column {name!r}"


def _arrow(path: Path, words: Sequence[str]) -> Any:
    """The file as an Arrow table, with these columns as text where they come without a type."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from dynsnap.predictions._declared import check_declared, check_first_line

    if not path.name.endswith(_SUFFIXES):
        raise DataError(f"{path} must end in one of {', '.join(_SUFFIXES)}.")
    if not path.is_file():
        raise DataError(f"There is no file {path}.")
    try:
        if path.suffix == ".parquet":
            check_declared(path)
            table = parquet.read_table(path)
        else:
            # Labels and ids stay as they are written: 007 is not 7.
            as_text = csv.ConvertOptions(column_types={name: pa.string() for name in words})
            multiline = csv.ParseOptions(newlines_in_values=True)
            with opened(path) as file:
                check_first_line(file.read(1 << 20))
            with opened(path) as file:
                table = csv.read_csv(file, convert_options=as_text, parse_options=multiline)
        table.validate(full=True)  # among others, that text is UTF-8
        twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    except (pa.ArrowException, OSError, UnicodeDecodeError, InputError) as error:
        reason = one_line(str(error).strip()).rstrip(".")
        raise DataError(f"Cannot read {path}: {reason}.") from error
    if twice:
        raise DataError(f"{path} has two columns named {twice[0]!r}.")
    return table
