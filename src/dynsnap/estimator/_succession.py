"""What an estimator hands on to the next that is made of it: settings, kind of inputs, data."""

from typing import Any

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dynsnap._types import AnyArray
from dynsnap.errors import InputError
from dynsnap.estimator import _inputs
from dynsnap.estimator._configured import ConfiguredEnsemble, Estimator

# What fitting has noted about inputs, and loading about settings.
_NOTED = ("n_features_in_", "feature_names_in_", "_shape", "_allow_nan", "_lost")


def successor(estimator: Estimator) -> Estimator:
    """An estimator for the same inputs with the same settings, yet to be fitted."""
    fresh: Estimator = clone(estimator)
    for name in _NOTED:
        if hasattr(estimator, name):
            setattr(fresh, name, getattr(estimator, name))
    return fresh


def check_can_train(estimator: ConfiguredEnsemble, what: str) -> None:
    """Raise unless an estimator is fitted, and has all that it was trained with."""
    check_is_fitted(estimator)
    if estimator._lost:
        names = ", ".join(f"`{name}`" for name in estimator._lost)
        raise InputError(
            f"To {what} a loaded estimator, pass {names} to `load` again: a file cannot hold "
            "what it was trained with."
        )


def data_so_far(
    estimator: ConfiguredEnsemble, given: tuple[Any, Any] | None, how: str
) -> tuple[AnyArray, AnyArray]:
    """All data so far: what was given, or what an estimator holds."""
    if given is not None:
        return _inputs.checked(estimator, *given)
    if estimator._data is None:
        raise InputError(
            "This estimator does not hold the data that it was trained on: pass all of it as "
            f"`{how}`."
        )
    return estimator._data
