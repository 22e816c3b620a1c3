"""The paper's six methods, rolling ones and single networks, as plans over shared rounds."""

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

from dynsnap import _check
from dynsnap._registry import Registry
from dynsnap.ensemble._combine import COMBINATIONS, Combination
from dynsnap.ensemble._plan import Beta, EnsemblePlan, Size, check_count
from dynsnap.ensemble._recipe import Recipe, Schedule
from dynsnap.ensemble._retraining import NEW_CLASS_WEIGHT, Retraining
from dynsnap.ensemble._rolling import Rolling
from dynsnap.errors import PlanError, did_you_mean

RULES = ("cost", "margin")  # as `dynsnap stabilize --rule`


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A way to make an ensemble: how its rounds train, which members it keeps, how they combine.

    Attributes:
        name: Its name in tables and file names.
        recipe: How its rounds are trained. Methods with equal recipes share their rounds.
        plan: Which members it keeps of them.
        combinations: How its members may be combined. They all agree where there is one member.
        rolling: How it starts from the members of the last generation; None for a fresh start.
        retraining: How a single network is retrained from the deployed one; None for a fresh start.
        margin: By how much another class must lead for a label of the last generation to change:
            see `dynsnap.stabilize`.
        cost_ratio: What a lost right answer costs, in missed gains: labels change by the Bayesian
            rule of `dynsnap.stabilizing`, which is chosen on the selection holdout. 0 for none.
        rule: What is chosen with the cost ratio: "cost" for the Bayesian rule, "margin" for the
            margin that costs least.
        gate: Rules that a new generation must pass on the selection holdout to be deployed, each a
            metric, "at_least" or "at_most", and a number; otherwise the generation before stays.
        every: How often there is a retrain: 4 for every fourth generation. In between the deployed
            model stays, and nothing is trained.
    """

    name: str
    recipe: Recipe
    plan: EnsemblePlan
    combinations: tuple[Combination, ...] = COMBINATIONS
    rolling: Rolling | None = None
    margin: float = 0.0
    retraining: Retraining | None = None
    cost_ratio: float = 0.0
    gate: tuple[tuple[str, str, float], ...] = ()
    rule: str = "cost"
    every: int = 1

    def __post_init__(self) -> None:
        # A name becomes part of a file name.
        if not self.name or not all(mark.isalnum() or mark in "-_.=" for mark in self.name):
            raise PlanError(
                "A method's name must be made of letters, digits, '-', '_', '.' and '=', "
                f"got {self.name!r}."
            )
        if not self.combinations:
            raise PlanError(f"{self.name}: name at least one of {', '.join(COMBINATIONS)}.")
        for how in self.combinations:
            if how not in COMBINATIONS:
                raise PlanError(
                    f"{self.name}: there is no combination {how!r}. "
                    f"{did_you_mean(how, COMBINATIONS)}"
                )
        if self.plan.snapshots != self.recipe.members:
            raise PlanError(
                f"{self.name}: the plan counts on {self.plan.snapshots} snapshots from each round, "
                f"but the recipe yields {self.recipe.members}. Make them equal."
            )
        _check.margin(self.margin)
        if isinstance(self.cost_ratio, bool) or self.cost_ratio != 0:
            _check.cost_ratio(self.cost_ratio)
        if self.margin and self.cost_ratio:
            raise PlanError(f"{self.name}: set `margin` or `cost_ratio`, not both.")
        if self.rule not in RULES or (self.rule != "cost" and not self.cost_ratio):
            raise PlanError(
                f"{self.name}: `rule` must be one of {', '.join(RULES)}, with a `cost_ratio`, got "
                f"{self.rule!r}."
            )
        check_count("every", self.every)
        for setting, asked in (("gate", bool(self.gate)), ("every", self.every > 1)):
            if asked and (self.margin or self.cost_ratio or self.uses_deployed):
                raise PlanError(
                    f"{self.name}: `{setting}` is for a method that trains from scratch, without "
                    "`margin` and `cost_ratio`: a model that is not deployed is no start for the "
                    "next."
                )
        if self.gate and self.every > 1:
            raise PlanError(f"{self.name}: set `gate` or `every`, not both.")
        if self.rolling is not None:
            self.rolling.carried(self.plan.size)  # raises where no member would be carried over
        if self.retraining is not None and (not self.plan.single or self.rolling is not None):
            raise PlanError(
                f"{self.name}: `retraining` is for a single network, and this is an ensemble. Use "
                "`rolling` for one."
            )

    @property
    def stabilized(self) -> bool:
        """Whether labels of a generation depend on those of the one before."""
        return bool(self.margin or self.cost_ratio or self.gate) or self.every > 1

    def retrains(self, generation: int) -> bool:
        """Whether a generation, counted from 1, is one for which a model is trained.

        Example:
            >>> monthly = replace(method("singlebase", epochs=200), every=4)
            >>> [monthly.retrains(generation) for generation in (1, 2, 4, 5)]
            [True, False, False, True]
        """
        return (generation - 1) % self.every == 0

    @property
    def uses_deployed(self) -> bool:
        """Whether a generation needs the one before it."""
        return self.rolling is not None or (
            self.retraining is not None and self.retraining.uses_deployed
        )

    @property
    def starts_from_members(self) -> bool:
        """Whether some rounds need a stored member, so that weights have to be kept."""
        if self.rolling is not None:
            return self.rolling.trains_on
        return self.uses_deployed

    def recipe_of(self, generation: int) -> Recipe:
        """How the rounds of a generation, counted from 1, are trained."""
        if self.retraining is None:
            return self.recipe
        return self.retraining.recipe(self.recipe, generation)

    def plan_of(self, generation: int) -> EnsemblePlan:
        """Which members it keeps of the rounds of a generation."""
        recipe = self.recipe_of(generation)
        if self.retraining is None or recipe == self.recipe:
            return self.plan
        return self.retraining.plan(self.plan, recipe)

    def new_members(self, generation: int) -> Size:
        """How many members rounds are trained for in a generation, counted from 1.

        Example:
            >>> [method("rolling", epochs=200).new_members(generation) for generation in (1, 2)]
            [20, 5]
        """
        if self.rolling is None or generation == 1 or self.plan.size == "auto":
            return self.plan.size
        return self.plan.size - self.rolling.carried(self.plan.size)


# The best epochs of one training are much alike: a few of them reduce noise, more add nothing.
_BEST_OF_BAGGED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSettings:
    """What a method is made with: see `method` for what each setting is."""

    epochs: int
    members: Size
    snapshots: int
    dropout: float
    beta: Beta
    rolling: Rolling
    tolerance: float | None
    most_rounds: int | None
    retraining: Mapping[str, Any] = field(default_factory=dict)

    @property
    def plan(self) -> EnsemblePlan:
        """Algorithm 1 with these settings."""
        return EnsemblePlan(
            size=self.members,
            snapshots=self.snapshots,
            beta=self.beta,
            tolerance=self.tolerance,
            most_rounds=self.most_rounds,
        )

    def of_one_round(self, name: str) -> int:
        """How many members a method has that takes all of them from one round."""
        if self.members == "auto":
            raise PlanError(
                f"{name} takes all members from one round, which leaves nothing to decide: give "
                f'it a number of members instead of "auto".'
            )
        return self.members


@functools.cache  # one object: the methods that share it share its rounds
def _step(epochs: int, snapshots: int) -> Recipe:
    return Recipe(schedule=Schedule("step"), epochs=epochs, snapshots=snapshots)


def _single_base(name: str, of: MethodSettings) -> Method:
    plan = EnsemblePlan(size=1, snapshots=of.snapshots, beta=0.0, top=1)
    return Method(name=name, recipe=_step(of.epochs, of.snapshots), plan=plan)


def _ext_bagging(name: str, of: MethodSettings) -> Method:
    plan = replace(of.plan, beta=0.0, top=1)
    return Method(name=name, recipe=_step(of.epochs, of.snapshots), plan=plan)


def _mc_dropout(name: str, of: MethodSettings) -> Method:
    passes = of.of_one_round(name)
    recipe = Recipe(
        schedule=Schedule("step"),
        epochs=of.epochs,
        snapshots=1,
        dropout=of.dropout,
        passes=passes,
    )
    return Method(name=name, recipe=recipe, plan=_whole_round(passes))


def _snapshot(name: str, of: MethodSettings) -> Method:
    snapshots = of.of_one_round(name)
    recipe = Recipe(
        schedule=Schedule("cyclic"),
        epochs=2 * of.epochs,
        snapshots=snapshots,
        selection="window",
    )
    return Method(name=name, recipe=recipe, plan=_whole_round(snapshots))


def _whole_round(members: int) -> EnsemblePlan:
    return EnsemblePlan(size=members, snapshots=members, beta=1.0)


def _dynsnap_cyc(name: str, of: MethodSettings) -> Method:
    recipe = Recipe(
        schedule=Schedule("cyclic"),
        epochs=of.epochs,
        snapshots=of.snapshots,
        selection="window",
    )
    return Method(name=name, recipe=recipe, plan=of.plan)


def _dynsnap_step(name: str, of: MethodSettings) -> Method:
    return Method(name=name, recipe=_step(of.epochs, of.snapshots), plan=of.plan)


def _rolling(name: str, of: MethodSettings) -> Method:
    return replace(_dynsnap_cyc(name, of), rolling=of.rolling)


def _rolling_bagging(name: str, of: MethodSettings) -> Method:
    plan = replace(of.plan, beta=1.0, top=min(_BEST_OF_BAGGED, of.snapshots))
    return Method(name=name, recipe=_step(of.epochs, of.snapshots), plan=plan, rolling=of.rolling)


def _retrained(**usual: Any) -> "MakeMethod":
    """A single network that is retrained in this way, unless settings say otherwise."""

    def make(name: str, of: MethodSettings) -> Method:
        asked = Retraining(**{**usual, **of.retraining})
        return replace(_single_base(name, of), retraining=asked)

    return make


def _with_recipe(**changed: Any) -> "MakeMethod":
    """A single network from scratch whose recipe differs in this."""

    def make(name: str, of: MethodSettings) -> Method:
        plain = _single_base(name, of)
        return replace(plain, recipe=replace(plain.recipe, **changed))

    return make


MakeMethod: TypeAlias = Callable[[str, MethodSettings], Method]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodKind:
    """A method before it is set up.

    Attributes:
        make: Makes it of its name and the settings.
        uses: Those of "beta", "dropout" and the settings of rolling ensembles ("carry_over",
            "max_accuracy_gap", "selection_holdout") or of retraining (the fields of `Retraining`)
            that have an effect; the estimator refuses the others.
        best_only: Whether it takes no more than the best snapshot of each round.
    """

    make: MakeMethod
    uses: frozenset[str] = frozenset()
    best_only: bool = False

    @property
    def rolling(self) -> bool:
        """Whether it carries members over."""
        return "carry_over" in self.uses

    @property
    def retrained(self) -> bool:
        """Whether it is a single network that is retrained from the deployed one."""
        return "distill_weight" in self.uses


_BETA = frozenset({"beta"})
_CARRIED = frozenset({"carry_over", "max_accuracy_gap", "selection_holdout"})
_PAPER = {
    "singlebase": MethodKind(make=_single_base, best_only=True),
    "extbagging": MethodKind(make=_ext_bagging, best_only=True),
    "mcdropout": MethodKind(make=_mc_dropout, uses=frozenset({"dropout"})),
    "snapshot": MethodKind(make=_snapshot),
    "dynsnap-cyc": MethodKind(make=_dynsnap_cyc, uses=_BETA),
    "dynsnap-step": MethodKind(make=_dynsnap_step, uses=_BETA),
}
_BEYOND = {
    "rolling": MethodKind(make=_rolling, uses=_CARRIED | _BETA),
    "rolling-bagging": MethodKind(make=_rolling_bagging, uses=_CARRIED),
}
_OF_RETRAINING = frozenset(one.name for one in fields(Retraining) if one.name != "cumulative")
_RETRAINED = _OF_RETRAINING | {"selection_holdout"}  # by which interpolation is decided
_SINGLE = {
    "single": MethodKind(
        make=_retrained(new_class_weight=NEW_CLASS_WEIGHT), uses=_OF_RETRAINING, best_only=True
    ),
    "single-warm": MethodKind(
        make=_retrained(distill_weight=0.0), uses=_OF_RETRAINING, best_only=True
    ),
    "single-distill": MethodKind(
        make=_retrained(warm_start=False), uses=_OF_RETRAINING, best_only=True
    ),
    "single-interpolated": MethodKind(
        make=_retrained(interpolate=True, new_class_weight=NEW_CLASS_WEIGHT),
        uses=_RETRAINED,
        best_only=True,
    ),
    "single-long": MethodKind(
        make=_retrained(warm_start=False, distill_weight=0.0, cumulative=True), best_only=True
    ),
    "single-ema": MethodKind(make=_with_recipe(average=0.998), best_only=True),
    "single-smooth": MethodKind(make=_with_recipe(smoothing=0.1), best_only=True),
    "single-codistill": MethodKind(make=_with_recipe(codistill=0.5), best_only=True),
}
METHODS = tuple(_PAPER)
ROLLING = tuple(name for name, kind in _BEYOND.items() if kind.rolling)
SINGLE = tuple(_SINGLE)
METHOD_KINDS: Registry[MethodKind] = Registry("method", {**_PAPER, **_BEYOND, **_SINGLE})


def register_method(
    name: str, make: MakeMethod, *, uses: Collection[str] = (), best_only: bool = False
) -> None:
    """Make a method known in this process: studies and the estimator then have it.

    Args:
        name: What it is called in studies, tables and file names.
        make: Makes it of its name and the settings of a study or an estimator.
        uses: The settings beside members, snapshots and epochs that have an effect on it.
        best_only: Whether it takes no more than the best snapshot of each round.
    """
    known = _BETA | _CARRIED | _RETRAINED | {"dropout"}
    if unknown := sorted(set(uses) - known):
        raise PlanError(
            f"The method {name!r} cannot use {unknown[0]!r}. {did_you_mean(unknown[0], known)}"
        )
    METHOD_KINDS.add(name, MethodKind(make=make, uses=frozenset(uses), best_only=best_only))


def method(
    name: str,
    *,
    epochs: int,
    members: Size = 20,
    snapshots: int = 10,
    dropout: float = 0.1,
    beta: Beta = "mean",
    rolling: Rolling | None = None,
    margin: float = 0.0,
    cost_ratio: float = 0.0,
    tolerance: float | None = None,
    most_rounds: int | None = None,
    retraining: Mapping[str, Any] | None = None,
    average: float | None = None,
    smoothing: float | None = None,
    codistill: float | None = None,
    rule: str = "cost",
    last_epoch: bool = False,
) -> Method:
    """One of the paper's six methods, a rolling one, or a single network, by its name.

    Args:
        name: One of `METHODS`; or of `ROLLING`, which carry members over: "rolling" is based on
            DynSnap-cyc, "rolling-bagging" on ExtBagging with the best three epochs of a training;
            or of `SINGLE`, one network: "single" starts from the deployed one and learns from its
            scores, the others leave a part of that out or are controls;
            or one of your own, see `register_method`.
        epochs: Epochs of one training, the paper's T: what a cost of one κ buys.
        members: Learners in the ensemble (passes, for mcdropout), the paper's m; or "auto", where
            they come from several rounds.
        snapshots: Learners saved by one round; the paper's N.
        dropout: Share of units that mcdropout drops.
        beta: Pruning of both DynSnaps, and of what is new in a rolling ensemble.
        rolling: How a rolling ensemble carries members over.
        margin: By how much another class must lead for a deployed label to change.
        cost_ratio: What a lost right answer costs in missed gains, for the Bayesian rule.
        tolerance: With "auto": what another round must be expected to gain; see `EnsemblePlan`.
        most_rounds: With "auto": the most rounds.
        retraining: Settings of `Retraining` in which a single network differs from its method.
        average: Decay of averaged weights, see `Recipe`; None for the method's own.
        smoothing: Label smoothing, see `Recipe`; None for the method's own.
        codistill: The weight of co-distillation, see `Recipe`; None for the method's own.
        rule: What `cost_ratio` chooses: the Bayesian rule ("cost"), or a margin ("margin").
        last_epoch: Whether single networks keep their last epoch, not the best by validation.

    Example:
        >>> method("singlebase", epochs=200).plan.single
        True
        >>> method("single", epochs=200, retraining={"epochs_share": 0.25}).recipe_of(2).epochs
        50
    """
    kind = METHOD_KINDS.find(name)
    _check_retraining(name, kind, retraining or {})
    settings = MethodSettings(
        epochs=epochs,
        members=members,
        snapshots=snapshots,
        dropout=dropout,
        beta=beta,
        rolling=rolling or Rolling(),
        tolerance=tolerance,
        most_rounds=most_rounds,
        retraining=retraining or {},
    )
    made = replace(kind.make(name, settings), margin=margin, cost_ratio=cost_ratio, rule=rule)
    if last_epoch and kind.best_only and made.plan.single:
        plan = replace(made.plan, snapshots=1, beta=1.0, top=None)
        recipe = replace(made.recipe, snapshots=1, selection="last")
        made = replace(made, plan=plan, recipe=recipe)
    recipe = made.recipe
    if average is not None:
        recipe = replace(recipe, average=average)
    if smoothing is not None:
        recipe = replace(recipe, smoothing=smoothing)
    if codistill is not None:
        recipe = replace(recipe, codistill=codistill)
    return replace(made, recipe=recipe)


def _check_retraining(name: str, kind: MethodKind, asked: Mapping[str, Any]) -> None:
    if not isinstance(asked, Mapping):
        raise PlanError(
            f"`retraining` must be a dict of settings by name, got {type(asked).__name__}."
        )
    known = sorted(kind.uses & _OF_RETRAINING)
    for setting in map(str, asked):
        if setting not in known:
            raise PlanError(
                f"`{setting}` would have no effect on {name}. "
                f"{did_you_mean(setting, known) if known else 'Leave it out.'}"
            )


def methods(
    *,
    epochs: int,
    members: int = 20,
    snapshots: int = 10,
    dropout: float = 0.1,
    beta: Beta = "mean",
) -> Mapping[str, Method]:
    """The paper's six methods by name: see `method` for the settings.

    singlebase, extbagging and dynsnap-step have equal recipes, so the same rounds serve them all.

    Example:
        >>> list(methods(epochs=200))
        ['singlebase', 'extbagging', 'mcdropout', 'snapshot', 'dynsnap-cyc', 'dynsnap-step']
    """
    return {
        name: method(
            name,
            epochs=epochs,
            members=members,
            snapshots=snapshots,
            dropout=dropout,
            beta=beta,
        )
        for name in METHODS
    }


def cost(recipe: Recipe, *, rounds: int, epochs: int) -> float:
    """The cost of so many rounds in κ: trainings from scratch of `epochs` epochs, the paper's T.

    Example:
        >>> cost(method("snapshot", epochs=200).recipe, rounds=1, epochs=200)
        2.0
        >>> cost(method("single-codistill", epochs=200).recipe, rounds=1, epochs=200)
        2.0
    """
    check_count("epochs", epochs)
    return rounds * recipe.networks * recipe.epochs / epochs
