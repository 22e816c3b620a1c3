"""How many learners an ensemble has, and which snapshots of a round pruning keeps."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, TypeAlias

import numpy as np

from dynsnap._types import Accuracies, Positions
from dynsnap.errors import InputError, PlanError

Beta: TypeAlias = float | Literal["mean"]
Size: TypeAlias = int | Literal["auto"]

TOLERANCE = 0.005
MOST_ROUNDS = 20


_MOST = 10_000_000  # of anything that is counted, so that a wrong number ends in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsemblePlan:
    """How many learners to keep, and how to choose them.

    Attributes:
        size: Learners in the finished ensemble, the paper's m; or "auto", to train rounds until
            another one gains too little, and keep all of their learners that pruning leaves.
        snapshots: Learners that one round yields before pruning; the paper's N.
        beta: How far below its round's best a learner may fall and still be kept, from
            0 (the best only) to 1 (all of them). "mean" keeps those at or above the round's
            mean accuracy; the paper's β*.
        top: The most learners that one round may give after pruning; None for no such limit.
        tolerance: With "auto": the gain that another round must be expected to bring, as a share of
            the inputs on which two such ensembles agree; 0.005 by default.
        most_rounds: With "auto": the most rounds that are trained; 20 by default.

    Example:
        >>> EnsemblePlan(size=5, beta=0.5).most_per_round
        10
        >>> EnsemblePlan(size="auto", tolerance=0.002).automatic
        True
    """

    size: Size = 20
    snapshots: int = 10
    beta: Beta = "mean"
    top: int | None = None
    tolerance: float | None = None
    most_rounds: int | None = None

    def __post_init__(self) -> None:
        check_size(self.size)
        check_automatic(self.size, self.tolerance, self.most_rounds)
        check_count("snapshots", self.snapshots)
        check_beta(self.beta)
        if self.top is not None:
            check_count("top", self.top)
            if self.top > self.snapshots:
                raise PlanError(
                    f"`top` keeps at most {self.top} learners of a round, but a round yields only "
                    f"{self.snapshots}. Lower `top`, or raise `snapshots`."
                )

    @property
    def automatic(self) -> bool:
        """Whether the size follows from the rounds: it is "auto"."""
        return self.size == "auto"

    @property
    def single(self) -> bool:
        """Whether this is a single learner."""
        return self.size == 1

    @property
    def most_per_round(self) -> int:
        """The most members that one round can add."""
        return self.snapshots if self.top is None else self.top


def threshold(accuracy: Accuracies, *, beta: Beta = "mean") -> float:
    """The validation accuracy that a snapshot must reach to stay: the paper's τ.

    Example:
        >>> threshold(np.array([0.5, 1.0]), beta=0.5)
        0.75
    """
    best, worst = accuracy.max(), accuracy.min()
    bar = accuracy.mean() if isinstance(beta, str) else (1 - beta) * best + beta * worst
    # The mean of equal floats can round to just above them, and so can a weighted mean. If no
    # snapshot cleared the bar, `grow` would train for ever.
    return float(min(bar, best))


def survivors(accuracy: Accuracies, *, beta: Beta = "mean") -> Positions:
    """Positions of the snapshots worth keeping, best first; equals in their own order.

    A snapshot stays if its validation accuracy reaches the paper's
    τ = (1 − β)·max + β·min, or the mean of the round for β* = "mean". The best always stays.

    Example:
        >>> survivors(np.array([0.70, 0.90, 0.82]))
        array([1, 2])
        >>> survivors(np.array([0.70, 0.90, 0.82]), beta=1)
        array([1, 2, 0])
    """
    check_beta(beta)
    accuracy = np.asarray(accuracy, dtype=float)
    if accuracy.ndim != 1 or not len(accuracy):
        raise InputError(
            "`accuracy` must hold one validation accuracy for each of at least one snapshot, "
            f"but has the shape {accuracy.shape}."
        )
    if not np.isfinite(accuracy).all():
        raise InputError(
            f"`accuracy` holds values that are not finite: {accuracy}. "
            "Training may have diverged, or the validation split may be empty."
        )
    ranked: Positions = np.argsort(-accuracy, kind="stable")
    return np.asarray(ranked[accuracy[ranked] >= threshold(accuracy, beta=beta)])


def check_beta(beta: Beta) -> None:
    """Raise unless β is "mean" or a number between 0 and 1."""
    # NaN fails the comparison too.
    if beta != "mean" and not (isinstance(beta, Real) and 0 <= beta <= 1):
        raise PlanError(f'`beta` must be "mean" or between 0 and 1, got {beta}.')


def check_size(size: Size) -> None:
    """Raise unless a size is a whole number of at least 1, or "auto"."""
    if isinstance(size, str) and size != "auto":
        raise PlanError(f'`size` must be a whole number of at least 1, or "auto", got {size!r}.')
    if size != "auto":
        check_count("size", size)


def check_automatic(size: Size, tolerance: float | None, most_rounds: int | None) -> None:
    """Raise unless the bounds of an "auto" size are valid, and the size is "auto"."""
    for name, value in (("tolerance", tolerance), ("most_rounds", most_rounds)):
        if value is not None and size != "auto":
            raise PlanError(
                f'`{name}` has a meaning for an ensemble of the size "auto" only, and this one is '
                f"to have {size} members. Leave it out."
            )
    if tolerance is not None and not (isinstance(tolerance, Real) and 0 < tolerance < 1):
        raise PlanError(f"`tolerance` must be above 0 and below 1, got {tolerance!r}.")
    if most_rounds is not None:
        check_count("most_rounds", most_rounds)
        if most_rounds < 2:
            raise PlanError("`most_rounds` must be at least 2: one round shows no gain of another.")


def check_count(name: str, value: int) -> None:
    """Raise unless a count is a whole number of at least 1, and not beyond all reason."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise PlanError(f"`{name}` must be a whole number of at least 1, got {value!r}.")
    if value > _MOST:
        raise PlanError(f"`{name}` must be at most {_MOST:,}, got {value}.")
