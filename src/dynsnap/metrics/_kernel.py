"""One pass over two generations with numpy: for inputs too few to be worth compiling for.

`_kernel_compiled` does the same as machine code; tests hold the two together.
"""

import math
from dataclasses import dataclass

import numpy as np

from dynsnap._types import AnyArray, Flags, Floats, Labels, Scores
from dynsnap.metrics._tally_layout import BINS, BLOCKS, Chunk, GenerationSums, PairSums, TallyLayout

_AT_ONCE = 1 << 18  # scores that are worked on together: temporary arrays then stay small


class NumpyKernel:
    """Counts chunks of rows with whole-array operations."""

    def __init__(self, layout: TallyLayout) -> None:
        self.layout = layout

    def __call__(
        self,
        chunk: Chunk,
        pair: tuple[int, int],
        sums: PairSums,
        old: GenerationSums | None,
        new: GenerationSums | None,
    ) -> AnyArray:
        """Add a chunk to the sums; hand back the packed flows of the rows that changed."""
        step = max(1, _AT_ONCE // self.layout.classes)
        parts = range(0, len(chunk), step)
        moves = [self._part(_rows(chunk, at, at + step), pair, sums, old, new) for at in parts]
        return np.concatenate(moves)

    def _part(
        self,
        chunk: Chunk,
        pair: tuple[int, int],
        sums: PairSums,
        old: GenerationSums | None,
        new: GenerationSums | None,
    ) -> AnyArray:
        layout = self.layout
        before, now = (chunk.labels[g] for g in pair)
        weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
        blocks = Blocks.of(layout, chunk)
        cases = cases_of(before, now, chunk.truth)
        sides = [
            ScoredSide.of(rows, chunk.truth, ranks=max((1, *layout.top_k)))
            for g in pair
            if (rows := chunk.scores[g]) is not None and layout.both_scored(pair)
        ]
        columns = [weights * column for column in self._pair_columns(sides, truth=layout.truth)]
        for (first, count), code in zip(layout.cells, chunk.codes, strict=True):
            cells = first + code.astype(np.int64) * count + blocks.among(count)
            np.add.at(sums.cells, (cells, cases), weights)
            for place, column in enumerate(columns, len(layout.cases)):
                np.add.at(sums.cells[:, place], cells, column)
        for g, place, own in zip(pair, (0, 1), (old, new), strict=True):
            if own is not None:
                side = sides[place] if sides else None
                self._generation(chunk, g, side, own, blocks, weights)
        return flows_of(before, now, chunk.truth, classes=layout.classes)

    def _pair_columns(self, sides: "list[ScoredSide]", *, truth: bool) -> list[Floats]:
        """In the order of `pair_names`."""
        if not sides:
            return []
        old, new = sides
        apart = old.scores - new.scores
        distance = np.sqrt(_dot(apart, apart))
        columns = [
            _pearson(old, new),
            _cosine(old.scores, new.scores),
            distance,
            np.abs(apart).sum(axis=1) / 2,
            _jensen_shannon(old.scores, new.scores),
        ]
        for k in self.layout.top_k:
            alike = old.top[:, :k, None] == new.top[:, None, :k]
            columns.append(alike.any(axis=(1, 2)).astype(np.float64))
        if truth:
            columns.append(distance + old.distance + new.distance)
        return columns

    def _generation(
        self,
        chunk: Chunk,
        generation: int,
        side: "ScoredSide | None",
        sums: GenerationSums,
        blocks: "Blocks",
        weights: Floats,
    ) -> None:
        labels, truth = chunk.labels[generation], chunk.truth
        np.add.at(sums.labels, (blocks.among(self.layout.label_blocks), labels), weights)
        columns: list[AnyArray] = [np.ones(len(labels))]
        if truth is not None:
            columns.append(labels == truth)
        if truth is not None and side is not None:
            columns.append(1 - side.distance / math.sqrt(2))
            hits = side.top == truth[:, None]
            columns += [hits[:, :k].any(axis=1) for k in self.layout.top_k]
            if self.layout.classification:
                columns += [side.surprise, side.distance**2 * brier_scale(self.layout.classes)]
            place = np.clip(np.ceil(side.confidence * BINS).astype(np.intp), 1, BINS)
            gap = (side.top[:, 0] == truth) - side.confidence
            np.add.at(sums.gaps, (blocks.own, place), weights * gap)
        for column, values in enumerate(columns):
            np.add.at(sums.means[:, column], blocks.own, weights * values)


@dataclass(frozen=True, slots=True, eq=False)
class ScoredSide:
    """One generation's scores of some rows, as far as its metrics and its pairs need them.

    Attributes:
        flat: Whether all scores of the row are equal.
        distance: The Euclidean distance to the truth; 0 without truth.
        surprise: The negative logarithm of the score of the truth; 0 without truth.
        confidence: The highest score.
        top: The highest classes, best first; the lower class first among equals.
    """

    scores: Floats
    flat: Flags
    distance: Floats
    surprise: Floats
    confidence: Floats
    top: Labels

    @classmethod
    def of(cls, scores: Scores, truth: Labels | None, *, ranks: int) -> "ScoredSide":
        """Work out one generation's side."""
        rows = scores.astype(np.float64)
        distance = surprise = np.zeros(len(rows))
        if truth is not None:
            apart = rows.copy()
            apart[np.arange(len(rows)), truth] -= 1
            distance = np.sqrt(_dot(apart, apart))
            surprise = surprises(scores, truth)
        highest = rows.max(axis=1)
        flat = highest == rows.min(axis=1)
        return cls(rows, flat, distance, surprise, highest, _top(rows, ranks))


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The block of each row.

    Attributes:
        count: How many there are.
        own: Which one: a row's own, or that of its hash.
        hashed: The hash of its id, below `BLOCKS`.
    """

    count: int
    own: Labels
    hashed: Labels

    @classmethod
    def of(cls, layout: TallyLayout, chunk: Chunk) -> "Blocks":
        """The blocks of some rows."""
        hashed = hashes_of(chunk.keys)
        if layout.exact:
            own = np.arange(chunk.start, chunk.start + len(chunk))
            return cls(layout.blocks, own if chunk.places is None else chunk.places, hashed)
        return cls(layout.blocks, hashed & (layout.blocks - 1), hashed)

    def among(self, count: int) -> Labels:
        """The same where there are only so many blocks: all of them, or a power of two."""
        return self.own if count == self.count else self.hashed & (count - 1)


def surprises(scores: Scores, truth: Labels) -> Floats:
    """The negative logarithm of each row's score of the truth.

    As in scikit-learn, no score is nearer to 0 or 1 than the rounding error of its type.
    """
    least = float(np.finfo(scores.dtype).eps)
    true = scores[np.arange(len(scores)), truth].astype(np.float64)
    return np.asarray(-np.log(np.clip(true, least, 1 - least)))


def brier_scale(classes: int) -> float:
    """What the squared distance to the truth counts for: half of it with two classes."""
    return 0.5 if classes == 2 else 1.0


def hashes_of(keys: AnyArray) -> Labels:
    """A hash (splitmix64) of each key, below `BLOCKS`."""
    value = (keys + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    value = (value ^ (value >> np.uint64(31))) & np.uint64(BLOCKS - 1)
    return np.asarray(value, np.int64)


def cases_of(old: Labels, new: Labels, truth: Labels | None) -> Labels:
    """The case of each row, in the order of `CASES` or `CASES_WITHOUT_TRUTH`."""
    other = (old != new).astype(np.int64)
    if truth is None:
        return np.asarray(other)
    before, now = old == truth, new == truth
    found: Labels = np.where(before, np.where(now, 0, 2), np.where(now, 1, 3 + other))
    return found


def flows_of(old: Labels, new: Labels, truth: Labels | None, *, classes: int) -> AnyArray:
    """Truth, old and new label of each row that changed, packed into one number."""
    changed = old != new
    true = np.zeros(len(old), np.int64) if truth is None else truth.astype(np.int64)
    return np.asarray(((true * classes + old) * classes + new)[changed])


def _rows(chunk: Chunk, start: int, stop: int) -> Chunk:
    rows = slice(start, stop)
    return Chunk(
        start=chunk.start + start,
        keys=chunk.keys[rows],
        labels=tuple(labels[rows] for labels in chunk.labels),
        scores=tuple(None if scores is None else scores[rows] for scores in chunk.scores),
        truth=None if chunk.truth is None else chunk.truth[rows],
        weights=None if chunk.weights is None else chunk.weights[rows],
        codes=chunk.codes[:, rows],
        places=None if chunk.places is None else chunk.places[rows],
    )


def _dot(old: Floats, new: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", old, new))


def _top(rows: Floats, ranks: int) -> Labels:
    left = rows.copy()
    every = np.arange(len(rows))
    top = np.empty((len(rows), ranks), np.int64)
    for rank in range(ranks):
        top[:, rank] = np.argmax(left, axis=1)  # the first of equals, that is, the lowest class
        left[every, top[:, rank]] = -1
    return top


def _pearson(old: ScoredSide, new: ScoredSide) -> Floats:
    # From the first score on, as a mean of equal numbers is not always equal to them.
    shifted = [side.scores - side.scores[:, :1] for side in (old, new)]
    alike = _cosine(*(rows - rows.mean(axis=1, keepdims=True) for rows in shifted))
    either, both = old.flat | new.flat, old.flat & new.flat
    return np.where(either, both.astype(np.float64), alike)


def _cosine(old: Floats, new: Floats) -> Floats:
    lengths = np.sqrt(_dot(old, old)) * np.sqrt(_dot(new, new))
    return np.asarray(np.clip(_dot(old, new) / np.where(lengths > 0, lengths, 1), -1, 1))


def _jensen_shannon(old: Floats, new: Floats) -> Floats:
    """In bits. Of a class with s = old + new and w = |old − new| / s, the share in nats is
    s/4 · ((1 + w) ln(1 + w) + (1 − w) ln(1 − w))."""
    total = old + new
    w = np.abs(old - new) / np.where(total > 0, total, 1)
    below = (1 - w) * np.log1p(-np.where(w < 1, w, 0))
    nats = (total * ((1 + w) * np.log1p(w) + below)).sum(axis=1) / 4
    return np.asarray(np.maximum(nats / math.log(2), 0))
