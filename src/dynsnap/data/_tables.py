"""Pools from tables: CSV and Parquet files with a label column."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.data._dataset import DataSet, class_order, numbered, opened, positions
from dynsnap.data._frame import Frame, FrameType, of_arrow
from dynsnap.data._pool import Pool
from dynsnap.data._time import in_order, parse_times
from dynsnap.errors import DataError, InputError, PlanError, did_you_mean, one_line

TABLE_SUFFIXES = (".csv", ".csv.gz", ".parquet")


def read_table(
    path: str | Path,
    *,
    test: str | Path | None = None,
    label: str = "label",
    text: str | None = None,
    features: Sequence[str] | None = None,
    id: str | None = None,  # noqa: A002  the column is called so
    slices: Sequence[str] = (),
    categorical: Sequence[str] = (),
    allow_missing: bool = False,
    time: str | None = None,
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
        categorical: Those of the features that are categories, such as texts: boosted trees take
            them as they are, and so does a Pipeline with encoders. The categories of a Parquet file
            need not be named.
        allow_missing: Accept missing numbers, as NaN, and missing categories: boosted trees can use
            them, networks cannot.
        time: The column of times (ISO 8601, dates or timestamps), to grow by time. Rows are then
            put in the order of time, and those that have no label yet are left out, with a note.
    """
    if text is not None and features is not None:
        raise PlanError("`text` and `features` were both named: the inputs are one or the other.")
    if isinstance(categorical, str):
        raise PlanError(f"`categorical` must be a list of columns, got {categorical!r}.")
    words = [name for name in (label, text, id, time, *slices) if name is not None]
    if stray := [name for name in categorical if text is not None or name in words]:
        raise PlanError(f"`categorical` names {stray[0]!r}, which is no feature. Leave it out.")
    if len(set(words)) != len(words):
        raise PlanError(f"A column can have one role only, but these were named: {words}.")
    if time is not None and test is not None:
        raise PlanError("`time` and `test` were both named: by time, later rows are the test set.")
    tables = {"train": TableFile(Path(path), [*words, *categorical])}
    if test is not None:
        tables["test"] = TableFile(Path(test), [*words, *categorical])
    notes = () if time is None else tables["train"].drop_unlabelled(label)
    names = {split: table.texts(label) for split, table in tables.items()}
    classes = class_order(name for column in names.values() for name in column)
    if features is None and text is None:
        features = [name for name in tables["train"].columns if name not in words]
    framed = text is None and tables["train"].framed(features or (), categorical)
    inputs: dict[str, Any] = {
        split: table.texts(text)
        if text is not None
        else table.frame(features or (), categorical, allow_missing)
        if framed
        else table.numbers(features or (), allow_missing)
        for split, table in tables.items()
    }
    if framed and "test" in inputs:
        inputs["test"] = inputs["test"].conformed(inputs["train"].type)
    pools = {
        split: Pool(
            name=split,
            inputs=inputs[split],
            labels=positions(names[split].tolist(), classes, what=split),
            classes=classes,
            ids=numbered(split, len(names[split])) if id is None else table.texts(id),
            slices={column: table.texts(column) for column in slices},
        )
        for split, table in tables.items()
    }
    if time is not None:
        times, said = tables["train"].times(time)
        pools["train"], order = in_order(replace(pools["train"], times=times))
        notes = (*notes, *said, *order)
    return DataSet(train=pools["train"], test=pools.get("test"), notes=notes)


class TableFile:
    """A table in a file, which its messages name."""

    def __init__(self, path: Path, words: Sequence[str]) -> None:
        self.path, self.table = path, read_arrow(path, words)
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

    def times(self, name: str) -> tuple[AnyArray, tuple[str, ...]]:
        """A column of times as datetime64 in UTC, with notes on how it was read."""
        import pyarrow as pa

        column = self.table.column(name)
        if column.null_count:
            raise DataError(
                f"{self._at(name)} has no time in {column.null_count} rows. Fill or drop them."
            )
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            # Arrow keeps a zone beside times that are in UTC.
            moments = column.to_numpy().astype("datetime64[us]")
            return moments, ()
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise DataError(
                f"{self._at(name)} must be timestamps, dates or texts such as "
                f"2013-07-29T15:00:00Z, but is {kind}."
            )
        return parse_times(column.to_pylist(), self._at(name))

    def drop_unlabelled(self, label: str) -> tuple[str, ...]:
        """Leave out rows whose label has not arrived, and note how many these are."""
        import pyarrow.compute as pc

        column = self.table.column(label)
        waiting = pc.is_null(column)
        if str(column.type) in ("string", "large_string"):
            waiting = pc.or_kleene(waiting, pc.equal(column, ""))
            waiting = pc.fill_null(waiting, True)
        count = int(pc.sum(waiting).as_py() or 0)
        if not count:
            return ()
        if count == self.table.num_rows:
            raise DataError(f"{self._at(label)} has no label in any row.")
        self.table = self.table.filter(pc.invert(waiting))
        return (f"{self._at(label)}: {count:,} rows have no label yet and are left out.",)

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

    def framed(self, names: Sequence[str], categorical: Sequence[str]) -> bool:
        """Whether some of these columns are categories."""
        import pyarrow as pa

        if stray := [name for name in categorical if name not in names]:
            raise PlanError(f"`categorical` names {stray[0]!r}, which is not one of `features`.")
        kinds = {name: self.table.schema.field(name).type for name in names if name in self.columns}
        return bool(categorical) or any(pa.types.is_dictionary(kind) for kind in kinds.values())

    def frame(self, names: Sequence[str], words: Sequence[str], allow_missing: bool) -> Frame:
        """Columns side by side, those of `words` as categories."""
        for name in names:
            self._check(name)
        made = self._filled(of_arrow(self.table.select(list(names)))).with_categories(words)
        if texts := made.named("text"):
            raise DataError(
                f"{self._at(texts[0])} holds texts. Name it in `categorical` if they are "
                "categories, leave it out of `features`, or make it one of `slices`."
            )
        for name in made.named("number"):
            if np.isinf(made.columns[name].values).any():
                raise DataError(f"{self._at(name)} holds numbers that are infinite.")
        if not allow_missing and (gone := made.missing):
            empty = int(made.columns[gone[0]].missing.sum())
            raise DataError(
                f"{self._at(gone[0])} has no value in {empty} rows. Fill or drop them, or set "
                "`allow_missing` for models that can use them."
            )
        return made

    def as_trained(self, columns: FrameType, allow_missing: bool) -> Frame:
        """The columns that a model was trained on, as they were."""
        for one in columns:
            self._check(one.name)
        made = self._filled(of_arrow(self.table.select([one.name for one in columns])))
        made = made.conformed(columns)
        if not allow_missing and (gone := made.missing):
            empty = int(made.columns[gone[0]].missing.sum())
            raise DataError(f"{self._at(gone[0])} has no value in {empty} rows. Fill or drop them.")
        return made

    def _filled(self, frame: Frame) -> Frame:
        """The same with no text where a file of text has nothing between two commas."""
        if self.path.suffix == ".parquet":
            return frame
        nothing: Any = None
        texts = {
            name: replace(one, values=np.where(one.values == "", nothing, one.values))
            for name, one in frame.columns.items()
            if one.kind == "text"
        }
        return Frame(frame.columns | texts)

    def _floats(self, name: str, allow_missing: bool) -> AnyArray:
        import pyarrow as pa

        self._check(name)
        column = self.table.column(name)
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        if not any(fits(column.type) for fits in kinds):
            raise DataError(
                f"{self._at(name)} is {column.type}, not numbers. Name it in `categorical` if it "
                "holds categories; leave it out of `features`, make it one of `slices`, or name it "
                "as `id`, or as `text` if texts are the inputs."
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


def read_arrow(path: Path, words: Sequence[str]) -> Any:
    """The file as an Arrow table, with these columns as text where they come without a type."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from dynsnap.predictions._arrow import bare, combined, is_view
    from dynsnap.predictions._declared import check_declared, check_first_line
    from dynsnap.predictions._text_files import check_separator

    if not path.name.endswith(TABLE_SUFFIXES):
        raise DataError(f"{path} must end in one of {', '.join(TABLE_SUFFIXES)}.")
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
                check_first_line(file.read(1 << 20), mark=",")
            with opened(path) as file:
                table = csv.read_csv(file, convert_options=as_text, parse_options=multiline)
            check_separator(table.column_names, mark=",")
        table.validate(full=True)  # among others, that text is UTF-8
        twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    except (pa.ArrowException, OSError, UnicodeDecodeError, InputError) as error:
        reason = one_line(str(error).strip()).rstrip(".")
        raise DataError(f"Cannot read {path}: {reason}.") from error
    if twice:
        raise DataError(f"{path} has two columns named {twice[0]!r}.")
    # Text in the newer layout, which not every operation takes yet.
    views = [place for place, kind in enumerate(table.schema.types) if is_view(bare(kind))]
    for place in views:
        name = table.column_names[place]
        table = table.set_column(place, name, combined(table.column(place)))
    return table
