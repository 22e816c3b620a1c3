"""What the settings of an estimator come to: a method and a seed, or a refusal."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from dynsnap.ensemble import METHOD_KINDS, Method, Rolling, method
from dynsnap.errors import PlanError
from dynsnap.estimator._configured import ConfiguredEnsemble
from dynsnap.trainers import BACKENDS, SETTINGS, Backend

# Settings that only some methods have a use for.
OF_METHODS = ("dropout", "carry_over", "max_accuracy_gap", "selection_holdout", "beta")
# Settings that more backends have than that of torch.
OF_EACH = ("class_weight", "selection_metric")


def check_settings(backend: Backend, settings: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Raise PlanError for a setting away from its usual value that would have no effect.

    `members`, `snapshots` and `epochs` are read by every method in its own way.
    """
    model = type(settings["model"]).__name__
    if backend.name not in BACKENDS.own:
        model = f"a model of the trainer {backend.name!r}"
    refuse_unused(backend, settings, usual, model)
    for name in OF_METHODS:
        methods = [method for method, kind in METHOD_KINDS.items() if name in kind.uses]
        if settings["method"] not in methods and _differs(settings[name], usual[name]):
            raise PlanError(
                f"`{name}={settings[name]!r}` is for {', '.join(methods)}, and would have no "
                f"effect on {settings['method']}. Leave it out."
            )


def refuse_unused(
    backend: Backend, given: Mapping[str, Any], usual: Mapping[str, Any], model: str
) -> None:
    """Raise PlanError if a setting of training is given that a backend has no use for."""
    for name in SETTINGS:
        unused = name not in backend.settings
        if unused and name in given and _differs(given[name], usual[name]):
            whose = "would" if name in OF_EACH else "is for torch modules, and would"
            raise PlanError(
                f"`{name}={given[name]!r}` {whose} have no effect on {model}, which has "
                "parameters of its own. Leave it out."
            )


def _differs(value: Any, usual: Any) -> bool:
    if value is usual:
        return False
    try:
        return bool(value != usual)
    except (TypeError, ValueError):  # of what cannot be compared, as an array cannot
        return True


def method_of(estimator: ConfiguredEnsemble) -> Method:
    """The method that the settings describe."""
    # One snapshot is all that these take of a round, and all that most classifiers have.
    one = METHOD_KINDS.find(estimator.method).best_only
    plan = method(
        estimator.method,
        epochs=estimator._size("epochs"),
        members=estimator._size("members"),
        snapshots=1 if one else estimator._size("snapshots"),
        dropout=estimator.dropout,
        beta=estimator.beta,  # type: ignore[arg-type]  # checked there
        rolling=Rolling(
            carry_over=estimator.carry_over, max_accuracy_gap=estimator.max_accuracy_gap
        ),
        tolerance=estimator.tolerance,
        most_rounds=estimator.most_rounds,
        retraining=estimator.retraining,
        average=estimator.average,
        smoothing=estimator.smoothing,
    )
    return dataclasses.replace(plan, combinations=(estimator.combination,))


def is_fixed(random_state: Any) -> bool:
    """Whether a `random_state` always gives the same seed."""
    return isinstance(random_state, int | np.integer) and bool(random_state >= 0)


def seed_of(random_state: Any) -> int:
    """The seed that a `random_state` gives now."""
    if is_fixed(random_state):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
