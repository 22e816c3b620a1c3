"""Many rounds of a small dense model side by side on a CPU, as one stack of matrices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from dynsnap.train._chain import Chain
from dynsnap.train._context import TrainingContext
from dynsnap.train._one_thread import on_one_thread
from dynsnap.train._optimizers import Adam
from dynsnap.train._prepare import State
from dynsnap.train._round_state import RoundState
from dynsnap.train._stack import Stack, drop, flatten, size, softmax, unflatten

# Beyond this the stack outgrows the caches, and a step of a lane takes longer again.
MOST_LANES = 32
MOST_NUMBERS = 4_000_000


@dataclass(eq=False)
class _Row:
    """What belongs to a row beside its part of the matrices."""

    lane: RoundState
    bound: State
    order: Tensor = field(default_factory=lambda: torch.empty(0, 0, dtype=torch.int64))
    noise: torch.Generator = field(default_factory=torch.Generator)
    augment: torch.Generator = field(default_factory=torch.Generator)


class StackedStepper:
    """Steps all its lanes with one product of matrices per layer.

    Each lane is a row of the matrices of parameters, moments and gradients. Its bits do not depend
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
        self._rows: list[_Row] = []
        self._flat, self._gradient, self._first, self._second = (
            torch.zeros(self.width, columns) for _ in range(4)
        )
        self._counts = torch.zeros(self.width)  # steps that Adam has taken
        self._drops = any(layer.kind == "dropout" for layer in layers)

    def admit(self, lane: RoundState, state: State | None, /) -> None:
        place = len(self._rows)
        self._rows.append(_Row(lane, self._context.bind(lane)))
        if state is None:
            module = self._context.build(lane.spec)
            self._flat[place] = flatten(self._layers, module.state_dict())
            self._first[place] = 0
            self._second[place] = 0
            self._counts[place] = 0
        else:
            self._flat[place] = state["flat"]
            self._first[place] = state["first"]
            self._second[place] = state["second"]
            self._counts[place] = state["count"]

    def advance(self, lanes: Sequence[RoundState], steps: int, /) -> None:
        if not lanes:
            return
        self._arrange(lanes)
        rows = self._rows[: len(lanes)]
        for row in rows:
            if row.lane.step == 0:
                row.order = torch.from_numpy(row.lane.order())
                if self._drops:
                    row.noise.manual_seed(row.lane.seed("noise"))
                if self._context.augment is not None:
                    row.augment.manual_seed(row.lane.seed("augment"))
        orders = [row.order[row.lane.step : row.lane.step + steps] for row in rows]
        on_one_thread(lambda: self._train(rows, torch.stack(orders, dim=1)))

    @torch.inference_mode()
    def _train(self, rows: Sequence[_Row], orders: Tensor) -> None:
        """Steps (steps, lanes, batch) of the first lanes."""
        lanes, batch = orders.shape[1:]
        bound = _together(rows)
        stack = Stack(self._layers, self._flat[:lanes])
        gradient = stack.like(self._gradient[:lanes])
        update = self._updates(rows)
        labels = self._context.labels[orders].unsqueeze(-1)
        minus = torch.full((lanes, batch, 1), -1.0)
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
            # The slope of the cross-entropy: softmax less one at the true class.
            slope = softmax(values[-1]).scatter_add_(-1, truth, minus)
            if (distillation := self._context.distillation) is not None:
                cool = softmax(values[-1] / distillation.temperature)
                slope = distillation.mixed(
                    distillation.slopes(cool, distillation.targets[which]), slope
                )
            slope = slope.mul_(1 / batch)
            stack.backward(values, slope, gradient, lambda place, _: masks[place])
            update()

    def _updates(self, rows: Sequence[_Row]) -> Callable[[], None]:
        """A step of Adam for each row by itself, so that a row's place decides nothing."""
        (beta1, beta2), eps = self._adam.betas, self._adam.eps
        counts = self._counts[: len(rows)]
        matrices = (self._flat, self._gradient, self._first, self._second)
        calls = [
            (
                *([matrix[place]] for matrix in matrices),
                [],
                [counts[place]],
                self._context.learning_rate * row.lane.multipliers[row.lane.epoch],
            )
            for place, row in enumerate(rows)
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

        return update

    def validate(self, lanes: Sequence[RoundState], /) -> list[float]:
        found: dict[RoundState, float] = {}
        # Only validation sets of one size can be stacked.
        for count in {len(lane.validation) for lane in lanes}:
            alike = [lane for lane in lanes if len(lane.validation) == count]
            accuracies = on_one_thread(partial(self._accuracies, alike))
            found.update(zip(alike, accuracies, strict=True))
        return [found[lane] for lane in lanes]

    @torch.inference_mode()
    def _accuracies(self, lanes: Sequence[RoundState]) -> list[float]:
        places = [self._place(lane) for lane in lanes]
        which = torch.stack([torch.from_numpy(lane.validation) for lane in lanes])
        bound = _together([self._rows[place] for place in places])
        inputs = self._context.prepare.apply(self._take(which), bound).flatten(2)
        logits = Stack(self._layers, self._flat[places]).logits(inputs)
        right = (logits.argmax(-1) == self._context.labels[which]).sum(1).tolist()
        sound = torch.isfinite(logits.sum((1, 2))).tolist()
        return [
            count / which.shape[1] if fine else float("nan")
            for count, fine in zip(right, sound, strict=True)
        ]

    def weights(self, lane: RoundState, /) -> State:
        return unflatten(self._layers, self._flat[self._place(lane)])

    def state(self, lane: RoundState, /) -> State:
        place = self._place(lane)
        return {
            "flat": self._flat[place].clone(),
            "first": self._first[place].clone(),
            "second": self._second[place].clone(),
            "count": self._counts[place].clone(),
        }

    def release(self, lane: RoundState, /) -> None:
        self._swap(self._place(lane), len(self._rows) - 1)
        self._rows.pop()

    def remain(self, lanes: Sequence[RoundState], /) -> None:
        """Free places are not computed in the first place."""

    def _take(self, which: Tensor) -> Tensor:
        """Raw inputs of rows (lanes, batch) of the pool."""
        raw = self._context.inputs.take(which.reshape(-1))
        return raw.reshape(*which.shape, *raw.shape[1:])

    def _place(self, lane: RoundState) -> int:
        return next(place for place, row in enumerate(self._rows) if row.lane is lane)

    def _arrange(self, lanes: Sequence[RoundState]) -> None:
        """Bring these lanes to the first rows, in this order."""
        for place, lane in enumerate(lanes):
            self._swap(place, self._place(lane))

    def _swap(self, a: int, b: int) -> None:
        if a == b:
            return
        for matrix in (self._flat, self._first, self._second, self._counts):
            matrix[[a, b]] = matrix[[b, a]]
        self._rows[a], self._rows[b] = self._rows[b], self._rows[a]


def _together(rows: Sequence[_Row]) -> State:
    """What the preparations of some rows have fitted, as (rows, 1, ...)."""
    return {
        name: torch.stack([row.bound[name] for row in rows]).unsqueeze(1) for name in rows[0].bound
    }
