"""Beyond the paper: a generation that starts from the members of the one before."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from dynsnap._types import Accuracies, Positions
from dynsnap.ensemble._plan import Size
from dynsnap.ensemble._recipe import Recipe
from dynsnap.ensemble._schedule import Schedule
from dynsnap.errors import InputError, PlanError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """How a rolling ensemble goes from one generation to the next.

    The members of the last generation are judged anew, by rows that none of them was ever trained
    on; the best are carried over, and rounds on the new data are trained for the rest.

    Attributes:
        carry: Share of the members that is carried over; the rest is new.
        lag: How far the accuracy of a carried member may be below the mean of the new ones, as a
            share of the inputs. One that has fallen further behind is replaced by a new one: after
            a sudden change of the data, that is everybody.
        refresh: Epochs that each carried member is trained on with the new data, in one cycle of
            the cyclic schedule; 0 leaves members as they are.
        agreement: How much agreeing with the generation that is deployed counts, beside being
            right, when members are chosen.
        class_aware: Whether a member is left out where it comes to classes that it never saw;
            otherwise it counts as a vote against them.

    Example:
        >>> Rolling(carry=0.75).carried(20)
        15
    """

    carry: float = 0.75
    lag: float = 0.05
    refresh: int = 0
    agreement: float = 0.0
    class_aware: bool = True

    def __post_init__(self) -> None:
        if not (isinstance(self.carry, Real) and 0 <= self.carry <= 1):
            raise PlanError(f"`carry` must be between 0 and 1, got {self.carry!r}.")
        if not (isinstance(self.lag, Real) and self.lag >= 0):
            raise PlanError(f"`lag` must not be negative, got {self.lag!r}.")
        if not isinstance(self.refresh, int) or isinstance(self.refresh, bool) or self.refresh < 0:
            raise PlanError(f"`refresh` must be a number of epochs, got {self.refresh!r}.")
        if not (isinstance(self.agreement, Real) and self.agreement >= 0):
            raise PlanError(f"`agreement` must not be negative, got {self.agreement!r}.")

    def carried(self, size: Size) -> int:
        """How many members of an ensemble of this size are carried over."""
        if size == "auto":
            raise PlanError(
                "A rolling ensemble carries over a share of its members, and needs a number of "
                'them instead of "auto".'
            )
        count = round(self.carry * size)
        if not count:
            raise PlanError(
                f"`carry` = {self.carry:g} of {size} members keeps nobody. Raise it; an ensemble "
                "that is all new is what dynsnap-cyc makes."
            )
        return count

    @property
    def refreshing(self) -> Recipe | None:
        """How a carried member is trained on, None where it is left as it is."""
        if not self.refresh:
            return None
        return Recipe(
            schedule=Schedule("cyclic"), epochs=self.refresh, snapshots=1, selection="window"
        )


def best(
    accuracy: Accuracies,
    agreement: Accuracies,
    *,
    count: int,
    rolling: Rolling,
    new: Accuracies | None = None,
) -> Positions:
    """Positions of the members to carry over, best first; equals in their own order.

    Args:
        accuracy: Of each member, on rows that no member was ever trained on.
        agreement: Of each member, how often it says there what the deployed ensemble says.
        count: How many to carry over at most.
        rolling: How much agreement counts, and how far a member may lag behind.
        new: The accuracy of new members on the same rows: who lags behind their mean stays behind.

    Example:
        >>> best(np.array([0.7, 0.9, 0.8]), np.zeros(3), count=2, rolling=Rolling())
        array([1, 2])
        >>> best(np.array([0.7, 0.9, 0.8]), np.zeros(3), count=2, rolling=Rolling(),
        ...      new=np.array([0.9]))
        array([1])
    """
    if len(accuracy) < count:
        raise InputError(
            f"{count} members are to be carried over, but the last generation has {len(accuracy)}."
        )
    accuracy = np.asarray(accuracy, float)
    merit = accuracy + rolling.agreement * np.asarray(agreement, float)
    ranked: Positions = np.argsort(-merit, kind="stable")[:count]
    if new is not None and len(new):
        ranked = ranked[accuracy[ranked] >= np.mean(new) - rolling.lag]
    return ranked
