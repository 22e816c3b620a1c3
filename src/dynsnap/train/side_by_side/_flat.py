"""All parameters of all rounds in one vector, so that an update is one step and not hundreds."""

import math

import torch
from torch import Tensor, nn


class FlatLayout:
    """Where each parameter lies: convolution kernels first, then all others.

    A parameter of all rounds is one piece of the vector, its rounds one behind the other. Kernels
    lie channels last, as convolutions like them.

    Args:
        module: Has the parameters of all rounds.
        rounds: How many.

    Attributes:
        names: Of the parameters, in the module's order.
        kernels: How much of the vector are convolution kernels.
        size: Of the vector.
    """

    def __init__(self, module: nn.Module, rounds: int) -> None:
        self.rounds = rounds
        parameters = dict(module.named_parameters())
        self.names = list(parameters)
        self._shapes = {name: _laid_out(value.detach()).shape for name, value in parameters.items()}
        kernels = [name for name in self.names if len(self._shapes[name]) == 4]
        self._order = kernels, [name for name in self.names if name not in kernels]
        self.kernels, others = (sum(self._sizes(part)) for part in self._order)
        self.size = self.kernels + others

    def vector(self, module: nn.Module) -> Tensor:
        """A module's parameters as one vector."""
        parameters = dict(module.named_parameters())
        pieces = [
            _laid_out(parameters[name].detach()).reshape(-1)
            for part in self._order
            for name in part
        ]
        return torch.cat(pieces)

    def parameters(self, kernels: Tensor, others: Tensor) -> list[Tensor]:
        """Parameters in the module's order, as views of the vector's two parts."""
        found = {}
        for vector, part in zip((kernels, others), self._order, strict=True):
            for name, piece in zip(part, torch.split(vector, self._sizes(part)), strict=True):
                value = piece.view(self._shapes[name])
                found[name] = value.permute(0, 3, 1, 2) if value.ndim == 4 else value
        return [found[name] for name in self.names]

    def views(self, vector: Tensor) -> list[Tensor]:
        """The same of a whole vector."""
        return self.parameters(vector[: self.kernels], vector[self.kernels :])

    def owners(self, device: torch.device) -> Tensor:
        """The round that each number of the vector belongs to."""
        places = torch.arange(self.rounds)
        sizes = [size for part in self._order for size in self._sizes(part)]
        return torch.cat([places.repeat_interleave(size // self.rounds) for size in sizes]).to(
            device
        )

    def _sizes(self, names: list[str]) -> list[int]:
        return [math.prod(self._shapes[name]) for name in names]


def _laid_out(value: Tensor) -> Tensor:
    return value.permute(0, 2, 3, 1) if value.ndim == 4 else value
