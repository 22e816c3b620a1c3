"""The join of files that need not fit into memory: which ids are equal, and rows in their order.

Ids are parted on disk by ranges or by a hash, so that equal ones meet in the same part, and each
part is joined in memory. That shows where every row stands in the order of the first file. Rows of
a file in another order are sorted on disk by that place. Memory stays small in whatever order the
ids come, and the answer is the one that joining all of them at once would give.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import Positions
from dynsnap.predictions._ids import (
    DENSE,
    all_differ,
    as_text,
    refuse_repeats,
    repeats,
    text_buffers,
)
from dynsnap.predictions._join import MissingId, first_few, join
from dynsnap.predictions._labels import Slice
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._spill import Buckets, Spill, sorted_by

_PART_ROWS = 1 << 20  # how many ids are joined in memory at a time, about
_BUCKET_ROWS = 1 << 20  # rows whose matches or places are looked at together
_BUCKET_BYTES = 32 << 20  # of predictions that are sorted in memory at a time
_PLAIN = ("labels", "truth", "weights", "scores", "values")  # what a row has, one value or several
_SHOWN = 3  # repeated ids in a message


@dataclass(slots=True)
class IdScan:
    """What one look at the ids of several files shows, all read side by side.

    Attributes:
        rows: Rows of each file.
        text: For each file, whether any id is text.
        alike: Whether all files have the same ids in the same order.
        increasing: Whether every id of the first file is greater than the one before it.
        first: A few ids of each file.
        low: The lowest id of all files, where they are whole numbers.
        high: The highest one.
    """

    rows: list[int]
    text: list[bool]
    alike: bool = True
    increasing: bool = True
    first: list[pa.Array] = field(default_factory=list)
    low: int = 0
    high: int = -1


def scan_ids(files: Sequence[Iterable[pa.Array]]) -> IdScan:
    """Read the ids of all files once. Each comes in pieces of one size, but for its last.

    Example:
        >>> look = scan_ids([[pa.array([1, 2]), pa.array([3])], [pa.array([1, 2])]])
        >>> look.rows, look.alike, look.increasing
        ([3, 2], False, True)
    """
    look = IdScan(rows=[0] * len(files), text=[False] * len(files))
    last = nothing = pa.array([], pa.int64())
    for pieces in zip_longest(*files, fillvalue=nothing):
        look.first = look.first or [piece[:_SHOWN] for piece in pieces]
        for number, piece in enumerate(pieces):
            look.rows[number] += len(piece)
            look.text[number] |= pa.types.is_large_string(piece.type)
        _widen(look, pieces)
        look.alike = look.alike and all(_alike(pieces[0], piece) for piece in pieces[1:])
        look.increasing = look.increasing and _increasing(last, pieces[0])
        last = pieces[0]
    return look


@dataclass(frozen=True, slots=True)
class IdPartitioning:
    """How ids are parted so that equal ones meet, and a part of them fits into memory.

    Whole numbers that lie close together are parted by ranges, since a table then joins them; all
    others by a hash.

    Attributes:
        parts: How many parts there are.
        text: Whether ids are compared as text.
        low: Where the first range begins.
        width: How wide a range is; 0 for a hash.
    """

    parts: int
    text: bool = False
    low: int = 0
    width: int = 0

    @classmethod
    def after(cls, look: IdScan) -> "IdPartitioning":
        """For files that were looked at.

        Example:
            >>> IdPartitioning.after(scan_ids([[pa.array([7, 9, 8])]]))
            IdPartitioning(parts=1, text=False, low=7, width=1048576)
            >>> IdPartitioning.after(scan_ids([[pa.array([7, 10**9])]]))
            IdPartitioning(parts=1, text=False, low=0, width=0)
        """
        text, span, rows = any(look.text), look.high - look.low + 1, max(look.rows)
        if text or span > DENSE * rows:
            return cls(1 << (max(0, rows - 1) // _PART_ROWS).bit_length(), text)
        return cls(-(-span // _PART_ROWS), low=look.low, width=_PART_ROWS)

    def numbers(self, ids: pa.Array) -> Positions:
        """The part of each id."""
        if self.parts == 1:
            return np.zeros(len(ids), np.intp)
        if self.width:
            ranges = (ids.to_numpy() - self.low) // self.width
            # A file may have changed since the first look.
            return np.asarray(ranges.clip(0, self.parts - 1), np.intp)
        if self.text:
            from dynsnap.predictions import _kernels

            hashes = np.empty(len(ids), np.uint64)
            _kernels.hash_texts(*text_buffers(ids), hashes)
        else:
            hashes = ids.to_numpy().view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        top = np.uint64(64 - (self.parts.bit_length() - 1))
        return (hashes >> top).astype(np.intp)


class PartitionedIds:
    """The ids of one file on disk, with their rows, in parts."""

    def __init__(
        self, ids: Iterable[pa.Array], spill: Spill, parting: IdPartitioning, *, rows: int
    ) -> None:
        self.rows, self.parts, self._parting = rows, parting.parts, parting
        text, parts = parting.text, parting.parts
        key = ("length", np.uint32) if text else ("id", np.int64)
        self._records = spill.buckets(parts, [key, ("row", row_type(rows))])
        self._texts = spill.buckets(parts, np.uint8) if text else None
        before = 0
        for piece in ids:
            self._add(as_text(piece) if text else piece, before)
            before += len(piece)

    def _add(self, ids: pa.Array, before: int) -> None:
        order, bounds = sorted_by(self._parting.numbers(ids), self.parts)
        records = np.empty(len(ids), self._records.dtype)
        records["row"] = order + before
        if self._texts is None:
            records["id"] = ids.to_numpy()[order]
        else:
            starts, content = text_buffers(ids.take(pa.array(order)))
            records["length"] = np.diff(starts)
            self._texts.add_sorted(content[starts[0] : starts[-1]], (starts - starts[0])[bounds])
        self._records.add_sorted(records, bounds)

    def read(self, part: int) -> tuple[pa.Array, Positions]:
        """The ids of a part and their rows, in the order of the rows."""
        records = self._records.read(part)
        rows = records["row"].astype(np.intp)
        if self._texts is None:
            return pa.array(np.ascontiguousarray(records["id"])), rows
        starts = np.zeros(len(records) + 1, np.int64)
        np.cumsum(records["length"], out=starts[1:])
        buffers = [pa.py_buffer(starts), pa.py_buffer(self._texts.read(part))]
        return pa.LargeStringArray.from_buffers(len(records), *buffers), rows

    def check_unique(self, where: Callable[[Sequence[int]], str]) -> None:
        """Raise if an id occurs twice; `where` names the files that some rows are in."""
        surplus = 0
        some: list[tuple[int, object]] = []  # repeated ids and where they first come
        twice: list[list[int]] = []  # the rows of one of them
        for part in range(self.parts):
            ids, rows = self.read(part)
            if not all_differ(ids):
                more, repeated = repeats(ids)
                surplus += more
                places = pc.index_in(repeated[:_SHOWN], value_set=ids).to_numpy()
                some += zip(rows[places].tolist(), repeated[:_SHOWN].to_pylist(), strict=True)
                twice.append(rows[np.asarray(pc.equal(ids, repeated[0]), bool)].tolist())
        if surplus:
            first = pa.array([name for _, name in sorted(some)])
            refuse_repeats(surplus, first, rows=self.rows, where=where(min(twice)))

    def close(self) -> None:
        """Give the room on disk back."""
        self._records.close()
        if self._texts is not None:
            self._texts.close()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matches:
    """Which ids are shared, as `Join` states it, but for their rows, which are on disk.

    Attributes:
        shared: Ids that every file has.
        missing: For each file, how many ids it lacks that another one has.
        lacking: For each file, the first few of those.
        rows: The row of every shared id in each file, in buckets by the row in the first.
    """

    shared: int
    missing: tuple[int, ...]
    lacking: tuple[tuple[MissingId, ...], ...]
    rows: Buckets


def match(files: Sequence[PartitionedIds], spill: Spill) -> Matches:
    """Join ids that are unique in each file, and parted alike."""
    rows = [file.rows for file in files]
    kind = np.dtype((row_type(max(rows)), (len(files),)))
    found = spill.buckets(-(-rows[0] // _BUCKET_ROWS), [("rows", kind)])
    missing = np.zeros(len(files), np.int64)
    lacking: list[tuple[MissingId, ...]] = [()] * len(files)
    shared = 0
    for part in range(files[0].parts):
        ids, places = zip(*(file.read(part) for file in files), strict=True)
        joined = join(ids)
        shared += joined.shared
        missing += joined.missing
        for number, some in enumerate(joined.lacking):
            here = [each._replace(row=int(places[each.column][each.row])) for each in some]
            lacking[number] = first_few([*lacking[number], *here])
        matched = np.empty(joined.shared, found.dtype)
        for number, (place, chosen) in enumerate(zip(places, joined.rows, strict=True)):
            matched["rows"][:, number] = place if chosen is None else place[chosen]
        found.add(matched["rows"][:, 0] // _BUCKET_ROWS, matched)
    return Matches(
        shared=shared, missing=tuple(missing.tolist()), lacking=tuple(lacking), rows=found
    )


def row_type(rows: int) -> "type[np.unsignedinteger[Any]]":
    """The smallest type that can hold the position of a row."""
    return np.uint32 if rows <= 1 << 32 else np.uint64


class Places:
    """Which rows of a file are shared, and where they stand among the shared ones.

    Attributes:
        in_order: Whether the rows come in the order of their places.
    """

    def __init__(self, rows: int, shared: int, spill: Spill) -> None:
        self.in_order = True
        self._last = -1
        kinds = [("row", row_type(rows)), ("place", row_type(shared))]
        self._buckets = spill.buckets(-(-rows // _BUCKET_ROWS), kinds)
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


def places_of(matches: Matches, rows: Sequence[int], spill: Spill) -> list[Places]:
    """The places of every file's rows: those of the first stay in their order."""
    every = [Places(count, matches.shared, spill) for count in rows]
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
    """Which of some rows are shared; what `Places` shows, for another process."""

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

    def __init__(
        self, pieces: Iterator[Predictions], places: Places, spill: Spill, *, shared: int
    ) -> None:
        placed = _placed(pieces, places)
        first = next(placed)
        self._example = first[0].slice(0, 0)
        self._plain = [name for name in _PLAIN if getattr(self._example, name) is not None]
        kind = self._record_type(shared)
        self._shared = shared
        self._step = max(1, _BUCKET_BYTES // kind.itemsize)
        self._buckets = spill.buckets(-(-shared // self._step), kind)
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
        buckets = self._buckets.within(start // self._step, -(-stop // self._step))
        return self._rows(buckets, start, stop)

    def _rows(self, buckets: Buckets, start: int, stop: int) -> "SortedRows":
        return SortedRows(buckets, start, stop, self._step, self._example, tuple(self._plain))


@dataclass(frozen=True, slots=True, eq=False)
class SortedRows:
    """Rows that were sorted on disk, from one place up to another.

    Attributes:
        step: Rows of each bucket.
        example: Predictions without rows, which have what the rows have.
        plain: What that is, beside slices.
    """

    buckets: Buckets
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
            records = records.take(order[max(0, self.start - before) : self.stop - before])
            plain = {name: np.ascontiguousarray(records[name]) for name in self.plain}
            slices = {
                name: Slice(column.values, records["slices"][:, number].copy())
                for number, (name, column) in enumerate(self.example.slices.items())
            }
            yield changed(self.example, id_column=pa.nulls(len(records)), slices=slices, **plain)


def _placed(
    pieces: Iterator[Predictions], places: Places | Chosen
) -> Iterator[tuple[Predictions, Positions, Positions]]:
    start = 0
    for piece in pieces:
        yield piece, *places.of(start, start + len(piece))
        start += len(piece)


def _widen(look: IdScan, pieces: Iterable[pa.Array]) -> None:
    for piece in pieces:
        if len(piece) and pa.types.is_integer(piece.type):
            ends = pc.min_max(piece).as_py()
            fresh = look.low > look.high
            look.low = ends["min"] if fresh else min(look.low, ends["min"])
            look.high = ends["max"] if fresh else max(look.high, ends["max"])


def _alike(one: pa.Array, other: pa.Array) -> bool:
    if one.type != other.type:
        one, other = as_text(one), as_text(other)
    return bool(one.equals(other))


def _increasing(last: pa.Array, piece: pa.Array) -> bool:
    """Whether ids grow within a piece, and from the last one before it."""
    ids = pa.concat_arrays([last[-1:], piece]) if last.type == piece.type else piece
    if len(last) and ids is piece:
        return False  # some ids of a file are numbers, others too large to be
    return pc.all(pc.less(ids[:-1], ids[1:]), min_count=0).as_py() is True
