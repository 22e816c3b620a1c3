"""Forward and backward through many chains of dense layers at once, one weight matrix each.

Written out by hand: at this size autograd costs more than the arithmetic. Every operation is one
whose result for a member does not depend on how many others there are, on one thread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from dynsnap.train._chain import Chain, Layer, parameters_of
from dynsnap.train._prepare import State

Masks: TypeAlias = Callable[[int, Tensor], Tensor]  # (place of the layer, its input) -> what stays


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The weights of one linear layer of every member."""

    weight: Tensor  # (members, outputs, inputs)
    bias: Tensor | None  # (members, 1, outputs)


class Stack:
    """Chains of one shape as rows of one matrix of parameters.

    Args:
        layers: The chain.
        flat: (members, parameters); a view of it is what the layers compute with.
    """

    def __init__(self, layers: Chain, flat: Tensor) -> None:
        self.layers = layers
        self._parameters = _views(layers, flat)

    def forward(self, inputs: Tensor, masks: Masks | None = None) -> list[Tensor]:
        """What goes into each layer, and the scores last: inputs (members, batch, width)."""
        values = [inputs]
        for place, layer in enumerate(self.layers):
            values.append(self._layer(place, layer, values[-1], masks))
        return values

    def logits(self, inputs: Tensor, masks: Masks | None = None) -> Tensor:
        """The scores alone."""
        value = inputs
        for place, layer in enumerate(self.layers):
            # What a linear layer gave is nobody else's, and may be written over.
            if layer.kind == "relu" and place and self.layers[place - 1].kind == "linear":
                value = value.relu_()
            else:
                value = self._layer(place, layer, value, masks)
        return value

    def _layer(self, place: int, layer: Layer, value: Tensor, masks: Masks | None) -> Tensor:
        if layer.kind == "linear":
            own = self._parameters[place]
            turned = own.weight.transpose(1, 2)
            if own.bias is None:
                return torch.bmm(value, turned)
            return torch.baddbmm(own.bias, value, turned)
        if layer.kind == "relu":
            return value.relu()
        if layer.kind == "tanh":
            return value.tanh()
        # Dropout; scaled when it is applied, as torch does.
        return value if masks is None else value * masks(place, value)

    def like(self, flat: Tensor) -> "Stack":
        """Another matrix of this shape, seen as the parameters of the same layers."""
        return Stack(self.layers, flat)

    def backward(
        self, values: Sequence[Tensor], slope: Tensor, into: "Stack", masks: Masks
    ) -> None:
        """The gradient of every parameter, written over the parameters of another stack.

        Args:
            values: What `forward` gave.
            slope: The gradient of the scores.
            into: Where to.
            masks: As in `forward`, giving the same masks again.
        """
        for place in reversed(range(len(self.layers))):
            layer = self.layers[place]
            if layer.kind == "linear":
                own = into._parameters[place]
                torch.bmm(slope.transpose(1, 2), values[place], out=own.weight)
                if own.bias is not None:
                    torch.sum(slope, 1, keepdim=True, out=own.bias)
                if place:
                    slope = torch.bmm(slope, self._parameters[place].weight)
            elif layer.kind == "relu":
                slope = torch.ops.aten.threshold_backward(slope, values[place + 1], 0)
            elif layer.kind == "tanh":
                slope = torch.ops.aten.tanh_backward(slope, values[place + 1])
            else:
                slope = slope * masks(place, values[place])


def softmax(logits: Tensor) -> Tensor:
    """Scores that sum to one over the last axis.

    Along a last axis this short torch is more than ten times slower than along another.
    """
    return torch.softmax(logits.transpose(-2, -1).contiguous(), -2).transpose(-2, -1)


def drop(value: Tensor, share: float, generators: Sequence[torch.Generator]) -> Tensor:
    """A mask for dropout: each member draws its own part, and what stays is scaled up."""
    mask = torch.empty_like(value, memory_format=torch.contiguous_format)
    for own, generator in zip(mask, generators, strict=True):
        own.bernoulli_(1 - share, generator=generator)
    return mask.div_(1 - share)


def size(layers: Chain) -> int:
    """Parameters of one member."""
    return sum(torch.Size(shape).numel() for layer in layers for _, shape in parameters_of(layer))


def flatten(layers: Chain, weights: State) -> Tensor:
    """A module's state as one row."""
    names = [name for layer in layers for name, _ in parameters_of(layer)]
    return torch.cat([weights[name].reshape(-1) for name in names])


def unflatten(layers: Chain, row: Tensor) -> State:
    """One row as a module's state, copied."""
    state: State = {}
    start = 0
    for layer in layers:
        for name, shape in parameters_of(layer):
            end = start + torch.Size(shape).numel()
            state[name] = row[start:end].reshape(shape).clone()
            start = end
    return state


def _views(layers: Chain, flat: Tensor) -> dict[int, _Parameters]:
    views: dict[int, _Parameters] = {}
    start = 0
    for place, layer in enumerate(layers):
        if layer.kind != "linear":
            continue
        middle = start + layer.outputs * layer.inputs
        # A view, whatever the rows' distance from each other.
        weight = flat[:, start:middle].view(-1, layer.outputs, layer.inputs)
        end = middle + (layer.outputs if layer.bias else 0)
        views[place] = _Parameters(weight, flat[:, middle:end].unsqueeze(1) if layer.bias else None)
        start = end
    return views
