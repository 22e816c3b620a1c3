"""Rows of a file that go to other places: kept in order where they are, or sorted on disk."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from dynsnap._types import Positions
from dynsnap.predictions._join_buckets import Buckets, SentBuckets
from dynsnap.predictions._join_ids import Matches, row_type
from dynsnap.predictions._labels import Slice
from dynsnap.predictions._predictions import Predictions, changed

_BUCKET_ROWS = 1 << 20  # rows whose places are looked at together
_PLAIN = ("labels", "truth", "weights", "scores")  # what a row has, one value or several
_BUCKET_BYTES = 32 << 20  # of predictions that are sorted in memory at a time


class Places:
    """Which rows of a file are shared, and where they stand among the shared ones.

    Attributes:
        in_order: Whether the rows come in the order of their places.
    """

    def __init__(self, rows: int, shared: int) -> None:
        self.in_order = True
        self._last = -1
        kinds = [("row", row_type(rows)), ("place", row_type(shared))]
        self._buckets = Buckets(-(-rows // _BUCKET_ROWS), kinds)
        self._held = -1
        self._rows = self._places = np.empty(0, np.intp)

    def add(self, rows: Positions, *, before: int) -> None:
        """These rows take the next places, of which so many are taken."""
        ordered = rows.astype(np.intp)
        self.in_order = self.in_order and bool((np.diff(ordered, prepend=self._last) > 0).all())
        self._last = int(ordered[-1]) if len(ordered) else self._last
        records = np.empty(len(rows), self._buckets.dtype)
        records["row"] = rows
        records["place"] = np.arange(before, before + len(rows))
        self._buckets.add(ordered // _BUCKET_ROWS, records)

    def of(self, start: int, stop: int) -> tuple[Positions, Positions]:
        """Which rows from `start` up to `stop` are shared, counted from `start`; their places."""
        found = []
        for number in range(start // _BUCKET_ROWS, -(-stop // _BUCKET_ROWS)):
            if number != self._held:
                self._hold(number)
            chosen = slice(*np.searchsorted(self._rows, (start, stop)))
            found.append((self._rows[chosen] - start, self._places[chosen]))
        rows, places = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(places)

    def rows(self, start: int, stop: int) -> Positions:
        """The rows that stand at these places, where rows are in order."""
        ends = np.cumsum([self._buckets.size(number) for number in range(self._buckets.count)])
        found = []
        first, last = np.searchsorted(ends, (start, stop - 1), side="right").tolist()
        for number in range(first, last + 1):
            if number != self._held:
                self._hold(number)
            chosen = slice(*np.searchsorted(self._places, (start, stop)))
            found.append(self._rows[chosen])
        return np.concatenate(found)

    def _hold(self, number: int) -> None:
        records = self._buckets.read(number)
        order = np.argsort(records["row"])
        self._rows = records["row"][order].astype(np.intp)
        self._places = records["place"][order].astype(np.intp)
        self._held = number

    def close(self) -> None:
        """Give the room on disk back."""
        self._buckets.close()


def places_of(matches: Matches, rows: Sequence[int]) -> list[Places]:
    """The places of every file's rows: those of the first stay in their order."""
    every = [Places(count, matches.shared) for count in rows]
    before = 0
    for number in range(matches.rows.count):
        found = matches.rows.read(number)["rows"]
        found = found[np.argsort(found[:, 0])]
        for places, column in zip(every, found.T, strict=True):
            places.add(column, before=before)
        before += len(found)
    matches.rows.close()
    return every


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Which of some rows are shared; what `Places` tells, for another process."""

    rows: Positions

    def of(self, start: int, stop: int) -> tuple[Positions, Positions]:
        """Which rows from `start` up to `stop` are shared, counted from `start`; their places."""
        first, last = np.searchsorted(self.rows, (start, stop))
        return self.rows[first:last] - start, np.arange(first, last)


def kept(pieces: Iterator[Predictions], places: Places | Chosen) -> Iterator[Predictions]:
    """The shared rows of a file whose rows are in order."""
    for piece, rows, _ in _placed(pieces, places):
        yield piece if len(rows) == len(piece) else piece.take(rows)


class Sorted:
    """The shared rows of a file, sorted on disk by their places. Their ids are left out."""

    def __init__(self, pieces: Iterator[Predictions], places: Places, *, shared: int) -> None:
        placed = _placed(pieces, places)
        first = next(placed)
        self._example = first[0].slice(0, 0)
        self._plain = [name for name in _PLAIN if getattr(self._example, name) is not None]
        kind = self._record_type(shared)
        self._shared = shared
        self._step = max(1, _BUCKET_BYTES // kind.itemsize)
        self._buckets = Buckets(-(-shared // self._step), kind)
        for piece, rows, targets in chain([first], placed):
            self._add(piece, rows, targets)

    def _record_type(self, shared: int) -> "np.dtype[Any]":
        kinds: list[Any] = [("place", row_type(shared))]
        for name in self._plain:
            values = getattr(self._example, name)
            kinds.append((name, values.dtype, values.shape[1:]))
        kinds.append(("slices", np.int32, (len(self._example.slices),)))
        return np.dtype(kinds, align=True)

    def _add(self, piece: Predictions, rows: Positions, places: Positions) -> None:
        records = np.empty(len(rows), self._buckets.dtype)
        records["place"] = places
        for name in self._plain:
            records[name] = getattr(piece, name)[rows]
        for number, column in enumerate(piece.slices.values()):
            records["slices"][:, number] = column.codes[rows]
        self._buckets.add(places // self._step, records)

    def pieces(self) -> Iterator[Predictions]:
        """The rows in their order."""
        return self._rows(self._buckets, 0, self._shared).pieces()

    def within(self, start: int, stop: int) -> "SortedRows":
        """Some of the rows, for another process of this machine."""
        buckets = self._buckets.sent(start // self._step, -(-stop // self._step))
        return self._rows(buckets, start, stop)

    def _rows(self, buckets: Buckets | SentBuckets, start: int, stop: int) -> "SortedRows":
        return SortedRows(buckets, start, stop, self._step, self._example, tuple(self._plain))

    def close(self) -> None:
        """Give the room on disk back."""
        self._buckets.close()


@dataclass(frozen=True, slots=True, eq=False)
class SortedRows:
    """Rows that were sorted on disk, from one place up to another.

    Attributes:
        step: Rows of each bucket.
        example: Predictions without rows, which have what the rows have.
        plain: What that is, beside slices.
    """

    buckets: Buckets | SentBuckets
    start: int
    stop: int
    step: int
    example: Predictions
    plain: tuple[str, ...]

    def pieces(self) -> Iterator[Predictions]:
        """The rows in their order."""
        for number in range(self.start // self.step, -(-self.stop // self.step)):
            records = self.buckets.read(number)
            before = number * self.step
            order = np.empty(len(records), np.intp)
            order[records["place"].astype(np.intp) - before] = np.arange(len(records))
            order = order[max(0, self.start - before) : self.stop - before]
            plain = {name: records[name][order] for name in self.plain}
            slices = {
                name: Slice(column.values, records["slices"][order, number])
                for number, (name, column) in enumerate(self.example.slices.items())
            }
            yield changed(self.example, id_column=pa.nulls(len(order)), slices=slices, **plain)


def _placed(
    pieces: Iterator[Predictions], places: Places | Chosen
) -> Iterator[tuple[Predictions, Positions, Positions]]:
    start = 0
    for piece in pieces:
        yield piece, *places.of(start, start + len(piece))
        start += len(piece)
