"""How well scores rank the inputs of a class above all others: AUROC and average precision.

Both follow from how much weight of the class and of the rest there is at each height of the
score, highest first. Up to a million rows every score is a height of its own, and values are exact.
Beyond, scores fall into bins that are narrow near 0 and 1, and the error that this can make is
known: it is at most what any order within the bins could change.

What each input adds to a value (its influence, to first order) is summed by bootstrap block, so
that intervals come from the same draws as those of all other metrics. For AUROC these are DeLong's
structural components: DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Flags, Floats, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.metrics._classification import Average
from dynsnap.metrics._kernel import hashes_of
from dynsnap.metrics._ratios import ratio, relative

EXACT_ROWS = 1_000_000  # up to which every score is kept
EXACT_SCORES = 1 << 28  # the same, of all generations and classes together: 1 GB
CHEAP_SCORES = 200_000  # rows times classes up to which ranking is measured unasked

_LOWEST = 24  # scores below 2 to this negative power share the first bin, likewise next to 1
_MANTISSA = 7  # bits: bins of each power of two
_TOP = (_LOWEST - 1) << _MANTISSA  # the bin of one half
BINS = 2 * (_TOP + 1)
_COARSE = 32  # bins that are one where sums are kept by block
COARSE_BINS = -(-BINS // _COARSE)
COARSE_BLOCKS = 32
_STEPS = np.array([0.0, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0])  # weights of one more input


class Curve(NamedTuple):
    """Heights of a score, highest first: the weight of a class at each, and of all others."""

    inside: Floats
    outside: Floats


class Ranks(NamedTuple):
    """Values of one class, and how an input at each height moves them, times its weight.

    Attributes:
        auroc, average_precision: NaN without inputs of the class or without others.
        auroc_inside, auroc_outside: Of an input of the class, and of another.
        precision_inside, precision_outside: The same of the average precision.
    """

    auroc: float
    average_precision: float
    auroc_inside: Floats
    auroc_outside: Floats
    precision_inside: Floats
    precision_outside: Floats


def ranks_of(curve: Curve) -> Ranks:
    """AUROC and average precision of one class, with the influence of every height."""
    inside, outside = curve
    above, others = np.cumsum(inside), np.cumsum(outside)
    total, rest = above[-1], others[-1]
    nothing = np.zeros(len(inside))
    if not (total > 0 and rest > 0):
        return Ranks(np.nan, np.nan, nothing, nothing, nothing, nothing)
    below = (rest - others + outside / 2) / rest  # the share of others that is lower; ties half
    higher = (above - inside / 2) / total
    area = float((inside * below).sum() / total)
    precision = ratio(above, above + others)
    precision[above + others == 0] = 0
    mean = float((inside * precision).sum() / total)
    # One more input at a height changes the precision of every height from there on.
    every = np.where(above + others > 0, above + others, 1)
    grown = np.cumsum((inside * others / every**2)[::-1])[::-1]
    shrunk = np.cumsum((inside * above / every**2)[::-1])[::-1]
    return Ranks(area, mean, below - area, higher - area, precision + grown - mean, -shrunk)


def mixed(curve: Curve) -> tuple[float, float, float]:
    """The average precision of a histogram, and how far it and AUROC may be off: area first.

    Within a bin, inputs of the class and others are taken as mixed evenly. AUROC counts two of them
    as half, and is off by at most half of all such pairs. The precision of an input of the class is
    lowest with all others of its bin before it, and highest with the others of its bin after it.
    """
    total, rest = curve.inside.sum(), curve.outside.sum()
    if not (total > 0 and rest > 0):
        return np.nan, 0.0, 0.0
    area = float((curve.inside * curve.outside).sum() / (2 * total * rest))
    some = curve.inside > 0
    inside, outside = curve.inside[some], curve.outside[some]
    before = np.cumsum(inside) - inside
    others = (np.cumsum(curve.outside) - curve.outside)[some]
    every, here = before + others, inside + outside
    slope = inside / here
    # The integral of (before + inside u) / (every + here u) over u from 0 to 1.
    grown = np.log1p(ratio(here, np.where(every > 0, every, np.inf))) / here
    value = slope + np.where(every > 0, before - slope * every, 0) * grown
    best = (before + inside) / (before + inside + others)
    worst = before / (before + others + outside + (before + others + outside == 0))
    mean, high, low = (float((inside * each).sum() / total) for each in (value, best, worst))
    return mean, area, max(high - mean, mean - low)


def one_more(curve: Curve, heaviest: float) -> tuple[Floats, Floats]:
    """How one more input moves the average precision, for each weight in `_STEPS` times heaviest.

    Returns:
        What is left of the value with another input ranked first; and what is left of its distance
        to 1 with an input of the class ranked first.
    """
    inside, outside = curve
    above, every = np.cumsum(inside), np.cumsum(inside + outside)
    some = inside > 0
    inside, above, every = inside[some], above[some], every[some]
    if not len(inside):
        return np.ones(len(_STEPS)), np.ones(len(_STEPS))
    total, extra = above[-1], _STEPS[:, None] * heaviest
    value = (inside * above / every).sum() / total
    worse = (inside * above / (every + extra)).sum(axis=1) / total
    better = (inside * (above + extra) / (every + extra)).sum(axis=1) + extra[:, 0]
    better = better / (total + extra[:, 0])
    left = np.ones(len(_STEPS)) if value >= 1 else np.clip((1 - better) / (1 - value), 0, 1)
    return np.clip(worse / value, 0, 1), left


def bins_of(scores: Scores) -> Labels:
    """The bin of each score between 0 and 1, ascending: by the first bits of it or of 1 less it."""
    high = scores >= 0.5
    near = np.where(high, 1 - scores, scores).astype(np.float32)
    first = (127 - _LOWEST) << _MANTISSA
    code = (near.view(np.uint32) >> np.uint32(23 - _MANTISSA)).astype(np.int32) - first
    code = np.clip(code, 0, _TOP)
    return np.where(high, BINS - 1 - code, code)


def curve_of(scores: AnyArray, inside: Flags, weights: Floats) -> tuple[Curve, Labels]:
    """The heights of some scores, and the place of every row among them."""
    heights, places = np.unique(scores, return_inverse=True)
    places = len(heights) - 1 - places
    count = len(heights)
    sides = [
        np.bincount(places[side], weights[side], minlength=count).astype(np.float64)
        for side in (inside, ~inside)
    ]
    return Curve(*sides), places


class ClassRanks(NamedTuple):
    """What one generation's ranking comes to, class by class: see `Ranks`.

    Attributes:
        auroc, average_precision: (classes,).
        sums: (blocks, classes, 6): by block, the weight of the class and of the others, and the
            weighted influence of both on AUROC and on average precision.
        worse, better: (classes, steps): see `one_more`.
        error: How far values may be off, at most, of AUROC and average precision, (classes, 2).
    """

    auroc: Floats
    average_precision: Floats
    sums: Floats
    worse: Floats
    better: Floats
    error: Floats


@dataclass(eq=False)
class RankTally:
    """What ranking needs of the rows of all generations, mergeable.

    Attributes:
        rows, classes: How many there are in all.
        blocks: How many blocks sums are kept in, where every score is kept.
        own: Whether each row is its own block.
        scored: Which generations have scores.
    """

    rows: int
    classes: int
    blocks: int
    own: bool
    scored: tuple[bool, ...]
    exact: bool = True
    parts: list[tuple[int, AnyArray, AnyArray | None, AnyArray, list[AnyArray | None]]] = field(
        default_factory=list
    )
    fine: Floats | None = None  # (generations, classes, 2, bins)
    coarse: Floats | None = None  # (generations, classes, 2, blocks, coarse bins)

    def __post_init__(self) -> None:
        each = self.rows * self.classes * sum(self.scored)
        self.exact = self.rows <= EXACT_ROWS and each <= EXACT_SCORES
        if not self.exact:
            shape = (len(self.scored), self.classes, 2)
            self.fine = np.zeros((*shape, BINS))
            self.coarse = np.zeros((*shape, COARSE_BLOCKS, COARSE_BINS))

    def add(
        self,
        start: int,
        keys: AnyArray,
        truth: Labels,
        weights: AnyArray | None,
        scores: Sequence[Scores | None],
        places: AnyArray | None = None,
    ) -> None:
        """Count some rows: consecutive ones, of which `start` came before, or those at `places`."""
        if self.exact:
            hashed = hashes_of(keys)
            if self.own:  # a row's own block is its place
                hashed = np.arange(start, start + len(truth)) if places is None else places
            hashed = hashed.astype(np.int16)
            self.parts.append((start, truth, weights, hashed, list(scores)))
            return
        assert self.fine is not None and self.coarse is not None
        block = hashes_of(keys) & (COARSE_BLOCKS - 1)
        for g, rows in enumerate(scores):
            if rows is None:
                continue
            for c in range(self.classes):
                place = bins_of(rows[:, c])
                inside = (truth == c).astype(np.int64)
                for table, cell, size in (
                    (self.fine[g, c], inside * BINS + place, 2 * BINS),
                    (
                        self.coarse[g, c],
                        (inside * COARSE_BLOCKS + block) * COARSE_BINS + place // _COARSE,
                        2 * COARSE_BLOCKS * COARSE_BINS,
                    ),
                ):
                    table += np.bincount(cell, weights, minlength=size).reshape(table.shape)

    def merge(self, other: "RankTally") -> None:
        """Add what another one counted on other rows."""
        self.parts += other.parts
        if self.fine is not None and other.fine is not None:
            self.fine += other.fine
        if self.coarse is not None and other.coarse is not None:
            self.coarse += other.coarse

    def generation(self, generation: int, heaviest: float) -> ClassRanks:
        """The values of one generation, with the sums that their intervals are made of."""
        if self.exact:
            return self._of_rows(generation, heaviest)
        return self._of_bins(generation, heaviest)

    def _of_rows(self, generation: int, heaviest: float) -> ClassRanks:
        parts = sorted(self.parts, key=lambda part: part[0])
        truth = np.concatenate([part[1] for part in parts])
        weights = (
            np.ones(len(truth))
            if parts[0][2] is None
            else np.concatenate([np.asarray(part[2], np.float64) for part in parts])
        )
        hashed = np.concatenate([part[3] for part in parts]).astype(np.int64)
        block = hashed if self.own else hashed & (self.blocks - 1)
        scores = [part[4][generation] for part in parts]
        made = _ClassRanksMaker(self.classes, self.blocks)
        for c in range(self.classes):
            column = np.concatenate([rows[:, c] for rows in scores if rows is not None])
            inside = truth == c
            curve, places = curve_of(column, inside, weights)
            found = ranks_of(curve)
            sums = np.zeros((self.blocks, 6))
            for side, chosen in enumerate((inside, ~inside)):
                at, weight, where = block[chosen], weights[chosen], places[chosen]
                one = (found.auroc_inside, found.auroc_outside)[side]
                other = (found.precision_inside, found.precision_outside)[side]
                for column_of, values in ((0, None), (2, one), (4, other)):
                    each = weight if values is None else weight * values[where]
                    sums[:, side + column_of] = np.bincount(at, each, minlength=self.blocks)
            made.add(c, found, sums, one_more(curve, heaviest), (0.0, 0.0))
        return made.made()

    def _of_bins(self, generation: int, heaviest: float) -> ClassRanks:
        assert self.fine is not None and self.coarse is not None
        made = _ClassRanksMaker(self.classes, COARSE_BLOCKS)
        for c in range(self.classes):
            outside, inside = self.fine[generation, c][:, ::-1]
            curve = Curve(inside, outside)
            by_block = self.coarse[generation, c][:, :, ::-1]
            rough = ranks_of(Curve(*by_block.sum(axis=1)[::-1]))
            sums = np.zeros((COARSE_BLOCKS, 6))
            for side, table in enumerate((by_block[1], by_block[0])):
                sums[:, side] = table.sum(axis=1)
                sums[:, side + 2] = table @ (rough.auroc_inside, rough.auroc_outside)[side]
                sums[:, side + 4] = table @ (rough.precision_inside, rough.precision_outside)[side]
            mean, *error = mixed(curve)
            found = ranks_of(curve)._replace(average_precision=mean)
            made.add(c, found, sums, one_more(curve, heaviest), (error[0], error[1]))
        return made.made()


class _ClassRanksMaker:
    def __init__(self, classes: int, blocks: int) -> None:
        self.values = np.full((2, classes), np.nan)
        self.sums = np.zeros((blocks, classes, 6))
        self.steps = np.ones((2, classes, len(_STEPS)))
        self.error = np.zeros((classes, 2))

    def add(
        self,
        place: int,
        found: Ranks,
        sums: Floats,
        steps: tuple[Floats, Floats],
        error: tuple[float, float],
    ) -> None:
        self.values[:, place] = found.auroc, found.average_precision
        self.sums[:, place] = sums
        self.steps[0, place], self.steps[1, place] = steps
        self.error[place] = error

    def made(self) -> ClassRanks:
        (area, precision), (worse, better) = self.values, self.steps
        return ClassRanks(area, precision, self.sums, worse, better, self.error)


def step_of(table: Floats, extra: Floats, heaviest: float) -> Floats:
    """`one_more` of every class, (steps,) each, for any weights: (..., classes)."""
    return np.stack([np.interp(ratio(extra, heaviest), _STEPS, each) for each in table], axis=-1)


def overall(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The mean over the classes that have a value, plain and by weight, from (..., classes).

    Of two classes it is the value of the second, as in scikit-learn.
    """
    if values.shape[-1] == 2:
        return values[..., 1], values[..., 1]
    known = ~np.isnan(values)
    filled = np.where(known, values, 0)
    weights = np.where(known, weight, 0)
    plain = ratio(filled.sum(axis=-1), known.sum(axis=-1))
    return plain, ratio((weights * filled).sum(axis=-1), weights.sum(axis=-1))


def auroc(
    scores: Scores, *, truth: Labels, average: Average = "macro", weights: AnyArray | None = None
) -> float:
    """Area under the ROC curve: the chance that an input of a class scores higher than another.

    With two classes it is that of the second. With more, each class is held against the rest.

    Args:
        scores: Rows of scores.
        truth: The true classes.
        average: "macro" (the mean over classes that have inputs), "weighted" (by the weight of the
            true classes), or the position of one class.
        weights: The importance of each input.

    Returns:
        NaN where all inputs are of one class.

    Example:
        >>> scores = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
        >>> auroc(scores, truth=np.array([0, 0, 1, 1]))
        0.75
    """
    return _averaged(0, scores, truth, average, weights)


def average_precision(
    scores: Scores, *, truth: Labels, average: Average = "macro", weights: AnyArray | None = None
) -> float:
    """Mean precision over the ranks of the inputs of a class. Arguments as for `auroc`.

    Example:
        >>> scores = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
        >>> round(average_precision(scores, truth=np.array([0, 0, 1, 1])), 4)
        0.8333
    """
    return _averaged(1, scores, truth, average, weights)


def _averaged(
    which: int, scores: Scores, truth: Labels, average: Average, weights: AnyArray | None
) -> float:
    (scores,) = _check.scores(scores=scores)
    inputs, classes = scores.shape
    truth = _check.truth(truth, inputs=inputs, classes=classes)
    each = relative(weights, inputs=inputs)
    found = np.array(
        [ranks_of(curve_of(scores[:, c], truth == c, each)[0])[which] for c in range(classes)]
    )
    if average in ("macro", "weighted"):
        weight = np.bincount(truth, each, minlength=classes).astype(np.float64)
        return float(overall(found, weight)[average == "weighted"])
    if not isinstance(average, int) or not 0 <= average < classes:
        raise InputError(
            '`average` must be "macro", "weighted" or the position of a class below '
            f"{classes}, got {average!r}."
        )
    return float(found[average])
