"""The ensembles of a study and the rounds that they are certain to need: all from the plan."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, TypeAlias

from dynsnap.data import Stream, training_rows
from dynsnap.ensemble import (
    Combination,
    EnsemblePlan,
    Method,
    Round,
    RoundSpec,
    Size,
    cost,
    longest,
    rounds_used,
    wanted,
)
from dynsnap.study._plan import NOISE_FLOOR, StudyPlan, Sweep

TrainedAs: TypeAlias = Callable[[RoundSpec], RoundSpec]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble:
    """One ensemble of a study: a method in one generation of one replicate.

    Attributes:
        twin: 1 for the learner that measures the noise floor.
        offset: The index of its first round: single learners may be rounds of the same replicate.
        seed: The study's seed.
        by_time: Whether the study's data grows by time.
    """

    method: Method
    generation: int
    replicate: int = 0
    twin: int = 0
    offset: int = 0
    seed: int = 0
    by_time: bool = False

    @property
    def number(self) -> int:
        """The repetition of its method that it belongs to."""
        return self.replicate + self.offset

    @property
    def new_members(self) -> Size:
        """The fewest members that come from rounds of its own generation."""
        return self.method.new_members(self.generation)

    @property
    def previous(self) -> "Ensemble | None":
        """The ensemble of the generation before, None where it does not need one."""
        if not self.method.uses_deployed or self.generation == 1:
            return None
        return replace(self, generation=self.generation - 1)

    @property
    def carries_over(self) -> bool:
        """Whether it takes members of the generation before."""
        return self.method.rolling is not None and self.previous is not None

    @property
    def needs_holdout(self) -> bool:
        """Whether networks of two generations are compared on rows that none was trained on."""
        how = self.method.retraining
        if self.method.cost_ratio or self.method.gate:
            return True
        return self.carries_over or (how is not None and how.interpolate)

    @property
    def earlier(self) -> "list[Ensemble]":
        """The same ensemble in all generations before, oldest first."""
        return [replace(self, generation=number) for number in range(1, self.generation)]

    @property
    def plan(self) -> EnsemblePlan:
        """Which members it keeps of its own rounds.

        A round that starts from a good member has no poor snapshots at its beginning, so nothing
        of it is pruned.
        """
        plan = self.method.plan_of(self.generation)
        rolling = self.method.rolling
        warm = rolling is not None and rolling.warm_start and self.generation > 1
        return replace(plan, beta=1.0) if warm else plan

    @property
    def open_ended(self) -> bool:
        """Whether the number of rounds depends on the rounds themselves."""
        plan = self.plan
        return plan.automatic or (plan.beta != 1 and not plan.top)

    @property
    def starts_from_members(self) -> bool:
        """Whether its rounds start from members of the generation before, or learn from them."""
        rolling = self.method.rolling
        return self.previous is not None and (rolling is None or rolling.warm_start)

    @property
    def finetunes(self) -> bool:
        """Whether it trains the members that it carries over for some further epochs."""
        rolling = self.method.rolling
        return self.previous is not None and rolling is not None and bool(rolling.finetune_epochs)

    def wanted(self, rounds: Sequence[Round], new: Size | None = None) -> int:
        """How many more rounds are certain to be needed for so many new members, or the fewest."""
        new = self.new_members if new is None else new
        return wanted(replace(self.plan, size=new), rounds) if new else 0

    def rounds_used(self, rounds: Sequence[Round], new: Size) -> int:
        """How many of these rounds, from the first on, so many new members come from."""
        return rounds_used(replace(self.plan, size=new), rounds) if new else 0

    def spec(self, index: int, *, member: str | None = None) -> RoundSpec:
        """The ensemble's round of this index.

        Args:
            index: Which of its rounds, counted from 0.
            member: The key of the member that it starts from, or learns from.
        """
        parent, how = member, self.method.retraining
        if how is not None and not how.warm_start:
            parent = None
        taught = how is not None and self.generation > 1 and (member or how.teacher)
        return RoundSpec(
            recipe=self.method.recipe_of(self.generation),
            generation=self.generation,
            replicate=self.replicate,
            index=self.offset + index,
            seed=self.seed,
            twin=self.twin,
            parent=parent,
            distillation=how.distillation(member or "") if how is not None and taught else None,
            new_class_weight=1.0 if how is None or self.generation == 1 else how.new_class_weight,
            interpolate=how is not None and how.interpolate and parent is not None,
            by_time=self.by_time,
        )

    def finetuning(self, parent: str) -> RoundSpec:
        """The round that fine-tunes a carried member, which is stored under this key."""
        assert self.method.rolling is not None
        recipe = self.method.rolling.finetuning
        assert recipe is not None
        return RoundSpec(
            recipe=recipe,
            generation=self.generation,
            replicate=self.replicate,
            seed=self.seed,
            parent=parent,
            by_time=self.by_time,
        )

    def certain(self) -> list[RoundSpec]:
        """The rounds that it needs whatever their accuracy."""
        if self.starts_from_members:  # which are not known before training
            return []
        return [self.spec(index) for index in range(self.wanted([]))]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSeries:
    """The ensembles that one method deploys in one replicate: one block of the table.

    Attributes:
        name: Its name in tables.
        kind: "method"; "point" for a point of a sweep; "noise-floor" for a learner and its twin;
            "never-retrain" for the first generation of a method in place of all.
        replicate: The repetition of the method.
        ensembles: The ensemble of each generation; for the noise floor, the learner and its twin;
            by time, the learners of all generations and then the twin of each, which is the
            learner of another replicate where there are several.
        combinations: How members are combined.
        sweep: The sweep of a point.
        point: The swept value, as text.
    """

    name: str
    kind: Literal["method", "point", "noise-floor", "never-retrain"] = "method"
    replicate: int
    ensembles: tuple[Ensemble, ...]
    combinations: tuple[Combination, ...]
    sweep: Sweep | None = None
    point: str = ""

    @property
    def trained(self) -> tuple[Ensemble, ...]:
        """The ensembles that its cost is for."""
        if self.kind == "never-retrain":
            return self.ensembles[:1]
        if self.kind == "noise-floor":
            return self.ensembles[len(self.ensembles) // 2 :]
        return tuple(one for one in self.ensembles if one.method.retrains(one.generation))

    @property
    def retrained(self) -> tuple[Ensemble, ...] | None:
        """The ensembles trained after the first; None where the table does not show their cost."""
        return self.trained[1:] if self.kind in ("method", "never-retrain") else None

    @property
    def generations(self) -> int:
        """The generations that its cost is shared by; a twin is of the same generation."""
        return len(self.trained) if self.kind == "noise-floor" else len(self.ensembles)


def series_of(plan: StudyPlan, generations: int) -> list[MethodSeries]:
    """Every series of a study: its methods, the points of its sweeps, and its references."""
    found = [
        MethodSeries(
            name=method.name,
            replicate=number,
            ensembles=generations_of(plan, method, generations, number),
            combinations=plan.combinations,
        )
        for method in plan.methods
        for number in range(plan.replicates_of(method))
    ]
    found += [
        MethodSeries(
            name=method.name,
            kind="point",
            replicate=number,
            ensembles=generations_of(plan, method, generations, number),
            combinations=(sweep.combination,),
            sweep=sweep,
            point=point,
        )
        for sweep in plan.sweeps
        for point, method in sweep.points
        for number in range(plan.replicates_of(method))
    ]
    for replicate in range(plan.replicates):
        found += _references(plan, generations, replicate)
    return found


def _references(plan: StudyPlan, generations: int, replicate: int) -> list[MethodSeries]:
    """The noise floor of a replicate, and the methods that are also shown without any retrain."""
    first = Ensemble(
        method=plan.baseline,
        generation=1,
        replicate=replicate,
        seed=plan.seed,
        by_time=plan.data.by_time,
    )
    # By time, every week has a noise floor of its own.
    learners = [
        replace(first, generation=number)
        for number in range(1, generations + 1 if plan.data.by_time else 2)
    ]
    found = [
        MethodSeries(
            name=NOISE_FLOOR,
            kind="noise-floor",
            replicate=replicate,
            ensembles=(*learners, *(_twin(plan, one) for one in learners)),
            combinations=plan.combinations,
        )
    ]
    for name, method in plan.never_retrained.items():
        found.append(
            MethodSeries(
                name=name,
                kind="never-retrain",
                replicate=replicate,
                ensembles=(replace(first, method=method),) * generations,
                combinations=plan.combinations,
            )
        )
    return found


def _twin(plan: StudyPlan, learner: Ensemble) -> Ensemble:
    """A learner of the same rows with another seed.

    By time there is one of each generation. So many need not be trained where replicates have
    learned from the same rows already.
    """
    if plan.data.by_time and plan.replicates > 1:
        return replace(learner, replicate=(learner.replicate + 1) % plan.replicates)
    return replace(learner, twin=1)


def generations_of(
    plan: StudyPlan, method: Method, generations: int, number: int
) -> tuple[Ensemble, ...]:
    """One repetition of a method, generation by generation."""
    shared = method.name in plan.learners
    return tuple(
        Ensemble(
            method=method,
            generation=generation,
            replicate=0 if shared else number,
            offset=number if shared else 0,
            seed=plan.seed,
            by_time=plan.data.by_time,
        )
        for generation in range(1, generations + 1)
    )


def ensembles_of(plan: StudyPlan, generations: int) -> list[Ensemble]:
    """Every ensemble of a study of so many generations, each once."""
    return distinct(series_of(plan, generations))


def distinct(series: Iterable[MethodSeries]) -> list[Ensemble]:
    """The ensembles of these series, each once."""
    return list(dict.fromkeys(ensemble for one in series for ensemble in one.ensembles))


def trained_as(plan: StudyPlan) -> TrainedAs:
    """A function from each round of a study to the round to train for it: itself, or a longer one.

    With `prefixes`, a round that is the first windows of a longer round needs no training, where
    the study is certain to train the longer one. This follows from the plan alone, so it does not
    depend on earlier trainings, or on which of the study's methods are trained.

    Example:
        >>> from dynsnap.ensemble import methods
        >>> from dynsnap.study import DataPlan
        >>> six = methods(epochs=200)
        >>> plan = StudyPlan(name="paper", data=DataPlan(), model={}, training={}, epochs=200,
        ...                  methods=tuple(six.values()), baseline=six["singlebase"], prefixes=True)
        >>> first = RoundSpec(recipe=six["dynsnap-cyc"].recipe, generation=1)
        >>> trained_as(plan)(first).recipe.epochs  # Snapshot's
        400
        >>> trained_as(plan)(replace(first, index=1)).recipe.epochs  # Snapshot has one round
        200
    """
    if not plan.prefixes:
        return lambda spec: spec

    @cache
    def certain(generation: int) -> frozenset[RoundSpec]:
        return frozenset(
            spec
            for ensemble in ensembles_of(plan, generation)
            for spec in ensemble.certain()
            if spec.generation == generation
        )

    return cache(lambda spec: longest(spec, certain(spec.generation)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodWorkload:
    """The training that one method of a study takes, or one point of its sweeps.

    Attributes:
        name: The method's, or the sweep's and the point's.
        rounds: Rounds that one generation is certain to need.
        cost: Their cost in κ.
        open_ended: Whether more may be needed, which depends on the rounds themselves.
    """

    name: str
    method: Method
    rounds: int
    cost: float
    open_ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The training that a study takes, before anything is trained.

    Attributes:
        methods: Every method, and every point of a sweep.
        rounds: The rounds that are certain to be trained, each once however many methods share it.
        cost: Their cost in κ, all generations and replicates together.
        epochs: Their epochs.
        spared: Rounds that need no training, as they are the first windows of longer ones.
        spared_cost: The cost that this saves.
    """

    methods: tuple[MethodWorkload, ...]
    rounds: tuple[RoundSpec, ...]
    cost: float
    epochs: int
    spared: int = 0
    spared_cost: float = 0.0


def workload(plan: StudyPlan, *, generations: int = 3) -> Workload:
    """The training that a study of so many generations is certain to take.

    Example:
        >>> from dynsnap.ensemble import methods
        >>> from dynsnap.study import DataPlan
        >>> six = tuple(methods(epochs=200).values())
        >>> plan = StudyPlan(name="paper", data=DataPlan(), model={}, training={}, epochs=200,
        ...                  methods=six, baseline=six[0])
        >>> [(one.name, one.cost) for one in workload(plan).methods][-2:]
        [('dynsnap-cyc', 2.0), ('dynsnap-step', 2.0)]
        >>> workload(plan).cost  # 20 + 1 + 2 + 2 of each generation, and the twin
        76.0
    """
    needed = dict.fromkeys(
        spec for ensemble in ensembles_of(plan, generations) for spec in ensemble.certain()
    )
    trained = dict.fromkeys(map(trained_as(plan), needed))
    all_cost, trained_cost = (_cost(specs, plan.epochs) for specs in (needed, trained))
    points = [method for sweep in plan.sweeps for _, method in sweep.points]
    return Workload(
        methods=tuple(_method_workload(one, plan.epochs) for one in (*plan.methods, *points)),
        rounds=tuple(trained),
        cost=trained_cost,
        epochs=sum(spec.recipe.epochs for spec in trained),
        spared=len(needed) - len(trained),
        spared_cost=all_cost - trained_cost,
    )


def trained_inputs(specs: Iterable[RoundSpec], stream: Stream) -> int:
    """How many inputs rounds train on: in each epoch, every training row of their generation."""
    rows = training_rows(stream).sum(axis=1).tolist()
    return sum(spec.recipe.epochs * int(rows[spec.generation - 1]) for spec in specs)


def _cost(specs: Iterable[RoundSpec], epochs: int) -> float:
    return sum(cost(spec.recipe, rounds=1, epochs=epochs) for spec in specs)


def _method_workload(method: Method, epochs: int) -> MethodWorkload:
    first = Ensemble(method=method, generation=1)
    rounds = first.wanted([])
    return MethodWorkload(
        name=method.name,
        method=method,
        rounds=rounds,
        cost=cost(method.recipe, rounds=rounds, epochs=epochs),
        open_ended=first.open_ended,
    )
