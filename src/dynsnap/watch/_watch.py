"""Two models on live traffic: how often they differ, by day and slice, with alarms."""

import contextlib
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.errors import FileError, PlanError, some_of
from dynsnap.predictions import ColumnNames, Predictions, stream
from dynsnap.predictions._slicing import UnknownSliceError
from dynsnap.predictions._vocabulary import NoRowsError
from dynsnap.watch._sequence import Evidence, mean_interval, shares

TIME = "time"
ROLLING = 7  # days of the rolling rate
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_FILES = (".parquet", ".arrow", ".feather", ".csv", ".csv.gz", ".tsv", ".jsonl", ".npz")
ALL = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day of a part of the traffic.

    Attributes:
        rows: Rows that both models answered.
        differing: Those on which their labels differ.
        rolling: The share of these in the last seven days of the calendar.
        mean: The share on all days so far.
        low: The lower end of the interval of the mean rate so far, valid on all days together.
        high: Its upper end.
        evidence: The evidence that the limit is exceeded; 1 for none.
    """

    day: str
    rows: int
    differing: int
    rolling: float
    mean: float
    low: float
    high: float
    evidence: float

    @property
    def rate(self) -> float:
        """The share of rows on which the labels differ."""
        return self.differing / self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A part of the traffic: all of it, or one value of a slice.

    Attributes:
        column: The slice's column, empty for all rows.
        value: Its value.
        alpha: The chance of a false alarm that this part may have, over all days together.
        needed: The evidence from which on it is an alarm: 1 / alpha.
        days: The days on which it had rows.
        alarm: The first day of an alarm, None where there was none.
    """

    column: str
    value: str
    alpha: float
    days: tuple[Day, ...]
    alarm: str | None

    @property
    def needed(self) -> float:
        """The evidence from which on there is an alarm."""
        return 1 / self.alpha

    @property
    def title(self) -> str:
        """What it is called."""
        return "all rows" if not self.column else f"{self.column} = {self.value}"

    @property
    def rows(self) -> int:
        """Rows of all days."""
        return sum(day.rows for day in self.days)

    @property
    def differing(self) -> int:
        """Rows of all days on which the labels differ."""
        return sum(day.differing for day in self.days)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What watching two models gave.

    Attributes:
        limit: The rate that is accepted.
        alpha: The chance of any false alarm at all, however long it goes on.
        whole: All rows.
        slices: The values of slices, those with an alarm first.
        notes: What a reader should know.
    """

    limit: float
    alpha: float
    whole: Watched
    slices: tuple[Watched, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def alarms(self) -> tuple[Watched, ...]:
        """Parts with an alarm."""
        return tuple(part for part in (self.whole, *self.slices) if part.alarm is not None)


def calendar(day: str) -> int:
    """The place of a day on the calendar: days without rows leave gaps.

    Example:
        >>> calendar("2024-03-01") - calendar("2024-02-28")
        2
    """
    return date.fromisoformat(day).toordinal()


class Counts:
    """Rows and differing rows, by part of the traffic and day."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], dict[str, list[int]]] = {}

    def add(self, part: tuple[str, str], day: str, rows: int, differing: int) -> None:
        """Count some rows of a day."""
        each = self._found.setdefault(part, {}).setdefault(day, [0, 0])
        each[0] += rows
        each[1] += differing

    def parts(self) -> Mapping[tuple[str, str], Mapping[str, Sequence[int]]]:
        """For each part and day: rows, and those that differ."""
        return self._found


def watch(
    deployed: str | Path,
    candidate: str | Path,
    *,
    limit: float,
    alpha: float = 0.05,
    time: str = TIME,
    slices: Sequence[str] = (),
    columns: ColumnNames | Mapping[str, Any] | None = None,
) -> Watch:
    """Follow how often two models differ on live traffic.

    Args:
        deployed: The log of the deployed model: a file or a folder of Parquet files with a column
            of times, or a folder with a file for each day, named by it (`2024-05-06.parquet`).
        candidate: That of the candidate, in the same way.
        limit: The share of differing labels that is accepted.
        alpha: The chance of any false alarm at all, over all days and slices together.
        time: The column of times.
        slices: Columns whose values are watched, too, as for `dynsnap.compare`.
        columns: What the columns are called.

    Raises:
        ComparisonError: The logs share no rows.
        FileError: A log cannot be read.
        PlanError: A setting does not make sense.
    """
    if not 0 < alpha < 1:
        raise PlanError(f"`alpha` must be above 0 and below 1, got {alpha!r}.")
    Evidence(limit)  # refuses a limit that is none
    places = [Path(deployed), Path(candidate)]
    if all(place.exists() for place in places) and places[0].samefile(places[1]):
        raise PlanError(
            f"{deployed} is given twice, so no label would ever differ. Name the log of the "
            "deployed model and that of the candidate."
        )
    slices = tuple(dict.fromkeys(slices))  # one that is named twice counts its rows once
    counts, notes = Counts(), []
    by_day = _by_day(Path(deployed)), _by_day(Path(candidate))
    if all(by_day):
        alone = sorted(by_day[0].keys() ^ by_day[1].keys())
        if alone:
            notes.append(f"Days that are in one log only, and left out: {some_of(alone)}.")
        both = sorted(by_day[0].keys() & by_day[1].keys())
        if not both:
            raise FileError(f"{deployed} and {candidate} have no day in common.")
        for day in both:
            files = [by_day[0][day], by_day[1][day]]
            with _without_traffic():
                notes += _count(counts, files, columns, slices, day=day, time=None)
    else:
        notes += _count(counts, [deployed, candidate], columns, slices, day=None, time=time)
    return judge(counts, limit=limit, alpha=alpha, notes=tuple(dict.fromkeys(notes)))


def _by_day(place: Path) -> dict[str, Path]:
    """The files of a folder that are named by a day, each once."""
    if not place.is_dir():
        return {}
    found: dict[str, Path] = {}
    for file in sorted(place.iterdir()):
        named = _DAY.search(file.name)
        if named is None or not file.name.endswith(_FILES) or file.name.startswith("."):
            continue
        if not _is_day(named[0]):
            raise FileError(f"{file}: {named[0]} is no day. Rename the file, or take it away.")
        if named[0] in found:
            raise FileError(
                f"{place} has two files of {named[0]}: {found[named[0]].name}, {file.name}."
            )
        found[named[0]] = file
    return found


def _is_day(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _count(
    counts: Counts,
    places: Sequence[str | Path],
    columns: ColumnNames | Mapping[str, Any] | None,
    slices: Sequence[str],
    *,
    day: str | None,
    time: str | None,
) -> list[str]:
    """Count the rows of two files, of one day or with a column of times."""
    asked = [*slices, *(() if time is None else (f"{time}:day",))]
    names, timeless = ["deployed", "candidate"], 0
    with (
        _naming_times(places, time),
        stream(list(places), names=names, columns=columns, slices=asked) as blocks,
    ):
        for old, new in blocks:
            days: tuple[AnyArray, Sequence[str]] = np.zeros(len(old), dtype=np.intp), (day or "",)
            if time is not None:
                found = old.slices[f"{time}:day"]
                days = found.codes, found.values
            timeless += _add(counts, old, new, days, slices)
        notes = [blocks.report.sentence()] if any(blocks.report.missing) else []
    if timeless:
        notes.append(f"{timeless:,} rows have no time, and are left out.")
    return notes


@contextlib.contextmanager
def _without_traffic() -> Iterator[None]:
    """Let a file that has a head and no rows be a day without rows."""
    try:
        yield
    except FileError as error:
        if not isinstance(error.__cause__, NoRowsError):
            raise


@contextlib.contextmanager
def _naming_times(places: Sequence[str | Path], time: str | None) -> Iterator[None]:
    """Turn the lack of a slice of days, which nobody asked for, into that of a column of times."""
    try:
        yield
    except UnknownSliceError as error:
        if error.asked != f"{time}:day":
            raise
        raise FileError(
            f"{places[0]} and {places[1]} have no column {time!r} of times. Name it with --time, "
            "or keep a file for each day, such as 2024-05-06.parquet, in a folder."
        ) from error


def _add(
    counts: Counts,
    old: Predictions,
    new: Predictions,
    days: tuple[AnyArray, Sequence[str]],
    slices: Sequence[str],
) -> int:
    """Count the rows of a block by day and slice value; how many of them have no day."""
    codes, names = np.asarray(days[0], dtype=np.intp), days[1]
    dated = np.array([_is_day(name) for name in names], dtype=bool)
    kept = dated[codes]
    codes, differs = codes[kept], np.asarray(old.labels != new.labels)[kept]
    whole = np.zeros(len(codes), dtype=np.intp), ("",)
    chosen: list[tuple[str, AnyArray, Sequence[str]]] = [("", *whole)]
    chosen += [
        (column, np.asarray(found.codes)[kept], found.values)
        for column in slices
        if (found := old.slices.get(column)) is not None
    ]
    for column, values, texts in chosen:
        place = codes * len(texts) + values
        rows, changed = np.bincount(place), np.bincount(place, weights=differs)
        for at in np.flatnonzero(rows).tolist():
            day, value = divmod(at, len(texts))
            counts.add((column, texts[value]), names[day], int(rows[at]), int(changed[at]))
    return int(len(kept) - kept.sum())


def judge(
    counts: Counts, *, limit: float, alpha: float = 0.05, notes: tuple[str, ...] = ()
) -> Watch:
    """Alarms of counts by day: half of `alpha` is for all rows, half for the slices together.

    Without slices, all of it is for all rows.

    Example:
        >>> counts = Counts()
        >>> for day in range(1, 29):
        ...     counts.add(ALL, f"2024-02-{day:02}", 500, 10 if day < 15 else 45)
        >>> found = judge(counts, limit=0.03)
        >>> found.whole.alarm
        '2024-02-15'
    """
    parts = counts.parts()
    if ALL not in parts:
        raise FileError("The logs share no rows, so there is nothing to watch.")
    named = sorted(part for part in parts if part != ALL)
    days = sorted(parts[ALL])
    place = {day: at for at, day in enumerate(days)}
    first = [place[min(parts[part])] for part in named]
    own = shares(first, alpha / 2)
    if missing := _without_rows(days):
        notes = (*notes, missing)
    whole = _watched(ALL, parts[ALL], limit, alpha / 2 if named else alpha)
    made = [
        _watched(part, parts[part], limit, share) for part, share in zip(named, own, strict=True)
    ]
    made.sort(key=lambda part: (part.alarm or "~", -part.differing / max(1, part.rows)))
    return Watch(limit=limit, alpha=alpha, whole=whole, slices=tuple(made), notes=notes)


def _without_rows(days: Sequence[str]) -> str:
    """A note on the days between the first and the last on which both models answered nothing."""
    known = {calendar(day) for day in days}
    gone = [each for each in range(min(known), max(known)) if each not in known]
    if not gone:
        return ""
    some = ", ".join(str(date.fromordinal(each)) for each in gone[:3])
    return f"{len(gone):,} days without rows: {some}{', …' if len(gone) > 3 else '.'}"


def _watched(
    part: tuple[str, str], days: Mapping[str, Sequence[int]], limit: float, alpha: float
) -> Watched:
    evidence, made, alarm = Evidence(limit), list[Day](), None
    rows = differing = 0
    recent: deque[tuple[int, int, int]] = (
        deque()
    )  # a day of the calendar, its rows, those differing
    for day in sorted(days):
        today, changed = days[day]
        rows, differing = rows + today, differing + changed
        evidence.add(rows=today, differing=changed)
        low, high = mean_interval(rows, differing, alpha=alpha)
        recent.append((calendar(day), today, changed))
        while recent[0][0] <= recent[-1][0] - ROLLING:
            recent.popleft()
        made.append(
            Day(
                day=day,
                rows=today,
                differing=changed,
                rolling=sum(each[2] for each in recent) / sum(each[1] for each in recent),
                mean=differing / rows,
                low=low,
                high=high,
                evidence=evidence.value,
            )
        )
        if alarm is None and evidence.value >= 1 / alpha:
            alarm = day
    return Watched(column=part[0], value=part[1], alpha=alpha, days=tuple(made), alarm=alarm)


def to_json(found: Watch) -> dict[str, Any]:
    """What watching gave as plain values."""
    return {
        "schema": "dynsnap.watch/1",
        "limit": found.limit,
        "alpha": found.alpha,
        "alarm": bool(found.alarms),
        "parts": [_facts(part) for part in (found.whole, *found.slices)],
        "notes": list(found.notes),
    }


def _facts(part: Watched) -> dict[str, Any]:
    return {
        "column": part.column or None,
        "value": part.value or None,
        "alpha": part.alpha,
        "alarm": part.alarm,
        "rows": part.rows,
        "differing": part.differing,
        "days": list(_days(part.days)),
    }


def _days(days: Sequence[Day]) -> Iterator[dict[str, Any]]:
    for day in days:
        yield {
            "day": day.day,
            "rows": day.rows,
            "differing": day.differing,
            "rate": day.rate,
            "rolling": day.rolling,
            "mean": day.mean,
            "low": day.low,
            "high": day.high,
            "evidence": day.evidence,
        }
