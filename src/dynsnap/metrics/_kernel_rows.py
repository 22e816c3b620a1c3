"""What a tile of scores comes to, row by row, compiled. Import this late: numba is slow to load."""

import math

import numpy as np

from dynsnap._compiled import full_width, inlined, part
from dynsnap._types import AnyArray
from dynsnap.metrics._tally_layout import BINS

TILE = 128  # rows that are worked on side by side

_SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of √½
_LN2 = math.log(2)
_QUARTER_IN_BITS = 0.25 / _LN2

# 2 atanh(z)/z as a polynomial in z², for |z| ≤ (√2 − 1)/(√2 + 1), off by less than 1e-15.
ATANH = (
    2.0000000000000004,
    0.6666666666655292,
    0.40000000061741614,
    0.2857141602110767,
    0.22223434547517906,
    0.18121934431215214,
    0.16837659970680488,
)
# (1 + w) ln(1 + w)/w as a polynomial in 2w − 1, for w from 0 to 1, off by less than 6e-14.
GROWTH = (
    1.2163953243244932,
    0.18906978378420203,
    -0.02240311711716187,
    0.003884598578716686,
    -0.0007981788395411087,
    0.00018089510705058995,
    -4.372074643372372e-05,
    1.1059156685732054e-05,
    -2.8947290350362623e-06,
    7.805422370549609e-07,
    -2.1434826740208993e-07,
    5.663222783111117e-08,
    -1.601301240865518e-08,
    6.758786558701272e-09,
    -1.971084765443876e-09,
)


@inlined
def _atanh(square: float) -> float:
    value = ATANH[6] * square + ATANH[5]
    value = value * square + ATANH[4]
    value = value * square + ATANH[3]
    value = value * square + ATANH[2]
    value = value * square + ATANH[1]
    return value * square + ATANH[0]


@inlined
def _growth(t: float) -> float:
    value = GROWTH[14] * t + GROWTH[13]
    value = value * t + GROWTH[12]
    value = value * t + GROWTH[11]
    value = value * t + GROWTH[10]
    value = value * t + GROWTH[9]
    value = value * t + GROWTH[8]
    value = value * t + GROWTH[7]
    value = value * t + GROWTH[6]
    value = value * t + GROWTH[5]
    value = value * t + GROWTH[4]
    value = value * t + GROWTH[3]
    value = value * t + GROWTH[2]
    value = value * t + GROWTH[1]
    return value * t + GROWTH[0]


@inlined
def _share(old: float, new: float) -> float:
    """s ((1 + w) ln(1 + w) + (1 − w) ln(1 − w)) with s = old + new and w = |old − new| / s.

    A quarter of it is the class's share in nats. The logarithm of x = 1 − w is taken apart into
    x = 2^e m with m between √½ and √2. At x = 0 it is finite nonsense, times zero.
    """
    total = old + new
    w = abs(old - new) / max(total, 1e-300)
    x = 1.0 - w
    bits = np.float64(x).view(np.int64)
    exponent = (bits - np.int64(_SQRT_HALF)) >> np.int64(52)
    m = np.int64(bits - (exponent << np.int64(52))).view(np.float64)
    z = (m - 1.0) / (m + 1.0)
    logarithm = np.float64(exponent) * _LN2 + z * _atanh(z * z)
    share: float = total * (w * _growth(2.0 * w - 1.0) + x * logarithm)
    return share


@part
def divergence(old: AnyArray, new: AnyArray, bits: AnyArray) -> None:
    """The Jensen-Shannon divergence in bits of each row of two tiles (classes, rows)."""
    full_width()
    bits[:] = 0.0
    for c in range(len(old)):
        for r in range(TILE):
            bits[r] += _share(np.float64(old[c, r]), np.float64(new[c, r]))
    for r in range(TILE):
        bits[r] = max(0.0, bits[r] * _QUARTER_IN_BITS)


_ROOT_HALF = math.sqrt(0.5)


@part
def turn(scores: AnyArray, first: int, tile: AnyArray) -> None:
    """Fill a tile with the rows from `first` on; the last row fills it up."""
    full_width()
    rows, classes = scores.shape
    if first + TILE <= rows:
        for c in range(classes):
            for r in range(TILE):
                # Unsigned: a signed place may count from the end, which takes a look at each.
                tile[c, r] = scores[np.uint64(first + r), np.uint64(c)]
    else:
        for c in range(classes):
            for r in range(TILE):
                tile[c, r] = scores[min(first + r, rows - 1), c]


@part
def moments(tile: AnyArray, true: AnyArray, sums: AnyArray) -> None:
    """Of each row: the sum of its offsets from 1/classes, of their squares, its distance to truth.

    The mean of a row is 1/classes or near it, so that little is lost to rounding.
    """
    full_width()
    middle = 1.0 / len(tile)
    sums[:] = 0.0
    for c in range(len(tile)):
        for r in range(TILE):
            score = np.float64(tile[c, r])
            apart = score - middle
            wrong = score - (1.0 if true[r] == c else 0.0)
            sums[0, r] += apart
            sums[1, r] += apart * apart
            sums[2, r] += wrong * wrong
    for r in range(TILE):
        sums[2, r] = math.sqrt(sums[2, r])


@part
def first_two(
    tile: AnyArray,
    best: AnyArray,
    winner: AnyArray,
    second: AnyArray,
    runner_up: AnyArray,
    flat: AnyArray,
) -> None:
    """The two highest scores of each row: a later class must be strictly higher.

    `flat` is left at 0 where all scores of a row are equal.
    """
    full_width()
    best[:] = -1.0
    winner[:] = -1
    second[:] = -1.0
    runner_up[:] = -1
    flat[:] = np.inf
    for c in range(len(tile)):
        for r in range(TILE):
            score = tile[c, r]
            leader = best[r]
            above = score > leader
            between = score > second[r]
            second[r] = leader if above else (score if between else second[r])
            runner_up[r] = winner[r] if above else (np.int32(c) if between else runner_up[r])
            best[r] = score if above else leader
            winner[r] = np.int32(c) if above else winner[r]
            flat[r] = min(flat[r], score)
    for r in range(TILE):
        flat[r] = best[r] - flat[r]


@part
def following(
    tile: AnyArray, before: AnyArray, taken: AnyArray, best: AnyArray, winner: AnyArray
) -> None:
    """The class of each row that ranks right after the one that was taken."""
    full_width()
    best[:] = -1.0
    winner[:] = -1
    for c in range(len(tile)):
        for r in range(TILE):
            score = tile[c, r]
            after = (score < before[r]) | ((score == before[r]) & (c > taken[r]))
            here = (score > best[r]) & after
            best[r] = score if here else best[r]
            winner[r] = np.int32(c) if here else winner[r]


@part
def moved(old: AnyArray, new: AnyArray, sums: AnyArray) -> None:
    """Of each row: products about 1/classes, squared differences, absolute differences."""
    full_width()
    middle = 1.0 / len(old)
    sums[:] = 0.0
    for c in range(len(old)):
        for r in range(TILE):
            p = np.float64(old[c, r])
            q = np.float64(new[c, r])
            apart = p - q
            sums[0, r] += (p - middle) * (q - middle)
            sums[1, r] += apart * apart
            sums[2, r] += abs(apart)


@part
def alike(middle: float, old: AnyArray, new: AnyArray, sums: AnyArray, columns: AnyArray) -> None:
    """The first four columns: Pearson, cosine, distance, total variation."""
    full_width()
    for r in range(TILE):
        a, b, aa, bb, ab = old[0, r], new[0, r], old[1, r], new[1, r], sums[0, r]
        spread = (aa - a * a * middle) * (bb - b * b * middle)
        along = (ab - a * b * middle) / math.sqrt(max(spread, 1e-300))
        lengths = (aa + (2.0 * a + 1.0) * middle) * (bb + (2.0 * b + 1.0) * middle)
        towards = (ab + (a + b + 1.0) * middle) / math.sqrt(lengths)
        columns[0, r] = max(-1.0, min(1.0, along))
        columns[1, r] = max(-1.0, min(1.0, towards))
        columns[2, r] = math.sqrt(sums[1, r])
        columns[3, r] = 0.5 * sums[2, r]


@inlined
def _unserved(offset: float, square: float, flat: float, middle: float) -> bool:
    """Whether a row has no correlation, or one that sums about 1/classes do not give well.

    The latter are nearly flat rows with another mean, since they do not quite sum to one.
    """
    return (flat == 0.0) | (square - offset * offset * middle < 1e-6 * square)


@part
def unserved(middle: float, sums: AnyArray, flat: AnyArray) -> int:
    """How many rows of a tile `mend` must look at."""
    found = 0
    for r in range(TILE):
        found += _unserved(sums[0, r], sums[1, r], flat[r], middle)
    return found


@part
def mend(
    old: AnyArray,
    new: AnyArray,
    old_flat: AnyArray,
    new_flat: AnyArray,
    old_sums: AnyArray,
    new_sums: AnyArray,
    pearson: AnyArray,
) -> None:
    """Pearson's correlation of the rows that the sums about 1/classes do not serve."""
    middle = 1.0 / len(old)
    for r in range(TILE):
        if old_flat[r] == 0.0 or new_flat[r] == 0.0:
            pearson[r] = 1.0 if old_flat[r] == new_flat[r] else 0.0
        elif _unserved(old_sums[0, r], old_sums[1, r], 1.0, middle) or _unserved(
            new_sums[0, r], new_sums[1, r], 1.0, middle
        ):
            pearson[r] = _correlation(old, new, r)


@part
def _correlation(old: AnyArray, new: AnyArray, r: int) -> float:
    """Pearson's correlation of one row, about its own mean."""
    classes = len(old)
    p0, q0 = np.float64(old[0, r]), np.float64(new[0, r])
    p_mean, q_mean = 0.0, 0.0
    for c in range(classes):
        p_mean += np.float64(old[c, r]) - p0
        q_mean += np.float64(new[c, r]) - q0
    p_mean, q_mean = p_mean / classes, q_mean / classes
    pq, pp, qq = 0.0, 0.0, 0.0
    for c in range(classes):
        p, q = np.float64(old[c, r]) - p0 - p_mean, np.float64(new[c, r]) - q0 - q_mean
        pq += p * q
        pp += p * p
        qq += q * q
    return max(-1.0, min(1.0, pq / math.sqrt(pp) / math.sqrt(qq)))


@part
def common(old: AnyArray, new: AnyArray, needed: AnyArray) -> None:
    """How many of the highest classes of each it takes until they have one in common."""
    k = len(old)
    needed[:] = k + 1
    for i in range(k):
        for j in range(k):
            enough = np.int32(max(i, j) + 1)
            for r in range(TILE):
                same = old[i, r] == new[j, r]
                needed[r] = min(needed[r], enough if same else needed[r])


@part
def rank_of(true: AnyArray, top: AnyArray, rank: AnyArray) -> None:
    """Where the truth stands among the highest classes, from 1 on; beyond them if nowhere."""
    rank[:] = len(top) + 1
    for j in range(len(top)):
        for r in range(TILE):
            rank[r] = np.int32(j + 1) if top[j, r] == true[r] else rank[r]


@part
def at_most(values: AnyArray, limit: int, column: AnyArray) -> None:
    """1 where a value is within the limit, else 0."""
    for r in range(TILE):
        column[r] = 1.0 if values[r] <= limit else 0.0


@part
def together(apart: AnyArray, old: AnyArray, new: AnyArray, column: AnyArray) -> None:
    """The correct distance: between the two, and from each to the truth."""
    for r in range(TILE):
        column[r] = apart[r] + old[r] + new[r]


@part
def right(labels: AnyArray, true: AnyArray, column: AnyArray) -> None:
    """1 where the label is the truth, else 0."""
    for r in range(TILE):
        column[r] = 1.0 if labels[r] == true[r] else 0.0


@part
def near(distance: AnyArray, column: AnyArray) -> None:
    """The correctness, from the distance to the truth."""
    for r in range(TILE):
        column[r] = 1.0 - distance[r] * _ROOT_HALF


@part
def losses(
    tile: AnyArray,
    true: AnyArray,
    distance: AnyArray,
    least: float,
    scale: float,
    surprise: AnyArray,
    brier: AnyArray,
) -> None:
    """The negative logarithm of the score of the truth, and its squared distance to it.

    `least` is how near to 0 and 1 a score may come; the logarithm is taken apart as in `_share`.
    """
    for r in range(TILE):
        c = true[r]
        surprise[r] = np.float64(tile[np.uint64(c if c >= 0 else 0), np.uint64(r)])
        brier[r] = scale * distance[r] * distance[r]
    full_width()
    for r in range(TILE):
        x = min(max(surprise[r], least), 1.0 - least)
        bits = np.float64(x).view(np.int64)
        exponent = (bits - np.int64(_SQRT_HALF)) >> np.int64(52)
        m = np.int64(bits - (exponent << np.int64(52))).view(np.float64)
        z = (m - 1.0) / (m + 1.0)
        surprise[r] = -(np.float64(exponent) * _LN2 + z * _atanh(z * z))


@part
def calibrated(
    best: AnyArray, winner: AnyArray, true: AnyArray, gaps: AnyArray, bins: AnyArray
) -> None:
    """How far being right lies above the confidence, and the bin of the confidence, from 1 on."""
    for r in range(TILE):
        sure = np.float64(best[r])
        gaps[r] = (1.0 if winner[r] == true[r] else 0.0) - sure
        bins[r] = min(max(np.int64(math.ceil(sure * BINS)), 1), BINS)
