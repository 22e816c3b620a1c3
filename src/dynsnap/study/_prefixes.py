"""Which rounds of a study are the first windows of longer ones, and so need no training."""

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from dynsnap.ensemble import RoundSpec, longest
from dynsnap.study._plan import StudyPlan
from dynsnap.study._views import ensembles_of

TrainedAs: TypeAlias = Callable[[RoundSpec], RoundSpec]


def trained_as(plan: StudyPlan) -> TrainedAs:
    """Says of each round of a study which one is trained for it: itself, or a longer one.

    Longer ones are those that the study is certain to need. What follows from the plan alone is the
    same whatever was trained before, by whom, and for which of the study's methods.

    Example:
        >>> from dataclasses import replace
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
            for spec in ensemble.certain(seed=plan.seed)
            if spec.generation == generation
        )

    return cache(lambda spec: longest(spec, certain(spec.generation)))
