"""Time: when rows happened, and which rows a model that is retrained on schedule may learn from."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Positions
from dynsnap.data._pool import (
    SELECTION_SET,
    Pool,
    Stream,
    check_selection_holdout,
    selection_rows,
)
from dynsnap.errors import DataError, PlanError

EXPANDING = "expanding"

_UNITS = {"minute": 1, "hour": 60, "day": 24 * 60, "week": 7 * 24 * 60}
_LENGTH = re.compile(r"(\d{1,6})\s*(minute|hour|day|week)s?")
_MOST = 1000  # retrains: each of them is a generation
PERIOD = "period"


def length_of_time(text: Any, where: str, *, zero: bool = False) -> np.timedelta64:
    """A length of time that is written as "1 week", "36 hours" or "90 days".

    Example:
        >>> length_of_time("2 weeks", "`cadence`").item()
        datetime.timedelta(days=14)
    """
    found = _LENGTH.fullmatch(text.strip()) if isinstance(text, str) else None
    minutes = int(found[1]) * _UNITS[found[2]] if found else 0
    if found is None or (not minutes and not zero):
        raise PlanError(
            f'{where} must be a length of time such as "1 week", "90 days" or "12 hours", '
            f"got {text!r}."
        )
    return np.timedelta64(minutes * 60_000_000, "us")


def parse_times(texts: Sequence[str] | AnyArray, where: str) -> tuple[AnyArray, tuple[str, ...]]:
    """Times from texts in ISO 8601, as datetime64 in UTC; with notes on how they were read.

    Times without a zone are taken as they are. Several offsets are unambiguous, and are all
    converted. Times with an offset beside times without one are refused.

    Example:
        >>> parse_times(["2013-01-01T05:15-05:00", "2013-01-01T10:20Z"], "made")
        (array(['2013-01-01T10:15:00.000000', '2013-01-01T10:20:00.000000'],
              dtype='datetime64[us]'), ('made: times of 2 zones were converted to UTC.',))
    """
    distinct, place = distinct_texts(texts)
    read = [_time(text, where) for text in distinct]
    zones = {moment.utcoffset() for moment in read}
    if None in zones and len(zones) > 1:
        with_zone, without = (
            next(
                text for text, one in zip(distinct, read, strict=True) if (one.tzinfo is None) is no
            )
            for no in (False, True)
        )
        raise DataError(
            f"{where}: time zones are mixed: {with_zone!r} has one, {without!r} has none. "
            "Write all times with an offset, or all without."
        )
    moments = np.array([_utc(moment, where) for moment in read], dtype="datetime64[us]")
    notes: tuple[str, ...] = ()
    if len(zones) > 1:
        notes = (f"{where}: times of {len(zones)} zones were converted to UTC.",)
    return moments[place], notes


def distinct_texts(texts: Sequence[str] | AnyArray) -> tuple[list[str], Positions]:
    """Each text once, and the place there of every text.

    Example:
        >>> distinct_texts(["b", "a", "b"])
        (['b', 'a'], array([0, 1, 0], dtype=int32))
    """
    import pyarrow as pa

    found = pa.array(texts, type=pa.string()).dictionary_encode()
    return found.dictionary.to_pylist(), found.indices.to_numpy()


def _time(text: str, where: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise DataError(
            f"{where}: {text[:40]!r} is no time. Write times as in 2013-07-29T15:00:00Z (ISO 8601)."
        ) from None


def _utc(moment: datetime, where: str) -> datetime:
    if moment.tzinfo is None:
        return moment
    try:
        return moment.replace(tzinfo=None) - (moment.utcoffset() or timedelta())
    except OverflowError:
        raise DataError(
            f"{where}: {moment.isoformat()} is not in the years 1 to 9999 in UTC."
        ) from None


def in_order(pool: Pool) -> tuple[Pool, tuple[str, ...]]:
    """The pool in the order of its times, and a note where it was in another.

    Rows of the same moment keep their order.
    """
    assert pool.times is not None
    if not (np.diff(pool.times) < np.timedelta64(0)).any():
        return pool, ()
    order = np.argsort(pool.times, kind="stable")
    return pool.take(order), (f"{pool.name}: rows were not in the order of time; they are now.",)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Window:
    """One retrain: when it happens, what it may learn from, and the period that it serves.

    Attributes:
        at: The moment of the retrain.
        until: The end of the period that follows, when the next retrain is due.
        train: Rows whose labels are known at that moment; of a sliding window, the newest.
        test: Rows of the period that follows: from `at` on, before `until`.
    """

    at: np.datetime64
    until: np.datetime64
    train: Positions
    test: Positions

    @property
    def name(self) -> str:
        """The day of the retrain, or the minute where it is not at midnight."""
        day = self.at.astype("datetime64[D]")
        return str(day if day == self.at else self.at.astype("datetime64[m]"))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Windows:
    """The retrains of a timeline in their order, and what was left out.

    Attributes:
        retrains: The retrains.
        notes: What was left out, and why, a sentence each.
    """

    retrains: tuple[Window, ...]
    notes: tuple[str, ...] = ()


def windows(
    pool: Pool,
    *,
    cadence: str = "1 week",
    window: str = EXPANDING,
    label_delay: str = "0 days",
    initial: str = "8 weeks",
) -> Windows:
    """Cut the rows of a pool by time: one window for each retrain.

    Time starts at midnight before the first row. A row belongs to the training rows of a retrain if
    it happened more than `label_delay` before it. A row of the same moment as the retrain belongs
    to the period that follows. A period without rows is skipped, and so is a retrain whose rows are
    all of one class; notes name them. A period at the end that the rows do not fill is left out.

    Args:
        pool: Rows with `times`, in any order; several rows may have the same time.
        cadence: The time between two retrains.
        window: "expanding" for all rows before the retrain, or the length of a sliding window.
        label_delay: How long after a row its label is known.
        initial: The time before the first retrain.

    Example:
        >>> days = np.datetime64("2013-01-01", "us") + np.arange(28) * np.timedelta64(1, "D")
        >>> pool = Pool(name="made", inputs=np.zeros((28, 1)), labels=np.arange(28) % 2,
        ...             classes=("cat", "dog"), ids=np.arange(28), times=days)
        >>> [(one.name, len(one.train), len(one.test))
        ...  for one in windows(pool, initial="2 weeks", label_delay="1 day").retrains]
        [('2013-01-15', 13, 7), ('2013-01-22', 20, 7)]
    """
    step = length_of_time(cadence, "`cadence`")
    delay = length_of_time(label_delay, "`label_delay`", zero=True)
    begin = length_of_time(initial, "`initial`")
    length = None if window == EXPANDING else length_of_time(window, "`window`")
    if delay >= begin:
        raise PlanError(
            f"`label_delay` ({label_delay}) must be shorter than `initial` ({initial}): the first "
            "retrain would have no labels."
        )
    times = pool.times
    if times is None:
        raise PlanError(
            f"{pool.name} has no times: growing by time needs them. Name their column with `time`."
        )
    if not len(times):
        raise DataError(f"{pool.name} has no rows.")
    day = np.timedelta64(1, "D")
    start = times.min().astype("datetime64[D]").astype("datetime64[us]")
    end = times.max().astype("datetime64[D]").astype("datetime64[us]") + day
    if step < day:  # a period of hours may end within the last day
        end = times.max()
    count = int((end - start - begin) // step)
    if count > _MOST:
        raise PlanError(
            f"{pool.name} would be retrained {count:,} times; {_MOST:,} are the most. "
            f"Raise `cadence` ({cadence})."
        )
    made, notes = [], []
    for number in range(max(count, 0)):
        at = start + begin + number * step
        known = times < at - delay
        if length is not None:
            known &= times >= at - delay - length
        one = Window(
            at=at,
            until=at + step,
            train=np.flatnonzero(known),
            test=np.flatnonzero((times >= at) & (times < at + step)),
        )
        if reason := _why_skipped(one, pool):
            notes.append(f"{pool.name}: the retrain of {one.name} is skipped: {reason}.")
        else:
            made.append(one)
            if len(np.unique(pool.labels[one.test])) == 1:
                notes.append(f"{pool.name}: the period from {one.name} on has one class only.")
    if not made:
        last = f" {notes[-1]}" if notes else ""
        raise DataError(
            f"{pool.name}: from {start.astype('datetime64[D]')} to {times.max()} there is no "
            f"retrain with rows to learn from and a whole period after it.{last} "
            "Shorten `initial` or `cadence`."
        )
    return Windows(retrains=tuple(made), notes=tuple(notes))


def _why_skipped(one: Window, pool: Pool) -> str:
    if not len(one.test):
        return "no rows in the period that follows"
    if not len(one.train):
        return "no rows to learn from"
    if len(found := np.unique(pool.labels[one.train])) == 1:
        return f"all rows to learn from are of class {pool.classes[found[0]]!r}"
    return ""


@dataclass(frozen=True, kw_only=True)
class TimeGrowth:
    """How a pool with times becomes generations: one for each retrain on schedule.

    Attributes:
        by: "time".
        cadence: The time between two retrains.
        window: "expanding" for all rows before the retrain, or the length of a sliding window.
        label_delay: How long after a row its label is known.
        initial: The time before the first retrain.
        retrains: The most generations, the first in time; None for as many as there are.
        validation: Share of each class of a window that a round validates on, drawn anew.
        selection_holdout: Share of the rows, chosen by their content, that no round trains or
            validates on, so that members of any generation can be compared on them. Of each
            generation these are the ones in its window.

    Example:
        >>> TimeGrowth(window="90 days", label_delay="1 day").cadence
        '1 week'
    """

    by: str = "time"
    cadence: str = "1 week"
    window: str = EXPANDING
    label_delay: str = "0 days"
    initial: str = "8 weeks"
    retrains: int | None = None
    validation: float = 0.1
    selection_holdout: float = 0.0

    def __post_init__(self) -> None:
        if self.by != "time":
            raise PlanError(f'`by` must be "time" or "share", got {self.by!r}.')
        for name in ("cadence", "initial", "label_delay"):
            length_of_time(getattr(self, name), f"`{name}`", zero=name == "label_delay")
        if self.window != EXPANDING:
            length_of_time(self.window, f'`window` that is not "{EXPANDING}"')
        if not (isinstance(self.validation, float) and 0 < self.validation < 1):
            raise PlanError(f"`validation` must be above 0 and below 1, got {self.validation!r}.")
        most = self.retrains
        if most is not None and (type(most) is not int or not 1 <= most <= _MOST):
            raise PlanError(f"`retrains` must be from 1 to {_MOST:,}, got {most!r}.")
        check_selection_holdout(self.selection_holdout)

    @property
    def generations(self) -> int:
        """The most generations that there can be."""
        return self.retrains or _MOST


def grow_by_time(pool: Pool, plan: TimeGrowth) -> Stream:
    """One generation for each retrain, tested on the period that follows it.

    The evaluation set "test" holds the rows of all these periods, with the slice "period".

    Example:
        >>> days = np.datetime64("2013-01-01", "us") + np.arange(42) * np.timedelta64(1, "D")
        >>> pool = Pool(name="made", inputs=np.zeros((42, 1)), labels=np.arange(42) % 2,
        ...             classes=("cat", "dog"), ids=np.arange(42), times=days)
        >>> stream = grow_by_time(pool, TimeGrowth(initial="3 weeks", window="2 weeks"))
        >>> [(len(rows), len(after)) for rows, after in zip(stream.generations, stream.test_rows)]
        [(14, 7), (14, 7), (14, 7)]
    """
    cut = windows(
        pool,
        cadence=plan.cadence,
        window=plan.window,
        label_delay=plan.label_delay,
        initial=plan.initial,
    )
    found = cut.retrains[: plan.retrains]
    aside = selection_rows(pool.inputs, plan.selection_holdout)
    place = np.cumsum(aside) - 1  # of a row, among those that are held out
    tested = np.sort(np.concatenate([one.test for one in found]))
    test = pool.take(tested, name=f"{pool.name} (periods after retrains)")
    after = tuple(np.searchsorted(tested, one.test) for one in found)
    names = np.empty(len(test), dtype=object)
    for one, rows in zip(found, after, strict=True):
        names[rows] = one.name
    evaluation = {"test": replace(test, slices={PERIOD: names, **test.slices})}
    if plan.selection_holdout:
        held = pool.take(np.flatnonzero(aside), name=f"{pool.name} (selection holdout)")
        evaluation[SELECTION_SET] = held
    cuts = tuple(one.train[~aside[one.train]] for one in found)
    counts = [_validated(pool, rows, plan.validation) for rows in cuts]
    first = np.bincount(pool.labels[cuts[0]], minlength=len(pool.classes))
    late = tuple(name for name, rows in zip(pool.classes, first, strict=True) if not rows)
    if late:
        some = ", ".join(repr(name) for name in late[:3])
        cut = replace(
            cut,
            notes=(
                *cut.notes,
                f"{pool.name}: classes are those of all rows; not known at the first retrain: "
                f"{some}{', …' if len(late) > 3 else ''}. Networks have outputs for them from the "
                "start.",
            ),
        )
    return Stream(
        pool=pool,
        generations=cuts,
        validation=tuple(counts),
        evaluation=evaluation,
        late=late,
        selection_holdout=tuple(place[one.train[aside[one.train]]] for one in found)
        if plan.selection_holdout
        else (),
        test_rows=after,
        notes=cut.notes,
    )


def _validated(pool: Pool, rows: Positions, share: float) -> Positions:
    """How many rows of each class are validated on: of a class with one row, none."""
    have = np.bincount(pool.labels[rows], minlength=len(pool.classes))
    wanted = np.where(have > 1, np.clip(np.rint(share * have), 1, np.maximum(have - 1, 1)), 0)
    return wanted.astype(np.intp)
