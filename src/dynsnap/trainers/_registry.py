"""Backends by name: those of dynsnap, those of the caller, and those of installed packages."""

import importlib.metadata
from collections.abc import Mapping
from typing import Any

from dynsnap._registry import Registry
from dynsnap.errors import PlanError, did_you_mean, one_line
from dynsnap.trainers._backend import Backend
from dynsnap.trainers._boost import BoostBackend
from dynsnap.trainers._torch import TorchBackend

GROUP = "dynsnap.trainers"  # of entry points

# In the order in which they are asked for a model that comes without the name of a trainer.
_OWN = (BoostBackend(), TorchBackend())
# Those of installed packages join when they are named for the first time.
BACKENDS: Registry[Backend] = Registry("trainer", {each.name: each for each in _OWN})


def register(backend: Backend) -> None:
    """Make a backend known under its name, for this process.

    A package that is installed does so by an entry point in the group `dynsnap.trainers`.
    """
    _check(backend, where=type(backend).__name__)
    BACKENDS.add(backend.name, backend)


def names() -> tuple[str, ...]:
    """Every trainer that can be named. Nothing is imported to find out.

    Example:
        >>> names()[:2]
        ('boost', 'torch')
    """
    installed = sorted(importlib.metadata.entry_points(group=GROUP).names)
    return tuple(dict.fromkeys([*BACKENDS, *installed]))


def named(name: str) -> Backend:
    """The backend of this name, imported where an installed package provides it.

    This imports code: the name must come from the caller, never from a file of a stranger.

    Example:
        >>> named("boost").name
        'boost'
    """
    if not isinstance(name, str):
        raise PlanError(f"`trainer` must be a name, such as {names()[0]!r}, got {name!r}.")
    if name not in BACKENDS:
        BACKENDS.add(name, _loaded(name))
    return BACKENDS[name]


def saved_by(name: str, *, asked: str | None, option: str) -> Backend:
    """The backend of a saved ensemble: one of dynsnap's own, or the one that the caller names.

    Args:
        name: What the file states; it chooses between dynsnap's own backends and nothing else.
        asked: What the caller named.
        option: How the caller names it, as in "--trainer NAME".
    """
    if asked is not None and asked != name:
        raise PlanError(
            f"The ensemble was saved by the trainer {name!r}, but {asked!r} was named. "
            f"Leave it out, or name {name!r}."
        )
    if name in BACKENDS.own:
        return BACKENDS[name]
    if asked is None:
        raise PlanError(
            f"The ensemble was saved by the trainer {name!r}, which is not part of dynsnap, and a "
            f"file never chooses what is imported. If you trust the installed package that "
            f"provides it, name it: {option.replace('NAME', name)}."
        )
    return named(asked)


def for_model(model: Any, name: str | None = None) -> Backend:
    """The backend of an estimator's model: the one that is named, or the first that takes it."""
    if name is not None:
        return named(name)
    for backend in _OWN:
        if backend.takes(model):
            return backend
    raise PlanError(
        "`model` must be a function that builds a torch module, or a scikit-learn, XGBoost or "
        f"LightGBM classifier that is set up but not fitted, got {type(model).__name__}. For a "
        "model of another kind name its `trainer`."
    )


def trainer_name(model: Mapping[str, Any]) -> str:
    """The trainer that the [model] of a study or of a saved ensemble is for; nothing is imported.

    Example:
        >>> trainer_name({"name": "lightgbm"}), trainer_name({"name": "mlp"})
        ('boost', 'torch')
    """
    given = model.get("trainer", model.get("backend"))
    if given is not None:
        if not isinstance(given, str) or not given:
            raise PlanError(f"[model]: `trainer` must be the name of one, got {given!r}.")
        return given
    return next(backend.name for backend in _OWN if backend.describes(model))


def _loaded(name: str) -> Backend:
    points = importlib.metadata.entry_points(group=GROUP, name=name)
    if not points:
        raise PlanError(
            f"There is no trainer {name!r}. {did_you_mean(name, names())} Where a package provides "
            "it, install that package."
        )
    if len({point.value for point in points}) > 1:
        listed = ", ".join(sorted(point.value for point in points))
        raise PlanError(
            f"Several installed packages provide the trainer {name!r}: {listed}. Uninstall all "
            "but one."
        )
    (point, *_) = points
    try:
        found = point.load()
    except (ImportError, AttributeError) as error:
        raise PlanError(
            f"The trainer {name!r} ({point.value}) cannot be imported: {one_line(str(error))}."
        ) from error
    found = found() if isinstance(found, type) else found
    _check(found, where=point.value)
    if found.name != name:
        raise PlanError(
            f"The entry point {name!r} leads to the trainer {found.name!r} ({point.value}). The "
            "two names must be equal."
        )
    return found  # type: ignore[no-any-return]  # just checked


def _check(backend: Any, *, where: str) -> None:
    if not isinstance(backend, Backend):
        raise PlanError(
            f"{where} must be a `dynsnap.trainers.Backend`, or a class of one, got "
            f"{type(backend).__name__}."
        )
    if not isinstance(getattr(backend, "name", None), str):
        raise PlanError(f"{where} must have a `name`, by which callers ask for it.")
