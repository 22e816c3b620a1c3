"""The rows of a project: read, put into periods of time, and cut for one retrain."""

import hashlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import compute as pc
from pyarrow import csv

from dynsnap import _files
from dynsnap._types import AnyArray
from dynsnap.data import load
from dynsnap.data._flights import FEATURES
from dynsnap.data._tables import TABLE_SUFFIXES, read_arrow
from dynsnap.data._time import EXPANDING, length_of_time, parse_times
from dynsnap.errors import DataError, InputError, PlanError, one_line
from dynsnap.predictions._text import check_class_names
from dynsnap.project._settings import Cadence, DataSettings

TRAIN, EVALUATE, TRUTH = "train", "evaluate", "truth.parquet"  # the first two with an ending
NEWEST, EARLIER = "newest", "earlier"
_MONDAY = 3  # the first of January 1970 was a Thursday
_SHOWN = 3  # ids in a message
_WHOLE = re.compile(r"-?\d+")
_WORDS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_null,
)
_SKIPPED = 1000  # periods
_YEARS = np.datetime64("0001-01-02", "us"), np.datetime64("9999-01-01", "us")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rows:
    """Rows in the order of their times.

    Attributes:
        table: All columns, as they were read.
        ids: The id of each row, as text.
        times: When it was, in UTC.
        labels: Its class, None where it is not known yet.
        periods: The number of its period.
        notes: What a reader should know about them.
    """

    table: pa.Table
    ids: AnyArray
    times: AnyArray
    labels: AnyArray
    periods: AnyArray
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cut:
    """The rows of one retrain.

    Attributes:
        period: The newest period with labelled rows, by its first day.
        end: The first day after it.
        skipped: Periods without rows since the retrain before, by their first days.
        train: Which rows are learned from.
        evaluate: Which held-out rows are scored.
        newest: Which rows are of the newest period, held out or not.
    """

    period: str
    end: str
    skipped: tuple[str, ...]
    train: AnyArray
    evaluate: AnyArray
    newest: AnyArray


def read_rows(settings: DataSettings) -> Rows:
    """All rows that have arrived.

    Raises:
        DataError: They cannot be read, an id is there twice, or a time cannot be understood.
    """
    table = _read(settings)
    times = np.asarray(table.column(settings.time).cast(pa.int64()).to_numpy())
    times = times.astype("datetime64[us]")
    ids = _texts(table, settings.id, settings)
    if missing := sum(not each for each in ids):
        raise DataError(f"{settings.path}, column {settings.id!r}: {missing:,} rows have no id.")
    if odd := next((each for each in ids if not each.isprintable()), None):
        raise DataError(
            f"{settings.path}, column {settings.id!r}: the id {one_line(odd)[:40]!r} holds control "
            "characters. Remove them from the ids."
        )
    _refuse_twice(ids, settings)
    notes = []
    if len(times) > 1 and bool((np.diff(times) < np.timedelta64(0)).any()):
        notes.append("Rows were not in the order of their times; they were sorted.")
    order = np.lexsort((ids.astype(str), times))
    labels = np.array([each or None for each in _texts(table, settings.label, settings)], object)
    _check_classes(labels, settings)
    _refuse_two_forms(labels, settings)
    return Rows(
        table=table.take(pa.array(order)),
        ids=ids[order],
        times=times[order],
        labels=labels[order],
        periods=period_numbers(times[order], settings.cadence),
        notes=tuple(notes),
    )


def _texts(table: pa.Table, name: str, settings: DataSettings) -> AnyArray:
    kind = table.schema.field(name).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not any(fits(kind) for fits in _WORDS):
        raise DataError(
            f"{settings.path}, column {name!r} must be text or whole numbers, but is {kind}."
        )
    return np.asarray(table.column(name).cast(pa.string()).to_numpy(), dtype=object)


def _check_classes(labels: AnyArray, settings: DataSettings) -> None:
    """Refuse names here that no prediction file could hold, before anything is trained."""
    try:
        if names := sorted({each for each in labels if each is not None}):
            check_class_names(names)
    except InputError as error:
        raise DataError(f"{settings.path}, column {settings.label!r}: {error}") from error


def _refuse_two_forms(labels: AnyArray, settings: DataSettings) -> None:
    """Refuse 1 beside 1.0: libraries write whole numbers so as soon as one of them is missing."""
    names = {each for each in labels if each is not None}
    if twice := sorted(name for name in names if _WHOLE.fullmatch(name) and f"{name}.0" in names):
        raise DataError(
            f"{settings.path}, column {settings.label!r}: the labels {twice[0]!r} and "
            f"'{twice[0]}.0' would be two classes. Write them in one way."
        )


def _read(settings: DataSettings) -> pa.Table:
    """All files as one table, with the times in UTC."""
    place = settings.path
    if settings.source == "flights":
        return flights_table(settings)
    assert place is not None
    files = [place]
    if place.is_dir():
        named = (file for file in place.iterdir() if file.name.endswith(TABLE_SUFFIXES))
        files = sorted(file for file in named if not file.name.startswith("."))
        if not files:
            raise DataError(f"{place} holds no {' or '.join(TABLE_SUFFIXES)} file yet.")
    elif not place.exists():
        raise DataError(
            f"There is no file or folder {place}, which [data] names as `path`. Put rows there, or "
            "name another place."
        )
    # A file of a week without rows has no types either, and nothing to add.
    filled = [(file, table) for file in files if (table := _checked(file, settings)).num_rows]
    if not filled:
        raise DataError(f"{place} holds no rows yet.")
    files, tables = [file for file, _ in filled], [table for _, table in filled]
    for file, table in filled:
        other = sorted(set(table.column_names) ^ set(tables[0].column_names))
        if other:
            raise DataError(
                f"{file} has other columns than {files[0].name}: {', '.join(other[:5])}. "
                "Give all files the same columns."
            )
        if table.schema.field(settings.time) != tables[0].schema.field(settings.time):
            raise DataError(
                f"{file}, column {settings.time!r}: time zones are mixed: of this file and "
                f"{files[0].name} one has times with a zone, the other without. Write all of them "
                "in UTC."
            )
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(
            f"The files in {place} cannot be put together: {one_line(str(error))}."
        ) from error


def flights_table(settings: DataSettings) -> pa.Table:
    """The flights of 2013 as a table, under the names that the settings give."""
    pool = load("flights", settings.path).train
    names = np.array(pool.classes, dtype=object)
    columns = {
        settings.id: pa.array([str(each) for each in pool.ids.tolist()]),
        settings.time: pa.array(pool.times, pa.timestamp("us")),
        **{name: pool.inputs[:, at] for at, name in enumerate(FEATURES)},
        settings.label: pa.array(names[pool.labels].tolist()),
    }
    return pa.table(columns)


def _checked(file: Path, settings: DataSettings) -> pa.Table:
    table = read_arrow(file, (settings.id, settings.label))
    for name in (settings.id, settings.time, settings.label):
        if name not in table.column_names:
            raise DataError(
                f"{file} has no column {name!r}. Its columns: "
                f"{', '.join(table.column_names[:20])}. Name the column in [data]."
            )
    if not table.num_rows:
        return table
    where = f"{file}, column {settings.time!r}"
    times = _times(table.column(settings.time), where)
    _check_years(times, where)
    named = {settings.time: times}
    named |= {name: _whole(table.column(name)) for name in (settings.id, settings.label)}
    for name, column in named.items():
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _whole(column: Any) -> Any:
    """Whole numbers that were written as floats, since some are missing, as whole numbers."""
    if not pa.types.is_floating(column.type):
        return column
    known = pc.if_else(pc.is_nan(column), None, column)
    try:
        return known.cast(pa.int64())
    except pa.ArrowInvalid:
        return column  # refused with its type


def _times(column: Any, where: str) -> Any:
    """Times in microseconds of UTC; those without a time zone are taken for UTC."""
    if column.null_count:
        raise DataError(f"{where}: {column.null_count:,} rows have no time. Fill or drop them.")
    kind = column.type
    if pa.types.is_timestamp(kind):
        # Nanoseconds are cut off: no period is that short.
        return column.cast(pa.timestamp("us", None if kind.tz is None else "UTC"), safe=False)
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us"))
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"{where} must hold dates or times, but is {kind}.")
    texts = column.to_pylist()
    found, _ = parse_times(texts, where)
    aware = datetime.fromisoformat(texts[0].strip()).tzinfo is not None
    return pa.array(found, pa.timestamp("us")).cast(pa.timestamp("us", "UTC" if aware else None))


def _check_years(times: Any, where: str) -> None:
    """Refuse what no calendar has: it is a mistake of units, and would be the newest period."""
    found = np.asarray(times.cast(pa.int64()).to_numpy(zero_copy_only=False)).astype("M8[us]")
    beyond = np.isnat(found) | (found < _YEARS[0]) | (found >= _YEARS[1])
    if count := int(beyond.sum()):
        raise DataError(
            f"{where}: {count:,} times are not in the years 1 to 9998, such as "
            f"{found[beyond][0]}. Is the unit right?"
        )


def _refuse_twice(ids: AnyArray, settings: DataSettings) -> None:
    known, counts = np.unique(ids.astype(str), return_counts=True)
    if len(twice := known[counts > 1]):
        some = ", ".join(one_line(each)[:40] for each in twice[:_SHOWN])
        raise DataError(
            f"{settings.path}: {len(twice):,} ids are there more than once, such as {some}. Give "
            "every row an id of its own."
        )


def period_numbers(times: AnyArray, cadence: Cadence) -> AnyArray:
    """The number of the period that each time is in.

    Example:
        >>> times = np.array(["2013-05-05", "2013-05-06", "2013-05-12"], dtype="datetime64[us]")
        >>> numbers = period_numbers(times, Cadence("week"))
        >>> (numbers - numbers[0]).tolist(), first_day(int(numbers[1]), Cadence("week"))
        ([0, 1, 1], '2013-05-06')
    """
    if cadence.unit == "month":
        found = times.astype("datetime64[M]").astype(np.int64)
    else:
        found = times.astype("datetime64[D]").astype(np.int64)
        if cadence.unit == "week":
            found = (found + _MONDAY) // 7
    numbers: AnyArray = found // cadence.count
    return numbers


def first_day(number: int, cadence: Cadence) -> str:
    """The first day of a period, which is its name."""
    place = number * cadence.count
    if cadence.unit == "month":
        return str(np.datetime64(place, "M").astype("datetime64[D]"))
    return str(np.datetime64(place * 7 - _MONDAY if cadence.unit == "week" else place, "D"))


def held_out(ids: AnyArray, share: float) -> AnyArray:
    """Which rows no generation is trained on: a hash of the id decides, whenever the row comes.

    Example:
        >>> ids = np.array([str(number) for number in range(1000)], dtype=object)
        >>> kept = held_out(ids, 0.2)
        >>> bool(150 < kept.sum() < 250), bool((held_out(ids[::-1], 0.2) == kept[::-1]).all())
        (True, True)
    """
    edge = int(share * 2**64)
    sums = (hashlib.blake2b(str(each).encode(), digest_size=8).digest() for each in ids)
    return np.fromiter((int.from_bytes(one, "big") < edge for one in sums), bool, len(ids))


def cut(rows: Rows, settings: DataSettings, *, until: datetime, after: str | None) -> Cut | None:
    """The rows of the newest period that is over and whose labels are known.

    Args:
        rows: All rows.
        settings: How they are cut.
        until: The present: periods that are not over, and labels that come later, do not count.
        after: The end of the period of the retrain before, None before the first.

    Returns:
        None where no period has ended that has labelled rows.
    """
    present = np.datetime64(until.replace(tzinfo=None), "us")
    delay = length_of_time(settings.label_delay, "`label_delay`", zero=True)
    current = int(period_numbers(np.array([present - delay]), settings.cadence)[0])
    usable = (rows.periods < current) & np.array([each is not None for each in rows.labels], bool)
    if not usable.any():
        return None
    newest = int(rows.periods[usable].max())
    out = held_out(rows.ids, settings.test_size)
    train, evaluate = usable & ~out, usable & out
    end = first_day(newest + 1, settings.cadence)
    if settings.window != EXPANDING:
        length = length_of_time(settings.window, "`window`")
        train &= rows.times >= np.datetime64(end, "us") - length
    if settings.test_periods:
        evaluate &= rows.periods > newest - settings.test_periods
    start = newest if after is None else _number(after, settings.cadence)
    there = set(np.unique(rows.periods[usable]).tolist())
    # What lies between the last retrain and now; a period without rows is stated, not trained on.
    # The first few are enough: after years without rows there are many.
    missing = itertools.islice((n for n in range(start, current) if n not in there), _SKIPPED)
    return Cut(
        period=first_day(newest, settings.cadence),
        end=end,
        skipped=tuple(first_day(number, settings.cadence) for number in missing),
        train=train,
        evaluate=evaluate,
        newest=usable & (rows.periods == newest),
    )


def period_end(period: str, cadence: Cadence) -> str:
    """The first day after a period.

    Example:
        >>> period_end("2024-01-01", Cadence("week")), period_end("2024-01-01", Cadence("month"))
        ('2024-01-08', '2024-02-01')
    """
    return first_day(_number(period, cadence) + 1, cadence)


def _number(day: str, cadence: Cadence) -> int:
    return int(period_numbers(np.array([day], dtype="datetime64[us]"), cadence)[0])


def check_cut(rows: Rows, made: Cut, settings: DataSettings) -> None:
    """Raise where no row is left to train on, or none to score."""
    if not made.train.any() or not made.evaluate.any():
        found = "train on" if not made.train.any() else "score"
        raise DataError(
            f"Of {len(rows.ids):,} rows none is left to {found} up to the {settings.cadence} of "
            f"{made.period}. Set another `test_size`, or wait for more rows."
        )


def write_cut(rows: Rows, made: Cut, settings: DataSettings, folder: Path, *, ending: str) -> None:
    """Write what a trainer reads: rows to learn from, and rows to score, which have no label."""
    learned = rows.table.filter(pa.array(made.train))
    asked = rows.table.filter(pa.array(made.evaluate)).drop_columns([settings.label])
    newest = made.newest[made.evaluate]
    truth = pa.table(
        {
            "id": pa.array(rows.ids[made.evaluate].tolist(), pa.string()),
            "truth": pa.array(rows.labels[made.evaluate].tolist(), pa.string()),
            "rows": [NEWEST if each else EARLIER for each in newest.tolist()],
        }
    )
    named = {f"{TRAIN}.{ending}": learned, f"{EVALUATE}.{ending}": asked, TRUTH: truth}
    for name, table in named.items():
        with _files.replacing(folder / name) as aside:
            if name.endswith(".csv"):
                _write_csv(table, aside)
            else:
                pq.write_table(table, aside)


def _write_csv(table: pa.Table, to: Path) -> None:
    try:
        csv.write_csv(table, to)
    except pa.ArrowException as error:
        nested = [field for field in table.schema if pa.types.is_nested(field.type)]
        what = f"Column {nested[0].name!r} is {nested[0].type}: " if nested else ""
        raise DataError(
            f"{what}the rows cannot be written as CSV ({one_line(str(error))}). Set "
            'rows_format = "parquet" in [retrain].'
        ) from error


def class_shares(labels: Sequence[str] | AnyArray) -> dict[str, float]:
    """The share of each class.

    Example:
        >>> class_shares(["late", "early", "late", "late"])
        {'early': 0.25, 'late': 0.75}
    """
    names, counts = np.unique(np.asarray(labels).astype(str), return_counts=True)
    total = int(counts.sum())
    return {str(name): int(n) / total for name, n in zip(names.tolist(), counts, strict=True)}


def drift(old: dict[str, float], new: dict[str, float]) -> float:
    """The total variation distance of two sets of class shares: 0 the same, 1 nothing in common.

    Example:
        >>> drift({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.5, "c": 0.25})
        0.25
    """
    names = {*old, *new}
    return sum(abs(old.get(name, 0.0) - new.get(name, 0.0)) for name in names) / 2


def parse_until(text: str) -> datetime:
    """A day or a time of the command line, in UTC."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found
    except (ValueError, OverflowError):  # the latter beyond the years 1 to 9999 in UTC
        raise PlanError(f"--until takes a day such as 2013-05-06, got {text!r}.") from None
