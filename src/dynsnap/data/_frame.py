"""Tables whose columns have names: numbers, categories and texts, as models of frames take them."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from dynsnap._types import AnyArray, Floats, Labels
from dynsnap._untrusted import AnyOf, Flag, ListOf, Number, OneOf, Schema, Table, Text
from dynsnap.errors import InputError, one_line, some_of

Kind: TypeAlias = Literal["number", "category", "text"]
Category: TypeAlias = str | int | float | bool
_WORDS: Mapping[Kind, str] = {"number": "numbers", "category": "categories", "text": "texts"}
_MOST_COLUMNS, _MOST_CATEGORIES = 1_000_000, 1_000_000
_SHOWN = 5  # names in a message

# What a file may state of the columns of a frame.
COLUMNS: Schema = ListOf(
    Table(
        {"name": Text(free=True), "kind": OneOf(tuple(_WORDS))},
        {
            "categories": ListOf(
                AnyOf(Flag(), Number(), Text(free=True)), most=_MOST_CATEGORIES, distinct=True
            )
        },
    ),
    most=_MOST_COLUMNS,
)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """What a model was trained to find in a column.

    Attributes:
        name: The column.
        kind: What it holds.
        categories: The values of a categorical column; the position of each is its code.
    """

    name: str
    kind: Kind
    categories: tuple[Category, ...] = ()


FrameType: TypeAlias = tuple[ColumnType, ...]


def frame_type_to_json(columns: FrameType) -> list[dict[str, Any]]:
    """Columns as JSON, in the form that `COLUMNS` checks."""
    return [
        {"name": one.name, "kind": one.kind}
        | ({"categories": list(one.categories)} if one.kind == "category" else {})
        for one in columns
    ]


def frame_type_from_json(found: Sequence[Mapping[str, Any]]) -> FrameType:
    """Columns from JSON that was checked.

    Example:
        >>> frame_type_from_json([{"name": "age", "kind": "number"}])
        (ColumnType(name='age', kind='number', categories=()),)
    """
    columns = tuple(
        ColumnType(one["name"], one["kind"], tuple(one.get("categories", ()))) for one in found
    )
    if len({one.name for one in columns}) < len(columns):
        raise ValueError("two columns of a frame have one name")
    return columns


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The values of one column.

    Attributes:
        kind: What they are.
        values: Numbers; positions in `names`, -1 where there is none; or texts, None where there
            is none.
        names: The categories.
        known: How many of them, from the first, a model may have been trained on.
    """

    kind: Kind
    values: AnyArray
    names: tuple[Category, ...] = ()
    known: int = 0

    @property
    def missing(self) -> AnyArray:
        """Which rows have no value."""
        if self.kind == "category":
            return np.asarray(self.values < 0)
        if self.kind == "text":
            return np.array([value is None for value in self.values], dtype=bool)
        return (
            np.isnan(self.values)
            if self.values.dtype.kind == "f"
            else np.zeros(len(self.values), dtype=bool)
        )


class Frame:
    """Inputs of one row each, in columns that have names.

    It takes rows by position as an array does, so pools, streams and trainers hold it as they hold
    arrays. Categories are positions among names, which later frames keep and add to.

    Example:
        >>> made = Frame({"size": Column("number", np.array([1.0, 2.0])),
        ...               "city": Column("category", np.array([1, -1]), ("Bern", "Oslo"), 2)})
        >>> made.codes
        array([[ 1.,  1.],
               [ 2., nan]])
    """

    ndim = 2

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.columns = dict(columns)
        self._rows = len(next(iter(self.columns.values())).values) if self.columns else 0

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, rows: Any) -> "Frame":
        return Frame({n: replace(c, values=c.values[rows]) for n, c in self.columns.items()})

    def __repr__(self) -> str:
        return f"<Frame: {len(self)} rows, columns {', '.join(self.columns)}>"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.columns)

    @property
    def type(self) -> FrameType:
        """What the columns hold, to be remembered."""
        return tuple(ColumnType(n, c.kind, c.names) for n, c in self.columns.items())

    @property
    def categorical(self) -> tuple[int, ...]:
        """The positions of the categorical columns."""
        kinds = enumerate(self.columns.values())
        return tuple(place for place, one in kinds if one.kind == "category")

    def named(self, *kinds: Kind) -> list[str]:
        """The names of the columns of these kinds."""
        return [name for name, one in self.columns.items() if one.kind in kinds]

    @property
    def missing(self) -> list[str]:
        """The names of the columns in which some row has no value."""
        return [name for name, one in self.columns.items() if one.missing.any()]

    @cached_property
    def codes(self) -> Floats:
        """All columns as numbers: categories as positions, NaN where there is none.

        A category that no model was trained on is NaN, too.
        """
        if texts := self.named("text"):
            raise InputError(
                f"{columns_in_words(texts, starts=True)} {_hold(texts)} texts, which only a "
                "Pipeline can turn into numbers. Make them categories (pandas: "
                "`astype('category')`), or put an encoder before the model."
            )
        made = np.empty(self.shape, dtype=np.float64)
        for place, one in enumerate(self.columns.values()):
            if one.kind == "category":
                known = (one.values >= 0) & (one.values < one.known)
                made[:, place] = np.where(known, one.values, np.nan)
            else:
                made[:, place] = one.values
        return made

    @cached_property
    def pandas(self) -> Any:
        """The same as a frame of pandas, which scikit-learn's transformers take by name."""
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError as error:
            raise InputError(
                "Columns are handed to scikit-learn's Pipeline as a frame of pandas, which is not "
                "installed. Install it with: pip install pandas"
            ) from error

        def series(one: Column) -> Any:
            if one.kind == "category":
                return pd.Categorical.from_codes(one.values, categories=list(one.names))
            if one.kind == "text":  # NaN is what encoders and imputers take for no value
                found = [np.nan if value is None else value for value in one.values]
                return pd.Series(found, dtype=object)
            return one.values

        return pd.DataFrame({name: series(one) for name, one in self.columns.items()})

    def join(self, other: "Frame") -> "Frame":
        """These rows, then those of the other; all categories of both are known."""
        other = other.conformed(self.type)

        def under(first: Column, second: Column) -> Column:
            values = np.concatenate([first.values, second.values])
            return replace(second, values=values, known=len(second.names))

        columns = self.columns.items()
        return Frame({name: under(one, other.columns[name]) for name, one in columns})

    def conformed(self, columns: FrameType) -> "Frame":
        """The same rows with the columns that a model was trained on, taken by name.

        Categories keep the positions that they had. New ones come after them, and count as unknown.

        Raises:
            InputError: A column is missing, is new, or holds something else.
        """
        check_columns([one.name for one in columns], list(self.columns))
        return Frame({one.name: _conformed(self.columns[one.name], one) for one in columns})

    def with_categories(self, names: Sequence[str]) -> "Frame":
        """The same with these columns as categories, whatever they are."""

        def made(name: str, one: Column) -> Column:
            if name not in names or one.kind == "category":
                return one
            values = [_plain(value) for value in one.values]
            there = [value for value, gone in zip(values, one.missing, strict=True) if not gone]
            known = tuple(sorted(set(there), key=lambda value: (isinstance(value, str), value)))
            found = _codes(values, known)
            return Column("category", found, known, len(known))

        return Frame({name: made(name, one) for name, one in self.columns.items()})

    def contents(self) -> Iterator[bytes]:
        """What each row holds, whatever its numbers' types and its categories' codes."""
        numbers = [one.values for one in self.columns.values() if one.kind == "number"]
        rows = np.zeros((len(self), len(numbers)), dtype=np.float32)
        for place, values in enumerate(numbers):
            rows[:, place] = values
        rows = np.where(np.isnan(rows), np.float32(np.nan), rows + np.float32(0))
        words: list[list[bytes]] = []
        for one in self.columns.values():
            if one.kind == "category":
                names = [*(str(name).encode() for name in one.names), b""]  # -1 is the last
                words.append([names[code] for code in one.values.tolist()])
            elif one.kind == "text":
                words.append([b"" if text is None else text.encode() for text in one.values])
        for row, *texts in zip(rows, *words, strict=True) if words else ((row,) for row in rows):
            yield row.tobytes() + b"\x00".join([b"", *texts])


def is_frame(inputs: Any) -> bool:
    """Whether this is a frame of pandas or polars, or an Arrow table.

    Example:
        >>> is_frame(np.zeros((2, 2)))
        False
    """
    pandas = sys.modules.get("pandas")  # a frame of it exists only if it was imported
    if pandas is not None and isinstance(inputs, pandas.DataFrame):
        return True
    named = hasattr(inputs, "column_names") or hasattr(inputs, "columns")
    return isinstance(inputs, Frame) or (named and hasattr(inputs, "__arrow_c_stream__"))


def is_numeric(inputs: Any) -> bool:
    """Whether the types of a frame's columns are all numpy's numbers; of pandas and polars."""
    kinds = getattr(inputs, "dtypes", None)
    if kinds is None:
        return False
    return all(
        kind.kind in "biuf" if isinstance(kind, np.dtype) else bool(_of_polars(kind))
        for kind in kinds
    )


def _of_polars(kind: Any) -> bool:
    numeric = getattr(kind, "is_numeric", None)
    return callable(numeric) and (numeric() or str(kind) == "Boolean")


def as_frame(inputs: Any) -> Frame:
    """A frame of pandas or polars, or an Arrow table, as a `Frame`.

    Raises:
        InputError: A column holds neither numbers nor categories nor texts.
    """
    import pyarrow as pa

    if isinstance(inputs, Frame):
        return inputs
    pandas = sys.modules.get("pandas")
    of_pandas = pandas is not None and isinstance(inputs, pandas.DataFrame)
    if of_pandas:
        names = [str(name) for name in inputs.columns]
        _check_distinct(names)
        inputs = inputs.set_axis(names, axis=1)
    try:
        if of_pandas:
            table = pa.Table.from_pandas(inputs, preserve_index=False)
        else:
            table = pa.table(inputs)
    except (pa.ArrowException, TypeError, ValueError) as error:
        # Arrow names the column in a part of its own.
        reason = one_line("; ".join(map(str, error.args))).rstrip(".")
        raise InputError(
            f"The frame cannot be read: {reason}. Give each column one type, and a name of its own."
        ) from error
    return of_arrow(table)


def of_arrow(table: Any) -> Frame:
    """An Arrow table as a frame."""
    names = table.column_names
    _check_distinct(names)
    return Frame({name: _of_arrow(name, table.column(name)) for name in names})


def _check_distinct(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"Two columns are named {twice!r}. Rename one.")


def _of_arrow(name: str, column: Any) -> Column:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # where there are no chunks, or one
            column = column.chunk(0) if column.num_chunks else pa.array([], kind)
        return _of_dictionary(name, column)
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        column = column.cast(pa.float64())
    is_ = pa.types
    if any(fits(column.type) for fits in (is_.is_integer, is_.is_floating, is_.is_boolean)):
        values = np.asarray(column.to_numpy())
        if values.dtype == object:  # truth values with gaps
            values = np.array([np.nan if value is None else float(value) for value in values])
        return Column("number", values)
    if any(fits(kind) for fits in (is_.is_string, is_.is_large_string, is_.is_string_view)):
        return Column("text", np.array(column.to_pylist(), dtype=object))
    raise InputError(
        f"Column {name!r} is {kind}. Models take numbers, categories and texts: make it one of "
        "these, such as the days since a date, or leave it out."
    )


def _of_dictionary(name: str, column: Any) -> Column:
    names = column.dictionary.to_pylist()
    strange = [one for one in names if one is not None and not isinstance(one, Category)]
    if strange:
        raise InputError(
            f"Column {name!r} has categories that are {type(strange[0]).__name__}, such as "
            f"{strange[0]!r}. Categories are texts or numbers: convert them first."
        )
    codes = column.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False).copy()
    if None in names:
        codes[codes == names.index(None)] = -1
        codes = np.where(codes > names.index(None), codes - 1, codes)
        names.remove(None)
    return Column("category", codes, tuple(names), len(names))


def check_columns(expected: Sequence[str], found: Sequence[str]) -> None:
    """Raise InputError, which names them, where columns are missing or new.

    Example:
        >>> check_columns(["age", "city"], ["city", "age"])
    """
    gone = [name for name in expected if name not in found]
    new = [name for name in found if name not in expected]
    if not gone and not new:
        return
    said = [f"{columns_in_words(gone)} {'is' if len(gone) == 1 else 'are'} missing"] if gone else []
    said += [f"{columns_in_words(new)} {'is' if len(new) == 1 else 'are'} new"] if new else []
    raise InputError(
        f"The columns changed: {', and '.join(said)}. The model was fitted with "
        f"{', '.join(map(repr, expected[:20]))}{', ...' if len(expected) > 20 else ''}: bring "
        "these, or start anew with `fit`."
    )


def columns_in_words(names: Sequence[str], *, starts: bool = False) -> str:
    """Columns as a message names them.

    Example:
        >>> columns_in_words(["age", "city"])
        "columns 'age', 'city'"
    """
    word = "Column" if starts else "column"
    return f"{word}{'s' * (len(names) > 1)} {some_of(names, _SHOWN, show=repr)}"


def _hold(names: Sequence[str]) -> str:
    return "holds" if len(names) == 1 else "hold"


def _conformed(column: Column, wanted: ColumnType) -> Column:
    """A column as it was in training."""
    if wanted.kind == "category":
        return _as_category(column, wanted)
    if column.kind == wanted.kind:
        return column
    if column.missing.all():  # of no kind at all
        rows = len(column.values)
        nothing = np.full(rows, np.nan) if wanted.kind == "number" else np.full(rows, None)
        return Column(wanted.kind, nothing)
    if wanted.kind == "text" and column.kind == "category":
        texts = [str(name) for name in column.names]
        values = [None if code < 0 else texts[code] for code in column.values.tolist()]
        return Column("text", np.array(values, dtype=object))
    raise InputError(
        f"Column {wanted.name!r} held {_WORDS[wanted.kind]} when the model was fitted, and holds "
        f"{_WORDS[column.kind]} now. Bring what it was fitted with, or start anew with `fit`."
    )


def _as_category(column: Column, wanted: ColumnType) -> Column:
    known = wanted.categories
    if known and all(isinstance(name, str) for name in known) and _numeric(column):
        raise InputError(
            f"Column {wanted.name!r} held categories such as {known[0]!r} when the model was "
            "fitted, and holds numbers now. Bring what it was fitted with, or start anew with "
            "`fit`."
        )
    if column.kind == "category":
        places = _codes(list(column.names), known)
        new = tuple(name for name, at in zip(column.names, places, strict=True) if at < 0)
        places[places < 0] = len(known) + np.arange(len(new))
        # The last is that of the position -1: no category.
        values = np.append(places, -1)[column.values]
        return Column("category", values, (*known, *new), len(known))
    given = [_plain(value) for value in column.values]
    there = [value for value, gone in zip(given, column.missing, strict=True) if not gone]
    found = dict.fromkeys(there)
    place = _codes(list(found), known)
    new = tuple(name for name, at in zip(found, place, strict=True) if at < 0)
    places = _codes(given, (*known, *new))
    return Column("category", places, (*known, *new), len(known))


def _numeric(column: Column) -> bool:
    """Whether a column has values, and all of them are numbers."""
    if column.kind == "category":
        names = [column.names[code] for code in np.unique(column.values) if code >= 0]
        return bool(names) and not any(isinstance(name, str) for name in names)
    return column.kind == "number" and not column.missing.all()


def _codes(values: Sequence[Any], names: Sequence[Category]) -> Labels:
    """Each value's position among names, by value or as text; -1 for what is not there."""
    place: dict[Any, int] = {}
    for at, name in enumerate(names):
        if not isinstance(name, str):  # a file of text has numbers as they are written
            place.setdefault(str(name), at)
            if isinstance(name, float) and name.is_integer():
                place.setdefault(str(int(name)), at)
    place |= {name: at for at, name in enumerate(names)}
    return np.array([place.get(value, -1) for value in values], dtype=np.int64)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
