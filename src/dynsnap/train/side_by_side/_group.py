"""From one module to the same module for several rounds at once, where that can be done."""

from collections.abc import Mapping

import torch
from torch import Tensor, fx, nn

from dynsnap.train._threads import Tracer
from dynsnap.train.models import FastText
from dynsnap.train.models._residual import Block
from dynsnap.train.side_by_side._block import GroupedBlock
from dynsnap.train.side_by_side._layers import (
    GroupedBatchNorm,
    GroupedConvolution,
    GroupedDropout,
    GroupedEmbedding,
    GroupedFastText,
    GroupedLinear,
    exchanged,
    trial,
)

State = Mapping[str, Tensor]

# Counts batches, which only a moving momentum would need; it has no member to slice.
_COUNTER = ".num_batches_tracked"


class GroupedNetwork:
    """Several copies of one architecture, with weights of their own, computed as one network.

    Attributes:
        module: Takes (rounds · batch, ...), what the plain module takes, one round behind the
            other; gives (rounds · batch, classes). Its tensors have the plain module's names, and a
            member is a slice of each.
        rounds: How many copies.
    """

    def __init__(self, plain: nn.Module, rounds: int) -> None:
        self.rounds = rounds
        self._norm_of: dict[str, str] = {}
        whole = _replacement(plain, rounds, biased=True)
        if whole is not None and type(plain) is not Block:  # which has layers to replace
            self.module = whole
            return
        # Batch norms by the convolution that feeds them and nothing else: its bias is left out.
        layers = _Tracer().trace(plain)
        self._norm_of = _convolutions_before_norm(layers, dict(plain.named_modules()))
        root = exchanged(
            plain,
            lambda name, layer: _replacement(layer, rounds, biased=name not in self._norm_of),
        )
        self.module = fx.GraphModule(root, _BlockTracer().trace(plain))

    def fold(self, state: State) -> dict[str, Tensor]:
        """A plain module's state without the biases that are left out.

        What such a bias adds is taken off the running mean behind it: the same function.
        """
        folded = {name: value for name, value in state.items() if not name.endswith(_COUNTER)}
        for convolution, norm in self._norm_of.items():
            bias = folded.pop(f"{convolution}.bias", None)
            if bias is not None:
                folded[f"{norm}.running_mean"] = folded[f"{norm}.running_mean"] - bias
        return folded


def can_be_grouped(plain: nn.Module, batch: Tensor) -> bool:
    """Whether grouping computes what the module computes: tried out on a batch, not guessed."""
    shared = len(list(plain.parameters())) < len(
        list(plain.named_parameters(remove_duplicate=False))
    )
    if shared:  # a group would train each of its places on its own
        return False
    try:
        members = [_nudged(plain, place) for place in range(2)]
        grouping = GroupedNetwork(members[0], 2)
        module = grouping.module.double()
        tensors = module.state_dict(keep_vars=True)
        with torch.no_grad():
            for place, member in enumerate(members):
                for name, value in grouping.fold(member.state_dict()).items():
                    tensors[name].unflatten(0, (2, -1))[place].copy_(value)
        batches = _two_batches(batch)
        with torch.no_grad():
            for training in (False, True):
                together = module.train(training)(torch.cat(batches)).unflatten(0, (2, -1))
                alone = [
                    member.train(training)(part)
                    for member, part in zip(members, batches, strict=True)
                ]
                if not torch.allclose(together, torch.stack(alone), rtol=1e-6, atol=1e-8):
                    return False
    except Exception:  # whatever a caller's forward may do under tracing: then it cannot
        return False
    return True


class _Tracer(Tracer):
    """Stops at layers that are grouped as a whole, also where a caller has derived from them."""

    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        layers = nn.Conv2d | nn.BatchNorm2d | nn.Linear | nn.Dropout | nn.Embedding
        whole = isinstance(module, layers) or type(module) is FastText
        return whole or super().is_leaf_module(module, name)


class _BlockTracer(_Tracer):
    """Stops at residual blocks already."""

    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        return type(module) is Block or super().is_leaf_module(module, name)


def _two_batches(batch: Tensor) -> list[Tensor]:
    """Different inputs for each member: a mean over the batch must not go unnoticed."""
    if batch.is_floating_point():
        return [batch.double(), 1 - batch.double().square()]
    other = torch.where(batch == 0, batch, batch.amax() + 1 - batch)  # the padding stays
    other[0, 0] = 0
    return [batch, other]


def _nudged(plain: nn.Module, place: int) -> nn.Module:
    """A copy with weights of its own."""
    member = trial(plain)
    with torch.no_grad():
        for value in member.parameters():
            ramp = torch.arange(value.numel(), dtype=value.dtype).view_as(value)
            value.add_(0.01 * torch.cos(ramp + place))
    return member


def _replacement(layer: nn.Module, rounds: int, *, biased: bool) -> nn.Module | None:
    if isinstance(layer, nn.Conv2d) and GroupedConvolution.suits(layer):
        return GroupedConvolution(layer, rounds, bias=biased)
    if isinstance(layer, nn.BatchNorm2d) and GroupedBatchNorm.suits(layer):
        return GroupedBatchNorm(layer, rounds)
    if isinstance(layer, nn.Linear):
        return GroupedLinear(layer, rounds)
    if isinstance(layer, nn.Dropout):
        return GroupedDropout(rounds)
    if type(layer) is Block:  # its own layers come after it
        return GroupedBlock(layer)
    if type(layer) is FastText:
        return GroupedFastText(layer, rounds)
    if isinstance(layer, nn.Embedding) and GroupedEmbedding.suits(layer):
        return GroupedEmbedding(layer, rounds)
    return None


def _convolutions_before_norm(graph: fx.Graph, layers: dict[str, nn.Module]) -> dict[str, str]:
    found = {}
    for node in graph.nodes:
        if node.op != "call_module" or not isinstance(layers[str(node.target)], nn.Conv2d):
            continue
        users = list(node.users)
        if len(users) == 1 and users[0].op == "call_module":
            norm = str(users[0].target)
            if isinstance(layers[norm], nn.BatchNorm2d):
                found[str(node.target)] = norm
    return found
