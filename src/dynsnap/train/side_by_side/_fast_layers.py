"""Faster layers for a module that stays a network of its own.

Where rounds cannot be one network, each is one, on a stream of its own. Its convolutions and batch
norms can still be those of the grouped network, for one round: they are faster on small images.
"""

import copy

import torch
from torch import Tensor, nn

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
        fast = _replaced(plain)
        same = all(_alike(plain, fast, batch, training=training) for training in (False, True))
    except Exception:  # whatever a caller's forward may want of its layers
        same = False
    return fast if same else copy.deepcopy(plain)


def _replaced(plain: nn.Module) -> nn.Module:
    root = copy.deepcopy(plain)
    for name, layer in list(root.named_modules()):
        parent, _, leaf = name.rpartition(".")
        if isinstance(layer, nn.Conv2d) and GroupedConvolution.suits(layer):
            setattr(root.get_submodule(parent), leaf, Convolution(layer, 1, bias=True))
        elif isinstance(layer, nn.BatchNorm2d) and GroupedBatchNorm.suits(layer):
            setattr(root.get_submodule(parent), leaf, GroupedBatchNorm(layer, 1))
    return root


@torch.no_grad()
def _alike(plain: nn.Module, fast: nn.Module, batch: Tensor, *, training: bool) -> bool:
    found = []
    for module in (plain, fast):
        tried = copy.deepcopy(module).cpu().double().train(training)
        for layer in tried.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = 0.0
        found.append(tried(batch.cpu().double()))
    return torch.allclose(found[0], found[1], rtol=1e-6, atol=1e-8)
