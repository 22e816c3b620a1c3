"""Triton kernels for residual blocks of many rounds: see `_block_fast`, which launches them.

Images are (rounds · images, height, width, channels). A line is what lies in one row of a tile: the
channels of a place, or of two neighbours where a convolution computes them at once. What a kernel
sums up over lines it leaves as one row for each of its programs; `settle_moments` and `settle_sums`
add the rows up in their order, so that the result is the same every time.
"""

import triton
import triton.language as tl

from dynsnap.train.side_by_side._convolution_kernels import pair_sums, take_over, tap_sums


@triton.jit
def convolved(
    source, kernel, result, rows, shown, other, statistics, images, rounds,
    kernel_round, kernel_filter, kernel_tap, kernel_channel,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, PAIRED: tl.constexpr,
    FLIPPED: tl.constexpr, ENDING: tl.constexpr,
    BLOCK: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """A 3×3 convolution that keeps the shape, and what follows it while its values are at hand.

    ENDING states what that is. "measured": rows get the mean of each column and the squares around
    it. "masked": the result is left where `shown` is positive; rows get its sum and its sum times
    `other` as batch norm has normalised it. "added": `other` is added where `shown` is positive.
    "rectified": the result times the first of the statistics and more by the second, and "carried":
    more by `other` too, where that is positive.
    """
    take_over(EARLY)
    together: tl.constexpr = 2 if PAIRED else 1
    wide: tl.constexpr = together * CHANNELS
    program = tl.program_id(0)
    of_round = tl.program_id(1).to(tl.int64)
    lines = images * (HEIGHT * WIDTH // together)
    line = program * BLOCK + tl.arange(0, BLOCK)
    exists = line < lines
    column = tl.arange(0, wide)
    start = of_round * images * (HEIGHT * WIDTH * CHANNELS)
    kernel += of_round * kernel_round
    if PAIRED:
        sums = pair_sums(
            source + start, kernel, line, exists, kernel_filter, kernel_tap, kernel_channel,
            HEIGHT, WIDTH, CHANNELS, CHANNELS, FLIPPED, BLOCK, STAGES, PRECISION,
        )  # fmt: skip
    else:
        weights_at = kernel + (column * kernel_channel)[:, None] + (column * kernel_filter)[None, :]
        real = (column < CHANNELS)[:, None] & (column < CHANNELS)[None, :]
        sums = tap_sums(
            source + start, weights_at, line // (HEIGHT * WIDTH), line // WIDTH % HEIGHT,
            line % WIDTH, exists, real, column, kernel_tap,
            HEIGHT, WIDTH, CHANNELS, 3, 1, 1, FLIPPED, BLOCK, CHANNELS, STAGES, PRECISION,
        )  # fmt: skip
    at = start + line[:, None] * wide + column[None, :]
    _ended(
        sums, at, exists, tl.minimum(lines - program * BLOCK, BLOCK),
        of_round * CHANNELS + column % CHANNELS, rounds * CHANNELS, column,
        result, rows + (of_round * tl.num_programs(0) + program) * (2 * wide),
        shown, other, statistics, wide, ENDING,
    )  # fmt: skip


@triton.jit
def streamed(
    source, kernel, result, rows, shown, other, statistics, images, rounds,
    kernel_round, kernel_filter, kernel_tap, kernel_channel,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr,
    FLIPPED: tl.constexpr, ENDING: tl.constexpr,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """The same as `convolved`, two neighbours at once, for some rows of some whole images.

    A program goes down the rows and loads each of them once, not three times. What a row adds to
    the row above it, to its own and to the row below it are three products; the row above is whole
    then, and what follows the convolution is computed of it. Sums over lines would take as long
    for every row as elsewhere for a block, so this is for endings that leave none.
    """
    take_over(EARLY)
    tl.static_assert(ENDING != "measured" and ENDING != "masked")
    across: tl.constexpr = WIDTH // 2
    together: tl.constexpr = BLOCK // across  # images
    wide: tl.constexpr = 2 * CHANNELS
    first = tl.program_id(0) % (HEIGHT // ROWS) * ROWS
    group = tl.program_id(0) // (HEIGHT // ROWS)
    of_round = tl.program_id(1).to(tl.int64)
    line = tl.arange(0, BLOCK)
    image = group * together + line // across
    exists = image < images
    column = tl.arange(0, wide)
    seen = tl.arange(0, 4 * CHANNELS)  # (column, channel)
    tap = (seen // CHANNELS)[:, None] - (column // CHANNELS)[None, :]
    real = (tap >= 0) & (tap < 3)
    tap = 8 - tap if FLIPPED else tap
    weights_at = (
        kernel
        + of_round * kernel_round
        + tap * kernel_tap
        + (seen % CHANNELS * kernel_channel)[:, None]
        + (column % CHANNELS * kernel_filter)[None, :]
    )
    further = -3 * kernel_tap if FLIPPED else 3 * kernel_tap
    from_above = tl.load(weights_at, mask=real, other=0.0)
    level = tl.load(weights_at + further, mask=real, other=0.0)
    from_below = tl.load(weights_at + 2 * further, mask=real, other=0.0)
    left = (line % across * 2 - 1)[:, None] + (seen // CHANNELS)[None, :]
    inside = exists[:, None] & (left >= 0) & (left < WIDTH)
    start = of_round * images * (HEIGHT * WIDTH * CHANNELS)
    values_at = (
        source
        + start
        + (image * (HEIGHT * WIDTH) + line % across * 2 - 1)[:, None] * CHANNELS
        + seen[None, :]
    )
    at = start + (image * (HEIGHT * across) + line % across)[:, None] * wide + column[None, :]
    own = of_round * CHANNELS + column % CHANNELS
    above = tl.zeros((BLOCK, wide), dtype=tl.float32)
    now = tl.zeros((BLOCK, wide), dtype=tl.float32)
    for row in tl.range(first - 1, first + ROWS + 1, num_stages=STAGES):
        there = inside & ((line * 0 + row >= 0) & (line * 0 + row < HEIGHT))[:, None]
        values = tl.load(values_at + row * (WIDTH * CHANNELS), mask=there, other=0.0)
        above = tl.dot(values, from_below, above, input_precision=PRECISION)
        now = tl.dot(values, level, now, input_precision=PRECISION)
        below = tl.dot(
            values, from_above, tl.zeros((BLOCK, wide), dtype=tl.float32), input_precision=PRECISION
        )
        _ended(
            above, at + (row - 1) * (across * wide), exists & (line * 0 + row > first), BLOCK,
            own, rounds * CHANNELS, column, result, rows, shown, other, statistics, wide, ENDING,
        )  # fmt: skip
        above = now
        now = below


@triton.jit
def _ended(
    sums, at, exists, count, own, all_channels, column,
    result, rows, shown, other, statistics, WIDE: tl.constexpr, ENDING: tl.constexpr,
):  # fmt: skip
    """What follows a convolution, of some lines: see `convolved`."""
    there = exists[:, None]
    if ENDING == "measured":
        rounded = sums.to(result.dtype.element_ty)
        tl.store(result + at, rounded, mask=there)
        values = tl.where(there, rounded.to(tl.float32), 0.0)
        one = tl.sum(values, axis=0) / count
        around = tl.where(there, values - one[None, :], 0.0)
        two = tl.sum(around * around, axis=0)
    elif ENDING == "masked":
        kept = tl.load(shown + at, mask=there, other=0.0) > 0
        rounded = tl.where(kept, sums, 0.0).to(result.dtype.element_ty)
        tl.store(result + at, rounded, mask=there)
        mean = tl.load(statistics + own)
        spread = tl.load(statistics + 2 * all_channels + own)
        values = tl.load(other + at, mask=there, other=0.0).to(tl.float32)
        slopes = rounded.to(tl.float32)
        one = tl.sum(slopes, axis=0)
        two = tl.sum(slopes * (values - mean[None, :]) * spread[None, :], axis=0)
    elif ENDING == "added":
        kept = tl.load(shown + at, mask=there, other=0.0) > 0
        values = tl.load(other + at, mask=there, other=0.0).to(tl.float32)
        sums += tl.where(kept, values, 0.0)
        tl.store(result + at, sums.to(result.dtype.element_ty), mask=there)
    else:
        scale = tl.load(statistics + own)
        shift = tl.load(statistics + all_channels + own)
        sums = sums * scale[None, :] + shift[None, :]
        if ENDING == "carried":
            sums += tl.load(other + at, mask=there, other=0.0).to(tl.float32)
        sums = _rectified(sums)
        tl.store(result + at, sums.to(result.dtype.element_ty), mask=there)
    if ENDING == "measured" or ENDING == "masked":
        tl.store(rows + column, one)
        tl.store(rows + WIDE + column, two)


@triton.jit
def settle_moments(
    rows, statistics, entries, lines, eps,
    CHANNELS: tl.constexpr, TOGETHER: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """Mean, variance and one over the deviation of each channel, from those of parts."""
    take_over(EARLY)
    of_round = tl.program_id(0)
    channel = tl.arange(0, CHANNELS)
    rows += of_round.to(tl.int64) * entries * (2 * TOGETHER * CHANNELS)
    total = tl.zeros((CHANNELS,), dtype=tl.float32)
    for begin in range(0, entries * TOGETHER, CHUNK):
        _, count, means = _means(rows, begin, lines, channel, CHANNELS, TOGETHER, BLOCK, CHUNK)
        total += tl.sum(means * count, axis=0)
    mean = total / (lines * TOGETHER)
    squares = tl.zeros((CHANNELS,), dtype=tl.float32)
    for begin in range(0, entries * TOGETHER, CHUNK):
        at, count, means = _means(rows, begin, lines, channel, CHANNELS, TOGETHER, BLOCK, CHUNK)
        inside = tl.load(at + TOGETHER * CHANNELS, mask=count > 0, other=0.0)
        off = means - mean[None, :]
        squares += tl.sum(inside + off * off * count, axis=0)
    variance = squares / (lines * TOGETHER)
    all_channels = tl.num_programs(0) * CHANNELS
    statistics += of_round * CHANNELS + channel
    tl.store(statistics, mean)
    tl.store(statistics + all_channels, variance)
    tl.store(statistics + 2 * all_channels, 1 / tl.sqrt(variance + eps))


@triton.jit
def settle_sums(
    rows, result, entries,
    CHANNELS: tl.constexpr, TOGETHER: tl.constexpr, CHUNK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """The two sums of each channel, from those of parts."""
    take_over(EARLY)
    of_round = tl.program_id(0)
    channel = tl.arange(0, CHANNELS)
    rows += of_round.to(tl.int64) * entries * (2 * TOGETHER * CHANNELS)
    one = tl.zeros((CHANNELS,), dtype=tl.float32)
    two = tl.zeros((CHANNELS,), dtype=tl.float32)
    for begin in range(0, entries * TOGETHER, CHUNK):
        entry = begin + tl.arange(0, CHUNK)
        real = (entry < entries * TOGETHER)[:, None]
        at = _row(rows, entry, channel, CHANNELS, TOGETHER)
        first = tl.load(at, mask=real, other=0.0)
        second = tl.load(at + TOGETHER * CHANNELS, mask=real, other=0.0)
        one += tl.sum(first, axis=0)
        two += tl.sum(second, axis=0)
    result += of_round * CHANNELS + channel
    tl.store(result, one)
    tl.store(result + tl.num_programs(0) * CHANNELS, two)


@triton.jit
def _means(
    rows, begin, lines, channel,
    CHANNELS: tl.constexpr, TOGETHER: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Entries from one on: where they lie, how many lines are in each, and their means."""
    entry = begin + tl.arange(0, CHUNK)
    count = tl.minimum(tl.maximum(lines - entry // TOGETHER * BLOCK, 0), BLOCK)[:, None]
    at = _row(rows, entry, channel, CHANNELS, TOGETHER)
    return at, count, tl.load(at, mask=count > 0, other=0.0)


@triton.jit
def _row(rows, entry, channel, CHANNELS: tl.constexpr, TOGETHER: tl.constexpr):
    """Where the first of the two numbers of entries lies; neighbours are entries of their own."""
    place = entry // TOGETHER * (2 * TOGETHER) + entry % TOGETHER
    return rows + place[:, None] * CHANNELS + channel[None, :]


@triton.jit
def normalised(
    source, carried, result, statistics, weight, bias, lines,
    CHANNELS: tl.constexpr, ADDED: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Batch norm, what is carried around it added, and rectified."""
    take_over(EARLY)
    at, there, own, rounds = _lines(lines, CHANNELS, BLOCK)
    spread = tl.load(statistics + 2 * rounds * CHANNELS + own)
    scale = tl.load(weight + own) * spread
    shift = tl.load(bias + own) - tl.load(statistics + own) * scale
    values = tl.load(source + at, mask=there, other=0.0).to(tl.float32)
    values = values * scale[None, :] + shift[None, :]
    if ADDED:
        values += tl.load(carried + at, mask=there, other=0.0).to(tl.float32)
    tl.store(result + at, _rectified(values).to(result.dtype.element_ty), mask=there)


@triton.jit
def summed_slopes(
    gradient, shown, source, statistics, rows, lines,
    CHANNELS: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Rows of the gradient where `shown` is positive: its sum, and times what was normalised."""
    take_over(EARLY)
    at, there, own, rounds = _lines(lines, CHANNELS, BLOCK)
    mean = tl.load(statistics + own)
    spread = tl.load(statistics + 2 * rounds * CHANNELS + own)
    kept = tl.load(shown + at, mask=there, other=0.0) > 0
    slopes = tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
    slopes = tl.where(kept, slopes, 0.0)
    values = tl.load(source + at, mask=there, other=0.0).to(tl.float32)
    channel = tl.arange(0, CHANNELS)
    program = tl.program_id(1).to(tl.int64) * tl.num_programs(0) + tl.program_id(0)
    rows += program * (2 * CHANNELS)
    tl.store(rows + channel, tl.sum(slopes, axis=0))
    normal = (values - mean[None, :]) * spread[None, :]
    tl.store(rows + CHANNELS + channel, tl.sum(slopes * normal, axis=0))


@triton.jit
def through_norm(
    gradient, shown, source, statistics, sums, weight, result, lines,
    CHANNELS: tl.constexpr, MASKED: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """The gradient of what batch norm was given, where MASKED if `shown` is positive."""
    take_over(EARLY)
    at, there, own, rounds = _lines(lines, CHANNELS, BLOCK)
    mean = tl.load(statistics + own)
    spread = tl.load(statistics + 2 * rounds * CHANNELS + own)
    level = tl.load(sums + own) / lines
    tilt = tl.load(sums + rounds * CHANNELS + own) / lines
    slopes = tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
    if MASKED:
        kept = tl.load(shown + at, mask=there, other=0.0) > 0
        slopes = tl.where(kept, slopes, 0.0)
    values = tl.load(source + at, mask=there, other=0.0).to(tl.float32)
    normal = (values - mean[None, :]) * spread[None, :]
    scale = tl.load(weight + own) * spread
    slopes = scale[None, :] * (slopes - level[None, :] - normal * tilt[None, :])
    tl.store(result + at, slopes.to(result.dtype.element_ty), mask=there)


@triton.jit
def _rectified(values):
    """Not a maximum, which would make nothing of what is no number: who diverges is to be seen."""
    return tl.where(values < 0, 0.0, values)


@triton.jit
def _lines(lines, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """A block of one round's lines: where they lie, which there are, whose channels they have."""
    of_round = tl.program_id(1).to(tl.int64)
    line = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channel = tl.arange(0, CHANNELS)
    at = (of_round * lines + line)[:, None] * CHANNELS + channel[None, :]
    return at, (line < lines)[:, None], of_round * CHANNELS + channel, tl.num_programs(1)


@triton.jit
def added_up(
    parts, result, count,
    CHANNELS: tl.constexpr, PAIRED: tl.constexpr, AHEAD: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """The gradient of 3×3 kernels for one tap, from sums over parts of the places.

    AHEAD parts are loaded before the first is waited for.
    """
    take_over(EARLY)
    tap = tl.program_id(0)
    of_round = tl.program_id(1).to(tl.int64)
    rounds = tl.num_programs(1)
    down = tl.arange(0, CHANNELS)[:, None]
    across = tl.arange(0, CHANNELS)[None, :]
    channel = down if PAIRED else across  # whichever lies innermost is across
    filters = across if PAIRED else down
    square: tl.constexpr = CHANNELS * CHANNELS
    sums = tl.zeros((CHANNELS, CHANNELS), dtype=tl.float32)
    if PAIRED:  # (part, round, row, column seen, channel, neighbour, filter)
        at = parts + (of_round * 12 + tap // 3 * 4 + tap % 3) * (2 * square)
        at += channel * (2 * CHANNELS) + filters
        step = rounds * (24 * square)
    else:  # (part, round, filter, tap, channel)
        at = parts + of_round * (9 * square) + filters * (9 * CHANNELS) + tap * CHANNELS + channel
        step = rounds * (9 * square)
    for begin in range(0, count, AHEAD):
        for ahead in tl.static_range(AHEAD):
            there = down * 0 + (begin + ahead) < count
            sums += tl.load(at, mask=there, other=0.0)
            if PAIRED:
                sums += tl.load(at + 2 * square + CHANNELS, mask=there, other=0.0)
            at += step
    result += of_round * (9 * square) + filters * (9 * CHANNELS) + tap * CHANNELS + channel
    tl.store(result, sums.to(result.dtype.element_ty))
