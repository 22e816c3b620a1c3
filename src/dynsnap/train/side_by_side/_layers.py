"""Layers that compute several rounds at once: channels of all rounds side by side, in groups.

An activation is (batch, rounds · channels, height, width), so that elementwise layers, pooling and
batch norm need no change. A parameter of shape (out, ...) becomes (rounds · out, ...): a member is
a slice of it.

cuDNN is fast on grouped convolutions only where a group has as many inputs as outputs and the
stride is one; elsewhere it falls back to one kernel per group, which is far slower. So every
other convolution is written as one of those, or as a matrix product. It computes the same sums.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class GroupedConvolution(nn.Module):
    """`rounds` convolutions of one shape side by side."""

    def __init__(self, plain: nn.Conv2d, rounds: int, *, bias: bool) -> None:
        super().__init__()
        self.rounds, self.inputs, self.outputs = rounds, plain.in_channels, plain.out_channels
        self.stride, self.kernel = plain.stride, plain.kernel_size
        self.padding, self.dilation = plain.padding, plain.dilation
        self.weight = nn.Parameter(_repeat(plain.weight, rounds))
        # A bias that batch norm takes off again changes nothing but costs a pass over the gradient.
        self.bias = (
            nn.Parameter(_repeat(plain.bias, rounds)) if bias and plain.bias is not None else None
        )

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.to(x.dtype)
        if self.kernel == (1, 1) and self.padding in ((0, 0), "valid"):
            y = self._pointwise(x, weight)
        elif self._is_square_after_padding():
            short = self.outputs - self.inputs
            if short:
                apart = x.reshape(len(x), self.rounds, self.inputs, *x.shape[2:])
                x = F.pad(apart, (0, 0, 0, 0, 0, short)).flatten(1, 2)
                weight = F.pad(weight, (0, 0, 0, 0, 0, short))
            y = self._square(x, weight)
        else:
            y = F.conv2d(x, weight, None, self.stride, self.padding, self.dilation, self.rounds)
        return y if self.bias is None else y + self.bias.to(x.dtype).view(1, -1, 1, 1)

    def _is_square_after_padding(self) -> bool:
        return (
            self.kernel == (3, 3)
            and self.stride == (1, 1)
            and self.dilation == (1, 1)
            and self.padding in ((1, 1), "same")
            and self.inputs <= self.outputs
        )

    def _square(self, x: Tensor, weight: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        weight = weight.contiguous(memory_format=torch.channels_last)
        return F.conv2d(x, weight, None, 1, 1, 1, self.rounds)

    def _pointwise(self, x: Tensor, weight: Tensor) -> Tensor:
        x = x[:, :, :: self.stride[0], :: self.stride[1]]
        batch, _, height, width = x.shape
        rows = x.permute(0, 2, 3, 1).reshape(-1, self.rounds, self.inputs).transpose(0, 1)
        y = torch.bmm(rows, weight.view(self.rounds, self.outputs, self.inputs).transpose(1, 2))
        return y.transpose(0, 1).reshape(batch, height, width, -1).permute(0, 3, 1, 2)


class GroupedHalving(GroupedConvolution):
    """A 3×3 convolution of stride 2 that sees rows 2i to 2i + 2, as Keras pads ('same').

    The image is cut into its four phases (even or odd row, even or odd column). Each phase meets
    its share of the kernel at stride one, and two phases together have as many channels as the
    output.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.outputs != 2 * self.inputs or x.shape[2] % 2 or x.shape[3] % 2:
            y = F.conv2d(
                F.pad(x, (0, 1, 0, 1)), self.weight.to(x.dtype), None, 2, 0, 1, self.rounds
            )
            return y if self.bias is None else y + self.bias.to(x.dtype).view(1, -1, 1, 1)
        weight = self.weight.to(x.dtype)
        batch, _, height, width = x.shape
        # (row phase, batch, round, column phase, channel, row, column)
        phases = x.view(batch, self.rounds, self.inputs, height // 2, 2, width // 2, 2).permute(
            4, 0, 1, 6, 2, 3, 5
        )
        kernels = (
            (weight[:, :, 0::2, 0::2], weight[:, :, 0::2, 1:2]),
            (weight[:, :, 1:2, 0::2], weight[:, :, 1:2, 1:2]),
        )
        parts = [
            self._square(
                phase.reshape(batch, -1, height // 2, width // 2),
                # Offsets 0 and +1 are the centre and the far side of a 3×3 kernel.
                torch.cat([F.pad(k, (1, 2 - k.shape[3], 1, 2 - k.shape[2])) for k in pair], dim=1),
            )
            for phase, pair in zip(phases, kernels, strict=True)
        ]
        y = parts[0] + parts[1]
        return y if self.bias is None else y + self.bias.to(x.dtype).view(1, -1, 1, 1)


class GroupedLinear(nn.Module):
    """`rounds` linear layers: (batch, rounds · inputs) to (batch, rounds · outputs)."""

    def __init__(self, plain: nn.Linear, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.weight = nn.Parameter(_repeat(plain.weight, rounds))
        self.bias = None if plain.bias is None else nn.Parameter(_repeat(plain.bias, rounds))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.to(x.dtype).view(self.rounds, -1, self.weight.shape[1])
        rows = x.reshape(len(x), self.rounds, -1).transpose(0, 1)
        y = torch.bmm(rows, weight.transpose(1, 2)).transpose(0, 1).reshape(len(x), -1)
        return y if self.bias is None else y + self.bias.to(x.dtype)


class GroupedDropout(nn.Module):
    """Dropout with a rate of its own for each round, (batch, rounds · units)."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.register_buffer("rates", torch.zeros(rounds), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        rates = self.get_buffer("rates")
        rows = x.reshape(len(x), len(rates), -1)
        kept = torch.rand(rows.shape, device=x.device) >= rates[:, None]
        return (rows * kept / (1 - rates)[:, None]).reshape(x.shape).to(x.dtype)


class GroupedBatchNorm(nn.BatchNorm2d):
    """Batch norm over the channels of all rounds: each channel has its own statistics anyway."""

    def __init__(self, plain: nn.BatchNorm2d, rounds: int) -> None:
        momentum = 0.1 if plain.momentum is None else plain.momentum
        super().__init__(plain.num_features * rounds, plain.eps, momentum, plain.affine)
        for name in ("weight", "bias", "running_mean", "running_var"):
            getattr(self, name).data.copy_(_repeat(getattr(plain, name), rounds))
        # A counter that only a moving momentum would need, and that has no member to slice.
        self.num_batches_tracked = None


def _repeat(plain: Tensor, rounds: int) -> Tensor:
    return plain.detach().repeat(rounds, *([1] * (plain.ndim - 1)))
