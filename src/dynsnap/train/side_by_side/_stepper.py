"""Steps of many rounds at once on one device, as the lockstep asks for them."""

import copy
import functools
import math
import time
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

from dynsnap.train._context import TrainingContext
from dynsnap.train._devices import log
from dynsnap.train._lockstep import RoundState
from dynsnap.train._prepare import State
from dynsnap.train.side_by_side._group import GroupedNetwork
from dynsnap.train.side_by_side._layers import with_fast_layers
from dynsnap.train.side_by_side._network import (
    Network,
    NetworkSettings,
    Program,
    beside,
    captured,
    place_of,
)


def worth_narrowing(
    left: Sequence[int], *, width: int, step_seconds: float, building_seconds: float
) -> bool:
    """Whether to build a network for the live rounds alone, now, or to go on with empty places.

    A step takes about as long as the network is wide, and empty places cost as much as full ones.
    But building takes its time, and soon more rounds may leave: all ways to go on are compared.

    Args:
        left: Steps that each live round has still to take.
        width: Places of the network that there is.
        step_seconds: What a step of it takes.
        building_seconds: What building a network takes.

    Example:
        >>> settings = {"width": 34, "step_seconds": 0.013, "building_seconds": 80}
        >>> worth_narrowing([60_000] * 3, **settings)
        True
        >>> worth_narrowing([60_000] * 3 + [12_000] * 20, **settings)  # soon there are three
        False
    """
    ends = sorted(set(left))
    live = [sum(steps >= end for steps in left) for end in ends]
    stretches = [end - before for before, end in zip([0, *ends], ends, strict=False)]

    @functools.cache
    def seconds(stretch: int, places: int) -> float:
        """The least that it takes from a stretch on, in a network of so many places."""
        if stretch == len(ends):
            return 0.0
        return min(going_on(stretch, places), building_seconds + going_on(stretch, live[stretch]))

    def going_on(stretch: int, places: int) -> float:
        step = step_seconds * places / width
        return stretches[stretch] * step + seconds(stretch + 1, places)

    return building_seconds + going_on(0, live[0]) < going_on(0, width)


MOST_EVALUATED_TOGETHER = 16


_VALIDATED_AT_ONCE = 512


class Evaluation:
    """Places for members that are only looked at."""

    def __init__(
        self, module: nn.Module, rounds: int, settings: NetworkSettings, *, grouped: bool
    ) -> None:
        module = copy.deepcopy(module).eval()
        self._program = Program(module, rounds, settings, grouped=grouped)
        self._vector = self._program.layout.vector(module)
        self._buffers = [value.detach().clone() for value in module.buffers()]
        self.rounds = rounds
        self._fitted = settings.feed.room(rounds)
        device = self._fitted.device
        self._rows = torch.zeros(rounds, _VALIDATED_AT_ONCE, dtype=torch.int64, device=device)
        self._scores = self._compute()
        self._replay = captured(self._step, [self._scores])

    def load(self, place: int, state: Sequence[Tensor], fitted: Tensor) -> None:
        """Put a member into a place: its tensors in the program's order, and what it fitted."""
        parameters = self._program.layout.views(self._vector)
        views = [place_of(value, place, self.rounds) for value in [*parameters, *self._buffers]]
        torch._foreach_copy_(views, list(state))
        self._fitted[place].copy_(fitted)

    def scores(self, rows: Tensor) -> Tensor:
        """Scores (members, rows, classes) of each member on rows of its own (members, rows)."""
        parts = []
        for start in range(0, rows.shape[1], _VALIDATED_AT_ONCE):
            part = rows[:, start : start + _VALIDATED_AT_ONCE]
            self._rows[: len(rows), : part.shape[1]].copy_(part)
            self._replay()
            parts.append(self._scores[: len(rows), : part.shape[1]].clone())
        return torch.cat(parts, dim=1)

    def _step(self) -> None:
        self._scores.copy_(self._compute())

    @torch.no_grad()
    def _compute(self) -> Tensor:
        scores: Tensor = self._program.scores(self._vector, self._buffers, self._fitted, self._rows)
        return scores


def padded(rows: Sequence[Tensor]) -> Tensor:
    """Rows of different numbers as one table; the shorter ones repeat their first."""
    longest = max(len(part) for part in rows)
    return torch.stack([torch.cat([part, part[:1].expand(longest - len(part))]) for part in rows])


def parts(count: int, size: int) -> list[range]:
    """0 to count - 1 in parts of at most `size`."""
    return [range(i * size, min(count, (i + 1) * size)) for i in range(math.ceil(count / size))]


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
        settings: NetworkSettings,
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
        self._slot: dict[RoundState, tuple[Network, int]] = {}
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

    def admit(self, round_: RoundState, state: State | None, /) -> None:
        net, place = self._slot[round_] = self._free.pop()
        if state is None:
            module = self._context.build(round_).state_dict()
            module = self._grouping.fold(module) if self._grouping else module
            moments = {name: torch.zeros(()) for name in net.moments(place)}
        else:
            module, moments = _part(state, "module"), _part(state, "moments")
        recipe = round_.spec.recipe
        dropout = net.dropout(recipe.dropout, round_.seed("dropout"))
        with torch.no_grad():
            _copy(net.views(place), {**dropout, **module})
            if net.averaged:
                saved = {} if state is None else _part(state, "average")
                _copy(net.averages(place), {**dropout, **module, **saved})
            net.set_losses(
                place, smoothing=recipe.smoothing, average=recipe.average, targets=round_.targets
            )
            _copy(net.moments(place), moments)
            net.fitted[place].copy_(self._settings.feed.fitted(self._context.bind(round_.prepared)))
        self._validation[round_] = torch.from_numpy(round_.validation).to(self._context.device)
        if not round_.finished:
            self._begin(round_, *_drawn(round_))

    def advance(self, rounds: Sequence[RoundState], steps: int, /) -> None:
        # A place that is empty, or has to wait, goes on with a learning rate of nothing.
        for net in self._nets:
            net.rate.zero_()
        for round_ in rounds:
            net, place = self._slot[round_]
            net.rate[place] = self._context.learning_rate * round_.multipliers[round_.epoch]
            net.position[place] = round_.step * round_.batch
        start = time.perf_counter()
        for _ in range(steps):
            self._replay()
        self._took = steps, start

    def validate(self, rounds: Sequence[RoundState], /) -> list[float]:
        accuracies: list[Tensor] = []
        for part in parts(len(rounds), self._evaluation.rounds):
            some = [rounds[i] for i in part]
            for seat, round_ in enumerate(some):
                net, place = self._slot[round_]
                state = list(net.kept(place).values())
                self._evaluation.load(seat, state, net.fitted[place])
            rows = [self._validation[round_] for round_ in some]
            table = padded(rows)
            scores = self._evaluation.scores(table)
            right = scores.argmax(dim=2) == self._context.labels[table]
            sizes = torch.tensor([len(part) for part in rows], device=right.device)
            counted = torch.arange(table.shape[1], device=right.device) < sizes[:, None]
            accuracy = (right & counted).sum(dim=1).double() / sizes
            losses = [net.loss[place] for net, place in (self._slot[round_] for round_ in some)]
            health = scores.sum(dim=(1, 2)) + torch.stack(losses)
            accuracies.append(torch.where(health.isfinite(), accuracy, torch.nan))
        # The steps are still running on the device: time to draw what comes next.
        drawn = [(round_, *_drawn(round_)) for round_ in rounds if not round_.finished]
        found: list[float] = torch.cat(accuracies).tolist()
        steps, start = self._took
        self._step_took = (time.perf_counter() - start) / max(1, steps)
        for round_, order, draws in drawn:
            self._begin(round_, order, draws)
        return found

    def weights(self, round_: RoundState, /) -> State:
        net, place = self._slot[round_]
        known = _copies(net.kept(place))
        return {
            name: known[name] if name in known else torch.zeros_like(value)
            for name, value in self._plain.state_dict().items()
        }

    def state(self, round_: RoundState, /) -> State:
        net, place = self._slot[round_]
        kinds = {"module": net.views(place), "moments": net.moments(place)}
        if round_.spec.recipe.average:
            kinds["average"] = net.averages(place)
        return {
            f"{kind}.{name}": value
            for kind, views in kinds.items()
            for name, value in _copies(views).items()
        }

    def release(self, round_: RoundState, /) -> None:
        self._free.append(self._slot.pop(round_))
        del self._validation[round_]

    def remain(self, rounds: Sequence[RoundState], /) -> None:
        """Empty places cost as much as full ones: build narrower networks where that pays."""
        if not self._pays(rounds):
            return
        log.info("%d rounds remain of %d side by side: making room.", len(rounds), self.width)
        states = {round_: self.state(round_) for round_ in rounds}
        self._slot.clear()
        self.width = len(rounds)
        self._build()
        for round_, state in states.items():
            self.admit(round_, state)

    def _pays(self, rounds: Sequence[RoundState]) -> bool:
        """Whether networks for these rounds alone would gain more time than building them takes."""
        left = [
            (round_.spec.recipe.epochs - round_.epoch) * round_.steps - round_.step
            for round_ in rounds
        ]
        return worth_narrowing(
            left,
            width=self.width,
            step_seconds=self._step_took,
            building_seconds=self._building,
        )

    def _begin(self, round_: RoundState, order: Tensor, draws: Tensor) -> None:
        """Lay out an epoch in a round's place."""
        net, place = self._slot[round_]
        net.order[place, : len(order)].copy_(order)
        net.draws[place, : len(order)].copy_(draws)


def _drawn(round_: RoundState) -> tuple[Tensor, Tensor]:
    """The rows of a round's epoch, and three random numbers for each."""
    order = torch.from_numpy(round_.order().reshape(-1))
    generator = torch.Generator().manual_seed(round_.seed("augment"))
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
