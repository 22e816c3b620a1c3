"""Triton kernels for convolutions of many rounds: see `_convolution_fast`, which launches them.

Images are (rounds · images, height, width, channels), kernels (rounds · filters, side, side,
channels). A program computes a block of places (image, row, column) of one round.
"""

import triton
import triton.language as tl


def _knows_early_starts() -> bool:
    """Whether this Triton compiles them: 3.4 has the instruction and fails, older ones lack it."""
    version = tuple(map(int, triton.__version__.split(".")[:2]))
    return version >= (3, 5) and hasattr(getattr(tl.extra, "cuda", None), "gdc_wait")


STARTS_EARLY = _knows_early_starts()

# Two functions, since older ones look up every name of a function, whether it is reached or not.
if STARTS_EARLY:

    @triton.jit
    def take_over(EARLY: tl.constexpr):
        """Wait for the kernel before, where this one may have been started while that still ran.

        Its values are whole and visible from here on. The next kernel may take its place from here
        on too, and wait in turn: its start costs no time of its own then.
        """
        if EARLY:
            tl.extra.cuda.gdc_wait()
            tl.extra.cuda.gdc_launch_dependents()

else:

    @triton.jit
    def take_over(EARLY: tl.constexpr):
        """Nothing: every kernel starts when the one before it has ended."""


@triton.jit
def pair_sums(
    source, kernel, pair, exists, kernel_filter, kernel_tap, kernel_channel,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, FILTERS: tl.constexpr,
    FLIPPED: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A 3×3 convolution of one round in which a row of the product is two neighbours.

    From two stages on, values of the next row are on their way while those of one are multiplied.
    """
    row = pair // (WIDTH // 2) % HEIGHT
    seen = tl.arange(0, 4 * CHANNELS)  # (column, channel)
    wanted = tl.arange(0, 2 * FILTERS)  # (neighbour, filter)
    tap = (seen // CHANNELS)[:, None] - (wanted // FILTERS)[None, :]
    real = (tap >= 0) & (tap < 3)
    tap = 8 - tap if FLIPPED else tap
    weights_at = (
        kernel
        + tap * kernel_tap
        + (seen % CHANNELS * kernel_channel)[:, None]
        + (wanted % FILTERS * kernel_filter)[None, :]
    )
    column = (pair % (WIDTH // 2) * 2 - 1)[:, None] + (seen // CHANNELS)[None, :]
    across = exists[:, None] & (column >= 0) & (column < WIDTH)
    values_at = source + (pair * 2 - 1)[:, None] * CHANNELS + seen[None, :]
    sums = tl.zeros((BLOCK, 2 * FILTERS), dtype=tl.float32)
    further = -3 * kernel_tap if FLIPPED else 3 * kernel_tap
    if STAGES > 1:
        for down in tl.range(3, num_stages=STAGES):
            inside = across & ((row + (down - 1) >= 0) & (row + (down - 1) < HEIGHT))[:, None]
            values = tl.load(values_at + (down - 1) * WIDTH * CHANNELS, mask=inside, other=0.0)
            weights = tl.load(weights_at + down * further, mask=real, other=0.0)
            sums = tl.dot(values, weights, sums, input_precision=PRECISION)
    else:
        for down in tl.static_range(3):
            inside = across & ((row + (down - 1) >= 0) & (row + (down - 1) < HEIGHT))[:, None]
            values = tl.load(values_at + (down - 1) * WIDTH * CHANNELS, mask=inside, other=0.0)
            weights = tl.load(weights_at + down * further, mask=real, other=0.0)
            sums = tl.dot(values, weights, sums, input_precision=PRECISION)
    return sums


@triton.jit
def pairs(
    source, kernel, result, images,
    kernel_round, kernel_filter, kernel_tap, kernel_channel,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, FILTERS: tl.constexpr,
    FLIPPED: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A 3×3 convolution, two neighbours at once."""
    of_round = tl.program_id(1).to(tl.int64)
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    exists = pair < images * (HEIGHT * WIDTH // 2)
    sums = pair_sums(
        source + of_round * images * (HEIGHT * WIDTH * CHANNELS), kernel + of_round * kernel_round,
        pair, exists, kernel_filter, kernel_tap, kernel_channel,
        HEIGHT, WIDTH, CHANNELS, FILTERS, FLIPPED, BLOCK, 1, PRECISION,
    )  # fmt: skip
    result += of_round * images * (HEIGHT * WIDTH * FILTERS)
    result_at = result + pair[:, None] * (2 * FILTERS) + tl.arange(0, 2 * FILTERS)[None, :]
    tl.store(result_at, sums.to(result.dtype.element_ty), mask=exists[:, None])


@triton.jit
def tap_sums(
    source, weights_at, image, row, column, exists, real, channel, kernel_tap,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr,
    SIDE: tl.constexpr, STRIDE: tl.constexpr, BEFORE: tl.constexpr, FLIPPED: tl.constexpr,
    BLOCK: tl.constexpr, FILTER_BLOCK: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A convolution of one round, tap by tap."""
    top = row * STRIDE - BEFORE
    left = column * STRIDE - BEFORE
    first = (image * HEIGHT + top) * WIDTH + left
    values_at = source + first[:, None] * CHANNELS + channel[None, :]
    sums = tl.zeros((BLOCK, FILTER_BLOCK), dtype=tl.float32)
    for at in tl.range(SIDE * SIDE, num_stages=STAGES):
        y = top + at // SIDE
        x = left + at % SIDE
        inside = exists & (y >= 0) & (y < HEIGHT) & (x >= 0) & (x < WIDTH)
        values = tl.load(
            values_at + (at // SIDE * WIDTH + at % SIDE) * CHANNELS,
            mask=inside[:, None] & (channel < CHANNELS)[None, :],
            other=0.0,
        )
        tap = SIDE * SIDE - 1 - at if FLIPPED else at
        weights = tl.load(weights_at + tap * kernel_tap, mask=real, other=0.0)
        sums = tl.dot(values, weights, sums, input_precision=PRECISION)
    return sums


@triton.jit
def taps(
    source, kernel, result, images,
    kernel_round, kernel_filter, kernel_tap, kernel_channel,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, FILTERS: tl.constexpr,
    SIDE: tl.constexpr, STRIDE: tl.constexpr, APART: tl.constexpr, BEFORE: tl.constexpr,
    FLIPPED: tl.constexpr,
    BLOCK: tl.constexpr, CHANNEL_BLOCK: tl.constexpr, FILTER_BLOCK: tl.constexpr,
    STAGES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Any convolution, tap by tap.

    Where source pixels count as lying `APART`, a program computes places of one phase (row and
    column modulo `APART`), which all meet the same taps.
    """
    of_round = tl.program_id(1).to(tl.int64)
    phase_row = tl.program_id(2) // APART
    phase_column = tl.program_id(2) % APART
    high: tl.constexpr = (ROWS + APART - 1) // APART
    wide: tl.constexpr = (COLUMNS + APART - 1) // APART
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    image = place // (high * wide)
    row = place // wide % high * APART + phase_row
    column = place % wide * APART + phase_column
    exists = (image < images) & (row < ROWS) & (column < COLUMNS)
    filters = tl.arange(0, FILTER_BLOCK)
    channel = tl.arange(0, CHANNEL_BLOCK)
    weights_at = (
        kernel
        + of_round * kernel_round
        + (channel * kernel_channel)[:, None]
        + (filters * kernel_filter)[None, :]
    )
    real = (channel < CHANNELS)[:, None] & (filters < FILTERS)[None, :]
    source += of_round * images * (HEIGHT * WIDTH * CHANNELS)
    if APART == 1:
        sums = tap_sums(
            source, weights_at, image, row, column, exists, real, channel, kernel_tap,
            HEIGHT, WIDTH, CHANNELS, SIDE, STRIDE, BEFORE, FLIPPED,
            BLOCK, FILTER_BLOCK, STAGES, PRECISION,
        )  # fmt: skip
    else:
        sums = tl.zeros((BLOCK, FILTER_BLOCK), dtype=tl.float32)
        for at in tl.static_range(SIDE * SIDE):
            y = row + at // SIDE - BEFORE
            x = column + at % SIDE - BEFORE
            meets_row = (phase_row + at // SIDE - BEFORE) % APART == 0
            meets_column = (phase_column + at % SIDE - BEFORE) % APART == 0
            if meets_row & meets_column:
                inside = exists & (y >= 0) & (x >= 0)
                y = y // APART
                x = x // APART
                inside = inside & (y < HEIGHT) & (x < WIDTH)
                start = (image * HEIGHT + y) * WIDTH + x
                values = tl.load(
                    source + start[:, None] * CHANNELS + channel[None, :],
                    mask=inside[:, None] & (channel < CHANNELS)[None, :],
                    other=0.0,
                )
                tap = SIDE * SIDE - 1 - at if FLIPPED else at
                weights = tl.load(weights_at + tap * kernel_tap, mask=real, other=0.0)
                sums = tl.dot(values, weights, sums, input_precision=PRECISION)
    result += of_round * images * (ROWS * COLUMNS * FILTERS)
    target = (image * ROWS + row) * COLUMNS + column
    tl.store(
        result + target[:, None] * FILTERS + filters[None, :],
        sums.to(result.dtype.element_ty),
        mask=exists[:, None] & (filters < FILTERS)[None, :],
    )


@triton.jit
def weigh_pairs(
    source, gradient, result, images, parts,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, FILTERS: tl.constexpr,
    BLOCK: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Sums over pairs of neighbours: (row, column seen, channel, neighbour, filter)."""
    take_over(EARLY)
    part = tl.program_id(0)
    of_round = tl.program_id(1).to(tl.int64)
    count = images * (HEIGHT * WIDTH // 2)
    source += of_round * images * (HEIGHT * WIDTH * CHANNELS)
    gradient += of_round * images * (HEIGHT * WIDTH * FILTERS)
    seen = tl.arange(0, 4 * CHANNELS)
    wanted = tl.arange(0, 2 * FILTERS)
    above = tl.zeros((4 * CHANNELS, 2 * FILTERS), dtype=tl.float32)
    level = tl.zeros((4 * CHANNELS, 2 * FILTERS), dtype=tl.float32)
    below = tl.zeros((4 * CHANNELS, 2 * FILTERS), dtype=tl.float32)
    each = tl.cdiv(tl.cdiv(count, BLOCK), parts) * BLOCK
    for begin in tl.range(part * each, (part + 1) * each, BLOCK, num_stages=STAGES):
        pair = begin + tl.arange(0, BLOCK)
        exists = pair < count
        row = pair // (WIDTH // 2) % HEIGHT
        column = (pair % (WIDTH // 2) * 2 - 1)[:, None] + (seen // CHANNELS)[None, :]
        inside = exists[:, None] & (column >= 0) & (column < WIDTH)
        values_at = source + (pair * 2 - 1)[:, None] * CHANNELS + seen[None, :]
        slopes_at = gradient + pair[:, None] * (2 * FILTERS) + wanted[None, :]
        slopes = tl.load(slopes_at, mask=exists[:, None], other=0.0)
        upper = inside & (row > 0)[:, None]
        values = tl.load(values_at - WIDTH * CHANNELS, mask=upper, other=0.0)
        above = tl.dot(tl.trans(values), slopes, above, input_precision=PRECISION)
        values = tl.load(values_at, mask=inside, other=0.0)
        level = tl.dot(tl.trans(values), slopes, level, input_precision=PRECISION)
        lower = inside & (row < HEIGHT - 1)[:, None]
        values = tl.load(values_at + WIDTH * CHANNELS, mask=lower, other=0.0)
        below = tl.dot(tl.trans(values), slopes, below, input_precision=PRECISION)
    result += (part * tl.num_programs(1) + of_round) * (24 * CHANNELS * FILTERS)
    at = result + seen[:, None] * (2 * FILTERS) + wanted[None, :]
    tl.store(at, above)
    tl.store(at + 8 * CHANNELS * FILTERS, level)
    tl.store(at + 16 * CHANNELS * FILTERS, below)


@triton.jit
def _seen(
    source, image, row, left, exists, tap, joined,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, ACROSS: tl.constexpr,
):  # fmt: skip
    """What the taps of one kernel row see: they lie one behind the other in memory."""
    column = left[:, None] + tap[None, :]
    inside = (exists & (row >= 0) & (row < HEIGHT))[:, None]
    inside = inside & (column >= 0) & (column < WIDTH) & (tap < ACROSS)[None, :]
    start = (image * HEIGHT + row) * WIDTH + left
    return tl.load(source + start[:, None] * CHANNELS + joined[None, :], mask=inside, other=0.0)


@triton.jit
def weigh_taps(
    source, gradient, result, images, parts,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, FILTERS: tl.constexpr,
    SIDE: tl.constexpr, STRIDE: tl.constexpr, BEFORE: tl.constexpr,
    DOWN: tl.constexpr, ACROSS: tl.constexpr,
    BLOCK: tl.constexpr, CHANNEL_BLOCK: tl.constexpr, FILTER_BLOCK: tl.constexpr,
    STAGES: tl.constexpr, PRECISION: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Sums over places for `DOWN` rows (one or three) of `ACROSS` taps."""
    take_over(EARLY)
    tile = tl.program_id(0)
    part = tl.program_id(1)
    of_round = tl.program_id(2).to(tl.int64)
    down = tile // (SIDE // ACROSS) * DOWN
    across = tile % (SIDE // ACROSS) * ACROSS
    count = images * ROWS * COLUMNS
    source += of_round * images * (HEIGHT * WIDTH * CHANNELS)
    gradient += of_round * count * FILTERS
    filters = tl.arange(0, FILTER_BLOCK)
    joined = tl.arange(0, CHANNEL_BLOCK)
    tap = joined // CHANNELS
    first = tl.zeros((CHANNEL_BLOCK, FILTER_BLOCK), dtype=tl.float32)
    second = tl.zeros((CHANNEL_BLOCK, FILTER_BLOCK), dtype=tl.float32)
    third = tl.zeros((CHANNEL_BLOCK, FILTER_BLOCK), dtype=tl.float32)
    each = tl.cdiv(tl.cdiv(count, BLOCK), parts) * BLOCK
    for begin in tl.range(part * each, (part + 1) * each, BLOCK, num_stages=STAGES):
        place = begin + tl.arange(0, BLOCK)
        exists = place < count
        image = place // (ROWS * COLUMNS)
        row = place // COLUMNS % ROWS * STRIDE + down - BEFORE
        left = place % COLUMNS * STRIDE + across - BEFORE
        slopes = tl.load(
            gradient + place[:, None] * FILTERS + filters[None, :],
            mask=exists[:, None] & (filters < FILTERS)[None, :],
            other=0.0,
        )
        values = _seen(
            source, image, row, left, exists, tap, joined, HEIGHT, WIDTH, CHANNELS, ACROSS
        )
        first = tl.dot(tl.trans(values), slopes, first, input_precision=PRECISION)
        if DOWN == 3:
            values = _seen(
                source, image, row + 1, left, exists, tap, joined, HEIGHT, WIDTH, CHANNELS, ACROSS
            )
            second = tl.dot(tl.trans(values), slopes, second, input_precision=PRECISION)
            values = _seen(
                source, image, row + 2, left, exists, tap, joined, HEIGHT, WIDTH, CHANNELS, ACROSS
            )
            third = tl.dot(tl.trans(values), slopes, third, input_precision=PRECISION)
    # (part, round, filter, row, tap, channel)
    result += (part * tl.num_programs(2) + of_round) * (FILTERS * SIDE * SIDE * CHANNELS)
    inner = (down * SIDE + across) * CHANNELS + joined
    at = result + filters[None, :] * (SIDE * SIDE * CHANNELS) + inner[:, None]
    real = (tap < ACROSS)[:, None] & (filters < FILTERS)[None, :]
    tl.store(at, first, mask=real)
    if DOWN == 3:
        tl.store(at + SIDE * CHANNELS, second, mask=real)
        tl.store(at + 2 * SIDE * CHANNELS, third, mask=real)
