"""All members that a run holds, more than its ensembles are made of."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

from dynsnap.ensemble import Members, Method, Round, members
from dynsnap.errors import InputError, PlanError
from dynsnap.study._ensembles import Ensemble, generations_of
from dynsnap.study._plan import StudyPlan


def stored_members(
    plan: StudyPlan, method: Method, rounds_of: Callable[[Ensemble], Sequence[Round]]
) -> list[list[Members]]:
    """All members that a run holds of a method, by replicate and generation.

    Also those of rounds that its ensembles do not need: other sizes, and rounds trained ahead.

    Args:
        plan: The study.
        method: One of its methods.
        rounds_of: Gives the rounds that are stored for an ensemble, in the order of their index.
    """
    if method.rolling is not None:
        raise PlanError(
            f"{method.name} carries members over, so that its members are no draws from one "
            "generation: ask about a method that starts afresh."
        )
    if method.margin:
        raise PlanError(
            f"What {method.name} answers rests on what was answered before, and not on its members "
            "alone: ask about the same method without a `margin`."
        )
    everyone = replace(method.plan, size="auto", tolerance=None, most_rounds=None)
    found: list[list[Members]] = []
    for number in range(plan.replicates_of(method)):
        generations: list[Members] = []
        for generation in itertools.count(1):
            (ensemble,) = generations_of(plan, method, generation, number)[-1:]
            if not (rounds := rounds_of(ensemble)):
                break
            generations.append(members(everyone, rounds))
        found.append(generations)
    most = max(map(len, found))
    if not most:
        raise InputError(f"There are no rounds of {method.name}: run the study first.")
    # A run that is not finished lacks generations of its last replicates.
    return [generations for generations in found if len(generations) == most]
