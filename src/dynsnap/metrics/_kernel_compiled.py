"""One pass over two generations, compiled: for inputs by the million. Import this late."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynsnap import _compiled
from dynsnap._compiled import compiled, inlined, part
from dynsnap._types import AnyArray
from dynsnap.metrics import _kernel_rows as rows_of
from dynsnap.metrics import _tally_layout
from dynsnap.metrics._kernel import brier_scale
from dynsnap.metrics._kernel_rows import TILE, divergence
from dynsnap.metrics._tally_layout import BLOCKS, Chunk, GenerationSums, PairSums, TallyLayout


class TileSide(NamedTuple):
    """Room for one generation's part of a tile."""

    labels: AnyArray  # (TILE,)
    tile: AnyArray  # (classes, TILE)
    sums: AnyArray  # (3, TILE)
    best: AnyArray  # (ranks, TILE)
    top: AnyArray  # (ranks, TILE)
    flat: AnyArray  # (TILE,)


class TileScratch(NamedTuple):
    """Room for everything else about a tile."""

    true: AnyArray  # (TILE,), and so on
    weight: AnyArray
    block: AnyArray
    hashed: AnyArray  # the hash of its id, from which coarser blocks are made
    coarse: AnyArray  # the block of label frequencies
    cell: AnyArray
    case: AnyArray
    rank: AnyArray
    place: AnyArray
    value: AnyArray
    one: AnyArray
    sums: AnyArray  # (3, TILE)


class Sums(NamedTuple):
    """What is kept of a generation."""

    means: AnyArray
    gaps: AnyArray
    labels: AnyArray


@inlined
def _open(
    side: TileSide, room: TileScratch, scores: AnyArray, labels: AnyArray, first: int
) -> None:
    """Take in one generation's part of a tile."""
    _take(labels, first, side.labels)
    if len(side.tile):
        rows_of.turn(scores, first, side.tile)
        rows_of.moments(side.tile, room.true, side.sums)
        best, top = side.best, side.top
        rows_of.first_two(side.tile, best[0], top[0], best[1], top[1], side.flat)
        for rank in range(2, len(top)):
            rows_of.following(side.tile, best[rank - 1], top[rank - 1], best[rank], top[rank])


@inlined
def _compare(
    old: TileSide, new: TileSide, room: TileScratch, top_k: AnyArray, known: bool, columns: AnyArray
) -> None:
    """The columns that the scores of both give, in the order of `pair_names`."""
    middle = 1.0 / len(old.tile)
    rows_of.moved(old.tile, new.tile, room.sums)
    rows_of.alike(middle, old.sums, new.sums, room.sums, columns)
    if rows_of.unserved(middle, old.sums, old.flat) + rows_of.unserved(middle, new.sums, new.flat):
        rows_of.mend(old.tile, new.tile, old.flat, new.flat, old.sums, new.sums, columns[0])
    divergence(old.tile, new.tile, columns[4])
    rows_of.common(old.top, new.top, room.rank)
    for j in range(len(top_k)):
        rows_of.at_most(room.rank, top_k[j], columns[5 + j])
    if known:
        rows_of.together(columns[2], old.sums[2], new.sums[2], columns[5 + len(top_k)])


@inlined
def _close(
    side: TileSide,
    room: TileScratch,
    top_k: AnyArray,
    known: bool,
    columns: AnyArray,
    sums: Sums,
    inside: int,
    least: float,
    scale: float,
) -> None:
    """Add one generation's part of a tile to its sums. The first column is 1 already.

    `scale` is 0 where no losses are counted.
    """
    _add_one(sums.labels, room.coarse, side.labels, room.one, room.weight, inside)
    if known:
        rows_of.right(side.labels, room.true, columns[1])
    if known and len(side.tile):
        rows_of.near(side.sums[2], columns[2])
        rows_of.calibrated(side.best[0], side.top[0], room.true, room.value, room.place)
        _add_one(sums.gaps, room.block, room.place, room.value, room.weight, inside)
        rows_of.rank_of(room.true, side.top, room.rank)
        for j in range(len(top_k)):
            rows_of.at_most(room.rank, top_k[j], columns[3 + j])
        if scale > 0.0:
            last = 3 + len(top_k)
            rows_of.losses(
                side.tile,
                room.true,
                side.sums[2],
                least,
                scale,
                columns[last],
                columns[last + 1],
            )
    for j in range(0, len(columns), 4):
        _add(sums.means, room.block, 0, columns, j, room.weight, inside)


@part
def _take(values: AnyArray, first: int, tile: AnyArray) -> None:
    for r in range(min(TILE, len(values) - first)):
        tile[r] = values[first + r]


@part
def _cells(codes: AnyArray, first: int, where: AnyArray, blocks: AnyArray, cells: AnyArray) -> None:
    """The cell of each row: its group's, and there its block's."""
    start, width = where[0], where[1]
    for r in range(min(TILE, len(codes) - first)):
        cells[r] = start + np.int64(codes[first + r]) * width + blocks[r]


@part
def _flows(
    old: AnyArray,
    new: AnyArray,
    true: AnyArray,
    known: bool,
    classes: int,
    moves: AnyArray,
    found: int,
    inside: int,
) -> int:
    """Note down true class, old and new label, packed, of the rows that changed."""
    for r in range(inside):
        first = np.int64(true[r]) if known else 0
        # Written for every row, and kept by moving on: that takes no guess about which changed.
        moves[found] = (first * classes + old[r]) * classes + new[r]
        found += old[r] != new[r]
    return found


@part
def _add(
    sums: AnyArray,
    cells: AnyArray,
    first: int,
    columns: AnyArray,
    j: int,
    weights: AnyArray,
    inside: int,
) -> None:
    """Add four columns of each row, from the j-th on, to those of its cell, `first` places on."""
    # Places are unsigned, as signed ones may count from the end, which takes a look at each.
    width, offset = np.uint64(sums.shape[1]), np.uint64(first + j)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    flat = sums.reshape(-1)
    for r in range(inside):
        weight = weights[r]
        start = np.uint64(cells[r]) * width + offset
        flat[start] += weight * columns[j, r]
        flat[start + one] += weight * columns[j + 1, r]
        flat[start + two] += weight * columns[j + 2, r]
        flat[start + three] += weight * columns[j + 3, r]


@part
def _add_one(
    sums: AnyArray,
    cells: AnyArray,
    places: AnyArray,
    values: AnyArray,
    weights: AnyArray,
    inside: int,
) -> None:
    """Add each row's value, weighted, at one place of its cell."""
    width = np.uint64(sums.shape[1])
    flat = sums.reshape(-1)
    for r in range(inside):
        flat[np.uint64(cells[r]) * width + np.uint64(places[r])] += weights[r] * values[r]


@part
def _case(old: AnyArray, new: AnyArray, true: AnyArray, known: bool, cases: AnyArray) -> None:
    """The case of each row, in the order of `CASES` or `CASES_WITHOUT_TRUTH`."""
    for r in range(TILE):
        before, now = known and old[r] == true[r], known and new[r] == true[r]
        neither = (3 if known else 0) + (0 if old[r] == new[r] else 1)
        cases[r] = (0 if now else 2) if before else (1 if now else neither)


@part
def _hash(keys: AnyArray, first: int, hashed: AnyArray) -> None:
    """A hash (splitmix64) of each key, below `BLOCKS`."""
    for r in range(min(TILE, len(keys) - first)):
        value = (keys[first + r] + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashed[r] = np.int64((value ^ (value >> np.uint64(31))) & np.uint64(BLOCKS - 1))


@part
def _block(position: int, exact: bool, count: int, hashed: AnyArray, blocks: AnyArray) -> None:
    """The block of each row: its own while each has one, else that of its hash."""
    for r in range(TILE):
        blocks[r] = position + r if exact else hashed[r] & (count - 1)


def _pass(stamp: int) -> Callable[..., Any]:
    """The pass, with the stamp of all that it is compiled from in its closure.

    The compiler keeps machine code on disk for as long as this file and this closure stay the
    same; without the stamp it would not notice a change in another file.
    """

    @compiled
    def count(
        scores: tuple[AnyArray, AnyArray],
        labels: tuple[AnyArray, AnyArray],
        truth: AnyArray,
        weights: AnyArray,
        codes: AnyArray,
        cells: AnyArray,
        keys: AnyArray,
        start: int,
        exact: bool,
        blocks: int,
        label_blocks: int,
        top_k: AnyArray,
        classes: int,
        sides: tuple[TileSide, TileSide],
        room: TileScratch,
        columns: AnyArray,
        sums: AnyArray,
        own: tuple[Sums, Sums],
        own_columns: tuple[AnyArray, AnyArray],
        moves: AnyArray,
        least: tuple[float, float],
        scale: float,
    ) -> int:
        assert stamp
        old, new = sides
        rows, known = len(labels[0]), len(truth) > 0
        found = 0
        for first in range(0, rows, TILE):
            inside = min(TILE, rows - first)
            if known:
                _take(truth, first, room.true)
            if len(weights):
                _take(weights, first, room.weight)
            _hash(keys, first, room.hashed)
            _block(start + first, exact, blocks, room.hashed, room.block)
            own_labels = exact and label_blocks == blocks
            _block(start + first, own_labels, label_blocks, room.hashed, room.coarse)
            for s in range(2):
                _open(sides[s], room, scores[s], labels[s], first)
            _case(old.labels, new.labels, room.true, known, room.case)
            if len(old.tile):
                _compare(old, new, room, top_k, known, columns)
            for g in range(len(codes)):
                if cells[g, 1] == blocks:
                    _cells(codes[g], first, cells[g], room.block, room.cell)
                else:
                    _block(start + first, False, cells[g, 1], room.hashed, room.cell)
                    _cells(codes[g], first, cells[g], room.cell, room.cell)
                _add_one(sums, room.cell, room.case, room.one, room.weight, inside)
                for j in range(0, len(columns), 4):
                    _add(
                        sums,
                        room.cell,
                        sums.shape[1] - len(columns),
                        columns,
                        j,
                        room.weight,
                        inside,
                    )
            for s in range(2):
                if len(own[s].labels):
                    _close(
                        sides[s],
                        room,
                        top_k,
                        known,
                        own_columns[s],
                        own[s],
                        inside,
                        least[s],
                        scale,
                    )
            found = _flows(old.labels, new.labels, room.true, known, classes, moves, found, inside)
        return found

    return count


SOURCES = (_compiled, rows_of, _tally_layout)


def _stamp() -> int:
    text = b"".join(Path(module.__file__ or "").read_bytes() for module in SOURCES)
    return 1 + int.from_bytes(hashlib.sha256(text).digest()[:6])


count = _pass(_stamp())


class CompiledKernel:
    """Counts chunks of rows as machine code."""

    def __init__(self, layout: TallyLayout) -> None:
        self.layout = layout
        self.top_k = np.array(layout.top_k, np.int64)

    def __call__(
        self,
        chunk: Chunk,
        pair: tuple[int, int],
        sums: PairSums,
        old: GenerationSums | None,
        new: GenerationSums | None,
    ) -> AnyArray:
        """Add a chunk to the sums; hand back the packed flows of the rows that changed."""
        layout = self.layout
        empty = np.empty((len(chunk), 0), np.float32)
        scores = [chunk.scores[g] if layout.both_scored(pair) else empty for g in pair]
        kind = np.result_type(*scores)
        width = 0 if not layout.both_scored(pair) else layout.classes
        owned = tuple(_own(each) for each in (old, new))
        moves = np.empty(len(chunk) + 1, np.int64)
        found = count(
            tuple(_frozen(np.asarray(rows, kind)) for rows in scores),
            tuple(_frozen(chunk.labels[g]) for g in pair),
            _frozen(np.empty(0, np.int32) if chunk.truth is None else chunk.truth),
            _frozen(np.empty(0) if chunk.weights is None else chunk.weights),
            _frozen(chunk.codes),
            layout.cells,
            _frozen(chunk.keys),
            chunk.start,
            layout.exact,
            layout.blocks,
            layout.label_blocks,
            self.top_k,
            layout.classes,
            tuple(_side(kind, width, ranks=max((2, *layout.top_k))) for _ in pair),
            _room(),
            np.zeros((sums.cells.shape[1] - len(layout.cases), TILE)),
            sums.cells,
            owned,
            tuple(_columns(each.means.shape[1]) for each in owned),
            moves,
            tuple(float(np.finfo(np.asarray(rows).dtype).eps) for rows in scores),
            brier_scale(layout.classes) if layout.classification else 0.0,
        )
        return moves[:found]


def _frozen(array: AnyArray) -> AnyArray:
    """A view that cannot be written to: the compiler sees one type, not two."""
    view = array.view()
    view.flags.writeable = False
    return view


def _own(sums: GenerationSums | None) -> Sums:
    if sums is None:  # another pair counts this generation
        return Sums(np.empty((0, 1)), np.empty((0, 1)), np.empty((0, 1)))
    return Sums(sums.means, sums.gaps, sums.labels)


def _side(kind: np.dtype[np.floating], classes: int, *, ranks: int) -> TileSide:
    return TileSide(
        labels=np.zeros(TILE, np.int32),
        tile=np.empty((classes, TILE), kind),
        sums=np.empty((3, TILE)),
        best=np.empty((ranks, TILE), kind),
        top=np.empty((ranks, TILE), np.int32),
        flat=np.empty(TILE, kind),
    )


def _columns(count: int) -> AnyArray:
    """Room for a generation's columns; the first is the weight, before weighting: 1."""
    columns = np.zeros((count, TILE))
    columns[0] = 1
    return columns


def _room() -> TileScratch:
    return TileScratch(
        true=np.full(TILE, -1, np.int32),
        weight=np.ones(TILE),
        block=np.zeros(TILE, np.int64),
        hashed=np.zeros(TILE, np.int64),
        coarse=np.zeros(TILE, np.int64),
        cell=np.zeros(TILE, np.int64),
        case=np.zeros(TILE, np.int64),
        rank=np.zeros(TILE, np.int32),
        place=np.zeros(TILE, np.int64),
        value=np.zeros(TILE),
        one=np.ones(TILE),
        sums=np.empty((3, TILE)),
    )
