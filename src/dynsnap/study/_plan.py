"""A study as a value: what to train on, what to train, and what to compare."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dynsnap.ensemble import COMBINATIONS, METHODS, ROLLING, Combination, Method, wanted
from dynsnap.errors import FileError, PlanError, did_you_mean
from dynsnap.study._sections import Section, repeated, resolve
from dynsnap.study._variants import (
    Defaults,
    Sweep,
    read_ablation,
    read_sweep,
    read_variant,
    take_members,
)

Keep: TypeAlias = Literal["scores", "weights"]

# Far more than anyone trains, so that a wrong number ends in a message and not in a full memory.
_MOST_ROUNDS = 100_000
_MOST_RESAMPLES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlan:
    """Where a study's data comes from, and how it grows.

    Attributes:
        source: The name of a source of `dynsnap.data`.
        path: Where its files are, None for a source that needs none.
        options: Further settings of the source.
        subsample: The share of each class that is used at all, the first rows in file order.
        growth: Settings of `dynsnap.data.GrowthPlan` that differ from the source's own.
    """

    source: str = "digits"
    path: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    subsample: float = 1.0
    growth: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.subsample <= 1:
            raise PlanError(f"`subsample` must be above 0 and at most 1, got {self.subsample}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """An experiment: methods side by side on growing data.

    Attributes:
        name: What to call it.
        data: What it trains on.
        model: The model's `name` and its settings, which whoever trains understands.
        training: Settings of the training beside its epochs, which whoever trains understands.
        epochs: Epochs of one training from scratch: what a cost of one κ buys.
        methods: What is compared; ablations are methods with names of their own.
        baseline: The single learner that the noise floor is measured with.
        combinations: How members are combined.
        sweeps: Settings that are varied on top.
        seed: The seed of everything.
        replicates: Repetitions of the whole study, each with its own randomness.
        learners: Methods of a single learner that are repeated more often than the rest, with how
            often: their replicates are rounds that bigger ensembles are made of anyway.
        ahead: Rounds that each pruned ensemble may train before it is certain to need them, so
            that a device which trains many at once is not left with a few at the end.
        prefixes: Whether a cyclic round is taken as the first windows of a longer one, where the
            study is certain to train one with windows of the same length.
        keep: Whether stored rounds hold the learners themselves, or their scores only.
        half: Whether stored scores are in half precision.
        resamples: How many resamples of the test inputs the intervals come from.
        workers: What an engine's workers need, which the engine understands.
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
        if self.training_on and self.keep != "weights":
            raise PlanError(
                f"{self.training_on[0].name} trains on carried members, so their weights must be "
                'stored: set `keep = "weights"` in [study].'
            )
        if not self.methods:
            raise PlanError("A study needs at least one method.")
        _check_distinct("method", [method.name for method in self.methods])
        _check_distinct("sweep", [sweep.name for sweep in self.sweeps])
        self._check_extent()
        if not self.combinations:
            raise PlanError(f"Name at least one combination: {', '.join(COMBINATIONS)}.")
        for how in (*self.combinations, *(sweep.combination for sweep in self.sweeps)):
            if how not in COMBINATIONS:
                raise PlanError(
                    f"There is no combination {how!r}. {did_you_mean(how, COMBINATIONS)}"
                )
        _check_distinct("combination", list(self.combinations))

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
    def kept_methods(self) -> tuple[Method, ...]:
        """The methods whose first generation is also shown as if it were never retrained."""
        return (self.baseline, *(one for one in self.methods if one.name == "dynsnap-cyc"))

    @property
    def training_on(self) -> tuple[Method, ...]:
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


def read_study(path: Path | str) -> StudyPlan:
    """Read a study file.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "tiny.toml"
        >>> _ = file.write_text('''
        ... [study]
        ... name = "tiny"
        ... [model]
        ... name = "mlp"
        ... ''')
        >>> read_study(file).epochs
        200
    """
    path = Path(path)
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"Cannot read the study file {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise FileError(f"The study file {path} is not text in UTF-8.") from error
    try:
        found = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{path} is not valid TOML: {error}.") from error
    try:
        return _study(found, path)
    except PlanError as error:
        raise PlanError(f"{path.name}: {error}") from error


def _study(found: dict[str, Any], path: Path) -> StudyPlan:
    whole = Section(found, "The file")
    names = ("study", "data", "model", "training", "workers")
    tables = {key: whole.take(key, dict, {}) for key in names}
    methods = Section(whole.take("methods", dict, {}), "[methods]")
    ablations, sweeps = whole.tables("ablation"), whole.tables("sweep")
    variants = whole.tables("variant")
    whole.finish()
    study = Section(tables["study"], "[study]")
    training = Section(tables["training"], "[training]")
    epochs = training.take("epochs", int, 200)
    defaults, chosen, learners, combinations = _methods(methods, epochs)
    baseline = defaults.named("singlebase")
    plan = StudyPlan(
        name=study.take("name", str, path.stem),
        seed=study.take("seed", int, 0),
        replicates=study.take("replicates", int, 1),
        ahead=study.take("ahead", int, 0),
        prefixes=study.take("prefixes", bool, False),
        keep=study.take("keep", str, "scores"),  # type: ignore[arg-type]  # checked by the plan
        half=study.take("half_precision", bool, False),
        resamples=study.take("resamples", int, 1000),
        data=_data(Section(tables["data"], "[data]"), path.parent),
        model=tables["model"],
        training=training.rest(),
        epochs=epochs,
        methods=(
            *chosen,
            *(read_ablation(section, defaults) for section in ablations),
            *(read_variant(section, defaults) for section in variants),
        ),
        baseline=next((one for one in chosen if one.name == "singlebase"), baseline),
        learners=learners,
        combinations=combinations,  # type: ignore[arg-type]  # checked by the plan
        sweeps=tuple(read_sweep(section, defaults) for section in sweeps),
        workers=tables["workers"],
    )
    study.finish()
    return plan


def _data(section: Section, folder: Path) -> DataPlan:
    source = section.take("source", str, "digits")
    path = section.take("path", str, "")
    subsample = section.take("subsample", float, 1.0)
    growth = section.take("growth", dict, {})
    options = section.rest()
    if isinstance(options.get("test"), str):  # the path of a test set of its own
        options["test"] = resolve(options["test"], folder)
    return DataPlan(
        source=source,
        path=resolve(path, folder) if path else None,
        options=options,
        subsample=subsample,
        growth=growth,
    )


def _methods(
    section: Section, epochs: int
) -> tuple[Defaults, tuple[Method, ...], dict[str, int], tuple[str, ...]]:
    """What all methods share, those asked for, their own replicates, and the combinations."""
    names = section.take_texts("names", METHODS)
    combinations = section.take_texts("combinations", COMBINATIONS)
    shared = Defaults(
        epochs=epochs,
        members=take_members(section, 20),
        snapshots=section.take("snapshots", int, 10),
        beta=section.take_any("beta", "mean"),
        dropout=section.take("dropout", float, 0.1),
        tolerance=section.take("tolerance", float, None),
        most_rounds=section.take("most_rounds", int, None),
    )
    own = {name: section.table(name) for name in (*METHODS, *ROLLING)}
    section.finish()
    _check_distinct("method", list(names))
    often = {
        name: count
        for name in names
        if name in own and (count := own[name].take("replicates", int, None)) is not None
    }
    chosen = tuple(
        (shared.own_to(name, own[name]) if name in own else shared).named(name) for name in names
    )
    for name, table in own.items():
        if name not in names:
            table.rest()  # settings of a method that is left out do no harm
        table.finish()
    return shared, chosen, often, combinations


def _check_distinct(what: str, names: list[str]) -> None:
    if (name := repeated(names)) is not None:
        raise PlanError(f"The {what} {name!r} is named more than once.")
