"""One training step of many rounds as tensors that never change their address.

A CUDA graph replays the same kernels on the same memory, so everything that differs between rounds
or changes with time (which rows, which augmentation, learning rate, step count) lies in a tensor
with a place for each round.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from dynsnap.train._optimizers import Adam
from dynsnap.train._teaching import Teaching
from dynsnap.train.side_by_side._feed import Feed


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What all rounds on a device share."""

    batch_size: int
    optimizer: Adam
    feed: Feed
    precision: torch.dtype
    compiled: bool
    teaching: Teaching | None = None

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
        self.names = [name for name, _ in module.named_parameters()]
        self.statistics = [name for name, _ in module.named_buffers()]
        self.losses = settings.compile(self._losses)
        self.update = settings.compile(self._update)
        self.scores = settings.compile(self._scores)

    def _forward(
        self, values: Sequence[Tensor], buffers: Sequence[Tensor], inputs: Tensor
    ) -> Tensor:
        state = dict(zip(self.names, values, strict=True))
        state.update(zip(self.statistics, buffers, strict=True))
        precision = self.settings.precision
        if self.grouped and inputs.is_floating_point():
            inputs = inputs.to(precision)
        mixed = precision != torch.float32 and not self.grouped
        with torch.autocast(inputs.device.type, precision, enabled=mixed):
            outputs: Tensor = functional_call(self.module, state, (inputs,))
        return outputs.float().view(self.rounds, -1, outputs.shape[1])

    def _losses(
        self,
        values: Sequence[Tensor],
        buffers: Sequence[Tensor],
        fitted: Tensor,
        rows: Tensor,
        draws: Tensor,
        truth: Tensor,
        targets: Tensor | None,
    ) -> Tensor:
        inputs = self.settings.feed.batch(fitted, rows, draws)
        outputs = self._forward(values, buffers, inputs)
        losses = functional.cross_entropy(outputs.flatten(0, 1), truth.flatten(), reduction="none")
        teaching = self.settings.teaching
        if teaching is not None and targets is not None:
            taught = teaching.losses(outputs.flatten(0, 1), targets.flatten(0, 1))
            losses = teaching.mixed(taught, losses)
        return losses.view(truth.shape).mean(dim=1)

    def _scores(
        self,
        values: Sequence[Tensor],
        buffers: Sequence[Tensor],
        fitted: Tensor,
        rows: Tensor,
    ) -> Tensor:
        inputs = self.settings.feed.batch(fitted, rows)
        return self._forward(values, buffers, inputs).softmax(dim=2)

    def _update(
        self,
        values: Sequence[Tensor],
        gradients: Sequence[Tensor],
        first: Sequence[Tensor],
        second: Sequence[Tensor],
        rate: Tensor,
        count: Tensor,
    ) -> None:
        adam = self.settings.optimizer
        fast, slow = adam.betas
        count.add_(1)
        scale = rate / (1 - fast**count)
        spread = (1 - slow**count).sqrt()
        for value, gradient, mean, square in zip(values, gradients, first, second, strict=True):
            if value.ndim == 4:  # convolution kernels, which alone are penalised
                gradient = gradient + 2 * adam.kernel_penalty * value
            share, shape = value.shape[0] // self.rounds, (-1, *([1] * (value.ndim - 1)))
            mean.lerp_(gradient, 1 - fast)
            square.mul_(slow).addcmul_(gradient, gradient, value=1 - slow)
            reach = square.sqrt() / spread.repeat_interleave(share).view(shape) + adam.eps
            value.sub_(scale.repeat_interleave(share).view(shape) * mean / reach)


class Network:
    """Rounds that take their steps together, each in its place."""

    def __init__(self, program: Program, module: nn.Module, labels: Tensor, *, rows: int) -> None:
        device, rounds = labels.device, program.rounds
        self.program, self.labels = program, labels
        self.values = [value.detach().clone().requires_grad_() for value in module.parameters()]
        self.buffers = [value.detach().clone() for value in module.buffers()]
        self.first = [torch.zeros_like(value) for value in self.values]
        self.second = [torch.zeros_like(value) for value in self.values]
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
        teaching = program.settings.teaching
        targets = None if teaching is None else teaching.targets[rows]
        losses = program.losses(
            self.values, self.buffers, self.fitted, rows, draws, self.labels[rows], targets
        )
        gradients = torch.autograd.grad(losses.sum(), self.values)
        with torch.no_grad():
            program.update(self.values, gradients, self.first, self.second, self.rate, self.count)
            self.loss.copy_(losses)
            self.position.add_(size)

    def changing(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        moments = [*self.first, *self.second]
        return [*self.values, *self.buffers, *moments, self.count, self.loss, self.position]

    def views(self, place: int) -> dict[str, Tensor]:
        """One round's weights and statistics, as views."""
        names = [*self.program.names, *self.program.statistics]
        return self._at(names, [*self.values, *self.buffers], place)

    def rates(self) -> list[str]:
        """Names of the dropout rates among the statistics."""
        return [name for name in self.program.statistics if name.endswith(".rates")]

    def moments(self, place: int) -> dict[str, Tensor]:
        """What one round's optimiser remembers, as views."""
        first = self._at([f"first.{name}" for name in self.program.names], self.first, place)
        second = self._at([f"second.{name}" for name in self.program.names], self.second, place)
        return {**first, **second, "count": self.count[place : place + 1]}

    def _at(self, names: Sequence[str], tensors: Sequence[Tensor], place: int) -> dict[str, Tensor]:
        parts = [place_of(value.detach(), place, self.program.rounds) for value in tensors]
        return dict(zip(names, parts, strict=True))


def place_of(value: Tensor, place: int, rounds: int) -> Tensor:
    """One round's part of a tensor that holds all rounds side by side, as a view."""
    if rounds == 1:
        return value
    return value.view(rounds, value.shape[0] // rounds, *value.shape[1:])[place]
