"""Batches of images for many rounds at once, straight from the bytes on the device.

One gather does what preparation and augmentation do for a round alone: pixel over 255, less the
round's own mean image, shifted between pixels and mirrored. Compiled into the step, that is one
kernel.
"""

import torch
from torch import Tensor, nn

from dynsnap.train._augment import ShiftsAndFlips
from dynsnap.train._prepare import State


class ImageFeed:
    """Images as bytes, less the mean image of the round that looks at them."""

    def __init__(self, pool: Tensor, augment: ShiftsAndFlips | None) -> None:
        self._pool, self._augment = pool, augment

    def room(self, rounds: int, /) -> Tensor:
        return torch.zeros(rounds, *self._pool.shape[1:], device=self._pool.device)

    def fitted(self, bound: State, /) -> Tensor:
        return bound["mean"]

    def batch(self, fitted: Tensor, rows: Tensor, draws: Tensor | None = None, /) -> Tensor:
        augment = self._augment
        if augment is None or draws is None:
            images = plain_images(self._pool, fitted, rows)
        else:
            images = augmented_images(
                self._pool, fitted, rows, draws, shift=augment.shift, flip=augment.flip
            )
        return images.contiguous(memory_format=torch.channels_last)

    def example(self) -> Tensor:
        return self._pool[:2].cpu().float() / 255

    def suits(self, module: nn.Module, /) -> bool:
        return True


def plain_images(pool: Tensor, mean: Tensor, rows: Tensor) -> Tensor:
    """Images (rounds · batch, channels, height, width) of these rows, as they are.

    Args:
        pool: Bytes (inputs, channels, height, width).
        mean: The mean image of each round (rounds, channels, height, width).
        rows: Rows of the pool (rounds, batch).
    """
    values = pool[rows].float().mul(1 / 255).sub(mean[:, None])
    return values.flatten(0, 1)


def augmented_images(
    pool: Tensor, mean: Tensor, rows: Tensor, draws: Tensor, *, shift: float, flip: bool
) -> Tensor:
    """The same, each image with a shift and flip of its own.

    Args:
        draws: Three numbers in [0, 1) for each image (rounds, batch, 3): across, down, mirror.
        shift: Largest shift as a share of the side.
        flip: Whether to mirror half of the images.
    """
    _, channels, height, width = pool.shape
    row = torch.arange(height, device=pool.device, dtype=torch.float32)
    column = torch.arange(width, device=pool.device, dtype=torch.float32)
    across = (draws[:, :, 0:1] - 0.5) * (2 * shift * width)
    down = (draws[:, :, 1:2] - 0.5) * (2 * shift * height)
    if flip:
        column = torch.where(draws[:, :, 2:3] < 0.5, width - 1 - column, column)
    y = (row + down).clamp(0, height - 1)[:, :, None, :, None]
    x = (column + across).clamp(0, width - 1)[:, :, None, None, :]
    top, left = y.floor(), x.floor()
    below, right = y - top, x - left
    top, left = top.long(), left.long()
    bottom, far = (top + 1).clamp(max=height - 1), (left + 1).clamp(max=width - 1)
    plane = torch.arange(channels, device=pool.device)[:, None, None] * (height * width)
    image = rows.long()[:, :, None, None, None] * (channels * height * width) + plane
    of_round = torch.arange(len(rows), device=pool.device)[:, None, None, None, None]
    of_round = of_round * (channels * height * width) + plane
    pixels, means = pool.view(-1), mean.reshape(-1)

    def at(down_to: Tensor, across_to: Tensor) -> Tensor:
        place = down_to * width + across_to
        # The mean moves with the image: the paper's framework centres first and shifts then.
        return pixels[image + place].float() * (1 / 255) - means[of_round + place]

    upper = at(top, left) * (1 - right) + at(top, far) * right
    lower = at(bottom, left) * (1 - right) + at(bottom, far) * right
    return (upper * (1 - below) + lower * below).flatten(0, 1)
