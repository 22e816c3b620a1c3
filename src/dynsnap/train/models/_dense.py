"""Multi-layer perceptrons: one that trains side by side on a CPU, and one with embeddings."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dynsnap.errors import PlanError


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


def tabular_mlp(
    classes: int,
    *,
    inputs: Sequence[int],
    categories: Sequence[int] = (),
    buckets: int = 512,
    width: int = 8,
    hidden: Sequence[int] = (64,),
    dropout: float = 0.0,
) -> nn.Module:
    """An MLP for tables: codes of categories are embedded, numbers normalised by batch.

    Args:
        classes: Width of the output.
        inputs: Shape of one input: its columns.
        categories: Columns that hold codes of categories, counted from 0; the others are numbers.
        buckets: Vectors of each such column: a code goes to the bucket of its remainder.
        width: Width of the vectors.
        hidden: Widths of the layers between.
        dropout: Share of units dropped just before the output layer.

    Example:
        >>> module = tabular_mlp(4, inputs=(15,), categories=(3, 4, 5))
        >>> tuple(module(torch.ones(2, 15)).shape)
        (2, 4)
    """
    if len(inputs) != 1:
        raise PlanError(f"tabular-mlp takes rows of columns, not inputs of the shape {inputs}.")
    (columns,) = inputs
    for column in categories:
        if type(column) is not int or not 0 <= column < columns:
            raise PlanError(
                f"`categories` of tabular-mlp must be columns from 0 to {columns - 1}, "
                f"got {column!r}."
            )
    return _TabularMLP(classes, columns, tuple(categories), buckets, width, hidden, dropout)


class _TabularMLP(nn.Module):
    """Embeddings beside normalised numbers, and linear layers on both."""

    def __init__(
        self,
        classes: int,
        columns: int,
        categories: tuple[int, ...],
        buckets: int,
        width: int,
        hidden: Sequence[int],
        dropout: float,
    ) -> None:
        super().__init__()
        self._categories = list(categories)
        self._numbers = [column for column in range(columns) if column not in categories]
        self._buckets = buckets
        self.embeddings = nn.ModuleList(nn.Embedding(buckets, width) for _ in categories)
        self.normalise = nn.BatchNorm1d(len(self._numbers)) if self._numbers else nn.Identity()
        wide = width * len(categories) + len(self._numbers)
        self.layers = mlp(classes, inputs=(wide,), hidden=hidden, dropout=dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        codes = inputs[:, self._categories].long() % self._buckets
        parts = [embed(codes[:, place]) for place, embed in enumerate(self.embeddings)]
        made: Tensor = self.layers(torch.cat([*parts, self.normalise(inputs[:, self._numbers])], 1))
        return made
