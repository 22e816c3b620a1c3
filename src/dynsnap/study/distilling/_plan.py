"""How ensembles become single networks, before anything is trained."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from dynsnap.ensemble import COMBINATIONS, Combination, EnsemblePlan, Method, Recipe
from dynsnap.errors import PlanError, did_you_mean

Second: TypeAlias = Literal["previous", "student"]

SECONDS: tuple[Second, ...] = get_args(Second)
_PREFIX = "distilled-"
UNTAUGHT = "untaught"


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillPlan:
    """How the ensembles of a method become single networks.

    Attributes:
        method: Whose ensembles teach.
        combination: How their members speak.
        epochs: Epochs of a student's training.
        weight: What the teachers count for; the labels have the rest.
        temperature: How soft scores are made before they are compared.
        second: Who teaches beside the ensemble, from the generation before: "previous" for its
            ensemble, "student" for the network that was made of it; None for nobody.
        share: What the second teacher counts for.
        control: Whether each student has a twin that is trained in the same way, but by the labels
            alone: what it lacks, teaching has given.
    """

    method: Method
    combination: Combination = "average"
    epochs: int = 200
    weight: float = 0.5
    temperature: float = 4.0
    second: Second | None = None
    share: float = 0.3
    control: bool = False

    def __post_init__(self) -> None:
        if self.combination not in COMBINATIONS:
            raise PlanError(
                f"There is no combination {self.combination!r}. "
                f"{did_you_mean(self.combination, COMBINATIONS)}"
            )
        if self.second is not None and self.second not in SECONDS:
            raise PlanError(
                f"There is no second teacher {self.second!r}. {did_you_mean(self.second, SECONDS)}"
            )
        if self.method.margin:
            raise PlanError(
                f"What {self.method.name} answers rests on what was answered before, which no "
                "network knows: distil the same method without a `margin`, and let the answers of "
                "its students stand, with `dynsnap stand`."
            )
        if not 0 <= self.share <= 1:
            raise PlanError(f"`share` must be between 0 and 1, got {self.share}.")

    @property
    def name(self) -> str:
        """What the students are called in files and tables."""
        second = "" if self.second is None else f"-{self.second}={self.share:g}"
        return f"{_PREFIX}{self.method.name}{second}"

    def student(self, baseline: Method, *, name: str | None = None) -> Method:
        """The method of one network that trains as the study's single learner does."""
        return Method(
            name=name or self.name,
            recipe=Recipe(schedule=baseline.recipe.schedule, epochs=self.epochs, snapshots=1),
            plan=EnsemblePlan(size=1, snapshots=1, beta=1.0),
            combinations=(self.combination,),
        )
