"""Convolutions of many rounds at once: each round has kernels of its own.

Inside, images are (rounds · images, height, width, channels) and kernels (rounds · filters, side,
side, channels), both contiguous. On a GPU the kernels of `_convolution_fast` do the work;
elsewhere, or without Triton, torch's grouped convolutions do, which compute the same.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dynsnap.train._devices import has_kernels
from dynsnap.train.side_by_side._window import Window

MOST_CHANNELS = 128


def convolution(
    images: Tensor, kernels: Tensor, rounds: int, window: Window, size: Sequence[int]
) -> Tensor:
    """Convolve each round's images with its kernels.

    Args:
        images: (rounds · images, channels, height, width), best channels last.
        kernels: (rounds · filters, channels, side, side), best channels last.
        rounds: How many.
        window: How a kernel moves.
        size: Rows and columns of the result.
    """
    channels = images.shape[1]
    if _is_fast(images, channels, len(kernels) // rounds) and channels < 16:
        # Four channels move faster than three.
        missing = max(4, 1 << (channels - 1).bit_length()) - channels
        images = functional.pad(images, (0, 0, 0, 0, 0, missing)) if missing else images
        kernels = functional.pad(kernels, (0, 0, 0, 0, 0, missing)) if missing else kernels
    result: Tensor = _convolve(
        images.permute(0, 2, 3, 1).contiguous(),
        kernels.permute(0, 2, 3, 1).contiguous(),
        rounds,
        window.stride,
        window.before,
        *size,
    )
    return result.permute(0, 3, 1, 2)


@torch.library.custom_op("dynsnap::convolve", mutates_args=())
def _convolve(
    images: Tensor,
    kernels: Tensor,
    rounds: int,
    stride: int,
    before: int,
    rows: int,
    columns: int,
) -> Tensor:
    window = Window(side=kernels.shape[1], stride=stride, before=before)
    if _is_fast(images, kernels.shape[3], len(kernels) // rounds):
        from dynsnap.train.side_by_side import _convolution_fast as fast

        return fast.convolve(images, kernels, rounds, window, (rows, columns))
    return _plainly(images, kernels, rounds, window, (rows, columns))


@_convolve.register_fake
def _(images: Tensor, kernels: Tensor, rounds: int, *where: int) -> Tensor:
    *_, rows, columns = where
    return images.new_empty(len(images), rows, columns, len(kernels) // rounds)


@torch.library.custom_op("dynsnap::convolve_back_to_images", mutates_args=())
def _to_images(
    gradient: Tensor,
    kernels: Tensor,
    rounds: int,
    stride: int,
    before: int,
    height: int,
    width: int,
) -> Tensor:
    window = Window(side=kernels.shape[1], stride=stride, before=before)
    if _is_fast(gradient, kernels.shape[3], len(kernels) // rounds):
        from dynsnap.train.side_by_side import _convolution_fast as fast

        return fast.back_to_images(gradient, kernels, rounds, window, (height, width))
    images = gradient.new_zeros(len(gradient), height, width, kernels.shape[3])
    return _plainly_back(gradient, images, kernels, rounds, window)[0]


@_to_images.register_fake
def _(gradient: Tensor, kernels: Tensor, rounds: int, *where: int) -> Tensor:
    *_, height, width = where
    return gradient.new_empty(len(gradient), height, width, kernels.shape[3])


@torch.library.custom_op("dynsnap::convolve_back_to_kernels", mutates_args=())
def _to_kernels(
    gradient: Tensor, images: Tensor, rounds: int, stride: int, before: int, side: int
) -> Tensor:
    """Sums over parts of the places, which `summed` adds up: there a compiler can help."""
    window = Window(side=side, stride=stride, before=before)
    if _is_fast(gradient, images.shape[3], gradient.shape[3]):
        from dynsnap.train.side_by_side import _convolution_fast as fast

        return fast.back_to_kernels(gradient, images, rounds, window)
    kernels = images.new_zeros(rounds * gradient.shape[3], side, side, images.shape[3])
    return _plainly_back(gradient, images, kernels, rounds, window)[1][None]


@_to_kernels.register_fake
def _(gradient: Tensor, images: Tensor, rounds: int, *where: int) -> Tensor:
    stride, before, side = where
    if _is_fast(gradient, images.shape[3], gradient.shape[3]):
        from dynsnap.train.side_by_side import _convolution_fast as fast

        window = Window(side=side, stride=stride, before=before)
        shape = fast.parts_shape(gradient, images, rounds, window)
        return gradient.new_empty(shape, dtype=torch.float32)
    return images.new_empty(1, rounds * gradient.shape[3], side, side, images.shape[3])


def summed(parts: Tensor) -> Tensor:
    """The gradient of kernels from sums over parts of the places.

    Args:
        parts: (parts, rounds · filters, side, side, channels), or for pairs of neighbours (parts,
            rounds, 3, columns seen, channels, neighbours, filters).
    """
    whole = parts.sum(dim=0)
    if whole.ndim == 4:
        return whole
    left, right = whole.unbind(dim=4)  # the right neighbour sees a tap one column further on
    taps = left[:, :, :3] + right[:, :, 1:]
    return taps.permute(0, 4, 1, 2, 3).flatten(0, 1)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    images, kernels, *ctx.numbers = inputs
    ctx.save_for_backward(images, kernels)


def _back(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    images, kernels = ctx.saved_tensors
    rounds, stride, before, _, _ = ctx.numbers
    gradient = gradient.contiguous()
    for_images = for_kernels = None
    if ctx.needs_input_grad[0]:
        size = images.shape[1:3]
        for_images = _to_images(gradient, kernels, rounds, stride, before, *size)
    if ctx.needs_input_grad[1]:
        side = kernels.shape[1]
        parts = _to_kernels(gradient, images, rounds, stride, before, side)
        for_kernels = summed(parts).to(kernels.dtype)
    return for_images, for_kernels, None, None, None, None, None


_convolve.register_autograd(_back, setup_context=_remember)


def _is_fast(tensor: Tensor, channels: int, filters: int) -> bool:
    """Whether kernels of our own do it: they hold all channels and filters of a block at once."""
    return has_kernels(tensor) and max(channels, filters) <= MOST_CHANNELS


def _plainly(
    images: Tensor, kernels: Tensor, rounds: int, window: Window, size: Sequence[int]
) -> Tensor:
    """The same by torch: rounds side by side as groups of channels."""
    wide = functional.pad(_beside(images, rounds), _edges(images, window, size))
    found = functional.conv2d(wide, kernels.permute(0, 3, 1, 2), None, window.stride, groups=rounds)
    return _behind(found, rounds)


def _plainly_back(
    gradient: Tensor, images: Tensor, kernels: Tensor, rounds: int, window: Window
) -> tuple[Tensor, Tensor]:
    """The gradients of images and kernels by torch."""
    edges = _edges(images, window, gradient.shape[1:3])
    for_images, for_kernels, _ = torch.ops.aten.convolution_backward(
        _beside(gradient, rounds),
        functional.pad(_beside(images, rounds), edges),
        kernels.permute(0, 3, 1, 2),
        None,
        [window.stride] * 2,
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        rounds,
        [True, True, False],
    )
    for_images = functional.pad(for_images, [-edge for edge in edges])
    return _behind(for_images, rounds), for_kernels.permute(0, 2, 3, 1).contiguous()


def _beside(values: Tensor, rounds: int) -> Tensor:
    """(rounds · images, row, column, channel) as (images, rounds · channels, row, column)."""
    apart = values.view(rounds, -1, *values.shape[1:])
    return apart.permute(1, 0, 4, 2, 3).flatten(1, 2)


def _behind(values: Tensor, rounds: int) -> Tensor:
    """The way back."""
    apart = values.view(len(values), rounds, -1, *values.shape[2:])
    return apart.permute(1, 0, 3, 4, 2).flatten(0, 1).contiguous()


def _edges(images: Tensor, window: Window, size: Sequence[int]) -> list[int]:
    """Zeros that so many places need around an image: left, right, above, below.

    Fewer than none where places do not reach its end.
    """
    below, right = (
        (places - 1) * window.stride + window.side - window.before - pixels
        for places, pixels in zip(size, images.shape[1:3], strict=True)
    )
    return [window.before, right, window.before, below]
