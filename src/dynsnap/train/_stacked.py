"""Many rounds of a small dense model side by side on a CPU, as one stack of matrices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from dynsnap.ensemble import average_decay
from dynsnap.train._chain import Chain, Layer, parameters_of
from dynsnap.train._context import TrainingContext
from dynsnap.train._distillation import mixed, soft_slopes
from dynsnap.train._lockstep import RoundState
from dynsnap.train._optimizers import Adam
from dynsnap.train._prepare import State
from dynsnap.train._threads import on_one_thread

Masks: TypeAlias = Callable[[int, Tensor], Tensor]  # (place of the layer, its input) -> what stays


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The weights of one linear layer of every member."""

    weight: Tensor  # (members, outputs, inputs)
    bias: Tensor | None  # (members, 1, outputs)


class Stack:
    """Chains of one shape as rows of one matrix of parameters.

    Args:
        layers: The chain.
        flat: (members, parameters); a view of it is what the layers compute with.
    """

    def __init__(self, layers: Chain, flat: Tensor) -> None:
        self.layers = layers
        self._parameters = _views(layers, flat)

    def forward(self, inputs: Tensor, masks: Masks | None = None) -> list[Tensor]:
        """What goes into each layer, and the scores last: inputs (members, batch, width)."""
        values = [inputs]
        for place, layer in enumerate(self.layers):
            values.append(self._layer(place, layer, values[-1], masks))
        return values

    def logits(self, inputs: Tensor, masks: Masks | None = None) -> Tensor:
        """The scores alone."""
        value = inputs
        for place, layer in enumerate(self.layers):
            # The output of a linear layer is used here only, and may be overwritten.
            if layer.kind == "relu" and place and self.layers[place - 1].kind == "linear":
                value = value.relu_()
            else:
                value = self._layer(place, layer, value, masks)
        return value

    def _layer(self, place: int, layer: Layer, value: Tensor, masks: Masks | None) -> Tensor:
        if layer.kind == "linear":
            own = self._parameters[place]
            turned = own.weight.transpose(1, 2)
            if own.bias is None:
                return torch.bmm(value, turned)
            return torch.baddbmm(own.bias, value, turned)
        if layer.kind == "relu":
            return value.relu()
        if layer.kind == "tanh":
            return value.tanh()
        # Dropout; scaled when it is applied, as torch does.
        return value if masks is None else value * masks(place, value)

    def like(self, flat: Tensor) -> "Stack":
        """Another matrix of this shape, seen as the parameters of the same layers."""
        return Stack(self.layers, flat)

    def backward(
        self, values: Sequence[Tensor], slope: Tensor, into: "Stack", masks: Masks
    ) -> None:
        """The gradient of every parameter, written over the parameters of another stack.

        Args:
            values: What `forward` gave.
            slope: The gradient of the scores.
            into: Where to.
            masks: As in `forward`, giving the same masks again.
        """
        for place in reversed(range(len(self.layers))):
            layer = self.layers[place]
            if layer.kind == "linear":
                own = into._parameters[place]
                torch.bmm(slope.transpose(1, 2), values[place], out=own.weight)
                if own.bias is not None:
                    torch.sum(slope, 1, keepdim=True, out=own.bias)
                if place:
                    slope = torch.bmm(slope, self._parameters[place].weight)
            elif layer.kind == "relu":
                slope = torch.ops.aten.threshold_backward(slope, values[place + 1], 0)
            elif layer.kind == "tanh":
                slope = torch.ops.aten.tanh_backward(slope, values[place + 1])
            else:
                slope = slope * masks(place, values[place])


def softmax(logits: Tensor) -> Tensor:
    """Scores that sum to one over the last axis.

    Along a last axis this short torch is more than ten times slower than along another.
    """
    return torch.softmax(logits.transpose(-2, -1).contiguous(), -2).transpose(-2, -1)


def drop(value: Tensor, share: float, generators: Sequence[torch.Generator]) -> Tensor:
    """A mask for dropout: each member draws its own part, and what stays is scaled up."""
    mask = torch.empty_like(value, memory_format=torch.contiguous_format)
    for own, generator in zip(mask, generators, strict=True):
        own.bernoulli_(1 - share, generator=generator)
    return mask.div_(1 - share)


def size(layers: Chain) -> int:
    """Parameters of one member."""
    return sum(torch.Size(shape).numel() for layer in layers for _, shape in parameters_of(layer))


def flatten(layers: Chain, weights: State) -> Tensor:
    """A module's state as one row."""
    names = [name for layer in layers for name, _ in parameters_of(layer)]
    return torch.cat([weights[name].reshape(-1) for name in names])


def unflatten(layers: Chain, row: Tensor) -> State:
    """One row as a module's state, copied."""
    state: State = {}
    start = 0
    for layer in layers:
        for name, shape in parameters_of(layer):
            end = start + torch.Size(shape).numel()
            state[name] = row[start:end].reshape(shape).clone()
            start = end
    return state


def _views(layers: Chain, flat: Tensor) -> dict[int, _Parameters]:
    views: dict[int, _Parameters] = {}
    start = 0
    for place, layer in enumerate(layers):
        if layer.kind != "linear":
            continue
        middle = start + layer.outputs * layer.inputs
        # A view, whatever the rows' distance from each other.
        weight = flat[:, start:middle].view(-1, layer.outputs, layer.inputs)
        end = middle + (layer.outputs if layer.bias else 0)
        views[place] = _Parameters(weight, flat[:, middle:end].unsqueeze(1) if layer.bias else None)
        start = end
    return views


# Beyond this the stack outgrows the caches, and a step of a round takes longer again.
MOST_LANES = 32
MOST_NUMBERS = 4_000_000


@dataclass(eq=False)
class _StackedRound:
    """What belongs to a row beside its part of the matrices."""

    round_: RoundState
    bound: State
    order: Tensor = field(default_factory=lambda: torch.empty(0, 0, dtype=torch.int64))
    noise: torch.Generator = field(default_factory=torch.Generator)
    augment: torch.Generator = field(default_factory=torch.Generator)


class StackedStepper:
    """Steps all its rounds with one product of matrices per layer.

    Each round is a row of the matrices of parameters, moments and gradients. Its bits do not depend
    on its row or on the number of rows: every operation treats rows apart, or is called for one
    row at a time.
    """

    form = "stacked"

    def __init__(
        self, context: TrainingContext, *, layers: Chain, width: int | None = None
    ) -> None:
        assert isinstance(context.optimizer, Adam)
        columns = size(layers)
        self.width = width or max(1, min(MOST_LANES, MOST_NUMBERS // columns))
        self._context = context
        self._adam = context.optimizer
        self._layers = layers
        self._rows: list[_StackedRound] = []
        self._flat, self._gradient, self._first, self._second, self._average = (
            torch.zeros(self.width, columns) for _ in range(5)
        )
        self._counts = torch.zeros(self.width)  # steps that Adam has taken
        self._drops = any(layer.kind == "dropout" for layer in layers)

    def admit(self, round_: RoundState, state: State | None, /) -> None:
        place = len(self._rows)
        self._rows.append(_StackedRound(round_, self._context.bind(round_.prepared)))
        if state is None:
            module = self._context.build(round_)
            self._flat[place] = flatten(self._layers, module.state_dict())
            self._first[place] = 0
            self._second[place] = 0
            self._counts[place] = 0
            self._average[place] = self._flat[place]
        else:
            self._flat[place] = state["flat"]
            self._first[place] = state["first"]
            self._second[place] = state["second"]
            self._counts[place] = state["count"]
            self._average[place] = state.get("average", state["flat"])

    def advance(self, rounds: Sequence[RoundState], steps: int, /) -> None:
        if not rounds:
            return
        self._arrange(rounds)
        rows = self._rows[: len(rounds)]
        for row in rows:
            if row.round_.step == 0:
                row.order = torch.from_numpy(row.round_.order())
                if self._drops:
                    row.noise.manual_seed(row.round_.seed("noise"))
                if self._context.augment is not None:
                    row.augment.manual_seed(row.round_.seed("augment"))
        orders = [row.order[row.round_.step : row.round_.step + steps] for row in rows]
        on_one_thread(lambda: self._train(rows, torch.stack(orders, dim=1)))

    @torch.inference_mode()
    def _train(self, rows: Sequence[_StackedRound], orders: Tensor) -> None:
        """Steps (steps, rounds, batch) of the first rounds."""
        rounds, batch = orders.shape[1:]
        bound = _together(rows)
        stack = Stack(self._layers, self._flat[:rounds])
        gradient = stack.like(self._gradient[:rounds])
        update = self._updates(rows)
        labels = self._context.labels[orders].unsqueeze(-1)
        lesson = _Lesson([row.round_ for row in rows], batch)
        masks: dict[int, Tensor] = {}

        def draw(place: int, value: Tensor) -> Tensor:
            generators = [row.noise for row in rows]
            masks[place] = drop(value, self._layers[place].share, generators)
            return masks[place]

        for which, truth in zip(orders, labels, strict=True):
            inputs = self._context.prepare.apply(self._take(which), bound)
            if self._context.augment is not None:
                moved = [
                    self._context.augment(inputs[i], row.augment) for i, row in enumerate(rows)
                ]
                inputs = torch.stack(moved)
            values = stack.forward(inputs.flatten(2), draw)
            slope = lesson.slope(values[-1], truth, which).mul_(1 / batch)
            stack.backward(values, slope, gradient, lambda place, _: masks[place])
            update()

    def _updates(self, rows: Sequence[_StackedRound]) -> Callable[[], None]:
        """A step of Adam for each row by itself, so that a row's place decides nothing."""
        (beta1, beta2), eps = self._adam.betas, self._adam.eps
        counts = self._counts[: len(rows)]
        matrices = (self._flat, self._gradient, self._first, self._second)
        calls = [
            (
                *([matrix[place]] for matrix in matrices),
                [],
                [counts[place]],
                self._context.learning_rate * row.round_.multipliers[row.round_.epoch],
            )
            for place, row in enumerate(rows)
        ]

        averaged = [
            (self._average[place], self._flat[place], counts[place], row.round_.spec.recipe.average)
            for place, row in enumerate(rows)
            if row.round_.spec.recipe.average
        ]

        def update() -> None:
            counts.add_(1)
            for *tensors, rate in calls:
                torch._fused_adam_(
                    *tensors,
                    lr=rate,
                    beta1=beta1,
                    beta2=beta2,
                    weight_decay=0.0,
                    eps=eps,
                    amsgrad=False,
                    maximize=False,
                )
            for average, flat, count, decay in averaged:
                average.lerp_(flat, 1 - average_decay(decay, float(count)))

        return update

    def validate(self, rounds: Sequence[RoundState], /) -> list[float]:
        found: dict[RoundState, float] = {}
        # Only validation sets of one size can be stacked.
        for count in {len(round_.validation) for round_ in rounds}:
            alike = [round_ for round_ in rounds if len(round_.validation) == count]
            accuracies = on_one_thread(partial(self._accuracies, alike))
            found.update(zip(alike, accuracies, strict=True))
        return [found[round_] for round_ in rounds]

    @torch.inference_mode()
    def _accuracies(self, rounds: Sequence[RoundState]) -> list[float]:
        places = [self._place(round_) for round_ in rounds]
        which = torch.stack([torch.from_numpy(round_.validation) for round_ in rounds])
        bound = _together([self._rows[place] for place in places])
        inputs = self._context.prepare.apply(self._take(which), bound).flatten(2)
        own = zip(rounds, places, strict=True)
        kept = torch.stack([self._kept(round_)[place] for round_, place in own])
        logits = Stack(self._layers, kept).logits(inputs)
        right = (logits.argmax(-1) == self._context.labels[which]).sum(1).tolist()
        sound = torch.isfinite(logits.sum((1, 2))).tolist()
        return [
            count / which.shape[1] if fine else float("nan")
            for count, fine in zip(right, sound, strict=True)
        ]

    def weights(self, round_: RoundState, /) -> State:
        return unflatten(self._layers, self._kept(round_)[self._place(round_)])

    def _kept(self, round_: RoundState) -> Tensor:
        """The matrix whose row is validated and kept: of weights, or of their averages."""
        return self._average if round_.spec.recipe.average else self._flat

    def state(self, round_: RoundState, /) -> State:
        place = self._place(round_)
        found = {
            "flat": self._flat[place].clone(),
            "first": self._first[place].clone(),
            "second": self._second[place].clone(),
            "count": self._counts[place].clone(),
        }
        if round_.spec.recipe.average:
            found["average"] = self._average[place].clone()
        return found

    def release(self, round_: RoundState, /) -> None:
        self._swap(self._place(round_), len(self._rows) - 1)
        self._rows.pop()

    def remain(self, rounds: Sequence[RoundState], /) -> None:
        """Free places are not computed in the first place."""

    def _take(self, which: Tensor) -> Tensor:
        """Raw inputs of rows (rounds, batch) of the pool."""
        raw = self._context.inputs.take(which.reshape(-1))
        return raw.reshape(*which.shape, *raw.shape[1:])

    def _place(self, round_: RoundState) -> int:
        return next(place for place, row in enumerate(self._rows) if row.round_ is round_)

    def _arrange(self, rounds: Sequence[RoundState]) -> None:
        """Bring these rounds to the first rows, in this order."""
        for place, round_ in enumerate(rounds):
            self._swap(place, self._place(round_))

    def _swap(self, a: int, b: int) -> None:
        if a == b:
            return
        for matrix in (self._flat, self._first, self._second, self._average, self._counts):
            matrix[[a, b]] = matrix[[b, a]]
        self._rows[a], self._rows[b] = self._rows[b], self._rows[a]


class _Lesson:
    """What rounds learn from in a batch: labels, smoothed where asked for, and soft targets.

    A round's slope has the same bits whatever the others learn from: zeros are added to it, and it
    is multiplied by one.
    """

    def __init__(self, rounds: Sequence[RoundState], batch: int) -> None:
        smoothing = torch.tensor([round_.spec.recipe.smoothing for round_ in rounds]).view(-1, 1, 1)
        self._minus = (smoothing - 1).expand(-1, batch, 1).contiguous()
        self._even = smoothing if smoothing.any() else None
        self._targets = [round_.targets for round_ in rounds]
        known = [targets for targets in self._targets if targets is not None]
        self._taught = bool(known)
        self._heat = torch.tensor(
            [1.0 if one is None else one.temperature for one in self._targets]
        ).view(-1, 1, 1)
        self._wrong = torch.tensor([one is not None and one.wrong for one in self._targets])
        self._weights = [round_.weights for round_ in rounds]

    def slope(self, logits: Tensor, truth: Tensor, which: Tensor) -> Tensor:
        """The slope of each row's loss, times its weight, at logits (rounds, batch, classes)."""
        slope = self._unweighted(logits, truth, which)
        if all(weights is None for weights in self._weights):
            return slope
        factors = torch.ones(*slope.shape[:2], 1)
        for place, weights in enumerate(self._weights):
            if weights is not None:
                factors[place] = weights[which[place]].unsqueeze(-1)
        return slope * factors

    def _unweighted(self, logits: Tensor, truth: Tensor, which: Tensor) -> Tensor:
        # Of the cross-entropy: softmax less one at the true class.
        slope = softmax(logits).scatter_add_(-1, truth, self._minus)
        if self._even is not None:
            slope = slope - self._even / logits.shape[-1]
        if not self._taught:
            return slope
        scores, weights = torch.zeros_like(slope), torch.zeros(*slope.shape[:2], 1)
        for place, targets in enumerate(self._targets):
            if targets is not None:
                scores[place] = targets.scores[which[place]]
                weights[place] = targets.weights[which[place]].unsqueeze(-1)
        missed = logits.argmax(-1, keepdim=True) != truth
        weights = weights * (missed | ~self._wrong.view(-1, 1, 1))
        taught = soft_slopes(logits, scores, self._heat, softmax)
        return mixed(taught, slope, weights)


def _together(rows: Sequence[_StackedRound]) -> State:
    """What the preparations of some rows have fitted, as (rows, 1, ...)."""
    return {
        name: torch.stack([row.bound[name] for row in rows]).unsqueeze(1) for name in rows[0].bound
    }
