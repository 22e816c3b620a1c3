"""How one round is trained, in the words of the paper; what is trained is the trainer's affair."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dynsnap.ensemble._plan import check_count
from dynsnap.ensemble._schedule import Schedule
from dynsnap.errors import PlanError

Selection: TypeAlias = Literal["window", "top"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One round of training with snapshots.

    Attributes:
        schedule: How the learning rate moves.
        epochs: Epochs of the round (iterations, for boosted trees); the paper's T.
        snapshots: Learners saved by the round; the paper's N.
        selection: "window" keeps the best validation epoch of each window of the cycle, "top" the
            best `snapshots` epochs of the whole training.
        dropout: Share of units dropped just before the output layer.
        passes: Predictions drawn per snapshot with dropout left on; 1 means dropout off.
    """

    schedule: Schedule
    epochs: int = 200
    snapshots: int = 10
    selection: Selection = "top"
    dropout: float = 0.0
    passes: int = 1

    def __post_init__(self) -> None:
        check_count("epochs", self.epochs)
        check_count("snapshots", self.snapshots)
        check_count("passes", self.passes)
        if self.snapshots > self.epochs:
            raise PlanError(
                f"`snapshots` must be between 1 and the {self.epochs} epochs of a round, "
                f"got {self.snapshots}."
            )
        if self.selection not in ("window", "top"):
            raise PlanError(f'`selection` must be "window" or "top", got {self.selection!r}.')
        if self.schedule.kind == "cyclic" and self.selection == "top":
            raise PlanError(
                "A cyclic schedule takes one snapshot per window: its top epochs all lie at the "
                'ends of the cycles, or in one of them. Use `selection="window"`.'
            )
        if self.schedule.kind != "cyclic" and self.selection == "window":
            raise PlanError(
                f"A {self.schedule.kind} schedule has no cycles to take window snapshots from. "
                'Use `selection="top"`, or a cyclic schedule.'
            )
        if not 0 <= self.dropout < 1:
            raise PlanError(f"`dropout` must be at least 0 and below 1, got {self.dropout}.")
        if self.passes > 1 and self.dropout == 0:
            raise PlanError("Several passes are all alike without dropout: set `dropout`.")
        if self.selection == "window" and math.ceil(self.epochs / self.window) != self.snapshots:
            raise PlanError(
                f"{self.epochs} epochs cannot be cut into {self.snapshots} windows of "
                f"{self.window}: choose a multiple of `snapshots`."
            )

    @property
    def window(self) -> int:
        """Epochs of one cycle: the paper's W = ceil(T/N)."""
        return math.ceil(self.epochs / self.snapshots)

    @property
    def members(self) -> int:
        """Members that one round yields before pruning."""
        return self.snapshots * self.passes
