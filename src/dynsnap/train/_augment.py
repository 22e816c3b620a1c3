"""Augmentation of a whole batch at once, on the device that it lies on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from dynsnap.errors import InputError, PlanError

Augmentation: TypeAlias = Callable[[Tensor, torch.Generator], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftsAndFlips:
    """Shifts images by a part of a pixel or more, and mirrors half of them.

    Attributes:
        shift: Largest shift in each direction, as a share of the side. Between pixels it is
            bilinear, and beyond the edge the edge goes on.
        flip: Whether to mirror images left to right.
    """

    shift: float = 0.1
    flip: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.shift < 1:
            raise PlanError(f"`shift` must be at least 0 and below 1, got {self.shift}.")

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Images (inputs, channels, height, width), each with a shift and flip of its own."""
        if images.ndim != 4:
            raise InputError(
                "Only images of (inputs, channels, height, width) can be shifted and flipped, got "
                f"the shape {tuple(images.shape)}. Train without `augment`."
            )
        drawn = torch.rand(len(images), 3, generator=generator, device=images.device)
        # The grid runs from -1 to 1, so a share of the side is twice that in its units.
        offset = (drawn[:, :2] - 0.5) * (4 * self.shift)
        mirror = (drawn[:, 2] < 0.5).to(images.dtype) * -2 + 1 if self.flip else None
        affine = images.new_zeros(len(images), 2, 3)
        affine[:, 0, 0] = 1 if mirror is None else mirror
        affine[:, 1, 1] = 1
        affine[:, :, 2] = offset
        grid = functional.affine_grid(affine, list(images.shape), align_corners=False)
        return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
