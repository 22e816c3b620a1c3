"""A study as a value: what to train on, what to train, and what to compare."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dynsnap.ensemble import COMBINATIONS, Combination, Method, wanted
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.study._data import DataPlan

Keep: TypeAlias = Literal["scores", "weights"]

# Far more than anyone trains, so that a wrong number ends in a message and not in a full memory.
_MOST_ROUNDS = 100_000
_MOST_RESAMPLES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One setting of a method varied, all else equal.

    Attributes:
        over: The setting: "members" (the paper's m), "beta", "snapshots" (N), "window" (T/N),
            "carry" (`carry_over`, by its name in tables of results) or "margin".
        points: Each value, as text, with the method that it gives.
        combination: How the members are combined.
    """

    name: str
    over: str
    points: tuple[tuple[str, Method], ...]
    combination: Combination


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """An experiment: methods side by side on growing data.

    Attributes:
        name: Its name.
        data: What it trains on.
        model: The model's `name` and its settings, which the trainer checks.
        training: Settings of the training beside its epochs, which the trainer checks.
        epochs: Epochs of one training from scratch: what a cost of one κ buys.
        methods: What is compared; ablations are methods with names of their own.
        baseline: The single learner that the noise floor is measured with.
        combinations: How members are combined.
        sweeps: Settings that are varied on top.
        seed: The seed of everything.
        replicates: Repetitions of the whole study, each with its own randomness.
        learners: The replicates of single learners that have more than the rest: they are rounds
            that larger ensembles need anyway.
        ahead: Rounds that each pruned ensemble may train before it is certain to need them, so
            that a device which trains many at once does not train a few at the end.
        prefixes: Whether the first windows of a longer cyclic round serve as a round, where the
            study is certain to train one with windows of the same length.
        keep: Whether stored rounds hold "weights" too, or "scores" only.
        half: Whether stored scores are in half precision.
        resamples: How many resamples of the test inputs the intervals come from.
        workers: Settings of an engine's workers, which the engine checks.
    """

    name: str
    data: DataPlan
    model: Mapping[str, Any]
    training: Mapping[str, Any]
    epochs: int
    methods: tuple[Method, ...]
    baseline: Method
    combinations: tuple[Combination, ...] = COMBINATIONS
    sweeps: tuple[Sweep, ...] = ()
    seed: int = 0
    replicates: int = 1
    learners: Mapping[str, int] = field(default_factory=dict)
    ahead: int = 0
    prefixes: bool = False
    keep: Keep = "scores"
    half: bool = False
    resamples: int = 1000
    workers: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, often in (("", self.replicates), *self.learners.items()):
            if often < 1:
                of = f" of {name}" if name else ""
                raise PlanError(f"`replicates`{of} must be at least 1, got {often}.")
        if self.ahead < 0:
            raise PlanError(f"`ahead` must not be negative, got {self.ahead}.")
        for name in self.learners:
            if self.replicates > 1 or not self.method(name).plan.single:
                raise PlanError(
                    f"{name} cannot have replicates of its own: only a method of one learner can, "
                    "in a study that is not replicated as a whole."
                )
        if not 1 <= self.resamples <= _MOST_RESAMPLES:
            raise PlanError(
                f"`resamples` must be at least 1 and at most {_MOST_RESAMPLES:,}, got "
                f"{self.resamples}."
            )
        if self.seed < 0:
            raise PlanError(f"`seed` must not be negative, got {self.seed}.")
        if self.keep not in ("scores", "weights"):
            raise PlanError(f'`keep` must be "scores" or "weights", got {self.keep!r}.')
        if self.starting_from_members and self.keep != "weights":
            raise PlanError(
                f"{self.starting_from_members[0].name} trains on carried members, so their weights "
                'must be stored: set `keep = "weights"` in [study].'
            )
        if not self.methods:
            raise PlanError("A study needs at least one method.")
        check_distinct("method", [method.name for method in self.methods])
        check_distinct("sweep", [sweep.name for sweep in self.sweeps])
        self._check_extent()
        if not self.combinations:
            raise PlanError(f"Name at least one combination: {', '.join(COMBINATIONS)}.")
        for how in (*self.combinations, *(sweep.combination for sweep in self.sweeps)):
            if how not in COMBINATIONS:
                raise PlanError(
                    f"There is no combination {how!r}. {did_you_mean(how, COMBINATIONS)}"
                )
        check_distinct("combination", list(self.combinations))

    def _check_extent(self) -> None:
        """Raise for a study of more rounds than could ever be trained, or even listed."""
        points = [one for sweep in self.sweeps for _, one in sweep.points]
        rounds = self.replicates * sum(wanted(one.plan, []) for one in (*self.methods, *points))
        rounds += sum(self.learners.values())
        if rounds > _MOST_ROUNDS:
            raise PlanError(
                f"The study asks for {rounds:,} rounds of training in each generation; "
                f"{_MOST_ROUNDS:,} are the most. Lower `members` or `replicates`."
            )

    @property
    def never_retrained(self) -> tuple[Method, ...]:
        """The methods whose first generation is also shown as if it were never retrained."""
        return (self.baseline, *(one for one in self.methods if one.name == "dynsnap-cyc"))

    @property
    def starting_from_members(self) -> tuple[Method, ...]:
        """The methods, and points of sweeps, with rounds that start from a stored member."""
        points = (one for sweep in self.sweeps for _, one in sweep.points)
        return tuple(
            one
            for one in (*self.methods, *points)
            if one.rolling is not None and one.rolling.trains_on
        )

    def replicates_of(self, method: Method) -> int:
        """How often a method is repeated."""
        return self.learners.get(method.name, self.replicates)

    @property
    def repeated(self) -> dict[str, int]:
        """How often each method is repeated, by its name."""
        return {method.name: self.replicates_of(method) for method in self.methods}

    def method(self, name: str) -> Method:
        """The method of this name."""
        for found in self.methods:
            if found.name == name:
                return found
        known = [found.name for found in self.methods]
        raise PlanError(f"{self.name} has no method {name!r}. {did_you_mean(name, known)}")


def check_distinct(what: str, names: list[str]) -> None:
    """Raise where a name is there more than once."""
    if (name := repeated(names)) is not None:
        raise PlanError(f"The {what} {name!r} is named more than once.")


def repeated(names: list[str]) -> str | None:
    """The first name that is there more than once."""
    return next((name for name in names if names.count(name) > 1), None)
