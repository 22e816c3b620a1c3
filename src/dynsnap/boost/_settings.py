"""What a model is set to is obeyed, or refused by name."""

import functools
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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


def refuse_strangers(model: Any, given: Iterable[str], known: Iterable[str]) -> None:
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
