"""A study as a value: what to train on, what to train, and what to compare."""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from dynsnap import data
from dynsnap._renamed import with_new_names
from dynsnap.comparison.intervals import MOST_RESAMPLES
from dynsnap.data import DataSet, GrowthPlan, Pool, Stream, TimeGrowth
from dynsnap.ensemble import COMBINATIONS, Combination, Method, wanted
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.study._toml import GROWTH

# The source and the trainer of a run that `dynsnap.keeper` writes: neither is known here.
OWN_LOOP = "own-loop"
ONE_NETWORK = "one-network"  # of such a run: what would be deployed without an ensemble

# Rows of every study's table that are no methods of its file.
NOISE_FLOOR = "noise-floor"
NEVER_RETRAIN = "never-retrain"


def kept_as(method: str) -> str:
    """What a method is called in tables where its first generation is kept for ever."""
    return f"{NEVER_RETRAIN}-{method}"


def kept_by(name: str, baseline: str = "singlebase") -> str | None:
    """The method whose first generation is kept, where a name says that; else None.

    Example:
        >>> kept_by("never-retrain-rolling"), kept_by("never-retrain"), kept_by("rolling")
        ('rolling', 'singlebase', None)
    """
    if name == NEVER_RETRAIN:
        return baseline
    return name.removeprefix(kept_as("")) if name.startswith(kept_as("")) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlan:
    """Where a study's data comes from, and how it grows.

    Attributes:
        source: The name of a source of `dynsnap.data`.
        path: Where its files are, None for a source that needs none.
        options: Further settings of the source.
        subsample: The share of each class that is used at all, the first rows in file order; by
            time, the share of all rows, drawn by their ids.
        growth: Settings of `dynsnap.data.GrowthPlan`, or of `TimeGrowth`, that differ from the
            source's own.
    """

    source: str = "digits"
    path: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    subsample: float = 1.0
    growth: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.subsample <= 1:
            raise PlanError(f"`subsample` must be above 0 and at most 1, got {self.subsample}.")

    @property
    def by_time(self) -> bool:
        """Whether the data grows by time: as the study says, else as its source does."""
        if "by" in self.growth:
            return bool(self.growth["by"] == "time")
        known = self.source in data.SOURCES
        return known and isinstance(data.SOURCES.find(self.source).growth(), TimeGrowth)


def open_stream(plan: DataPlan) -> tuple[Stream, tuple[str, ...]]:
    """Read a study's data and cut it into generations; with notes on how it was read.

    Example:
        >>> stream, notes = open_stream(DataPlan(source="digits"))
        >>> len(stream.generations)
        3
    """
    return cut_stream(plan, load_data(plan))


def load_data(plan: DataPlan) -> DataSet:
    """Read a study's data, where its settings of growth make sense.

    Example:
        >>> load_data(DataPlan(source="digits")).train.name
        'digits'
    """
    growth_of(plan)
    return data.load(plan.source, plan.path, **plan.options)


def cut_stream(plan: DataPlan, found: DataSet) -> tuple[Stream, tuple[str, ...]]:
    """Cut a study's data into generations; with notes on how it was read.

    Example:
        >>> plan = DataPlan(source="digits")
        >>> stream, notes = cut_stream(plan, load_data(plan))
        >>> len(stream.generations)
        3
    """
    train, test = found.train, found.test
    if plan.subsample < 1 and plan.by_time:
        train = _drawn_by_id(train, plan.subsample)
    elif plan.subsample < 1:
        train = _first_of_each_class(train, plan.subsample)
        test = None if test is None else _first_of_each_class(test, plan.subsample)
    stream = data.grow(train, growth_of(plan), test=test)
    return stream, (*found.notes, *stream.notes)


def growth_of(plan: DataPlan) -> GrowthPlan | TimeGrowth:
    """How a study's data grows: as its source does, with the changes that the study makes.

    Example:
        >>> growth_of(DataPlan(source="cifar-10", growth={"fractions": [0.5, 0.8, 1.0]})).late
        {'frog': 3}
    """
    if plan.source == OWN_LOOP:
        raise PlanError(
            "The rounds of this run are trained by a loop of your own, so run that loop again. "
            "`dynsnap report`, `size` and `compare` read its folder."
        )
    kind = TimeGrowth if plan.by_time else GrowthPlan
    known = [field.name for field in dataclasses.fields(kind)]
    asked = with_new_names(plan.growth, GROWTH, "[data.growth]")
    if asked.get("by", "time") not in ("time", "share"):
        raise PlanError(f'[data.growth] `by` must be "time" or "share", got {asked["by"]!r}.')
    for name in asked:
        if name == "by":
            continue
        if name in [field.name for field in dataclasses.fields(TimeGrowth)] and name not in known:
            raise PlanError(f'[data.growth] `{name}` needs `by = "time"` beside it.')
        if name not in known:
            raise PlanError(f"[data.growth] has no setting `{name}`. {did_you_mean(name, known)}")
    start = data.SOURCES.find(plan.source).growth()
    if not isinstance(start, kind):
        start = kind()
    if kind is GrowthPlan:
        asked = {name: value for name, value in asked.items() if name != "by"}
    try:
        return dataclasses.replace(start, **asked)
    except (TypeError, AttributeError) as error:
        raise PlanError(f"[data.growth] cannot be used as it stands: {error}.") from error


def _first_of_each_class(pool: Pool, share: float) -> Pool:
    """The first rows of every class, in file order, and at least one."""
    kept = [
        rows[: max(1, round(share * len(rows)))]
        for label in range(len(pool.classes))
        for rows in [np.flatnonzero(pool.labels == label)]
    ]
    return pool.take(np.sort(np.concatenate(kept)))


def _drawn_by_id(pool: Pool, share: float) -> Pool:
    """About this share of the rows: the id of each decides, so no row depends on another."""
    digests = (hashlib.blake2b(str(one).encode(), digest_size=4).digest() for one in pool.ids)
    bar = int(share * 2**32)
    return pool.take(np.flatnonzero([int.from_bytes(one) < bar for one in digests]))


Keep: TypeAlias = Literal["scores", "weights"]

# Far more than anyone trains, so that a wrong number ends in a message and not in a full memory.
_MOST_ROUNDS = 100_000


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
        teachers: The files of teachers that are no network of the study (an ensemble, or
            predictions with scores on the training rows), by the digests that name them.
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
    teachers: Mapping[str, Path] = field(default_factory=dict)

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
        if not 1 <= self.resamples <= MOST_RESAMPLES:
            raise PlanError(
                f"`resamples` must be at least 1 and at most {MOST_RESAMPLES:,}, got "
                f"{self.resamples}."
            )
        if self.seed < 0:
            raise PlanError(f"`seed` must not be negative, got {self.seed}.")
        if self.keep not in ("scores", "weights"):
            raise PlanError(f'`keep` must be "scores" or "weights", got {self.keep!r}.')
        if self.starting_from_members and self.keep != "weights":
            raise PlanError(
                f"{self.starting_from_members[0].name} trains on members of the generation before, "
                'so their weights must be stored: set `keep = "weights"` in [study].'
            )
        if not self.methods:
            raise PlanError("A study needs at least one method.")
        check_distinct("method", [method.name for method in self.methods])
        rows = {NOISE_FLOOR, NEVER_RETRAIN, *(kept_as(method.name) for method in self.methods)}
        if taken := [method.name for method in self.methods if method.name in rows]:
            raise PlanError(
                f"A method cannot be named {taken[0]!r}: tables have a row of that name, which is "
                "no method. Choose another name."
            )
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
    def never_retrained(self) -> dict[str, Method]:
        """The methods whose first generation is also shown as if it were never retrained, by the
        name that it has in tables then."""
        others = (one for one in self.methods if one.name == "dynsnap-cyc")
        return {NEVER_RETRAIN: self.baseline} | {kept_as(one.name): one for one in others}

    @property
    def starting_from_members(self) -> tuple[Method, ...]:
        """The methods, and points of sweeps, with rounds that need a stored member."""
        points = (one for sweep in self.sweeps for _, one in sweep.points)
        return tuple(one for one in (*self.methods, *points) if one.starts_from_members)

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
