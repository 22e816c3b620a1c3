"""Settings of an estimator that would have no effect are refused."""

from collections.abc import Mapping
from typing import Any

from dynsnap.ensemble import METHOD_KINDS
from dynsnap.errors import PlanError
from dynsnap.trainers import SETTINGS, Backend

# Settings that only some methods have a use for.
OF_METHODS = ("dropout", "carry_over", "max_accuracy_gap", "selection_holdout", "beta")


def check_settings(backend: Backend, settings: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Raise PlanError for a setting away from its usual value that would have no effect.

    `members`, `snapshots` and `epochs` are read by every method in its own way.
    """
    refuse_unused(backend, settings, usual, type(settings["model"]).__name__)
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
            raise PlanError(
                f"`{name}={given[name]!r}` is for torch modules, and would have no effect on "
                f"{model}, which has parameters of its own. Leave it out."
            )


def _differs(value: Any, usual: Any) -> bool:
    if value is usual:
        return False
    try:
        return bool(value != usual)
    except (TypeError, ValueError):  # of what cannot be compared, as an array cannot
        return True
