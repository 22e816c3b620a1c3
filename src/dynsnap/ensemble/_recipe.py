"""How a round trains: its learning rates, epoch by epoch, and which epochs it keeps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal, TypeAlias

import numpy as np

from dynsnap._types import Floats, Positions
from dynsnap.ensemble._plan import check_count
from dynsnap.errors import PlanError

ScheduleKind: TypeAlias = Literal["cyclic", "step", "constant", "custom"]
Selection: TypeAlias = Literal["window", "top", "last"]

# The multipliers that the paper's scripts ran with, for 200 epochs: (first epoch index,
# multiplier). The recurrence printed in the paper is not what was run.
_STEPS = ((0, 1.0), (81, 0.1), (121, 0.01), (161, 0.001), (181, 0.0005))
_STEPS_EPOCHS = 200


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the learning rate moves through one training, as multipliers of the base rate.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One round of training with snapshots.

    Attributes:
        schedule: How the learning rate moves.
        epochs: Epochs of the round (iterations, for boosted trees); the paper's T.
        snapshots: Learners that the round saves; the paper's N.
        selection: "window" keeps the best validation epoch of each window of the cycle, "top" the
            best `snapshots` epochs of the whole training, "last" its last ones. A round that
            starts from a network which has trained on some of the validation rows should not
            choose its epochs by them.
        dropout: Share of units dropped just before the output layer.
        passes: Predictions drawn per snapshot with dropout left on; 1 means dropout off.
        average: Decay of an exponential moving average of the weights (EMA), which is what
            snapshots hold; 0 for the weights themselves. See `average_decay`.
        smoothing: Label smoothing: the share of a label that all classes get in equal parts.
        rate: A factor of the learning rate in all epochs.
        codistill: Co-distillation: two networks are trained together on the same batches, and each
            learns from the other's current scores with this weight, from its labels with the rest.
            The first one is served. 0 for one network. A round costs twice as much.
    """

    schedule: Schedule
    epochs: int = 200
    snapshots: int = 10
    selection: Selection = "top"
    dropout: float = 0.0
    passes: int = 1
    average: float = 0.0
    smoothing: float = 0.0
    rate: float = 1.0
    codistill: float = 0.0

    def __post_init__(self) -> None:
        check_count("epochs", self.epochs)
        check_count("snapshots", self.snapshots)
        check_count("passes", self.passes)
        if self.snapshots > self.epochs:
            raise PlanError(
                f"`snapshots` must be between 1 and the {self.epochs} epochs of a round, "
                f"got {self.snapshots}."
            )
        if self.selection not in ("window", "top", "last"):
            raise PlanError(
                f'`selection` must be "window", "top" or "last", got {self.selection!r}.'
            )
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
        for name, share in (("average", self.average), ("smoothing", self.smoothing)):
            if not (isinstance(share, Real) and 0 <= share < 1):
                raise PlanError(f"`{name}` must be at least 0 and below 1, got {share!r}.")
        if not (isinstance(self.rate, Real) and 0 < self.rate < math.inf):
            raise PlanError(f"`rate` must be positive, got {self.rate!r}.")
        if not (isinstance(self.codistill, Real) and 0 <= self.codistill <= 1):
            raise PlanError(f"`codistill` must be between 0 and 1, got {self.codistill!r}.")
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

    @property
    def multipliers(self) -> Floats:
        """The multiplier of the base rate in each epoch."""
        found = self.schedule.multipliers(self.epochs, window=self.window)
        return found if self.rate == 1 else self.rate * found

    @property
    def networks(self) -> int:
        """Networks that one round trains."""
        return 2 if self.codistill else 1

    @property
    def plain(self) -> bool:
        """Whether one network learns labels as they are: no averages, no smoothing, no second."""
        return not self.average and not self.smoothing and not self.codistill


def rate_factor(
    recipe: Recipe, epoch: int, *, step: int = 0, steps: int = 1, warmup: int = 0
) -> float:
    """What a step of a round multiplies the base learning rate with.

    A cosine moves on within an epoch. With one step it has the value of `Recipe.multipliers`. The
    rate grows linearly through the first epochs of a round where there is a warm-up.

    Args:
        recipe: How the round trains.
        epoch: Which epoch, counted from 0.
        step: Which step of the epoch, counted from 0.
        steps: Steps of one epoch.
        warmup: Epochs of warm-up at the beginning of the round.

    Example:
        >>> cyclic = Recipe(schedule=Schedule("cyclic"), epochs=4, snapshots=2, selection="window")
        >>> [round(rate_factor(cyclic, 0, step=step, steps=2), 2) for step in (0, 1)]
        [1.0, 0.85]
        >>> rate_factor(cyclic, 0, warmup=2)
        0.5
    """
    if not (0 <= epoch < recipe.epochs and 0 <= step < steps):
        raise PlanError(
            f"A round of {recipe.epochs} epochs has no rate for step {step} of {steps} in epoch "
            f"{epoch}: both are counted from 0."
        )
    factor = float(recipe.multipliers[epoch])
    if step and recipe.schedule.kind == "cyclic":
        place = (epoch % recipe.window + step / steps) / recipe.window
        factor = recipe.rate * (math.cos(math.pi * place) + 1) / 2
    progress = epoch + (step + 1) / steps
    return factor * min(1.0, progress / warmup) if warmup else factor


def average_decay(decay: float, step: float) -> float:
    """The decay of averaged weights at a step, counted from 1: an average of few steps is short.

    Example:
        >>> average_decay(0.998, 1), average_decay(0.998, 100_000)
        (0.18181818181818182, 0.998)
    """
    return min(decay, (1 + step) / (10 + step))


def snapshot_epochs(recipe: Recipe, curve: Sequence[float]) -> Positions:
    """The epochs that a recipe keeps of a training, or of its beginning so far.

    "window" keeps the best epoch of each window, in their order; "top" the best epochs of all, the
    best first; "last" the last ones, latest first. On ties the earlier epoch is kept.

    Args:
        recipe: How the round trains.
        curve: Validation accuracy after every epoch so far.

    Example:
        >>> step = Recipe(schedule=Schedule("step"), epochs=4, snapshots=2)
        >>> snapshot_epochs(step, [0.5, 0.7, 0.6, 0.7])
        array([1, 3])
    """
    accuracy = np.asarray(curve)
    if recipe.selection == "last":
        return np.arange(len(accuracy) - 1, recipe.epochs - recipe.snapshots - 1, -1)
    if recipe.selection == "top":
        return np.argsort(-accuracy, kind="stable")[: recipe.snapshots]
    starts = np.arange(0, len(accuracy), recipe.window)
    best = [int(np.argmax(accuracy[start : start + recipe.window])) for start in starts]
    return starts + np.array(best, dtype=np.intp)
