"""Learning rates per epoch, as multipliers of the base rate: arithmetic, no framework."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dynsnap._types import Floats
from dynsnap.errors import PlanError

ScheduleKind: TypeAlias = Literal["cyclic", "step", "constant", "custom"]

# The multipliers that the paper's scripts ran with, for 200 epochs: (first epoch index,
# multiplier). The recurrence printed in the paper is not what was run.
_STEPS = ((0, 1.0), (81, 0.1), (121, 0.01), (161, 0.001), (181, 0.0005))
_STEPS_EPOCHS = 200


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the learning rate moves through one training.

    Attributes:
        kind: "cyclic" (cosine from the base rate to zero in every window), "step" (the paper's
            step-wise decay, scaled to the number of epochs), "constant", or "custom".
        factors: For "custom": the multiplier of the base rate in each epoch.
    """

    kind: ScheduleKind
    factors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        known = ("cyclic", "step", "constant", "custom")
        if self.kind not in known:
            raise PlanError(f"A schedule must be one of {', '.join(known)}, got {self.kind!r}.")
        if (self.kind == "custom") != bool(self.factors):
            raise PlanError('`factors` belong to a "custom" schedule, and it needs them.')
        if not all(math.isfinite(factor) and factor >= 0 for factor in self.factors):
            raise PlanError("`factors` must be finite and not negative.")

    def multipliers(self, epochs: int, *, window: int) -> Floats:
        """The multiplier of the base rate in each epoch.

        Example:
            >>> Schedule("cyclic").multipliers(4, window=2)
            array([1. , 0.5, 1. , 0.5])
        """
        epoch = np.arange(epochs)
        if self.kind == "cyclic":
            return np.asarray((np.cos(np.pi * (epoch % window) / window) + 1) / 2)
        if self.kind == "step":
            bars = np.array([math.ceil(first * epochs / _STEPS_EPOCHS) for first, _ in _STEPS])
            values = np.array([value for _, value in _STEPS])
            return np.asarray(values[np.searchsorted(bars, epoch, side="right") - 1])
        if self.kind == "custom":
            if len(self.factors) != epochs:
                raise PlanError(
                    f"A custom schedule gives {len(self.factors)} multipliers for {epochs} epochs."
                )
            return np.array(self.factors)
        return np.ones(epochs)
