"""One training step of many rounds as tensors that never change their address.

A CUDA graph replays the same kernels on the same memory, so everything that differs between rounds
or changes with time (which rows, which augmentation, learning rate, step count) lies in a tensor
with a place for each round.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from dynsnap.train._distillation import DistillationLoss
from dynsnap.train._optimizers import Adam
from dynsnap.train.side_by_side._feed import Feed
from dynsnap.train.side_by_side._flat import FlatLayout
from dynsnap.train.side_by_side._layers import GroupedDropout


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What all rounds on a device share."""

    batch_size: int
    optimizer: Adam
    feed: Feed
    precision: torch.dtype
    compiled: bool
    distillation: DistillationLoss | None = None

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Compiled where there is something to gain, as it is elsewhere."""
        if not self.compiled:
            return function
        compiled: Callable[..., Any] = torch.compile(function)
        return compiled


class Program:
    """The arithmetic of a step for one module: compiled once, called for every network of it.

    The module gives the structure only; weights and statistics are arguments.

    Args:
        module: Takes what the feed gives, (rounds · batch, ...); gives (rounds · batch, classes).
        rounds: How many rounds it computes at once.
        settings: How to compute.
        grouped: Whether its layers are grouped ones, which follow the type of what they are given;
            any other module needs autocast.
    """

    def __init__(
        self, module: nn.Module, rounds: int, settings: Settings, *, grouped: bool
    ) -> None:
        self.module, self.rounds, self.settings = module, rounds, settings
        self.grouped = grouped
        self.layout = FlatLayout(module, rounds)
        self.statistics = [name for name, _ in module.named_buffers()]
        self.losses = settings.compile(self._losses)
        self.update = settings.compile(self._update)
        self.scores = settings.compile(self._scores)

    def _forward(self, vector: Tensor, buffers: Sequence[Tensor], inputs: Tensor) -> Tensor:
        precision, layout = self.settings.precision, self.layout
        kernels, others = torch.split(vector, [layout.kernels, layout.size - layout.kernels])
        if self.grouped:  # one conversion for all kernels; autocast does its own
            kernels = kernels.to(precision)
        state = dict(zip(layout.names, layout.parameters(kernels, others), strict=True))
        state.update(zip(self.statistics, buffers, strict=True))
        if self.grouped and inputs.is_floating_point():
            inputs = inputs.to(precision)
        mixed = precision != torch.float32 and not self.grouped
        with torch.autocast(inputs.device.type, precision, enabled=mixed):
            outputs: Tensor = functional_call(self.module, state, (inputs,))
        return outputs.float().view(self.rounds, -1, outputs.shape[1])

    def _losses(
        self,
        vector: Tensor,
        buffers: Sequence[Tensor],
        fitted: Tensor,
        rows: Tensor,
        draws: Tensor,
        truth: Tensor,
        targets: Tensor | None,
    ) -> Tensor:
        inputs = self.settings.feed.batch(fitted, rows, draws)
        outputs = self._forward(vector, buffers, inputs)
        losses = functional.cross_entropy(outputs.flatten(0, 1), truth.flatten(), reduction="none")
        distillation = self.settings.distillation
        if distillation is not None and targets is not None:
            taught = distillation.losses(outputs.flatten(0, 1), targets.flatten(0, 1))
            losses = distillation.mixed(taught, losses)
        return losses.view(truth.shape).mean(dim=1)

    def _scores(
        self,
        vector: Tensor,
        buffers: Sequence[Tensor],
        fitted: Tensor,
        rows: Tensor,
    ) -> Tensor:
        inputs = self.settings.feed.batch(fitted, rows)
        return self._forward(vector, buffers, inputs).softmax(dim=2)

    def _update(
        self,
        vector: Tensor,
        gradient: Tensor,
        first: Tensor,
        second: Tensor,
        owners: Tensor,
        rate: Tensor,
        count: Tensor,
    ) -> None:
        adam = self.settings.optimizer
        fast, slow = adam.betas
        count.add_(1)
        scale = rate / (1 - fast**count)
        spread = (1 - slow**count).sqrt()
        # Convolution kernels, which come first, are alone in being penalised.
        place = torch.arange(self.layout.size, device=vector.device)
        penalty = torch.where(place < self.layout.kernels, 2 * adam.kernel_penalty, 0.0)
        gradient = gradient + penalty * vector
        first.lerp_(gradient, 1 - fast)
        second.mul_(slow).addcmul_(gradient, gradient, value=1 - slow)
        reach = second.sqrt() / spread[owners] + adam.eps
        vector.sub_(scale[owners] * first / reach)


class Network:
    """Rounds that take their steps together, each in its place."""

    def __init__(self, program: Program, module: nn.Module, labels: Tensor, *, rows: int) -> None:
        device, rounds = labels.device, program.rounds
        self.program, self.labels = program, labels
        self.vector = program.layout.vector(module).requires_grad_()
        self.buffers = [value.detach().clone() for value in module.buffers()]
        self.first, self.second = (torch.zeros_like(self.vector.detach()) for _ in range(2))
        self.owners = program.layout.owners(device)
        self.rate = torch.zeros(rounds, device=device)
        self.count = torch.zeros(rounds, device=device)
        self.loss = torch.zeros(rounds, device=device)
        self.fitted = program.settings.feed.room(rounds)
        self.order = torch.zeros(rounds, rows, dtype=torch.int64, device=device)
        self.draws = torch.zeros(rounds, rows, 3, device=device)
        self.position = torch.zeros(rounds, dtype=torch.int64, device=device)

    def step(self) -> None:
        """One batch of every round: gather, forward, backward, update."""
        program, size = self.program, self.program.settings.batch_size
        reach = self.position[:, None] + torch.arange(size, device=self.labels.device)
        reach = reach % self.order.shape[1]  # an empty place goes round in circles
        rows = self.order.gather(1, reach)
        draws = self.draws.gather(1, reach[:, :, None].expand(-1, -1, 3))
        distillation = program.settings.distillation
        targets = None if distillation is None else distillation.targets[rows]
        losses = program.losses(
            self.vector, self.buffers, self.fitted, rows, draws, self.labels[rows], targets
        )
        (gradient,) = torch.autograd.grad(losses.sum(), self.vector)
        moments = self.first, self.second
        with torch.no_grad():
            program.update(self.vector, gradient, *moments, self.owners, self.rate, self.count)
            self.loss.copy_(losses)
            self.position.add_(size)

    def changing(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        moments = [self.first, self.second]
        return [self.vector, *self.buffers, *moments, self.count, self.loss, self.position]

    def views(self, place: int) -> dict[str, Tensor]:
        """One round's weights and statistics, as views."""
        buffers = [place_of(value, place, self.program.rounds) for value in self.buffers]
        statistics = dict(zip(self.program.statistics, buffers, strict=True))
        return {**self._at(self.vector.detach(), place), **statistics}

    def dropout(self, rate: float, salt: int) -> dict[str, Tensor]:
        """What the dropout layers of a new round start from, each with a salt of its own."""
        found: dict[str, Tensor] = {}
        for name, layer in self.program.module.named_modules():
            if isinstance(layer, GroupedDropout):
                own = layer.start(rate, salt + zlib.crc32(name.encode()))
                found |= {f"{name}.{kind}": value for kind, value in own.items()}
        return found

    def moments(self, place: int) -> dict[str, Tensor]:
        """What one round's optimiser remembers, as views."""
        found = {
            f"{kind}.{name}": value
            for kind, vector in (("first", self.first), ("second", self.second))
            for name, value in self._at(vector, place).items()
        }
        return {**found, "count": self.count[place : place + 1]}

    def _at(self, vector: Tensor, place: int) -> dict[str, Tensor]:
        layout = self.program.layout
        views = [place_of(value, place, layout.rounds) for value in layout.views(vector)]
        return dict(zip(layout.names, views, strict=True))


def place_of(value: Tensor, place: int, rounds: int) -> Tensor:
    """One round's part of a tensor that holds all rounds side by side, as a view."""
    if rounds == 1:
        return value
    return value.view(rounds, value.shape[0] // rounds, *value.shape[1:])[place]
