"""A round: its name, its snapshots, and the shorter rounds that it contains.

The first windows of a cyclic training are a shorter training. In every window the learning rate
falls from the same height, and the best epoch of each is kept. So nothing in a training depends on
how many windows are to come, and after N windows it has kept what a training of N windows keeps.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dynsnap._types import Accuracies, Floats, MemberScores, Positions
from dynsnap.ensemble._recipe import Recipe
from dynsnap.errors import InputError, TrainingError


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
    """

    recipe: Recipe
    generation: int
    replicate: int = 0
    index: int = 0
    seed: int = 0
    twin: int = 0
    parent: str | None = None

    def canonical(self) -> str:
        """The spec as text, the same wherever it is computed: seeds and keys are hashes of it."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))

    def __str__(self) -> str:
        recipe = self.recipe
        twin = ", twin" if self.twin else ""
        # A fresh round may have the same index.
        start = ", from a member" if self.parent is not None else ""
        return (
            f"round {self.index} of generation {self.generation}, replicate {self.replicate}"
            f"{twin} ({recipe.schedule.kind}, {recipe.epochs} epochs{start})"
        )


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
    """

    spec: RoundSpec
    accuracy: Accuracies
    epochs: Positions
    scores: Mapping[str, MemberScores]
    curve: Floats
    weights: tuple[bytes, ...] = ()
    seconds: float = 0.0

    def __post_init__(self) -> None:
        members = self.spec.recipe.members
        if len(self.accuracy) != members or len(self.epochs) != members:
            raise InputError(
                f"{self.spec} must give {members} members, but has {len(self.accuracy)} "
                f"accuracies and {len(self.epochs)} epochs."
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
    )
