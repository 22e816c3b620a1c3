"""ResNet v1 for CIFAR, in the paper's sizes."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from dynsnap.errors import PlanError

DEPTHS = (20, 32, 44, 56, 110)


class SameConv(nn.Conv2d):
    """A convolution padded as the paper's framework pads it.

    Its 'same' padding of a 3 by 3 kernel at stride 2 adds one row below and one column to the
    right, not one on every side.
    """

    def __init__(self, channels: int, filters: int, size: int, stride: int = 1) -> None:
        super().__init__(channels, filters, size, stride, padding=size // 2 if stride == 1 else 0)
        self.lopsided = size == 3 and stride == 2

    def forward(self, images: Tensor) -> Tensor:
        if self.lopsided:
            images = functional.pad(images, (0, 1, 0, 1))
        return super().forward(images)


class Block(nn.Module):
    """Two convolutions around which the input is carried, projected where its shape changes."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.first = SameConv(channels, filters, 3, stride)
        self.first_norm = _norm(filters)
        self.second = SameConv(filters, filters, 3)
        self.second_norm = _norm(filters)
        self.projection = SameConv(channels, filters, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        inner = functional.relu(self.first_norm(self.first(images)))
        inner = self.second_norm(self.second(inner))
        return functional.relu(self.projection(images) + inner)


class ResNet(nn.Module):
    """Three stages of blocks with 16, 32 and 64 filters, averaged over the image."""

    def __init__(self, depth: int, classes: int, channels: int, dropout: float) -> None:
        super().__init__()
        self.stem = SameConv(channels, 16, 3)
        self.stem_norm = _norm(16)
        blocks: list[nn.Module] = []
        width = 16
        for stage, filters in enumerate((16, 32, 64)):
            for place in range((depth - 2) // 6):
                blocks.append(Block(width, filters, stride=2 if stage and not place else 1))
                width = filters
        self.blocks = nn.Sequential(*blocks)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(64, classes)
        self.apply(_he_normal)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.blocks(functional.relu(self.stem_norm(self.stem(images))))
        logits: Tensor = self.output(self.dropout(hidden.mean(dim=(2, 3))))
        return logits


def resnet(
    depth: int,
    classes: int,
    *,
    inputs: Sequence[int] = (3, 32, 32),
    dropout: float = 0.0,
) -> nn.Module:
    """ResNet v1 for small images as the paper ran it.

    Convolutions have biases, projections no batch norm, and the initialisation is He's, truncated.

    Args:
        depth: 20, 32, 44, 56 or 110 layers.
        classes: Width of the output.
        inputs: Channels, height and width of one image.
        dropout: Share of units dropped just before the output layer.

    Example:
        >>> sum(p.numel() for p in resnet(20, 10).parameters())
        273066
    """
    if depth not in DEPTHS:
        raise PlanError(f"`depth` must be one of {', '.join(map(str, DEPTHS))}, got {depth}.")
    if len(inputs) != 3:
        raise PlanError(
            "A ResNet wants images of (channels, height, width), got inputs of the shape "
            f"{tuple(inputs)}."
        )
    return ResNet(depth, classes, inputs[0], dropout)


def _norm(filters: int) -> nn.BatchNorm2d:
    # The paper's framework writes a momentum of .01 as .99.
    return nn.BatchNorm2d(filters, eps=1e-3, momentum=0.01)


def _he_normal(module: nn.Module) -> None:
    if not isinstance(module, nn.Conv2d | nn.Linear):
        return
    inputs = module.weight[0].numel()
    # Cutting a normal at two deviations leaves it narrower by this factor.
    deviation = math.sqrt(2 / inputs) / 0.87962566103423978
    with torch.no_grad():
        nn.init.trunc_normal_(module.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
        if module.bias is not None:
            module.bias.zero_()
