"""Residual blocks of many rounds on a GPU: few kernels in place of many.

A block is two convolutions, each with a batch norm. As layers of a compiled network that is many
kernels for a step, most of which read and write whole images for little arithmetic. Here a
convolution sums up what its batch norm has to know while its values are at hand, and on the way
back what the next gradient needs: 17 kernels, and fewer passes over the images.

With small batches most of them are so short that their starts and ends matter. So a kernel starts
while the one before it ends, where the GPU can do that (`_launch`), and gradients of convolution
kernels, for which no other gradient waits, are computed beside the rest, on a second stream.
"""

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from dynsnap.train.side_by_side import _block_kernels as programs
from dynsnap.train.side_by_side._convolution_fast import (
    PLAIN,
    PROGRAMS,
    Size,
    back_to_kernels,
    in_pairs,
    precision,
    shared_memory,
    tap_size,
)
from dynsnap.train.side_by_side._convolution_kernels import STARTS_EARLY
from dynsnap.train.side_by_side._window import KEEPING_SHAPE

VALUES = 4096  # that a program holds at once
EARLY = True  # whether kernels start early, and
BESIDE = True  # whether a second stream is used, where the GPU has either

# Where another size is faster than that of `_size`, by channels and what follows the convolution:
# measured on one H200 by benchmarks/block_sizes.py.
SIZES = {
    (16, "added"): Size(block=64, warps=4, stages=3, rows=16),
    (16, "carried"): Size(block=64, warps=4, stages=3, rows=16),
    (16, "rectified"): Size(block=128, warps=8, stages=3, rows=8),
    (32, "added"): Size(block=128, warps=8, stages=3),
    (64, "added"): Size(block=64, warps=8, stages=3),
}


class Half(NamedTuple):
    """One convolution of a block, and what was kept of it."""

    kernels: Tensor
    weight: Tensor
    given: Tensor
    found: Tensor
    statistics: Tensor  # (3, rounds · channels): mean, variance, one over the deviation
    shown: Tensor


def forward(
    given: Tensor,
    kernels: Tensor,
    weight: Tensor,
    bias: Tensor,
    carried: Tensor | None,
    rounds: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """One convolution with batch norm, the carried images added, rectified.

    Returns:
        What the convolution found, its statistics, and what is shown to the next.
    """
    found, rows = _convolved(given, kernels, rounds, "measured")
    channels = given.shape[3]
    statistics = weight.new_empty(3, rounds * channels, dtype=torch.float32)
    together, size = _together(given), _size(given, rounds, "measured")
    programs.settle_moments[rounds,](
        rows, statistics, rows.shape[1], _places(given, rounds) // together, eps,
        CHANNELS=channels, TOGETHER=together, BLOCK=size.block, CHUNK=_block(channels), num_warps=4,
        **_launch(given),
    )  # fmt: skip
    shown = torch.empty_like(found)
    _each(programs.normalised, given, rounds)(
        found, found if carried is None else carried, shown, statistics, weight, bias,
        _places(given, rounds),
        CHANNELS=channels, ADDED=carried is not None, BLOCK=_block(channels), **_launch(given),
    )  # fmt: skip
    return found, statistics, shown


def look(
    given: Tensor, kernels: Tensor, norm: Tensor, carried: Tensor | None, rounds: int
) -> Tensor:
    """The same of a member that is only looked at, in one kernel.

    Args:
        norm: What its batch norm multiplies by and adds, (2, rounds · channels).
    """
    ending = "rectified" if carried is None else "carried"
    shown, _ = _convolved(given, kernels, rounds, ending, other=carried, statistics=norm)
    return shown


def backward(
    gradient: Tensor, first: Half, second: Half, rounds: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The way back.

    Returns:
        The gradient of the images that the block was given; for each half that of its kernels, and
        those of its batch norm's bias and weight as (2, rounds · channels).
    """
    second_sums = _summed_slopes(gradient, second, rounds)
    second_slopes = _through_norm(gradient, second, second_sums, rounds, masked=True)
    with _second_stream(gradient) as beside:
        to_second = _to_kernels(second_slopes, second, rounds, beside)
        inner, rows = _convolved(
            second_slopes,
            second.kernels,
            rounds,
            "masked",
            first.shown,
            first.found,
            first.statistics,
        )
        first_sums = _settled(rows)
        first_slopes = _through_norm(inner, first, first_sums, rounds, masked=False)
        to_first = _to_kernels(first_slopes, first, rounds, beside)
        to_images, _ = _convolved(
            first_slopes, first.kernels, rounds, "added", second.shown, gradient
        )
    return to_images, to_first, first_sums, to_second, second_sums


def _convolved(
    source: Tensor,
    kernels: Tensor,
    rounds: int,
    ending: str,
    shown: Tensor | None = None,
    other: Tensor | None = None,
    statistics: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A convolution, mirrored on the way back; and rows, which not every ending fills."""
    _, height, width, channels = source.shape
    flipped = ending in ("masked", "added")
    step_filter, _, step_tap, step_channel = kernels.stride()
    steps = (
        (step_channel, step_tap, step_filter) if flipped else (step_filter, step_tap, step_channel)
    )
    together, size = _together(source), _size(source, rounds, ending)
    result = torch.empty_like(source)
    entries = triton.cdiv(_places(source, rounds) // together, size.block)
    rows = source.new_empty(rounds, entries, 2, together, channels, dtype=torch.float32)
    program: Any = programs.convolved
    how: dict[str, int] = {"PAIRED": together == 2}
    if size.rows:
        entries, program, how = entries // size.rows, programs.streamed, {"ROWS": size.rows}
    program[entries, rounds](
        source, kernels, result, rows,
        result if shown is None else shown, result if other is None else other,
        rows if statistics is None else statistics,
        len(source) // rounds, rounds, channels * step_filter, *steps,
        HEIGHT=height, WIDTH=width, CHANNELS=channels, FLIPPED=flipped, ENDING=ending,
        BLOCK=size.block, STAGES=size.stages, PRECISION=precision(source),
        num_warps=size.warps, num_stages=size.stages, **how, **_launch(source),
    )  # fmt: skip
    return result, rows


def _summed_slopes(gradient: Tensor, half: Half, rounds: int) -> Tensor:
    channels, places = gradient.shape[3], _places(gradient, rounds)
    block = _block(channels)
    entries = triton.cdiv(places, block)
    rows = gradient.new_empty(rounds, entries, 2, 1, channels, dtype=torch.float32)
    _each(programs.summed_slopes, gradient, rounds)(
        gradient, half.shown, half.found, half.statistics, rows, places,
        CHANNELS=channels, BLOCK=block, **_launch(gradient, joins=True),
    )  # fmt: skip
    return _settled(rows)


def _through_norm(
    gradient: Tensor, half: Half, sums: Tensor, rounds: int, *, masked: bool
) -> Tensor:
    result = torch.empty_like(gradient)
    channels = gradient.shape[3]
    _each(programs.through_norm, gradient, rounds)(
        gradient, half.shown, half.found, half.statistics, sums, half.weight, result,
        _places(gradient, rounds), CHANNELS=channels, MASKED=masked, BLOCK=_block(channels),
        **_launch(gradient),
    )  # fmt: skip
    return result


def _settled(rows: Tensor) -> Tensor:
    """(rounds, entries, 2, together, channels) added up: (2, rounds · channels)."""
    rounds, entries, _, together, channels = rows.shape
    sums = rows.new_empty(2, rounds * channels)
    programs.settle_sums[rounds,](
        rows, sums, entries,
        CHANNELS=channels, TOGETHER=together, CHUNK=_block(channels), num_warps=4,
        **_launch(rows),
    )  # fmt: skip
    return sums


def _to_kernels(
    slopes: Tensor, half: Half, rounds: int, beside: "torch.cuda.Stream | None"
) -> Tensor:
    """The gradient of a half's kernels, on a stream of its own where there is one."""
    result = torch.empty_like(half.kernels)
    channels = slopes.shape[3]
    if beside is not None:
        beside.wait_stream(torch.cuda.current_stream(slopes.device))
    with contextlib.nullcontext() if beside is None else torch.cuda.stream(beside):
        launch = _launch(slopes, joins=beside is not None)
        parts = back_to_kernels(slopes, half.given, rounds, KEEPING_SHAPE, launch)
        programs.added_up[9, rounds](
            parts, result, len(parts), CHANNELS=channels, PAIRED=parts.ndim > 5,
            AHEAD=_ahead(channels), num_warps=4, **_launch(slopes),
        )  # fmt: skip
    return result


def _launch(images: Tensor, *, joins: bool = False) -> dict[str, bool]:
    """How a kernel starts: while the one before it ends, where the GPU can do that.

    A kernel that `joins` follows two others, on two streams. It waits for both, but lets the one
    after it start early.
    """
    if not (EARLY and images.is_cuda and _overlaps(images.device)):
        return PLAIN
    return {"EARLY": True} if joins else {"EARLY": True, "launch_pdl": True}


@functools.cache
def _overlaps(device: torch.device) -> bool:
    """Whether a GPU knows programmatic dependent launch, and this Triton too: Hopper and later."""
    known = STARTS_EARLY and torch.version.hip is None
    return known and torch.cuda.get_device_capability(device) >= (9, 0)


@contextlib.contextmanager
def _second_stream(images: Tensor) -> "Iterator[torch.cuda.Stream | None]":
    """A stream that is joined in the end, whatever happens before.

    No memory that its kernels read or write is freed while they run, and a capture that fails for
    want of memory fails with that error.
    """
    beside = _stream_of(images.device) if BESIDE else None
    try:
        yield beside
    finally:
        if beside is not None:
            torch.cuda.current_stream(images.device).wait_stream(beside)


@functools.cache
def _stream_of(device: torch.device) -> "torch.cuda.Stream | None":
    """One for all blocks of a GPU, since each of them joins it before it is left."""
    return torch.cuda.Stream(device) if device.type == "cuda" else None


def _each(program: Any, images: Tensor, rounds: int) -> Any:
    """A program over blocks of lines of each round."""
    return program[triton.cdiv(_places(images, rounds), _block(images.shape[3])), rounds]


def _together(images: Tensor) -> int:
    """How many neighbours a convolution computes at once."""
    return 2 if in_pairs(images, images, KEEPING_SHAPE, most=16) else 1


def _size(images: Tensor, rounds: int, ending: str) -> Size:
    """How much a program of a convolution does.

    What follows it here wants registers: fewer threads than in a convolution alone, which have more
    of them.
    """
    channels = images.shape[3]
    size = SIZES.get((channels, ending))
    if size is None or (
        size.rows and not (_can_stream(images, rounds, size) and _fits(images, size))
    ):
        ahead = 4 if channels <= 32 else 3
        size = replace(tap_size(images, channels), warps=4, stages=ahead)
        if _together(images) == 2:
            size = Size(block=256, warps=4, stages=2)
    while size.stages > 1 and not _fits(images, size):
        size = replace(size, stages=size.stages - 1)
    while size.block > 64 and not _fits(images, size):
        size = replace(size, block=size.block // 2)
    return size


def _fits(images: Tensor, size: Size) -> bool:
    """Whether a program has room for what it loads ahead, and for its sums when it moves them.

    At most: Triton holds one load less where values are copied into registers first.
    """
    channels, together = images.shape[3], _together(images)
    line = channels if together == 1 else 4 * channels  # what is multiplied at once
    weights = line * together * channels
    loads = size.block * line + (0 if size.rows else weights)
    held = size.stages * loads + (3 * weights if size.rows else 0)
    sums = 4 * (size.block + 4) * together * channels
    return held * images.element_size() + sums <= shared_memory(images)


def _can_stream(images: Tensor, rounds: int, size: Size) -> bool:
    """Whether programs can go through whole rows of whole images, so many at once."""
    count, height, width, _ = images.shape
    at_once, rest = divmod(2 * size.block, width)
    return (
        _together(images) == 2
        and width & (width - 1) == 0
        and not rest
        and count // rounds % at_once == 0
        and height % size.rows == 0
        and count // at_once * (height // size.rows)
        >= PROGRAMS // 2  # fewer leave much of a GPU idle
    )


def _places(images: Tensor, rounds: int) -> int:
    """Places of one round."""
    return images[..., 0].numel() // rounds


def _block(channels: int) -> int:
    """How many lines of so many channels a program holds."""
    return VALUES // channels


def _ahead(channels: int) -> int:
    """How many parts of a kernel's gradient a program loads ahead: as its registers hold."""
    return max(1, min(16, 2 * VALUES // channels**2))
