"""Modules with other layers in place of their own, and copies to try out whether that is right."""

import copy
from collections.abc import Callable

from torch import nn


def exchanged(
    plain: nn.Module, replacement: Callable[[str, nn.Module], nn.Module | None]
) -> nn.Module:
    """A copy with other layers where there are any, under the same names.

    Args:
        plain: Any module.
        replacement: Called with a layer's name and the layer; None leaves it.
    """
    root = copy.deepcopy(plain)
    for name, layer in list(root.named_modules()):
        other = replacement(name, layer)
        if other is not None:
            parent, _, leaf = name.rpartition(".")
            setattr(root.get_submodule(parent), leaf, other)
    return root


def trial(module: nn.Module) -> nn.Module:
    """A copy for exact comparisons: on the CPU, in double precision, without dropout."""
    tried = copy.deepcopy(module).cpu().double()
    for layer in tried.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    return tried
