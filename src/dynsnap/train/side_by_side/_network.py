"""One training step of many rounds as tensors that never change their address."""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from dynsnap.train._distillation import RoundTargets, mixed, soft_losses
from dynsnap.train._optimizers import Adam
from dynsnap.train.side_by_side._feed import Feed
from dynsnap.train.side_by_side._layers import GroupedDropout


class FlatLayout:
    """Where each parameter lies: convolution kernels first, then all others.

    A parameter of all rounds is one piece of the vector, its rounds one behind the other. Kernels
    lie channels last, as convolutions like them.

    Args:
        module: Has the parameters of all rounds.
        rounds: How many.

    Attributes:
        names: Of the parameters, in the module's order.
        kernels: How much of the vector are convolution kernels.
        size: Of the vector.
    """

    def __init__(self, module: nn.Module, rounds: int) -> None:
        self.rounds = rounds
        parameters = dict(module.named_parameters())
        self.names = list(parameters)
        self._shapes = {name: _laid_out(value.detach()).shape for name, value in parameters.items()}
        kernels = [name for name in self.names if len(self._shapes[name]) == 4]
        self._order = kernels, [name for name in self.names if name not in kernels]
        self.kernels, others = (sum(self._sizes(part)) for part in self._order)
        self.size = self.kernels + others

    def vector(self, module: nn.Module) -> Tensor:
        """A module's parameters as one vector."""
        parameters = dict(module.named_parameters())
        pieces = [
            _laid_out(parameters[name].detach()).reshape(-1)
            for part in self._order
            for name in part
        ]
        return torch.cat(pieces)

    def parameters(self, kernels: Tensor, others: Tensor) -> list[Tensor]:
        """Parameters in the module's order, as views of the vector's two parts."""
        found = {}
        for vector, part in zip((kernels, others), self._order, strict=True):
            for name, piece in zip(part, torch.split(vector, self._sizes(part)), strict=True):
                value = piece.view(self._shapes[name])
                found[name] = value.permute(0, 3, 1, 2) if value.ndim == 4 else value
        return [found[name] for name in self.names]

    def views(self, vector: Tensor) -> list[Tensor]:
        """The same of a whole vector."""
        return self.parameters(vector[: self.kernels], vector[self.kernels :])

    def owners(self, device: torch.device) -> Tensor:
        """The round that each number of the vector belongs to."""
        places = torch.arange(self.rounds)
        sizes = [size for part in self._order for size in self._sizes(part)]
        return torch.cat([places.repeat_interleave(size // self.rounds) for size in sizes]).to(
            device
        )

    def _sizes(self, names: list[str]) -> list[int]:
        return [math.prod(self._shapes[name]) for name in names]


def _laid_out(value: Tensor) -> Tensor:
    return value.permute(0, 2, 3, 1) if value.ndim == 4 else value


Step = Callable[[], None]


def captured(step: Step, state: list[Tensor]) -> Step:
    """The same step as a graph; the tensors of `state` are as they were before.

    Compiling and warming up run the step for real, so what it changed is put back in place: the
    graph holds addresses.
    """
    device = state[0].device
    if device.type != "cuda":
        return step
    before = [value.detach().clone() for value in state]
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream(device).wait_stream(side)
    graph: Any = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    with torch.no_grad():
        torch._foreach_copy_([value.detach() for value in state], before)
    replay: Step = graph.replay
    return replay


def beside(steps: Sequence[Step]) -> None:
    """Run steps beside each other: on a GPU each on a stream of its own, elsewhere in turn."""
    if len(steps) == 1 or not torch.cuda.is_available():
        for step in steps:
            step()
        return
    main = torch.cuda.current_stream()
    streams = [torch.cuda.Stream() for _ in steps]  # type: ignore[no-untyped-call]
    for step, stream in zip(steps, streams, strict=True):
        stream.wait_stream(main)
        with torch.cuda.stream(stream):
            step()
    for stream in streams:
        main.wait_stream(stream)


# Torch's compiler may join small kernels that do not depend on each other. It calls this
# experimental, so earlier versions than the measured one do without (docs/decisions/0005).
COMBO_KERNELS = torch.__version__ >= "2.11"  # compared as versions, not as text


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What some of the rounds on a device need beside the cross-entropy with their labels.

    Attributes:
        taught: Soft targets.
        smoothed: Smoothed labels.
        averaged: Averaged weights.
    """

    taught: bool = False
    smoothed: bool = False
    averaged: bool = False


NO_OTHERS = Losses()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """What all rounds on a device share."""

    batch_size: int
    optimizer: Adam
    feed: Feed
    precision: torch.dtype
    compiled: bool
    classes: int = 0
    losses: Losses = NO_OTHERS

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Compiled where there is something to gain, as it is elsewhere."""
        if not self.compiled:
            return function
        compiled: Callable[..., Any] = torch.compile(
            function, options={"combo_kernels": True} if COMBO_KERNELS else None
        )
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
        self, module: nn.Module, rounds: int, settings: NetworkSettings, *, grouped: bool
    ) -> None:
        self.module, self.rounds, self.settings = module, rounds, settings
        self.grouped = grouped
        self.layout = FlatLayout(module, rounds)
        self.statistics = [name for name, _ in module.named_buffers()]
        self.losses = settings.compile(self._losses)
        self.update = settings.compile(self._update)
        self.follow = settings.compile(self._follow)
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
        smoothing: Tensor | None,
        lesson: tuple[Tensor, Tensor, Tensor, Tensor] | None,
    ) -> Tensor:
        inputs = self.settings.feed.batch(fitted, rows, draws)
        outputs = self._forward(vector, buffers, inputs)
        losses = functional.cross_entropy(outputs.flatten(0, 1), truth.flatten(), reduction="none")
        losses = losses.view(truth.shape)
        if smoothing is not None:
            even = -torch.log_softmax(outputs, dim=2).mean(dim=2)
            losses = mixed(even, losses, smoothing[:, None])
        if lesson is not None:
            targets, weights, temperature, wrong = lesson
            taught = soft_losses(outputs, targets, temperature[:, None, None])
            missed = outputs.detach().argmax(dim=2) != truth
            weights = torch.where(wrong[:, None], weights * missed, weights)
            losses = mixed(taught, losses, weights)
        return losses.mean(dim=1)

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

    def _follow(
        self,
        vector: Tensor,
        buffers: Sequence[Tensor],
        average: Tensor,
        averaged: Sequence[Tensor],
        owners: Tensor,
        decay: Tensor,
        count: Tensor,
    ) -> None:
        """Move averages toward weights and statistics, as `average_decay` states."""
        step = 1 - torch.minimum(decay, (1 + count) / (10 + count))
        average.lerp_(vector, step[owners])
        for own, now in zip(averaged, buffers, strict=True):
            if now.is_floating_point():
                own.view(self.rounds, -1).lerp_(now.view(self.rounds, -1), step[:, None])


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
        self._add_losses(program.settings.losses, device)

    def _add_losses(self, kinds: Losses, device: torch.device) -> None:
        """Room for what some rounds need beside the cross-entropy with their labels."""
        rounds, rows = self.program.rounds, len(self.labels)
        self.averaged = kinds.averaged
        if kinds.averaged:
            self.average = self.vector.detach().clone()
            self.average_buffers = [value.clone() for value in self.buffers]
            self.decay = torch.zeros(rounds, device=device)
        self.smoothing = torch.zeros(rounds, device=device) if kinds.smoothed else None
        self._taught = kinds.taught
        if kinds.taught:
            classes = self.program.settings.classes
            self.targets = torch.zeros(rounds, rows, classes, device=device)
            self.weights = torch.zeros(rounds, rows, device=device)
            self.temperature = torch.ones(rounds, device=device)
            self.wrong = torch.zeros(rounds, dtype=torch.bool, device=device)
            self.places = torch.arange(rounds, device=device)[:, None]

    def set_losses(
        self, place: int, *, smoothing: float, average: float, targets: RoundTargets | None
    ) -> None:
        """What the round in a place learns from, and whether its weights are averaged."""
        if self.averaged:
            self.decay[place] = average
        if self.smoothing is not None:
            self.smoothing[place] = smoothing
        if self._taught:
            if targets is None:
                self.weights[place] = 0
                return
            self.targets[place].copy_(targets.scores)
            self.weights[place].copy_(targets.weights)
            self.temperature[place] = targets.temperature
            self.wrong[place] = targets.wrong

    def step(self) -> None:
        """One batch of every round: gather, forward, backward, update."""
        program, size = self.program, self.program.settings.batch_size
        reach = self.position[:, None] + torch.arange(size, device=self.labels.device)
        reach = reach % self.order.shape[1]  # an empty place goes round in circles
        rows = self.order.gather(1, reach)
        draws = self.draws.gather(1, reach[:, :, None].expand(-1, -1, 3))
        lesson = None
        if self._taught:
            own = self.targets[self.places, rows], self.weights[self.places, rows]
            lesson = *own, self.temperature, self.wrong
        losses = program.losses(
            self.vector,
            self.buffers,
            self.fitted,
            rows,
            draws,
            self.labels[rows],
            self.smoothing,
            lesson,
        )
        (gradient,) = torch.autograd.grad(losses.sum(), self.vector)
        moments = self.first, self.second
        with torch.no_grad():
            program.update(self.vector, gradient, *moments, self.owners, self.rate, self.count)
            if self.averaged:
                program.follow(
                    self.vector,
                    self.buffers,
                    self.average,
                    self.average_buffers,
                    self.owners,
                    self.decay,
                    self.count,
                )
            self.loss.copy_(losses)
            self.position.add_(size)

    def changing(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        moments = [self.first, self.second]
        averages = [self.average, *self.average_buffers] if self.averaged else []
        counts = [self.count, self.loss, self.position]
        return [self.vector, *self.buffers, *moments, *averages, *counts]

    def views(self, place: int) -> dict[str, Tensor]:
        """One round's weights and statistics, as views."""
        return self._both(self.vector.detach(), self.buffers, place)

    def averages(self, place: int) -> dict[str, Tensor]:
        """Averages of one round's weights and statistics, as views."""
        return self._both(self.average, self.average_buffers, place)

    def kept(self, place: int) -> dict[str, Tensor]:
        """What is validated and kept of one round, as views: averages, where there are some."""
        return self.averages(place) if self.averaged else self.views(place)

    def _both(self, vector: Tensor, buffers: Sequence[Tensor], place: int) -> dict[str, Tensor]:
        own = [place_of(value, place, self.program.rounds) for value in buffers]
        return {**self._at(vector, place), **dict(zip(self.program.statistics, own, strict=True))}

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
