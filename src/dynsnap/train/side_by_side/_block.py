"""The residual block of the paper's ResNets for many rounds at once, as one operation on a GPU."""

from typing import Any

import torch
from torch import Tensor, nn

from dynsnap.train._devices import has_kernels
from dynsnap.train.models._residual import Block
from dynsnap.train.side_by_side._layers import GroupedBatchNorm, GroupedConvolution
from dynsnap.train.side_by_side._window import KEEPING_SHAPE


class GroupedBlock(Block):
    """A block whose layers are those of several rounds, or will be: see `exchanged`.

    Where it keeps the shape of images, kernels of our own compute it; elsewhere its layers do the
    same.
    """

    def __init__(self, plain: Block) -> None:
        nn.Module.__init__(self)  # the layers are there already
        for name, layer in plain.named_children():
            self.add_module(name, layer)

    def forward(self, images: Tensor) -> Tensor:
        if not self._is_fast(images):
            return super().forward(images)
        return self._trained(images) if self.training else self._looked_at(images)

    def _is_fast(self, images: Tensor) -> bool:
        """Whether kernels of our own do it: its channels must fill a matrix product.

        They know no way back through a block that is only looked at, and no layers but its own.
        """
        channels = images.shape[1]
        return (
            (self.training or not torch.is_grad_enabled())
            and isinstance(self.projection, nn.Identity)
            and all(_is_plain(layer) for layer in (self.first, self.second))
            and _eps(self.first_norm) == _eps(self.second_norm)
            and 16 <= channels <= 64
            and channels & (channels - 1) == 0
            and has_kernels(images)
        )

    def _trained(self, images: Tensor) -> Tensor:
        images = images.permute(0, 2, 3, 1).contiguous()
        kernels, norms = self._halves(images)
        rounds, eps = norms[0].rounds, norms[0].eps
        halves = [(one, norm.weight, norm.bias) for one, norm in zip(kernels, norms, strict=True)]
        shown, *_, first, second = _train(images, *halves[0], *halves[1], rounds, eps)
        count = images[..., 0].numel() // rounds
        for norm, (mean, variance, _) in zip(norms, (first, second), strict=True):
            norm.follow(mean, variance, count)
        result: Tensor = shown.permute(0, 3, 1, 2)
        return result

    def _looked_at(self, images: Tensor) -> Tensor:
        images = images.permute(0, 2, 3, 1).contiguous()
        kernels, norms = self._halves(images)
        first, second = [
            torch.stack(norm.scale_and_shift(norm.running_mean, norm.running_var)) for norm in norms
        ]
        shown = _look(images, kernels[0], first, kernels[1], second, norms[0].rounds)
        result: Tensor = shown.permute(0, 3, 1, 2)
        return result

    def _halves(self, images: Tensor) -> tuple[list[Tensor], list[GroupedBatchNorm]]:
        """Kernels of both convolutions, laid out as images are, and the batch norms behind them."""
        kernels: list[Tensor] = []
        norms: list[GroupedBatchNorm] = []
        layers: tuple[tuple[nn.Module, nn.Module], ...] = (
            (self.first, self.first_norm),
            (self.second, self.second_norm),
        )
        for convolution, norm in layers:
            assert isinstance(convolution, GroupedConvolution)
            assert isinstance(norm, GroupedBatchNorm)
            kernels.append(convolution.weight.to(images.dtype).permute(0, 2, 3, 1).contiguous())
            norms.append(norm)
        return kernels, norms


def _eps(norm: nn.Module) -> float | None:
    return norm.eps if isinstance(norm, GroupedBatchNorm) else None


def _is_plain(layer: nn.Module) -> bool:
    """Whether a convolution is one of 3×3 that keeps the shape, without a bias."""
    return (
        isinstance(layer, GroupedConvolution)
        and layer.window == KEEPING_SHAPE
        and layer.bias is None
    )


@torch.library.custom_op("dynsnap::residual_block", mutates_args=())
def _train(
    images: Tensor,
    first: Tensor,
    first_weight: Tensor,
    first_bias: Tensor,
    second: Tensor,
    second_weight: Tensor,
    second_bias: Tensor,
    rounds: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """What is shown in the end; what is kept of both halves for the way back."""
    from dynsnap.train.side_by_side import _block_fast as fast

    found, statistics, inner = fast.forward(
        images, first, first_weight, first_bias, None, rounds, eps
    )
    found_then, statistics_then, shown = fast.forward(
        inner, second, second_weight, second_bias, images, rounds, eps
    )
    return shown, inner, found, found_then, statistics, statistics_then


@_train.register_fake
def _(images: Tensor, first: Tensor, first_weight: Tensor, *_: Any) -> tuple[Tensor, ...]:
    statistics = first_weight.new_empty(3, len(first), dtype=torch.float32)
    alike = [torch.empty_like(images) for _ in range(4)]
    return (*alike, statistics, torch.empty_like(statistics))


@torch.library.custom_op("dynsnap::residual_block_back", mutates_args=())
def _back_through(
    gradient: Tensor,
    images: Tensor,
    first: Tensor,
    first_weight: Tensor,
    second: Tensor,
    second_weight: Tensor,
    shown: Tensor,
    inner: Tensor,
    found: Tensor,
    found_then: Tensor,
    statistics: Tensor,
    statistics_then: Tensor,
    rounds: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    from dynsnap.train.side_by_side import _block_fast as fast

    one = fast.Half(first, first_weight, images, found, statistics, inner)
    two = fast.Half(second, second_weight, inner, found_then, statistics_then, shown)
    return fast.backward(gradient, one, two, rounds)


@_back_through.register_fake
def _(
    gradient: Tensor,
    images: Tensor,
    first: Tensor,
    first_weight: Tensor,
    second: Tensor,
    *_: Any,
) -> tuple[Tensor, ...]:
    sums = first_weight.new_empty(2, len(first), dtype=torch.float32)
    kernels = torch.empty_like(first), torch.empty_like(second)
    return torch.empty_like(images), kernels[0], sums, kernels[1], torch.empty_like(sums)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    images, first, first_weight, _, second, second_weight, _, ctx.rounds, _ = inputs
    ctx.save_for_backward(images, first, first_weight, second, second_weight, *output)
    ctx.set_materialize_grads(False)  # what is kept needs no gradient


def _back(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Any, ...]:
    images, first, (first_bias, first_weight), second, (second_bias, second_weight) = _back_through(
        gradient.contiguous(), *ctx.saved_tensors, ctx.rounds
    )
    of_first, of_second = (first, first_weight, first_bias), (second, second_weight, second_bias)
    return (images, *of_first, *of_second, None, None)


_train.register_autograd(_back, setup_context=_remember)


@torch.library.custom_op("dynsnap::look_at_residual_block", mutates_args=())
def _look(
    images: Tensor,
    first: Tensor,
    first_norm: Tensor,
    second: Tensor,
    second_norm: Tensor,
    rounds: int,
) -> Tensor:
    from dynsnap.train.side_by_side import _block_fast as fast

    inner = fast.look(images, first, first_norm, None, rounds)
    return fast.look(inner, second, second_norm, images, rounds)


@_look.register_fake
def _(images: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(images)
