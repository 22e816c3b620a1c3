"""Steps of many rounds at once on one device, as the lockstep asks for them."""

import copy
import math
import time
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

from dynsnap.train._context import TrainingContext
from dynsnap.train._devices import log
from dynsnap.train._prepare import State
from dynsnap.train._round_state import RoundState
from dynsnap.train.side_by_side._capture import beside, captured
from dynsnap.train.side_by_side._evaluation import Evaluation, padded, parts
from dynsnap.train.side_by_side._fast_layers import with_fast_layers
from dynsnap.train.side_by_side._group import GroupedNetwork
from dynsnap.train.side_by_side._narrowing import worth_narrowing
from dynsnap.train.side_by_side._network import Network, Program, Settings

MOST_EVALUATED_TOGETHER = 16


class SideBySideStepper:
    """Many rounds at once, each in a place of its own.

    Rounds of an architecture that can be grouped are one network; rounds of any other are a network
    each, whose steps run beside each other on streams of their own.

    Args:
        context: Data, model and settings that all rounds share.
        plain: A module of the architecture.
        settings: How to compute.
        width: How many rounds to hold.
        rows: Rows of the longest epoch, topped up to full batches.
        grouped: Whether the architecture can be grouped.
    """

    def __init__(
        self,
        context: TrainingContext,
        plain: nn.Module,
        settings: Settings,
        *,
        width: int,
        rows: int,
        grouped: bool,
    ) -> None:
        self.width = width
        # A grouped network leaves out biases that a network of its own has.
        self.form = "grouped" if grouped else "beside"
        self._context, self._plain, self._settings = context, plain, settings
        self._rows, self._grouped = rows, grouped
        self._seat: dict[RoundState, tuple[Network, int]] = {}
        self._validation: dict[RoundState, Tensor] = {}
        # An empty place costs as much as a full one, and rounds of three generations or so do not
        # end their epochs together.
        together = min(math.ceil(width / 3), MOST_EVALUATED_TOGETHER) if grouped else 1
        looking = GroupedNetwork(plain, together).module if grouped else copy.deepcopy(self._alone)
        self._evaluation = Evaluation(
            _on_device(looking, context.device), together, settings, grouped=grouped
        )
        self._build()

    def _build(self) -> None:
        """Make and capture networks with as many empty places as the stepper is wide."""
        start = time.perf_counter()
        count, wide = (1, self.width) if self._grouped else (self.width, 1)
        self._grouping = GroupedNetwork(self._plain, wide) if self._grouped else None
        module = self._grouping.module if self._grouping else copy.deepcopy(self._alone)
        module = _on_device(module, self._context.device)
        program = Program(module.train(), wide, self._settings, grouped=self._grouped)
        nets = [
            Network(program, module, self._context.labels, rows=self._rows) for _ in range(count)
        ]
        changing = [value for net in nets for value in net.changing()]
        self._replay = captured(lambda: beside([net.step for net in nets]), changing)
        self._nets = nets
        self._free = [(net, place) for net in nets for place in range(wide)][::-1]
        self._building = time.perf_counter() - start
        self._step_took = 0.0

    @cached_property
    def _alone(self) -> nn.Module:
        """The module for one round, with faster layers where it lets them in."""
        return with_fast_layers(self._plain, self._settings.feed.example())

    def admit(self, lane: RoundState, state: State | None, /) -> None:
        net, place = self._seat[lane] = self._free.pop()
        if state is None:
            module = self._context.build(lane.spec).state_dict()
            module = self._grouping.fold(module) if self._grouping else module
            moments = {name: torch.zeros(()) for name in net.moments(place)}
        else:
            module, moments = _part(state, "module"), _part(state, "moments")
        dropout = net.dropout(lane.spec.recipe.dropout, lane.seed("dropout"))
        with torch.no_grad():
            _copy(net.views(place), {**dropout, **module})
            _copy(net.moments(place), moments)
            net.fitted[place].copy_(self._settings.feed.fitted(self._context.bind(lane)))
        self._validation[lane] = torch.from_numpy(lane.validation).to(self._context.device)
        if not lane.finished:
            self._begin(lane, *_drawn(lane))

    def advance(self, lanes: Sequence[RoundState], steps: int, /) -> None:
        # A place that is empty, or has to wait, goes on with a learning rate of nothing.
        for net in self._nets:
            net.rate.zero_()
        for lane in lanes:
            net, place = self._seat[lane]
            net.rate[place] = self._context.learning_rate * lane.multipliers[lane.epoch]
            net.position[place] = lane.step * lane.batch
        start = time.perf_counter()
        for _ in range(steps):
            self._replay()
        self._took = steps, start

    def validate(self, lanes: Sequence[RoundState], /) -> list[float]:
        accuracies: list[Tensor] = []
        for part in parts(len(lanes), self._evaluation.rounds):
            some = [lanes[i] for i in part]
            for seat, lane in enumerate(some):
                net, place = self._seat[lane]
                state = list(net.views(place).values())
                self._evaluation.load(seat, state, net.fitted[place])
            rows = [self._validation[lane] for lane in some]
            table = padded(rows)
            scores = self._evaluation.scores(table)
            right = scores.argmax(dim=2) == self._context.labels[table]
            sizes = torch.tensor([len(part) for part in rows], device=right.device)
            counted = torch.arange(table.shape[1], device=right.device) < sizes[:, None]
            accuracy = (right & counted).sum(dim=1).double() / sizes
            losses = [net.loss[place] for net, place in (self._seat[lane] for lane in some)]
            health = scores.sum(dim=(1, 2)) + torch.stack(losses)
            accuracies.append(torch.where(health.isfinite(), accuracy, torch.nan))
        # The steps are still running on the device: time to draw what comes next.
        drawn = [(lane, *_drawn(lane)) for lane in lanes if not lane.finished]
        found: list[float] = torch.cat(accuracies).tolist()
        steps, start = self._took
        self._step_took = (time.perf_counter() - start) / max(1, steps)
        for lane, order, draws in drawn:
            self._begin(lane, order, draws)
        return found

    def weights(self, lane: RoundState, /) -> State:
        net, place = self._seat[lane]
        known = _copies(net.views(place))
        return {
            name: known[name] if name in known else torch.zeros_like(value)
            for name, value in self._plain.state_dict().items()
        }

    def state(self, lane: RoundState, /) -> State:
        net, place = self._seat[lane]
        module, moments = _copies(net.views(place)), _copies(net.moments(place))
        return {
            **{f"module.{name}": value for name, value in module.items()},
            **{f"moments.{name}": value for name, value in moments.items()},
        }

    def release(self, lane: RoundState, /) -> None:
        self._free.append(self._seat.pop(lane))
        del self._validation[lane]

    def remain(self, lanes: Sequence[RoundState], /) -> None:
        """Empty places cost as much as full ones: build narrower networks where that pays."""
        if not self._pays(lanes):
            return
        log.info("%d rounds remain of %d side by side: making room.", len(lanes), self.width)
        states = {lane: self.state(lane) for lane in lanes}
        self._seat.clear()
        self.width = len(lanes)
        self._build()
        for lane, state in states.items():
            self.admit(lane, state)

    def _pays(self, lanes: Sequence[RoundState]) -> bool:
        """Whether networks for these lanes alone would gain more time than building them takes."""
        left = [(lane.spec.recipe.epochs - lane.epoch) * lane.steps - lane.step for lane in lanes]
        return worth_narrowing(
            left,
            width=self.width,
            step_seconds=self._step_took,
            building_seconds=self._building,
        )

    def _begin(self, lane: RoundState, order: Tensor, draws: Tensor) -> None:
        """Lay out an epoch in a lane's place."""
        net, place = self._seat[lane]
        net.order[place, : len(order)].copy_(order)
        net.draws[place, : len(order)].copy_(draws)


def _drawn(lane: RoundState) -> tuple[Tensor, Tensor]:
    """The rows of a lane's epoch, and three random numbers for each."""
    order = torch.from_numpy(lane.order().reshape(-1))
    generator = torch.Generator().manual_seed(lane.seed("augment"))
    return order, torch.rand(len(order), 3, generator=generator)


def _on_device(module: nn.Module, device: torch.device) -> nn.Module:
    # Channels last is how the convolutions like their weights.
    laid_out: nn.Module = module.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return laid_out


def _part(state: State, kind: str) -> State:
    start = f"{kind}."
    return {
        name.removeprefix(start): value for name, value in state.items() if name.startswith(start)
    }


def _copy(views: dict[str, Tensor], values: State) -> None:
    for name, view in views.items():
        view.copy_(values[name])


def _copies(tensors: State) -> State:
    """Copies on the CPU, brought over as one."""
    flat = torch.cat([value.reshape(-1).float() for value in tensors.values()]).cpu()
    pieces = torch.split(flat, [value.numel() for value in tensors.values()])
    return {
        name: piece.reshape(value.shape).clone()
        for (name, value), piece in zip(tensors.items(), pieces, strict=True)
    }
