"""What a study will train, before anything is trained."""

from collections.abc import Iterable
from dataclasses import dataclass

from dynsnap.ensemble import Method, RoundSpec, cost
from dynsnap.study._ensemble import Ensemble
from dynsnap.study._plan import StudyPlan
from dynsnap.study._prefixes import trained_as
from dynsnap.study._views import ensembles_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One method of a study, or one point of its sweeps.

    Attributes:
        name: The method's, or the sweep's and the point's.
        rounds: Rounds that one generation is certain to need.
        cost: What they cost in κ.
        open_ended: Whether it takes the rounds themselves to know if more are needed.
    """

    name: str
    method: Method
    rounds: int
    cost: float
    open_ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A study as it will be run.

    Attributes:
        methods: Every method, and every point of a sweep.
        rounds: The rounds that are certain to be trained, each once however many share it.
        cost: What they cost in κ, all generations and replicates together.
        epochs: Their epochs.
        spared: Rounds that need no training, as they are the first windows of longer ones.
        spared_cost: What they would have cost.
    """

    methods: tuple[Planned, ...]
    rounds: tuple[RoundSpec, ...]
    cost: float
    epochs: int
    spared: int = 0
    spared_cost: float = 0.0


def outlook(plan: StudyPlan, *, generations: int = 3) -> Outlook:
    """What a study of so many generations is certain to train.

    Example:
        >>> from dynsnap.ensemble import methods
        >>> from dynsnap.study import DataPlan
        >>> six = tuple(methods(epochs=200).values())
        >>> plan = StudyPlan(name="paper", data=DataPlan(), model={}, training={}, epochs=200,
        ...                  methods=six, baseline=six[0])
        >>> [(one.name, one.cost) for one in outlook(plan).methods][-2:]
        [('dynsnap-cyc', 2.0), ('dynsnap-step', 2.0)]
        >>> outlook(plan).cost  # 20 + 1 + 2 + 2 of each generation, and the twin
        76.0
    """
    specs: dict[RoundSpec, None] = {}
    for ensemble in ensembles_of(plan, generations):
        specs.update(dict.fromkeys(ensemble.certain(seed=plan.seed)))
    trained = dict.fromkeys(map(trained_as(plan), specs))
    needed, spent = (_cost(rounds, plan.epochs) for rounds in (specs, trained))
    named = [(method.name, method) for method in plan.methods]
    named += [(method.name, method) for sweep in plan.sweeps for _, method in sweep.points]
    return Outlook(
        methods=tuple(_planned(name, method, plan.epochs) for name, method in named),
        rounds=tuple(trained),
        cost=spent,
        epochs=sum(spec.recipe.epochs for spec in trained),
        spared=len(specs) - len(trained),
        spared_cost=needed - spent,
    )


def _cost(specs: Iterable[RoundSpec], epochs: int) -> float:
    return sum(cost(spec.recipe, rounds=1, epochs=epochs) for spec in specs)


def _planned(name: str, method: Method, epochs: int) -> Planned:
    ensemble = Ensemble(method=method, generation=1)
    rounds = ensemble.wanted([])
    return Planned(
        name=name,
        method=method,
        rounds=rounds,
        cost=cost(method.recipe, rounds=rounds, epochs=epochs),
        open_ended=ensemble.open_ended,
    )
