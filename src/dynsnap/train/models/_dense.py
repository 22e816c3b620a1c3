"""A multi-layer perceptron: the model that trains side by side on a CPU."""

import math
from collections.abc import Sequence

from torch import nn


def mlp(
    classes: int,
    *,
    inputs: Sequence[int] = (64,),
    hidden: Sequence[int] = (128,),
    dropout: float = 0.0,
) -> nn.Module:
    """Linear layers with ReLU between them, for features or small images.

    Args:
        classes: Width of the output.
        inputs: Shape of one input.
        hidden: Widths of the layers between.
        dropout: Share of units dropped just before the output layer.

    Example:
        >>> sum(p.numel() for p in mlp(10, inputs=(8, 8), hidden=(32,)).parameters())
        2410
    """
    layers: list[nn.Module] = [nn.Flatten()]
    width = math.prod(inputs)
    for units in hidden:
        layers += [nn.Linear(width, units), nn.ReLU()]
        width = units
    return nn.Sequential(*layers, nn.Dropout(dropout), nn.Linear(width, classes))
