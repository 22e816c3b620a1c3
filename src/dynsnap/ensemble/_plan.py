"""What an ensemble should look like, before anything is trained."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, TypeAlias

from dynsnap.errors import PlanError

Beta: TypeAlias = float | Literal["mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsemblePlan:
    """How many learners to keep, and how to choose them.

    Attributes:
        size: Learners in the finished ensemble; the paper's m.
        snapshots: Learners that one round yields before pruning; the paper's N.
        beta: How far below its round's best a learner may fall and still be kept, from
            0 (the best only) to 1 (everyone). "mean" keeps those at or above the round's
            mean accuracy; the paper's β*.
        top: The most learners that one round may give after pruning; None for no such limit.

    Example:
        >>> EnsemblePlan(size=5, beta=0.5)
        EnsemblePlan(size=5, snapshots=10, beta=0.5, top=None)
    """

    size: int = 20
    snapshots: int = 10
    beta: Beta = "mean"
    top: int | None = None

    def __post_init__(self) -> None:
        check_count("size", self.size)
        check_count("snapshots", self.snapshots)
        check_beta(self.beta)
        if self.top is not None:
            check_count("top", self.top)
            if self.top > self.snapshots:
                raise PlanError(
                    f"`top` keeps at most {self.top} learners of a round, but a round yields only "
                    f"{self.snapshots}. Lower `top`, or leave it out."
                )

    @property
    def most_per_round(self) -> int:
        """The most members that one round can add."""
        return self.snapshots if self.top is None else self.top


def check_beta(beta: Beta) -> None:
    """Raise unless β is "mean" or a number between 0 and 1."""
    # NaN fails the comparison too.
    if beta != "mean" and not (isinstance(beta, Real) and 0 <= beta <= 1):
        raise PlanError(f'`beta` must be "mean" or between 0 and 1, got {beta}.')


def check_count(name: str, value: int) -> None:
    """Raise unless a count is a whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise PlanError(f"`{name}` must be a whole number of at least 1, got {value!r}.")
