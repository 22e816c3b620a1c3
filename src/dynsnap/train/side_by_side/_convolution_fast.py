"""Convolutions of many rounds on a GPU: which kernel computes what, in which blocks.

Channels lie innermost and rounds outermost, so that a program, which computes a block of places of
one round for all filters, reads long runs of memory.

A convolution is a matrix product for every tap of its kernel: the values that the tap meets, times
its weights. Where channels are few, moving values costs more than multiplying them. So there two
neighbours are computed at once: together they see four columns, not six, and one product does three
taps. That it multiplies by some zeros costs less than it saves.

Sizes of blocks were measured on one H200 with the paper's ResNets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from dynsnap.train.side_by_side import _convolution_kernels as programs
from dynsnap.train.side_by_side._window import KEEPING_SHAPE, Window

PROGRAMS = 528  # four for each multiprocessor of an H100 or H200
PLACES = 1024  # for a program to be worth its while
PLAIN = {"EARLY": False}  # a kernel that starts when the one before it has ended


def convolve(
    images: Tensor, kernels: Tensor, rounds: int, window: Window, size: Sequence[int]
) -> Tensor:
    """Convolve each round's images with its kernels."""
    filters = len(kernels) // rounds
    result = images.new_empty(len(images), *size, filters)
    step_filter, _, step_tap, step_channel = kernels.stride()
    steps = filters * step_filter, step_filter, step_tap, step_channel
    if in_pairs(images, result, window, most=16):
        _pairs(images, kernels, result, rounds, steps, flipped=False)
    else:
        _taps(
            images, kernels, result, rounds, steps, window.side, flipped=False,
            STRIDE=window.stride, APART=1, BEFORE=window.before,
        )  # fmt: skip
    return result


def back_to_images(
    gradient: Tensor, kernels: Tensor, rounds: int, window: Window, size: Sequence[int]
) -> Tensor:
    """The gradient of the images: a convolution with mirrored kernels.

    Where kernels moved by more than one pixel, the places lie that far apart.
    """
    result = gradient.new_empty(len(gradient), *size, kernels.shape[3])
    step_filter, _, step_tap, step_channel = kernels.stride()
    steps = len(kernels) // rounds * step_filter, step_channel, step_tap, step_filter
    if in_pairs(gradient, result, window, most=16):
        _pairs(gradient, kernels, result, rounds, steps, flipped=True)
    else:
        _taps(
            gradient, kernels, result, rounds, steps, window.side, flipped=True,
            STRIDE=1, APART=window.stride, BEFORE=window.side - 1 - window.before,
        )  # fmt: skip
    return result


def back_to_kernels(
    gradient: Tensor,
    images: Tensor,
    rounds: int,
    window: Window,
    launch: Mapping[str, bool] = PLAIN,
) -> Tensor:
    """Sums over parts of the places, in a fixed order: the same result every time."""
    shape = parts_shape(gradient, images, rounds, window)
    parts = gradient.new_empty(shape, dtype=torch.float32)
    _, rows, columns, filters = gradient.shape
    _, height, width, channels = images.shape
    if len(shape) > 5:
        block = 128 if channels < 16 else 32
        stages = stages_that_fit(images, block * (3 * 4 * channels + 2 * filters), most=3)
        programs.weigh_pairs[len(parts), rounds](
            images, gradient, parts, len(images) // rounds, len(parts),
            HEIGHT=height, WIDTH=width, CHANNELS=channels, FILTERS=filters,
            BLOCK=block, STAGES=stages, PRECISION=precision(images),
            num_warps=4, num_stages=stages, **launch,
        )  # fmt: skip
        return parts
    down, across = _rows_and_taps(window.side, channels, filters)
    block = 64
    joined, wide = _block(across * channels), _block(filters)
    stages = stages_that_fit(images, block * (down * joined + wide), most=2)
    programs.weigh_taps[window.side // down * (window.side // across), len(parts), rounds](
        images, gradient, parts, len(images) // rounds, len(parts),
        HEIGHT=height, WIDTH=width, CHANNELS=channels,
        ROWS=rows, COLUMNS=columns, FILTERS=filters,
        SIDE=window.side, STRIDE=window.stride, BEFORE=window.before, DOWN=down, ACROSS=across,
        BLOCK=block, CHANNEL_BLOCK=joined, FILTER_BLOCK=wide,
        STAGES=stages, PRECISION=precision(images), num_warps=4, num_stages=stages, **launch,
    )  # fmt: skip
    return parts


def parts_shape(gradient: Tensor, images: Tensor, rounds: int, window: Window) -> tuple[int, ...]:
    """The shape of what `back_to_kernels` gives: see `_convolution.summed`."""
    _, rows, columns, filters = gradient.shape
    channels, places = images.shape[3], len(images) // rounds * rows * columns
    pairs = in_pairs(images, gradient, window, most=32)
    down, across = (3, 3) if pairs else _rows_and_taps(window.side, channels, filters)
    tiles = rounds * (window.side // down) * (window.side // across)
    # Many programs keep a GPU busy; many parts are much to add up.
    parts = max(1, min(triton.cdiv(PROGRAMS, tiles), places // PLACES))
    if pairs:
        return parts, rounds, 3, 4, channels, 2, filters
    return parts, rounds * filters, window.side, window.side, channels


def _pairs(
    source: Tensor,
    kernels: Tensor,
    result: Tensor,
    rounds: int,
    steps: tuple[int, ...],
    *,
    flipped: bool,
) -> None:
    images = len(source) // rounds
    _, height, width, channels = source.shape
    size = pair_size(channels)
    programs.pairs[triton.cdiv(images * height * width // 2, size.block), rounds](
        source, kernels, result, images, *steps,
        HEIGHT=height, WIDTH=width, CHANNELS=channels, FILTERS=result.shape[3],
        FLIPPED=flipped, BLOCK=size.block, PRECISION=precision(source),
        num_warps=size.warps, num_stages=size.stages,
    )  # fmt: skip


def _taps(
    source: Tensor,
    kernels: Tensor,
    result: Tensor,
    rounds: int,
    steps: tuple[int, ...],
    side: int,
    *,
    flipped: bool,
    **window: int,
) -> None:
    images, apart = len(source) // rounds, window["APART"]
    _, height, width, channels = source.shape
    _, rows, columns, filters = result.shape
    size = tap_size(source, filters, apart)
    places = images * triton.cdiv(rows, apart) * triton.cdiv(columns, apart)
    programs.taps[triton.cdiv(places, size.block), rounds, apart * apart](
        source, kernels, result, images, *steps,
        HEIGHT=height, WIDTH=width, CHANNELS=channels,
        ROWS=rows, COLUMNS=columns, FILTERS=filters, SIDE=side, **window, FLIPPED=flipped,
        BLOCK=size.block, CHANNEL_BLOCK=_block(channels), FILTER_BLOCK=_block(filters),
        STAGES=size.stages, PRECISION=precision(source),
        num_warps=size.warps, num_stages=size.stages,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Size:
    """How much one program computes at once, and by how many threads."""

    block: int
    warps: int
    stages: int
    rows: int = 0  # that a program goes through one after another; 0: all at once


def pair_size(channels: int) -> Size:
    """Of a program that computes pairs of neighbours."""
    return Size(block=128, warps=4 if channels < 16 else 8, stages=1)


def tap_size(source: Tensor, filters: int, apart: int = 1) -> Size:
    """Of a program that computes a convolution tap by tap."""
    channels = source.shape[3]
    many = max(channels, filters) > 32
    block = 128 if many else 256
    held = block * _block(channels) + _block(channels) * _block(filters)
    stages = stages_that_fit(source, held, most=3) if apart == 1 else 1
    return Size(block=block, warps=8 if many else 4, stages=stages)


def in_pairs(source: Tensor, result: Tensor, window: Window, *, most: int) -> bool:
    """Whether neighbours are computed together: few channels, in powers of two, an even width."""
    widths = source.shape[3], result.shape[3]
    return (
        window == KEEPING_SHAPE
        and source.shape[1:3] == result.shape[1:3]
        and source.shape[2] % 2 == 0
        and all(width & (width - 1) == 0 for width in widths)
        and 4 <= widths[0] <= most
        and 8 <= widths[1] <= most
    )


def _rows_and_taps(side: int, channels: int, filters: int) -> tuple[int, int]:
    """How many rows of a kernel, and how many of their taps, one program weighs.

    As many as its registers hold sums for.
    """
    if max(channels, filters) > 64:
        return 1, 1
    if side * channels <= 48:
        return (3 if side == 3 else 1), side
    if side * channels <= 96:
        return 1, side
    return (3 if side == 3 else 1), 1


def stages_that_fit(tensor: Tensor, held: int, *, most: int) -> int:
    """How many loads ahead fit into a multiprocessor's memory, each of so many numbers."""
    return max(1, min(most, shared_memory(tensor) // (held * tensor.element_size())))


def shared_memory(tensor: Tensor) -> int:
    """The bytes that the threads of one program can share; without a GPU as on an H100 or H200."""
    if not tensor.is_cuda:
        return 227 * 1024
    device = torch.cuda.get_device_properties(tensor.device)
    room: int = getattr(
        device, "shared_memory_per_block_optin", 48 * 1024
    )  # older torch: the least
    return room


def _block(size: int) -> int:
    """Matrix products are made for powers of two from sixteen on."""
    block: int = max(16, triton.next_power_of_2(size))
    return block


def precision(tensor: Tensor) -> str:
    """What a matrix product may round its factors to."""
    return "ieee" if tensor.dtype == torch.float32 else "tf32"
