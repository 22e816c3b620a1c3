"""Recognises a module that is a plain chain of dense layers, however it is written."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import fx, nn
from torch.nn import functional

from dynsnap.train._threads import Tracer

Kind: TypeAlias = Literal["linear", "relu", "tanh", "dropout"]

# Larger layers keep a processor busy on their own, and gain nothing from being stacked.
MOST_PARAMETERS = 500_000

_FUNCTIONS: dict[Callable[..., Any], Kind] = {
    torch.relu: "relu",
    functional.relu: "relu",
    torch.tanh: "tanh",
    functional.tanh: "tanh",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer of a chain.

    Attributes:
        kind: What it does.
        name: For "linear": its place in the module, the beginning of its parameters' names.
        inputs, outputs: For "linear": its widths.
        bias: For "linear": whether it has one.
        share: For "dropout": the share of units dropped.
    """

    kind: Kind
    name: str = ""
    inputs: int = 0
    outputs: int = 0
    bias: bool = False
    share: float = 0.0


Chain: TypeAlias = tuple[Layer, ...]


def chain(module: nn.Module) -> Chain | None:
    """The layers of a small dense module in their order, or None for any other.

    Linear layers, ReLU, tanh and dropout after an optional flattening; written as a Sequential or
    with a forward of its own.

    Example:
        >>> dense = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> [layer.kind for layer in chain(dense)]
        ['linear', 'relu', 'linear']
        >>> chain(nn.Conv2d(1, 1, 3)) is None
        True
    """
    parameters = list(module.parameters())
    if sum(value.numel() for value in parameters) > MOST_PARAMETERS or list(module.buffers()):
        return None
    if any(value.dtype != torch.float32 or not value.requires_grad for value in parameters):
        return None
    try:
        graph = Tracer().trace(module)
    except Exception:  # a forward that cannot be traced is simply not a chain
        return None
    layers = _layers(graph, dict(module.named_modules()))
    if layers is None or not _whole(layers, module):
        return None
    return tuple(layers)


def _layers(graph: fx.Graph, parts: dict[str, nn.Module]) -> list[Layer] | None:
    layers: list[Layer] = []
    before: fx.Node | None = None
    for node in graph.nodes:
        if node.op == "placeholder":
            if before is not None:
                return None
        elif node.op == "output":
            return layers if node.args[0] is before else None
        else:
            if before is None or not node.args or node.args[0] is not before:
                return None
            layer = _layer(node, parts, first=not layers)
            if layer is None:
                return None
            layers += [layer] if isinstance(layer, Layer) else []
        before = node
    return None


def _layer(node: fx.Node, parts: dict[str, nn.Module], *, first: bool) -> Layer | bool | None:
    """A layer, True for a node that changes nothing, None for one that does not belong."""
    settings = (*node.args[1:], *node.kwargs.values())
    if node.op == "call_module":
        return _module(str(node.target), parts[str(node.target)], first=first)
    if node.op == "call_function" and node.target in _FUNCTIONS and not any(settings):
        return Layer(kind=_FUNCTIONS[node.target])
    if node.op == "call_method" and node.target in ("relu", "tanh") and not settings:
        return Layer(kind="relu" if node.target == "relu" else "tanh")
    flattens = node.target in (torch.flatten, "flatten") and settings == (1,)
    return True if flattens and first else None


def _module(name: str, part: nn.Module, *, first: bool) -> Layer | bool | None:
    if part._forward_hooks or part._forward_pre_hooks or part._backward_hooks:
        return None
    kind = type(part)
    if kind is nn.Linear:
        assert isinstance(part, nn.Linear)
        return Layer(
            kind="linear",
            name=name,
            inputs=part.in_features,
            outputs=part.out_features,
            bias=part.bias is not None,
        )
    if kind is nn.ReLU:
        return Layer(kind="relu")
    if kind is nn.Tanh:
        return Layer(kind="tanh")
    if kind is nn.Dropout:
        assert isinstance(part, nn.Dropout)
        return Layer(kind="dropout", share=part.p) if 0 < part.p < 1 else (part.p == 0 or None)
    if kind is nn.Flatten:
        assert isinstance(part, nn.Flatten)
        return True if first and (part.start_dim, part.end_dim) == (1, -1) else None
    return True if kind is nn.Identity else None


def _whole(layers: list[Layer], module: nn.Module) -> bool:
    """Whether the layers end in scores and hold each of the module's parameters exactly once."""
    if not layers or layers[-1].kind != "linear":
        return False
    names = [name for layer in layers for name, _ in parameters_of(layer)]
    once = len(set(names)) == len(names) == len(list(module.parameters()))  # none is shared
    return once and set(names) == set(module.state_dict())


def parameters_of(layer: Layer) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of a layer's parameters, as the module has them."""
    if layer.kind != "linear":
        return []
    prefix = f"{layer.name}." if layer.name else ""
    found: list[tuple[str, tuple[int, ...]]] = [(f"{prefix}weight", (layer.outputs, layer.inputs))]
    return [*found, (f"{prefix}bias", (layer.outputs,))] if layer.bias else found
