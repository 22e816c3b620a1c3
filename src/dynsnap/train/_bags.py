"""fastText on a CPU, as bags of words: each word of a text once, with how often it occurs.

The mean of a text's word vectors does not depend on their order, and a long text repeats itself:
counted words are fewer. Forward, backward and Adam are compiled, see `_bags_kernel`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dynsnap._types import AnyArray
from dynsnap.train._context import TrainingContext
from dynsnap.train._distillation import RoundTargets
from dynsnap.train._lockstep import RoundState
from dynsnap.train._optimizers import Adam
from dynsnap.train._prepare import State
from dynsnap.train._stacked import drop
from dynsnap.train._text import Texts, Words
from dynsnap.train.models import FastText

_NAMES = ("vectors.weight", "output.weight", "output.bias")
_KINDS = ("weights", "first", "second")
_STEPS_AT_ONCE = 512  # so that masks of dropout stay small


def is_bag(module: nn.Module) -> bool:
    """Whether a module is fastText, and nothing more."""
    return type(module) is FastText


def suits(context: TrainingContext) -> bool:
    """Whether rounds are fastText under settings that the compiled steps know."""
    return (
        context.device.type == "cpu"
        and context.precision == torch.float32
        and context.augment is None
        and isinstance(context.prepare, Words)
        and isinstance(context.optimizer, Adam)
        and is_bag(context.blueprint.template(0.0))
    )


class Bags:
    """Texts as bags, for learners with vocabularies of their own."""

    def __init__(self, texts: Texts, prepare: Words) -> None:
        from dynsnap.train import _bags_kernel as counting

        self._counting = counting
        self._texts = texts
        tokens = np.ascontiguousarray(texts.tokens.numpy())
        starts = np.ascontiguousarray(texts.starts.numpy())
        room = counting.BagArrays(
            np.empty(len(starts), np.int64),
            np.empty(len(tokens), np.int32),
            np.empty(len(tokens), np.float32),
        )
        seen = np.full(1 + len(texts.words) + prepare.buckets, -1, np.int64)
        count = counting.count(tokens, starts, seen, room)
        self._counted = counting.BagArrays(
            room.starts, room.tokens[:count].copy(), room.counts[:count].copy()
        )

    def __len__(self) -> int:
        return len(self._texts)

    def known(self, bound: State) -> "KnownBags":
        """The same in the numbers of one vocabulary."""
        lookup = bound["lookup"].numpy().astype(np.int32)
        own = self._counted._replace(tokens=lookup[self._counted.tokens])
        lengths = np.empty(len(self), np.float32)
        self._counting.measure(own, lengths)
        return KnownBags(bags=own, lengths=lengths)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KnownBags:
    """Bags in the numbers of one vocabulary, in which 0 is unknown.

    Attributes:
        bags: `_bags_kernel.BagArrays`.
        lengths: Known words of each text, repeated ones too.
    """

    bags: tuple[AnyArray, ...]
    lengths: AnyArray

    def means(self, rows: AnyArray, vectors: Tensor) -> Tensor:
        """The mean vector of each of these texts."""
        from dynsnap.train import _bags_kernel as kernel

        wide = padded(vectors)
        found = np.empty((len(rows), wide.shape[1]), np.float32)
        room = np.empty(wide.shape[1], np.float32)
        kernel.means(rows, self.bags, self.lengths, wide, room, found)
        return torch.from_numpy(found)[:, : vectors.shape[1]]


def padded(matrix: Tensor) -> AnyArray:
    """Rows filled up with zeros to the width that the kernel likes."""
    from dynsnap.train._bags_kernel import LANES

    rows, width = matrix.shape
    wide = np.zeros((rows, -(-width // LANES) * LANES), np.float32)
    wide[:, :width] = matrix.numpy()
    return wide


class BagsStepper:
    """Steps one fastText after another, each epoch in one call of the kernel."""

    width = 1
    form = "bags"

    def __init__(self, context: TrainingContext) -> None:
        assert isinstance(context.inputs, Texts)
        assert isinstance(context.prepare, Words)
        assert isinstance(context.optimizer, Adam)
        self._context = context
        self._adam = context.optimizer
        self._bags = Bags(context.inputs, context.prepare)
        self._labels = context.labels.numpy()
        self._work: dict[RoundState, _BagsRound] = {}

    def admit(self, round_: RoundState, state: State | None, /) -> None:
        module = self._context.build(round_)
        assert isinstance(module, FastText)
        work = _BagsRound(
            known=self._bags.known(self._context.bind(round_.prepared)),
            dropout=module.dropout.p,
            shapes={name: value.shape for name, value in module.state_dict().items()},
            targets=_targets(round_.targets),
        )
        if state is None:
            work.start(module.state_dict())
        else:
            work.restore(state)
        self._work[round_] = work

    def advance(self, rounds: Sequence[RoundState], steps: int, /) -> None:
        for round_ in rounds:
            work = self._work[round_]
            if round_.step == 0:
                work.order = round_.order()
                work.noise.manual_seed(round_.seed("noise"))
                work.loss = 0.0
            rate = self._context.learning_rate * round_.multipliers[round_.epoch]
            for part in _parts(work.order[round_.step : round_.step + steps]):
                work.train(part, self._labels, work.targets, self._adam, rate)

    def validate(self, rounds: Sequence[RoundState], /) -> list[float]:
        return [self._validate(round_, self._work[round_]) for round_ in rounds]

    def _validate(self, round_: RoundState, work: "_BagsRound") -> float:
        weights = self.weights(round_)
        means = work.known.means(round_.validation, weights["vectors.weight"])
        logits = means @ weights["output.weight"].T + weights["output.bias"]
        if not np.isfinite(work.loss) or not torch.isfinite(logits.sum()):
            return float("nan")
        right = logits.argmax(dim=1).numpy() == self._labels[round_.validation]
        return float(right.mean())

    def weights(self, round_: RoundState, /) -> State:
        work = self._work[round_]
        return work.named(work.weights)

    def state(self, round_: RoundState, /) -> State:
        return self._work[round_].state()

    def release(self, round_: RoundState, /) -> None:
        del self._work[round_]

    def remain(self, rounds: Sequence[RoundState], /) -> None:
        """One round at a time needs no less room."""


class _BagsRound:
    """The numbers of one round."""

    def __init__(
        self, *, known: KnownBags, dropout: float, shapes: dict[str, torch.Size], targets: Any
    ) -> None:
        from dynsnap.train import _bags_kernel as kernel

        self._kernel = kernel
        self._shapes = shapes
        self.known = known
        self.dropout = dropout
        self.targets = targets
        self.order: AnyArray = np.empty((0, 0), np.int64)
        self.noise = torch.Generator()
        self.loss = 0.0
        self.taken = 0

    def start(self, weights: State) -> None:
        """Begin with these weights and a fresh Adam."""
        zeros = {name: torch.zeros_like(value) for name, value in weights.items()}
        self._set(weights, zeros, zeros, taken=0)

    def restore(self, state: State) -> None:
        """Go on from what `state` gave."""
        parts = [{name: state[f"{kind}.{name}"] for name in _NAMES} for kind in _KINDS]
        self._set(*parts, taken=int(state["taken"]))

    def _set(self, weights: State, first: State, second: State, *, taken: int) -> None:
        kernel = self._kernel
        self.weights, self._first, self._second = (
            kernel.Parameters(
                padded(part["vectors.weight"]),
                padded(part["output.weight"]),
                part["output.bias"].numpy().reshape(1, -1).copy(),
            )
            for part in (weights, first, second)
        )
        classes, wide = self.weights.weight.shape
        self._gradient = kernel.Parameters(*map(np.zeros_like, self.weights))
        # A word whose second moment is zero has never had a gradient.
        self._touched = np.where(self._second.vectors.any(axis=1), 2, 0).astype(np.uint8)
        self._room = kernel.Scratch(
            *(np.zeros(wide, np.float32) for _ in range(2)),
            *(np.zeros(classes, np.float32) for _ in range(3)),
            np.zeros((wide, classes), np.float32),
        )
        self.taken = taken

    def train(
        self, order: AnyArray, labels: AnyArray, targets: Any, adam: Adam, rate: float
    ) -> None:
        """Steps (steps, batch)."""
        self.loss += self._kernel.train(
            order,
            self.known.bags,
            self.known.lengths,
            labels,
            self._masks(order.shape),
            self.weights,
            self._gradient,
            self._first,
            self._second,
            self._touched,
            self.taken,
            self._kernel.Rates(rate, *adam.betas, adam.eps),
            self._room,
            targets,
        )
        self.taken += len(order)

    def _masks(self, shape: tuple[int, ...]) -> AnyArray:
        wide = self.weights.weight.shape[1]
        if not self.dropout:
            return np.empty((0, 0, wide), np.float32)
        drawn = drop(torch.empty(1, *shape, wide), self.dropout, [self.noise])
        found: AnyArray = drawn[0].numpy()
        return found

    def named(self, part: tuple[AnyArray, ...]) -> State:
        """Copies of parameters, as the module names and shapes them."""
        return {
            name: torch.from_numpy(values)[:, : self._shapes[name][-1]]
            .reshape(self._shapes[name])
            .clone()
            for name, values in zip(_NAMES, part, strict=True)
        }

    def state(self) -> State:
        """All that `restore` needs."""
        parts = (self.weights, self._first, self._second)
        found = {
            f"{kind}.{name}": value
            for kind, part in zip(_KINDS, parts, strict=True)
            for name, value in self.named(part).items()
        }
        return {**found, "taken": torch.tensor(self.taken)}


def _targets(targets: RoundTargets | None) -> Any:
    """What the texts are taught beside their labels, as the kernel has it."""
    from dynsnap.train._bags_kernel import KernelTargets

    if targets is None:
        return KernelTargets(np.empty((0, 0), np.float32), np.empty(0, np.float32), 1.0)
    return KernelTargets(targets.scores.numpy(), targets.weights.numpy(), targets.temperature)


def _parts(order: AnyArray) -> Iterator[AnyArray]:
    for start in range(0, len(order), _STEPS_AT_ONCE):
        yield np.ascontiguousarray(order[start : start + _STEPS_AT_ONCE])
