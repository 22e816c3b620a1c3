"""Faster layers for a module that stays a network of its own.

Where rounds cannot be one network, each is one, on a stream of its own. Its convolutions and batch
norms can still be those of the grouped network, for one round: they are faster on small images.
"""

import copy

import torch
from torch import Tensor, nn

from dynsnap.train.side_by_side._exchange import exchanged, trial
from dynsnap.train.side_by_side._layers import GroupedBatchNorm, GroupedConvolution


class Convolution(GroupedConvolution):
    """A convolution of one round in the precision that autocast asks for."""

    def forward(self, x: Tensor) -> Tensor:
        kind = x.device.type
        if torch.is_autocast_enabled(kind):
            x = x.to(torch.get_autocast_dtype(kind))
        return super().forward(x)


def with_fast_layers(plain: nn.Module, batch: Tensor) -> nn.Module:
    """A copy with faster layers, or a plain copy where they would compute something else.

    Args:
        plain: Any module.
        batch: Some of its inputs, to try it on.
    """
    try:
        fast = exchanged(plain, _faster)
        same = all(_alike(plain, fast, batch, training=training) for training in (False, True))
    except Exception:  # whatever a caller's forward may want of its layers
        same = False
    return fast if same else copy.deepcopy(plain)


def _faster(_: str, layer: nn.Module) -> nn.Module | None:
    if isinstance(layer, nn.Conv2d) and GroupedConvolution.suits(layer):
        return Convolution(layer, 1, bias=True)
    if isinstance(layer, nn.BatchNorm2d) and GroupedBatchNorm.suits(layer):
        return GroupedBatchNorm(layer, 1)
    return None


@torch.no_grad()
def _alike(plain: nn.Module, fast: nn.Module, batch: Tensor, *, training: bool) -> bool:
    one, other = (trial(module).train(training)(batch.cpu().double()) for module in (plain, fast))
    return torch.allclose(one, other, rtol=1e-6, atol=1e-8)
