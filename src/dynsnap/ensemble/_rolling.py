"""Beyond the paper: rolling ensembles, which keep members of the generation before."""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from dynsnap._renamed import renamed_arguments
from dynsnap._types import Accuracies, Flags, Floats, Labels, MemberScores, Positions
from dynsnap.ensemble._combine import combine
from dynsnap.ensemble._plan import Size
from dynsnap.ensemble._recipe import Recipe, Schedule
from dynsnap.errors import InputError, PlanError


@renamed_arguments(
    carry="carry_over", lag="max_accuracy_gap", refresh="finetune_epochs", onward="warm_start"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """How a rolling ensemble goes from one generation to the next.

    The members of the last generation are scored on rows that no member was ever trained on. The
    best are carried over, and rounds on the new data are trained for the rest.

    Attributes:
        carry_over: Share of the members that is carried over; the rest is new.
        max_accuracy_gap: How far the accuracy of a carried member may be below the mean of the new
            ones, as a share of the inputs. A new member replaces one that has fallen further
            behind: after an abrupt shift, all members are replaced.
        finetune_epochs: Epochs of fine-tuning for each carried member on the new data, in one cycle
            of the cyclic schedule; 0 leaves members as they are.
        warm_start: Whether the rounds for new members start from old members, the best of each old
            round in turn, instead of from scratch. They cost the same.
        agreement: The weight of agreement with the deployed ensemble, beside accuracy, when members
            are chosen.
        class_aware: Whether a member abstains on classes that it was never trained on; otherwise
            it votes against them.

    Example:
        >>> Rolling(carry_over=0.75).carried(20)
        15
    """

    carry_over: float = 0.75
    max_accuracy_gap: float = 0.05
    finetune_epochs: int = 0
    warm_start: bool = False
    agreement: float = 0.0
    class_aware: bool = True

    def __post_init__(self) -> None:
        if not (isinstance(self.carry_over, Real) and 0 <= self.carry_over <= 1):
            raise PlanError(f"`carry_over` must be between 0 and 1, got {self.carry_over!r}.")
        if not (isinstance(self.max_accuracy_gap, Real) and self.max_accuracy_gap >= 0):
            raise PlanError(
                f"`max_accuracy_gap` must not be negative, got {self.max_accuracy_gap!r}."
            )
        epochs = self.finetune_epochs
        if not isinstance(epochs, int) or isinstance(epochs, bool) or epochs < 0:
            raise PlanError(f"`finetune_epochs` must be a number of epochs, got {epochs!r}.")
        if not (isinstance(self.agreement, Real) and self.agreement >= 0):
            raise PlanError(f"`agreement` must not be negative, got {self.agreement!r}.")

    def carried(self, size: Size) -> int:
        """How many members of an ensemble of this size are carried over."""
        if size == "auto":
            raise PlanError(
                "A rolling ensemble carries over a share of its members, and needs a number of "
                'them instead of "auto".'
            )
        count = round(self.carry_over * size)
        if self.carry_over < 1:  # also a small ensemble has a new member
            count = min(count, size - 1)
        if not count:
            raise PlanError(
                f"`carry_over` = {self.carry_over:g} of {size} members keeps none. Raise it; an "
                "ensemble that is all new is what dynsnap-cyc makes."
            )
        return count

    @property
    def trains_on(self) -> bool:
        """Whether some rounds start from a member, so that weights have to be kept."""
        return bool(self.finetune_epochs) or self.warm_start

    @property
    def finetuning(self) -> Recipe | None:
        """How a carried member is fine-tuned, None where it is left as it is."""
        if not self.finetune_epochs:
            return None
        return Recipe(
            schedule=Schedule("cyclic"),
            epochs=self.finetune_epochs,
            snapshots=1,
            selection="window",
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
        agreement: Of each member, the share of these rows that it labels as the deployed ensemble.
        count: How many to carry over at most.
        rolling: The weight of agreement, and how far a member may be behind.
        new: The accuracy of new members on the same rows, (new members,) or, where each member is
            scored on rows of its own, (new members, members). A member that lags behind their mean
            is dropped.

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
    ranked: Positions = np.argsort(-merit, kind="stable")
    if new is not None and len(new):
        # One bar for each member, where each is scored on the rows of classes that it knows.
        mean = np.broadcast_to(np.asarray(new, float).mean(axis=0), accuracy.shape)
        bar = mean - rolling.max_accuracy_gap
        ranked = ranked[accuracy[ranked] >= bar[ranked]]
    return ranked[:count]


def judged(
    scores: MemberScores,
    truth: Labels,
    *,
    known: Flags | None,
    new: MemberScores | None = None,
    weights: Floats | None = None,
) -> tuple[Accuracies, Accuracies, Floats | None]:
    """Accuracy and agreement of members on rows that no member was ever trained on.

    Each is scored on the rows of classes that it knows: on the others it abstains.

    Args:
        scores: Of the members, (members, rows, classes).
        truth: The true class of each row.
        known: Which classes each member knows, (members, classes); None for all.
        new: Scores of new members on the same rows, which know all classes.
        weights: How much each row counts; None where all count 1.

    Returns:
        The accuracy of each member; its agreement with all of them together; and the accuracies of
        the new members on the rows of each, (new members, members).

    Example:
        >>> scores = np.array([[[1.0, 0.0], [1.0, 0.0]]])
        >>> known = np.array([[True, False]])
        >>> accuracy, _, _ = judged(scores, np.array([0, 1]), known=known)
        >>> accuracy
        array([1.])
    """
    labels = scores.argmax(axis=2)
    together = combine(scores, how="average", known=known).argmax(axis=1)
    asked = np.ones(labels.shape, bool) if known is None else known[:, truth]
    counts = asked if weights is None else asked * weights
    whole = counts.sum(axis=1)
    whole = np.where(whole > 0, whole, 1)
    accuracy = ((labels == truth) * counts).sum(axis=1) / whole
    agreement = ((labels == together) * counts).sum(axis=1) / whole
    if new is None or not len(new):
        return accuracy, agreement, None
    right = new.argmax(axis=2) == truth
    return accuracy, agreement, (right[:, None] * counts).sum(axis=2) / whole
