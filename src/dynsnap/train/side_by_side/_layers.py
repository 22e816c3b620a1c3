"""Layers that compute several rounds at once, each round with weights of its own."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from dynsnap.train.models import FastText
from dynsnap.train.models._residual import SameConv
from dynsnap.train.side_by_side._convolution import convolution
from dynsnap.train.side_by_side._vectors import places, sum_vectors
from dynsnap.train.side_by_side._window import Window


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


class GroupedConvolution(nn.Module):
    """`rounds` convolutions of one shape."""

    def __init__(self, plain: nn.Conv2d, rounds: int, *, bias: bool) -> None:
        super().__init__()
        self.rounds = rounds
        self.window = Window(
            side=plain.kernel_size[0], stride=plain.stride[0], before=_zeros_before(plain)
        )
        # One row below and one column to the right more than above and to the left.
        self.zeros = 2 * self.window.before + (isinstance(plain, SameConv) and plain.lopsided)
        self.weight = nn.Parameter(repeat(plain.weight, rounds))
        # A bias that batch norm takes off again changes nothing but costs a pass over the gradient.
        self.bias = (
            nn.Parameter(repeat(plain.bias, rounds)) if bias and plain.bias is not None else None
        )

    @staticmethod
    def suits(plain: nn.Conv2d) -> bool:
        """Whether this layer can stand for a plain one: a square kernel that moves evenly."""
        return (
            plain.groups == 1
            and plain.padding_mode == "zeros"
            and all(len(set(pair)) == 1 for pair in (plain.kernel_size, plain.stride))
            and plain.dilation == (1, 1)
            and (isinstance(plain.padding, str) or len(set(plain.padding)) == 1)
            and not (plain.padding == "same" and plain.kernel_size[0] % 2 == 0)
        )

    def forward(self, x: Tensor) -> Tensor:
        window = self.window
        size = [(pixels + self.zeros - window.side) // window.stride + 1 for pixels in x.shape[2:]]
        y = convolution(x, self.weight.to(x.dtype), self.rounds, window, size)
        if self.bias is None:
            return y
        bias = self.bias.to(x.dtype).view(self.rounds, 1, -1, 1, 1)
        return (_apart(y, self.rounds) + bias).flatten(0, 1)


class GroupedLinear(nn.Module):
    """`rounds` linear layers: (rounds · batch, inputs) to (rounds · batch, outputs)."""

    def __init__(self, plain: nn.Linear, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.weight = nn.Parameter(repeat(plain.weight, rounds))
        self.bias = None if plain.bias is None else nn.Parameter(repeat(plain.bias, rounds))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.to(x.dtype).view(self.rounds, -1, self.weight.shape[1])
        y = torch.bmm(_apart(x, self.rounds), weight.transpose(1, 2))
        if self.bias is not None:
            y = y + self.bias.to(x.dtype).view(self.rounds, 1, -1)
        return y.flatten(0, 1)


class GroupedDropout(nn.Module):
    """Dropout with a rate of its own for each round, (rounds · batch, units).

    What is dropped follows from a round's salt and the steps that it has taken: not from a
    generator that all rounds share.
    """

    rates: Tensor
    salts: Tensor
    steps: Tensor

    def __init__(self, rounds: int) -> None:
        super().__init__()
        for name in ("rates", "salts", "steps"):
            self.register_buffer(name, torch.zeros(rounds), persistent=False)

    @staticmethod
    def start(rate: float, salt: int) -> dict[str, Tensor]:
        """What the buffers of a round begin with; a float knows whole numbers up to 2²⁴."""
        numbers = {"rates": rate, "salts": salt % 2**24, "steps": 0}
        return {name: torch.tensor(float(number)) for name, number in numbers.items()}

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        rows = _apart(x, len(self.rates))
        wide = -1, *([1] * x.ndim)
        with torch.no_grad():
            self.steps.add_(1)
        unit = torch.arange(rows[0].numel(), device=x.device).view(rows.shape[1:])
        turn = _mixed(self.salts.long() * 0x9E3779B1 + self.steps.long())
        # A unit is only added: compiled for a GPU, a factor of a place must be below 2³¹.
        kept = _shares(_mixed(turn.view(wide) + unit)) >= self.rates.view(wide)
        return (rows * kept / (1 - self.rates.view(wide))).flatten(0, 1).to(x.dtype)


class GroupedBatchNorm(nn.Module):
    """Batch norm over the images of each round."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, plain: nn.BatchNorm2d, rounds: int) -> None:
        super().__init__()
        self.rounds, self.eps = rounds, plain.eps
        self.momentum = 0.1 if plain.momentum is None else plain.momentum
        self.weight = nn.Parameter(repeat(plain.weight, rounds))
        self.bias = nn.Parameter(repeat(plain.bias, rounds))
        self.register_buffer("running_mean", repeat(plain.running_mean, rounds))
        self.register_buffer("running_var", repeat(plain.running_var, rounds))

    @staticmethod
    def suits(plain: nn.BatchNorm2d) -> bool:
        """Whether this layer can stand for a plain one: with weights, and statistics kept."""
        return plain.affine and plain.track_running_stats

    def forward(self, x: Tensor) -> Tensor:
        rows = _apart(x, self.rounds)
        values = rows if x.dtype == torch.float64 else rows.float()
        mean, variance = self.running_mean, self.running_var
        if self.training:
            # Not around the running mean, which would be cheaper: where a step is compiled, the way
            # back would find it moved.
            variance, mean = torch.var_mean(values, dim=(1, 3, 4), correction=0)
            variance, mean = variance.flatten(), mean.flatten()
            self.follow(mean, variance, values[0, :, 0].numel())
        scale, shift = self.scale_and_shift(mean, variance)
        return (values * self._wide(scale) + self._wide(shift)).to(x.dtype).flatten(0, 1)

    def scale_and_shift(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """What values of such a mean and variance are multiplied by, and what is added then."""
        scale = self.weight * torch.rsqrt(variance + self.eps)
        return scale, self.bias - mean * scale

    @torch.no_grad()
    def follow(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Running statistics; of the variance they hold the unbiased estimate."""
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance * (count / (count - 1)), self.momentum)

    def _wide(self, channels: Tensor) -> Tensor:
        return channels.view(self.rounds, 1, -1, 1, 1)


def _mixed(numbers: Tensor) -> Tensor:
    """Whole numbers below 2³² that look random, from others that do not."""
    bits = numbers & 0xFFFFFFFF
    for _ in range(2):
        bits = ((bits ^ (bits >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    return bits ^ (bits >> 16)


def _shares(bits: Tensor) -> Tensor:
    """Such numbers as shares of one."""
    return (bits >> 8).float() / 2**24


def _zeros_before(plain: nn.Conv2d) -> int:
    if isinstance(plain.padding, str):
        return plain.kernel_size[0] // 2 if plain.padding == "same" else 0
    return plain.padding[0]


def _apart(values: Tensor, rounds: int) -> Tensor:
    """(rounds · batch, ...) as (rounds, batch, ...)."""
    return values.view(rounds, -1, *values.shape[1:])


def repeat(plain: Tensor | None, rounds: int) -> Tensor:
    """A parameter of one round for all of them, one behind the other."""
    assert plain is not None
    return plain.detach().repeat(rounds, *([1] * (plain.ndim - 1)))


class GroupedEmbedding(nn.Module):
    """`rounds` tables of vectors: (rounds · texts, ...) to (rounds · texts, ..., width)."""

    def __init__(self, plain: nn.Embedding, rounds: int) -> None:
        super().__init__()
        self.rounds, self.padding = rounds, plain.padding_idx
        self.weight = nn.Parameter(repeat(plain.weight, rounds))

    @staticmethod
    def suits(plain: nn.Embedding) -> bool:
        """Whether this layer can stand for a plain one: nothing but looks its vectors up."""
        return plain.max_norm is None and not plain.scale_grad_by_freq

    def forward(self, tokens: Tensor) -> Tensor:
        found = functional.embedding(places(tokens, len(self.weight), self.rounds), self.weight)
        if self.padding is None:
            return found
        # The vector of the padding is never learned.
        return torch.where(tokens.eq(self.padding).unsqueeze(-1), found.detach(), found)


class GroupedMean(nn.Module):
    """The mean vector of each text's tokens; token 0 is padding and counts for nothing."""

    def __init__(self, plain: nn.Embedding, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.weight = nn.Parameter(repeat(plain.weight, rounds))

    def forward(self, tokens: Tensor) -> Tensor:
        lengths = tokens.ne(0).sum(dim=1, keepdim=True)
        return sum_vectors(tokens, self.weight, self.rounds) / lengths.clamp(min=1)


class GroupedFastText(nn.Module):
    """`rounds` fastTexts: what the plain one computes, with shapes that do not follow the texts."""

    def __init__(self, plain: FastText, rounds: int) -> None:
        super().__init__()
        self.vectors = GroupedMean(plain.vectors, rounds)
        self.dropout = GroupedDropout(rounds)
        self.output = GroupedLinear(plain.output, rounds)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.output(self.dropout(self.vectors(tokens)))
        return logits


# Rounds that cannot be one network are one each, on a stream of its own. Their convolutions and
# batch norms can still be those of the grouped network, for one round: they are faster on small
# images.


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
