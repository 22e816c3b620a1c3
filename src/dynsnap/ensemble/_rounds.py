"""A round: its name, what it learns from, its snapshots, and the shorter rounds in it."""

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from dynsnap._types import Accuracies, Floats, MemberScores, Positions
from dynsnap.ensemble._plan import check_count
from dynsnap.ensemble._recipe import Recipe
from dynsnap.errors import InputError, PlanError, TrainingError

GIVEN = "sha256:"  # how the names of scores begin that were handed in; no key of a member does
DistilledRows: TypeAlias = Literal["all", "right", "wrong"]
DistilledClasses: TypeAlias = Literal["known", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distillation:
    """What a round learns from the scores of a stored network, beside the labels.

    The loss of a row is weight · T² · CE(teacher at T, student at T) + (1 − weight) · CE(label).
    Rows of classes that the teacher was never trained on are learned from their labels alone.

    Attributes:
        teacher: The key of the stored member that teaches; or "sha256:" and a digest, which names
            scores for the training rows: see `TeacherScores`.
        weight: The weight of its scores, above 0 and at most 1; labels have the rest.
        temperature: What the logits of both are divided by; 1 leaves them as they are.
        rows: "all"; "right" for those that the teacher labels correctly (focal distillation);
            "wrong" for those that the student gets wrong at the moment (MUSCLE).
        views: Augmented views of each input that the teacher's scores are averaged over, where
            training augments its inputs.
        classes: The classes that both are compared on: "known" for those that the teacher was
            trained on; "all" counts it against every other class that the teacher never names it,
            as rounds did once and boosted trees do.

    Example:
        >>> Distillation(teacher="0123/0").weight
        0.5
    """

    teacher: str
    weight: float = 0.5
    temperature: float = 1.0
    rows: DistilledRows = "all"
    views: int = 4
    classes: DistilledClasses = "all"

    def __post_init__(self) -> None:
        if not (isinstance(self.weight, Real) and 0 < self.weight <= 1):
            raise PlanError(f"`weight` must be above 0 and at most 1, got {self.weight!r}.")
        if not (isinstance(self.temperature, Real) and 0 < self.temperature < math.inf):
            raise PlanError(f"`temperature` must be positive, got {self.temperature!r}.")
        if self.rows not in ("all", "right", "wrong"):
            raise PlanError(f'`rows` must be "all", "right" or "wrong", got {self.rows!r}.')
        if self.classes not in ("known", "all"):
            raise PlanError(f'`classes` must be "known" or "all", got {self.classes!r}.')
        check_count("views", self.views)

    @property
    def given(self) -> bool:
        """Whether the teacher is scores that were handed in, and not a stored member."""
        return self.teacher.startswith(GIVEN)


# Left out of a round's name where they have no effect: rounds keep the names that they had before
# there were such settings.
_LEFT_OUT = {"distillation": None, "new_class_weight": 1, "interpolate": False, "by_time": False}
_LEFT_OUT_OF_DISTILLATION = {"classes": "all"}
_LEFT_OUT_OF_RECIPE = {"average": 0, "smoothing": 0, "rate": 1, "codistill": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSpec:
    """One round of training, named so that it can be repeated on its own, anywhere.

    Attributes:
        recipe: How it trains.
        generation: Which D_i it trains on, counted from 1.
        replicate: Which repetition of the whole study it belongs to, counted from 0.
        index: Its place among the rounds of this recipe, generation and replicate.
        seed: The study's seed.
        twin: 1 for the learner that measures the noise floor: equal in all but its randomness.
        parent: The key of the member that it starts from, None for a fresh start.
        distillation: What it learns from beside the labels, None for the labels alone.
        new_class_weight: How often rows of classes that are new in this generation are drawn, for
            once that others are.
        interpolate: Whether its weights are moved toward those of its parent in the end, as far as
            held-out rows allow.
        by_time: Whether the data grows by time, so that nothing may depend on later rows.
    """

    recipe: Recipe
    generation: int
    replicate: int = 0
    index: int = 0
    seed: int = 0
    twin: int = 0
    parent: str | None = None
    distillation: Distillation | None = None
    new_class_weight: float = 1.0
    interpolate: bool = False
    by_time: bool = False

    def __post_init__(self) -> None:
        if self.interpolate and self.parent is None:
            raise PlanError(
                f"{self} cannot be interpolated: its weights and those of a network that it did "
                "not start from have nothing in common. Set `warm_start`, or leave `interpolate` "
                "out."
            )
        if self.recipe.codistill and (self.parent is not None or self.distillation is not None):
            raise PlanError(
                f"{self} cannot be co-distilled: its two networks start from scratch, each with "
                "weights of its own, and learn from one another. Leave `codistill` out, or "
                "`warm_start` and `distill_weight`."
            )

    def facts(self) -> dict[str, Any]:
        """The spec as plain values, without settings that have no effect."""
        found = _without(dataclasses.asdict(self), _LEFT_OUT)
        if self.distillation is not None:
            found["distillation"] = _without(found["distillation"], _LEFT_OUT_OF_DISTILLATION)
        return found | {"recipe": _without(found["recipe"], _LEFT_OUT_OF_RECIPE)}

    def canonical(self) -> str:
        """The spec as text, the same wherever it is computed: seeds and keys are hashes of it."""
        return json.dumps(self.facts(), sort_keys=True, separators=(",", ":"))

    def seed_name(self) -> str:
        """What its random numbers are drawn by: its name, without what concerns new classes.

        Where no class is new, that must not have an effect, not even by other random numbers.
        By time, also without the keys of the learners that it starts or learns from: a key is a
        hash of all data, so later rows would change the seeds of an earlier generation.
        """
        how = self.distillation
        if how is not None:
            teacher = "" if self.by_time else how.teacher
            how = dataclasses.replace(how, teacher=teacher, classes="all")
        parent = "" if self.by_time and self.parent is not None else self.parent
        return dataclasses.replace(
            self, parent=parent, distillation=how, new_class_weight=1.0
        ).canonical()

    def __str__(self) -> str:
        recipe = self.recipe
        twin = ", twin" if self.twin else ""
        # A fresh round may have the same index.
        start = ", from a member" if self.parent is not None else ""
        start += ", distilled" if self.distillation is not None else ""
        start += ", co-distilled" if recipe.codistill else ""
        return (
            f"round {self.index} of generation {self.generation}, replicate {self.replicate}"
            f"{twin} ({recipe.schedule.kind}, {recipe.epochs} epochs{start})"
        )


def _without(values: dict[str, Any], left_out: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if name not in left_out or value != left_out[name]
    }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Round:
    """Every snapshot of one round, before pruning.

    Attributes:
        accuracy: Validation accuracy of each member, on this round's own validation rows.
        epochs: The epoch (from 0) that each member was taken at.
        scores: Scores of the members on each evaluation set, by its name ("test", "late").
        curve: Validation accuracy after every epoch.
        weights: One serialised learner per snapshot in the trainer's own safe format, or empty
            where only scores are kept. Member j is snapshot j // passes.
        seconds: Time that training took.
        selection: The selection metric of each member, higher is better, which pruning goes by;
            None where that is the accuracy.
        selection_curve: The selection metric after every epoch, by which snapshots were chosen;
            None where that is the accuracy.
    """

    spec: RoundSpec
    accuracy: Accuracies
    epochs: Positions
    scores: Mapping[str, MemberScores]
    curve: Floats
    weights: tuple[bytes, ...] = ()
    seconds: float = 0.0
    selection: Floats | None = None
    selection_curve: Floats | None = None

    def __post_init__(self) -> None:
        members = self.spec.recipe.members
        if len(self.accuracy) != members or len(self.epochs) != members:
            raise InputError(
                f"{self.spec} must give {members} members, but has {len(self.accuracy)} "
                f"accuracies and {len(self.epochs)} epochs."
            )
        if self.selection is not None and (
            len(self.selection) != members or not np.isfinite(self.selection).all()
        ):
            raise TrainingError(
                f"{self.spec} must have a finite value of its selection metric for each of "
                f"{members} members, but has {self.selection}."
            )
        for name, scores in self.scores.items():
            if scores.ndim != 3 or len(scores) != members:
                raise InputError(
                    f"{self.spec} must score `{name}` as (members, inputs, classes) with {members} "
                    f"members, but has the shape {scores.shape}."
                )
            if not np.isfinite(scores).all():
                raise TrainingError(f"{self.spec} gave scores that are not finite on `{name}`.")
        if not all(0 <= value <= 1 for value in self.accuracy):  # NaN fails this too
            raise TrainingError(
                f"{self.spec} has validation accuracies outside [0, 1]: {self.accuracy}. "
                "Training may have diverged, or the validation split may be empty."
            )

    @property
    def judged(self) -> Accuracies:
        """What pruning goes by: the selection metric of each member, else its accuracy."""
        return self.accuracy if self.selection is None else self.selection


def begins(spec: RoundSpec, longer: RoundSpec) -> bool:
    """Whether a round is the first windows of another one, given that one's randomness.

    Every round is the beginning of itself. A shorter one must end with a whole window: of half a
    window, a longer training need not have kept the best epoch.

    Example:
        >>> from dynsnap.ensemble import method
        >>> long, short = (RoundSpec(recipe=method(name, epochs=200).recipe, generation=1)
        ...                for name in ("snapshot", "dynsnap-cyc"))
        >>> begins(short, long), begins(long, short)
        (True, False)
    """
    short, long = spec.recipe, longer.recipe
    if replace(spec, recipe=long) != longer:
        return False
    if short == long:
        return True
    if short.selection != "window" or long.selection != "window":
        return False
    alike = replace(short, epochs=long.epochs, snapshots=long.snapshots) == long
    whole = short.epochs == short.snapshots * short.window
    return alike and whole and short.window == long.window and short.epochs < long.epochs


def longest(spec: RoundSpec, among: Iterable[RoundSpec]) -> RoundSpec:
    """The longest of these rounds that a round is the beginning of; itself where there is none."""
    able = [one for one in among if begins(spec, one)]
    return max(able, key=lambda one: one.recipe.epochs, default=spec)


def beginning(done: Round, spec: RoundSpec) -> Round:
    """A round cut down to its first windows: their snapshots, epochs, and share of the time.

    Example:
        >>> from dynsnap.ensemble import method
        >>> long, short = (RoundSpec(recipe=method(name, epochs=20).recipe, generation=1)
        ...                for name in ("snapshot", "dynsnap-cyc"))
        >>> done = Round(spec=long, accuracy=np.full(20, 0.5), epochs=np.arange(0, 40, 2),
        ...              scores={}, curve=np.full(40, 0.5), seconds=60.0)
        >>> cut = beginning(done, short)
        >>> len(cut.accuracy), len(cut.curve), cut.seconds
        (10, 20, 30.0)
    """
    if done.spec == spec:
        return done
    if not begins(spec, done.spec):
        raise InputError(f"{spec} is not the beginning of {done.spec}.")
    recipe = spec.recipe
    return Round(
        spec=spec,
        accuracy=done.accuracy[: recipe.members],
        epochs=done.epochs[: recipe.members],
        scores={name: scores[: recipe.members] for name, scores in done.scores.items()},
        curve=done.curve[: recipe.epochs],
        weights=done.weights[: recipe.snapshots],
        seconds=done.seconds * recipe.epochs / done.spec.recipe.epochs,
        selection=None if done.selection is None else done.selection[: recipe.members],
        selection_curve=(
            None if done.selection_curve is None else done.selection_curve[: recipe.epochs]
        ),
    )
