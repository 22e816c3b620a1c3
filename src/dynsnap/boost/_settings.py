"""What a model is set to is obeyed, or refused by name."""

import functools
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dynsnap.data import Frame, columns_in_words
from dynsnap.errors import PlanError, did_you_mean


def refuse_unless(name: str, value: object, known: Iterable[object], reason: str) -> None:
    """Raise PlanError unless a parameter of the model is left out or one of those that work."""
    if value is not None and value not in known:
        raise PlanError(
            f"The model's `{name}` must be one of {', '.join(map(str, known))}, got {value!r}: "
            f"{reason}"
        )


def refuse_unused(model: Any, names: Iterable[str], reason: str) -> None:
    """Raise PlanError if one of the parameters that have no effect here is not at its default."""
    given, usual = model.get_params(deep=False), defaults(type(model))
    for name in names:
        value = given.get(name)
        if value is not None and value != usual.get(name):
            raise PlanError(
                f"The model's `{name}={value!r}` would have no effect: {reason} Leave it out."
            )


def refuse_other_length(model: Any, names: Iterable[str], epochs: int) -> None:
    """Raise PlanError if a model is set to another number of iterations than a round has."""
    given, usual = model.get_params(deep=False), defaults(type(model))
    for name in names:
        value = given.get(name)
        if value not in (None, usual.get(name), epochs):
            raise PlanError(
                f"The model's `{name}={value!r}` would have no effect: a round has {epochs} "
                "iterations, which follow from `epochs`. Set `epochs`, and leave it out."
            )


def refuse_warm_start(model: Any) -> None:
    """Raise PlanError if a classifier, or one in it, is set to go on from an earlier fit."""
    for name, value in model.get_params(deep=True).items():
        if name.rpartition("__")[2] == "warm_start" and value:
            raise PlanError(
                f"The model's `{name}={value!r}` would have no effect: every round starts afresh. "
                "Leave it out."
            )


def refuse_unknown_parameters(model: Any, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise PlanError for a parameter that the library does not know, and would pass over."""
    names = {*known, *defaults(type(model))}
    for name in given:
        if name not in names:
            raise PlanError(
                f"{type(model).__name__} has no parameter `{name}`. {did_you_mean(name, names)}"
            )


def check_objective(model: Any, classes: Sequence[str]) -> None:
    """Raise PlanError if a model is set to an objective of several classes where there are two."""
    objective = model.get_params(deep=False).get("objective")
    if len(classes) == 2 and isinstance(objective, str) and objective.startswith("multi"):
        raise PlanError(
            f"The model's `objective={objective!r}` is for three classes or more, and there are "
            f"two: {', '.join(classes)}. Leave it out."
        )


def defaults(kind: type) -> Mapping[str, Any]:
    """The parameters that a classifier and its base classes name, with their defaults.

    Example:
        >>> from sklearn.naive_bayes import GaussianNB
        >>> defaults(GaussianNB)["var_smoothing"]
        1e-09
    """
    return _defaults(kind.__mro__)


@functools.cache
def _defaults(parents: tuple[type, ...]) -> Mapping[str, Any]:
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {
        name: parameter.default
        for parent in reversed(parents)
        if parent is not object
        for name, parameter in inspect.signature(parent).parameters.items()
        if parameter.kind in named
    }


# --- categorical columns --------------------------------------------------------------------

_CATEGORICAL = (
    "categorical_features",  # of scikit-learn's histogram boosting
    "categorical_feature",  # of LightGBM, with its other names
    "cat_feature",
    "categorical_column",
    "cat_column",
)


def categorical_columns(model: Any, names: Sequence[str]) -> tuple[int, ...] | None:
    """The columns that a model's own parameters call categories, by position.

    Args:
        model: The classifier.
        names: What the columns are called.

    Returns:
        None where the parameters leave it to the types of the columns.
    """
    params = model.get_params(deep=False)
    key = next((name for name in _CATEGORICAL if params.get(name) is not None), None)
    given = params.get(key)
    if key is None or given in ("auto", "from_dtype", ""):
        return None
    if isinstance(given, str):  # as LightGBM's command line has them
        given = given.removeprefix("name:").split(",")
        given = [int(one) if one.isdecimal() else one for one in given]
    found = np.asarray(given)
    if found.dtype == bool and found.shape == (len(names),):
        return tuple(np.flatnonzero(found).tolist())
    places = []
    for one in found.ravel().tolist():
        if isinstance(one, str) and one in names:
            places.append(list(names).index(one))
        elif isinstance(one, int) and not isinstance(one, bool) and 0 <= one < len(names):
            places.append(one)
        else:
            hint = did_you_mean(str(one), names)
            raise PlanError(
                f"The model's `{key}` names {one!r}, which is none of the {len(names)} columns. "
                f"{hint}"
            )
    return tuple(sorted(set(places)))


def looks_at_names(model: Any) -> bool:
    """Whether a model chooses columns by their names, or turns them into numbers itself."""
    params = model.get_params(deep=True)
    parts = [model, *(value for value in params.values() if hasattr(value, "get_params"))]
    if any(type(part).__name__ == "ColumnTransformer" for part in parts):
        return True
    given = [params.get(name) for name in _CATEGORICAL]
    return any(
        isinstance(one, str) and one.startswith("name:")
        if isinstance(one, str)
        else any(isinstance(name, str) for name in one)
        for one in given
        if isinstance(one, str | list | tuple | np.ndarray)
    )


def encodes(model: Any) -> bool:
    """Whether a model has a step that can turn texts and categories into numbers."""
    params = model.get_params(deep=True).values()
    return any(hasattr(part, "transform") for part in params if hasattr(part, "get_params"))


def check_categories(model: Any, frame: Frame, *, every: bool) -> None:
    """Raise PlanError where a model's parameters and the types of columns contradict each other.

    Args:
        model: The classifier.
        frame: The inputs.
        every: Whether all categories must be named, if any is.
    """
    names = list(frame.columns)
    given = categorical_columns(model, names)
    if given is None:
        return
    found = frame.categorical
    if plain := [names[place] for place in given if place not in found]:
        raise PlanError(
            f"The model names {columns_in_words(plain)} as categorical, but the data has numbers "
            "there. In a study, name them in [data] `categorical`."
        )
    if every and (other := [names[place] for place in found if place not in given]):
        raise PlanError(
            f"The model names its categorical columns, and {columns_in_words(other)} with "
            "categories is not among them. Name it, too, or leave it out of the data."
        )


# --- weights of classes ---------------------------------------------------------------------


def has_class_weights(model: Any) -> bool:
    """Whether a model's parameters name classes."""
    return bool(_class_weights(model))


def check_class_weights(model: Any, classes: Sequence[str]) -> None:
    """Raise PlanError unless the weights of classes, if a model has any, are of these classes.

    As in scikit-learn, weights may be for some of the classes, or for more than there are, but
    not both: that is a name which is written otherwise.
    """
    for key, value in _labels(model):
        raise PlanError(
            f"The model's `{key}={value!r}` names a class, and classes are numbered anew in each "
            "generation. Leave it out."
        )
    outermost = _outermost(model)
    for key, weights in _class_weights(model).items():
        if key not in outermost:
            raise PlanError(
                f"The model's `{key}` names classes, which an inner classifier knows by other "
                'numbers. Use `class_weight="balanced"` or None there.'
            )
        found = _by_name(weights, classes)
        strange = [name for name in weights if name not in found.values()]
        if strange and len(found) < len(classes):
            lacking = next(name for name in classes if name not in found)
            raise PlanError(
                f"The model's `{key}` names {strange[0]!r}, which is no class, and has no weight "
                f"for {lacking!r}. {did_you_mean(str(strange[0]), classes)}"
            )


def refuse_twofold_class_weight(model: Any) -> None:
    """Raise PlanError if a model has weights of classes beside those of its trainer."""
    for key in ("class_weight", "scale_pos_weight", "is_unbalance"):
        for name, value in model.get_params(deep=True).items():
            default = defaults(type(model)).get(name)
            if name.rpartition("__")[2] == key and value is not None and value != default:
                raise PlanError(
                    f"The model's `{name}={value!r}` and `class_weight` would both count. Use one "
                    "of them."
                )


def numbered_class_weights(model: Any, classes: Sequence[str]) -> dict[str, dict[int, float]]:
    """The parameters that name classes, with the places of these classes instead of names."""
    return {
        key: {
            classes.index(name): weights[given]
            for name, given in _by_name(weights, classes).items()
        }
        for key, weights in _class_weights(model).items()
    }


def _class_weights(model: Any) -> dict[str, Mapping[Any, float]]:
    return {
        key: value
        for key, value in model.get_params(deep=True).items()
        if key.rpartition("__")[2] == "class_weight" and isinstance(value, Mapping)
    }


def _labels(model: Any) -> Iterable[tuple[str, Any]]:
    for key, value in model.get_params(deep=True).items():
        if key.rpartition("__")[2] in ("pos_label", "constant") and value is not None:
            yield key, value


def _outermost(model: Any) -> set[str]:
    """The parameters whose owner is given the labels as they are."""
    steps = getattr(model, "steps", None)  # a pipeline's
    last = {f"{steps[-1][0]}__{key}" for key in _outermost(steps[-1][1])} if steps else set()
    return {"class_weight", *last}


def _by_name(weights: Mapping[Any, float], classes: Sequence[str]) -> dict[str, Any]:
    """Which key of the weights stands for each class that has one; a 1 stands for 1.0."""
    texts = {str(key): key for key in weights}
    numbers = {float(key): key for key in weights if isinstance(key, int | float)}
    found = {}
    for name in classes:
        if name in texts:
            found[name] = texts[name]
        elif (number := _number(name)) in numbers:
            found[name] = numbers[number]
    return found


def _number(name: str) -> float | None:
    try:
        return float(name)
    except ValueError:
        return None
