"""Beyond the paper: one network, retrained from the one that is deployed."""

import re
from dataclasses import dataclass, replace
from numbers import Real

from dynsnap.ensemble._plan import EnsemblePlan
from dynsnap.ensemble._recipe import Recipe
from dynsnap.ensemble._rounds import GIVEN, Distillation, DistilledRows
from dynsnap.errors import PlanError

NEW_CLASS_WEIGHT = 4.0  # of `single`, chosen on held-out rows: results/choose_single.py
_MOST_OFTEN = 1000  # a row of a new class, for once that others are drawn
_NUMBERS = ("epochs_share", "restart_rate", "distill_weight", "temperature", "new_class_weight")
_DIGEST = re.compile(GIVEN + "[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraining:
    """How a single network goes from one generation to the next.

    Its first generation is trained from scratch. Every later one may start from the network before
    it, learn from that network's scores, and be moved back toward that network's weights.

    Attributes:
        warm_start: Whether training starts from the deployed weights instead of from scratch.
        epochs_share: Epochs of a retrain, as a share of those of a training from scratch.
        restart_rate: A factor of the learning rate of rounds that start from deployed weights.
        distill_weight: The weight of the deployed network's scores beside the labels, from 0 (the
            labels alone) to 1.
        temperature: What logits are divided by before scores are compared.
        distill_rows: The rows that scores are learned on: "all"; "right" for those that the
            deployed network labels correctly; "wrong" for those that the new one gets wrong.
        views: Augmented views of each input that the deployed network's scores are averaged over.
        new_class_weight: How often rows of classes that the deployed network does not know are
            drawn, for once that others are. An epoch stays as long as it is. Boosted trees, which
            see all rows at once, do without.
        interpolate: Whether the weights are moved toward the deployed ones in the end, as far as
            held-out rows allow.
        teacher: What scores are learned in place of the deployed network's: "sha256:" and the
            digest that names them, of an ensemble's scores or a prediction file. Empty for the
            deployed network's.
        cumulative: Whether generation g trains from scratch for g trainings: as many epochs as a
            chain of warm starts has had by then. A control, not a method to deploy.

    Example:
        >>> Retraining(distill_weight=0).distillation("0123/0") is None
        True
    """

    warm_start: bool = True
    epochs_share: float = 1.0
    restart_rate: float = 1.0
    distill_weight: float = 0.5
    temperature: float = 1.0
    distill_rows: DistilledRows = "all"
    views: int = 4
    new_class_weight: float = 1.0
    interpolate: bool = False
    cumulative: bool = False
    teacher: str = ""

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            value = getattr(self, name)
            if isinstance(value, bool):  # a number to Python, and none to a file
                raise PlanError(f"`{name}` must be a number, got {value!r}.")
            if isinstance(value, Real) and not isinstance(value, int | float):
                object.__setattr__(self, name, float(value))  # of numpy, which no file holds
        weight = self.distill_weight
        if not (isinstance(weight, Real) and 0 <= weight <= 1):
            raise PlanError(f"`distill_weight` must be between 0 and 1, got {weight!r}.")
        if not (isinstance(self.epochs_share, Real) and 0 < self.epochs_share <= 1):
            raise PlanError(
                f"`epochs_share` must be above 0 and at most 1, got {self.epochs_share!r}."
            )
        if not (isinstance(self.restart_rate, Real) and 0 < self.restart_rate < float("inf")):
            raise PlanError(f"`restart_rate` must be positive, got {self.restart_rate!r}.")
        often = self.new_class_weight
        if not (isinstance(often, Real) and 1 <= often <= _MOST_OFTEN):
            raise PlanError(f"`new_class_weight` must be from 1 to {_MOST_OFTEN}, got {often!r}.")
        if self.interpolate and not self.warm_start:
            raise PlanError(
                "`interpolate` needs `warm_start`: the weights of a network that was trained from "
                "scratch have nothing in common with the deployed ones."
            )
        if self.cumulative and (self.uses_deployed or self.epochs_share != 1):
            raise PlanError(
                "`cumulative` is for a network that is trained from scratch: set `warm_start` to "
                "false and `distill_weight` to 0."
            )
        if self.teacher and not _DIGEST.fullmatch(self.teacher):
            raise PlanError(
                f'`teacher` must be "sha256:" and 64 hexadecimal digits, got {self.teacher!r}.'
            )
        if self.teacher and not weight:
            raise PlanError("`teacher` has no effect where `distill_weight` is 0. Leave it out.")
        # Settings without effect are checked too.
        Distillation(
            teacher="",
            weight=weight or 1.0,
            temperature=self.temperature,
            rows=self.distill_rows,
            views=self.views,
        )

    @property
    def uses_deployed(self) -> bool:
        """Whether a retrain needs the network of the generation before."""
        return self.warm_start or (self.distill_weight > 0 and not self.teacher)

    def recipe(self, first: Recipe, generation: int) -> Recipe:
        """How a generation, counted from 1, is trained.

        A network that starts from one which has trained on most of its validation rows cannot be
        judged by them, so its last epoch is taken.

        Example:
            >>> from dynsnap.ensemble import Schedule
            >>> first = Recipe(schedule=Schedule("step"), epochs=200)
            >>> Retraining(epochs_share=0.25).recipe(first, 2).epochs
            50
        """
        if generation == 1:
            return first
        if self.cumulative:
            return replace(first, epochs=generation * first.epochs)
        epochs = max(1, round(self.epochs_share * first.epochs))
        if not self.warm_start:
            return replace(first, epochs=epochs, snapshots=min(first.snapshots, epochs))
        return replace(
            first, epochs=epochs, snapshots=1, selection="last", rate=first.rate * self.restart_rate
        )

    def plan(self, first: EnsemblePlan, recipe: Recipe) -> EnsemblePlan:
        """Which learner is kept of the rounds of this recipe: the best, or the only one."""
        if recipe.members == 1:
            return replace(first, snapshots=1, beta=1.0, top=None)
        return replace(first, snapshots=recipe.members)

    def distillation(self, deployed: str) -> Distillation | None:
        """What a retrain learns from its teacher.

        Args:
            deployed: The key of the deployed network, which teaches where no other teacher is set.
        """
        if not self.distill_weight:
            return None
        return Distillation(
            teacher=self.teacher or deployed,
            weight=self.distill_weight,
            temperature=self.temperature,
            rows=self.distill_rows,
            views=self.views,
            # Without a say of labels, only that the teacher never names a new class keeps rows of
            # the others from it.
            classes="known" if self.distill_weight < 1 else "all",
        )
