"""One round under way: where it stands, which rows come next, what it has kept."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dynsnap import seeds
from dynsnap._types import Floats, Positions
from dynsnap.ensemble import RoundSpec, snapshot_epochs
from dynsnap.errors import TrainingError
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
        epoch: The epoch that comes next or is under way.
        step: The step of that epoch that comes next.
        curve: Validation accuracy after every epoch so far.
        kept: State of the module after each epoch that is worth a snapshot so far.
        seconds: Time that it took so far.
    """

    spec: RoundSpec
    train: Positions
    validation: Positions
    batch: int
    prepared: State
    epoch: int = 0
    step: int = 0
    curve: list[float] = field(default_factory=list)
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
        recipe = self.spec.recipe
        return recipe.schedule.multipliers(recipe.epochs, window=recipe.window)

    def order(self) -> Positions:
        """The rows of this epoch's steps, (steps, batch), shuffled by the round's name alone.

        Every batch is full, because steps of one shape can run side by side: the last one is
        topped up with the first rows of the same epoch.
        """
        shuffled = self.generator("order").permutation(self.train)
        return np.resize(shuffled, (self.steps, self.batch))

    @cached_property
    def _name(self) -> str:
        return self.spec.canonical()

    def seed(self, purpose: str) -> int:
        """A number for random draws of this epoch."""
        return seeds.number(self.spec.seed, self._name, purpose, self.epoch)

    def generator(self, purpose: str) -> np.random.Generator:
        """A numpy generator for random draws of this epoch."""
        return seeds.generator(self.spec.seed, self._name, purpose, self.epoch)

    def record(self, accuracy: float) -> bool:
        """Note the accuracy after the epoch that has just ended; whether to `keep` its state."""
        if not math.isfinite(accuracy):
            raise TrainingError(
                f"{self.spec} diverged in epoch {len(self.curve)}: its outputs or its loss are no "
                "longer finite. Lower the learning rate, or scale the inputs."
            )
        self.curve.append(accuracy)
        worth = set(snapshot_epochs(self.spec.recipe, self.curve).tolist())
        self.kept = {epoch: state for epoch, state in self.kept.items() if epoch in worth}
        return len(self.curve) - 1 in worth

    def keep(self, state: State) -> None:
        """Keep the state after the epoch that was recorded last."""
        self.kept[len(self.curve) - 1] = state
