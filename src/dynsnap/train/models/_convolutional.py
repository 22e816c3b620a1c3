"""A small convolutional network, for small images."""

from collections.abc import Sequence

from torch import nn

from dynsnap.errors import PlanError


def cnn(
    classes: int,
    *,
    inputs: Sequence[int] = (1, 8, 8),
    width: int = 16,
    dropout: float = 0.0,
) -> nn.Module:
    """Two convolutions with pooling and a linear output.

    Args:
        classes: Width of the output.
        inputs: Channels, height and width of one image, at least 4 by 4.
        width: Filters of the first convolution; the second has twice as many.
        dropout: Share of units dropped just before the output layer.

    Example:
        >>> sum(p.numel() for p in cnn(10).parameters())
        6090
    """
    if len(inputs) != 3 or min(inputs[1:]) < 4:
        raise PlanError(
            "`cnn` wants images of (channels, height, width), at least 4 by 4, got inputs of the "
            f"shape {tuple(inputs)}. Use `mlp` for other inputs."
        )
    channels, rows, columns = inputs
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(2 * width * (rows // 4) * (columns // 4), classes),
    )
