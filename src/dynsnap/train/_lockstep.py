"""Many rounds in step: where each one is, which rows come next, what it has kept."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from torch import Tensor

from dynsnap import seeds
from dynsnap._types import Floats, Positions
from dynsnap.ensemble import RoundSpec, snapshot_epochs
from dynsnap.errors import TrainingError
from dynsnap.train._distillation import RoundTargets
from dynsnap.train._prepare import State


@dataclass(eq=False, kw_only=True)
class RoundState:
    """A round of training at a step of an epoch. Knows no module and no device.

    Attributes:
        spec: The round.
        train: Rows of the pool that it learns from.
        validation: Rows of the pool that its epochs are judged on.
        batch: Rows in every step.
        prepared: What the preparation has fitted on `train`.
        targets: What it learns from beside the labels, None for the labels alone.
        weights: How much each row of the pool counts in the loss, 1 on average over those that
            the round learns from; None where all count alike.
        often: How often each row of `train` is drawn in an epoch, relative to the others; None
            where all are drawn once.
        warmup: Epochs at the beginning in which the learning rate grows linearly.
        aside: Rows of new classes that it does not learn from, to see whether it forgets them.
        epoch: The epoch that comes next or is under way.
        step: The step of that epoch that comes next.
        curve: Validation accuracy after every epoch so far.
        judged: The selection metric after every epoch so far; empty where that is the accuracy.
        kept: State of the module after each epoch that is worth a snapshot so far.
        seconds: Time that it took so far.
    """

    spec: RoundSpec
    train: Positions
    validation: Positions
    batch: int
    prepared: State
    targets: RoundTargets | None = None
    weights: Tensor | None = None
    often: Floats | None = None
    warmup: int = 0
    aside: Positions = field(default_factory=lambda: np.empty(0, np.intp))
    epoch: int = 0
    step: int = 0
    curve: list[float] = field(default_factory=list)
    judged: list[float] = field(default_factory=list)
    kept: dict[int, State] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def steps(self) -> int:
        """Steps of one epoch."""
        return math.ceil(len(self.train) / self.batch)

    @property
    def finished(self) -> bool:
        return self.epoch >= self.spec.recipe.epochs

    @cached_property
    def multipliers(self) -> Floats:
        """What the learning rate is multiplied with in each epoch."""
        found = self.spec.recipe.multipliers
        if not self.warmup:
            return found
        grown = np.minimum(1.0, (1 + np.arange(len(found))) / self.warmup)
        return np.asarray(found * grown)

    def order(self) -> Positions:
        """The rows of this epoch's steps, (steps, batch), shuffled by the round's name alone.

        Every batch is full, because steps of one shape can run side by side: the last one is
        topped up with the first rows of the same epoch. An epoch is as long whether or not some
        rows are drawn more often: others then wait for a later one.
        """
        rows = self.train
        if self.often is not None:
            whole = np.floor(self.often)
            more = self.generator("often").random(len(rows)) < self.often - whole
            rows = np.repeat(rows, whole.astype(np.intp) + more)
        shuffled = self.generator("order").permutation(rows)[: len(self.train)]
        return np.resize(shuffled, (self.steps, self.batch))

    @cached_property
    def _name(self) -> str:
        return self.spec.seed_name()

    def seed(self, purpose: str) -> int:
        """A number for random draws of this epoch."""
        return seeds.number(self.spec.seed, self._name, purpose, self.epoch)

    def generator(self, purpose: str) -> np.random.Generator:
        """A numpy generator for random draws of this epoch."""
        return seeds.generator(self.spec.seed, self._name, purpose, self.epoch)

    @property
    def deciding(self) -> list[float]:
        """The curve that snapshots are chosen by."""
        return self.judged or self.curve

    def record(self, accuracy: float, judged: float | None = None) -> bool:
        """Note the accuracy after the epoch that has just ended; whether to `keep` its state.

        Args:
            accuracy: On the validation rows.
            judged: The selection metric, where that is not the accuracy.
        """
        if not math.isfinite(accuracy):
            raise TrainingError(
                f"{self.spec} diverged in epoch {len(self.curve)}: its outputs or its loss are no "
                "longer finite. Lower the learning rate, or scale the inputs."
            )
        self.curve.append(accuracy)
        if judged is not None:
            self.judged.append(judged)
        worth = set(snapshot_epochs(self.spec.recipe, self.deciding).tolist())
        self.kept = {epoch: state for epoch, state in self.kept.items() if epoch in worth}
        return len(self.curve) - 1 in worth

    def keep(self, state: State) -> None:
        """Keep the state after the epoch that was recorded last."""
        self.kept[len(self.curve) - 1] = state


class Stepper(Protocol):
    """Executes training steps for the rounds that it has admitted.

    What it computes for a round may depend on that round alone: never on which others are live.

    Attributes:
        width: How many rounds it can hold at once.
        form: Names what its states hold: one goes on from states of its own form alone.
    """

    @property
    def width(self) -> int: ...

    @property
    def form(self) -> str: ...

    def admit(self, round_: RoundState, state: State | None, /) -> None:
        """Take a round in: from a fresh start, or from what `state` gave at the end of an epoch."""
        ...

    def advance(self, rounds: Sequence[RoundState], steps: int, /) -> None:
        """So many steps for each of these rounds, from `step` of `epoch` on."""
        ...

    def validate(self, rounds: Sequence[RoundState], /) -> Sequence[float]:
        """Their validation accuracies in eval mode, NaN for one that has diverged."""
        ...

    def weights(self, round_: RoundState, /) -> State:
        """A copy of the module's state, on the CPU, named as the module names it."""
        ...

    def state(self, round_: RoundState, /) -> State:
        """All that `admit` needs to go on from the end of an epoch, on the CPU."""
        ...

    def release(self, round_: RoundState, /) -> None:
        """Forget a round."""
        ...

    def remain(self, rounds: Sequence[RoundState], /) -> None:
        """No further rounds will come. Release what is no longer needed."""
        ...


class Lockstep:
    """Which rounds are live, and how far they can go before one of them ends an epoch.

    Args:
        waiting: Rounds to be trained.
        opening: Makes the state of a round, when there is room for it.
        width: How many may be live at once.
    """

    def __init__(
        self,
        waiting: Iterable[RoundSpec],
        opening: Callable[[RoundSpec], RoundState],
        *,
        width: int,
    ) -> None:
        self.waiting = deque(waiting)
        self.live: list[RoundState] = []
        self._opening = opening
        self._width = width
        self._stopped = False

    def admit(self) -> list[RoundState]:
        """Admit waiting rounds while there is room, and return them."""
        fresh: list[RoundState] = []
        while self.waiting and not self._stopped and len(self.live) < self._width:
            fresh.append(self._opening(self.waiting.popleft()))
            self.live.append(fresh[-1])
        return fresh

    def stop(self) -> None:
        """Admit no further rounds, and stop every round at the end of its epoch."""
        self._stopped = True

    def stretch(self) -> tuple[list[RoundState], int]:
        """The rounds that go on, and the steps until the first of them ends its epoch."""
        going = [
            round_
            for round_ in self.live
            if not round_.finished and (round_.step or not self._stopped)
        ]
        return going, min((round_.steps - round_.step for round_ in going), default=0)

    def advance(self, rounds: Sequence[RoundState], steps: int) -> list[RoundState]:
        """Count steps that were taken, and return the rounds whose epoch they ended."""
        ended = []
        for round_ in rounds:
            round_.step += steps
            if round_.step == round_.steps:
                round_.step = 0
                round_.epoch += 1
                ended.append(round_)
        return ended

    def leave(self, round_: RoundState) -> None:
        """Make room."""
        self.live.remove(round_)
