"""From the words of a study file to models and trainers."""

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dynsnap.data import Stream
from dynsnap.ensemble import Monitor, Trainer, round_key
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.store import RunFolder
from dynsnap.study import StudyPlan, TomlTable

_BOOSTED = {"xgboost": "xgboost.XGBClassifier", "lightgbm": "lightgbm.LGBMClassifier"}
# The modules of scikit-learn that a model may be named in. Nothing else is imported by its name,
# but for a `factory` of the user's own, by the commands that train.
_SCIKIT = tuple(
    f"sklearn.{module}"
    for module in (
        "calibration",
        "discriminant_analysis",
        "dummy",
        "ensemble",
        "gaussian_process",
        "linear_model",
        "multiclass",
        "naive_bayes",
        "neighbors",
        "neural_network",
        "semi_supervised",
        "svm",
        "tree",
    )
)


def make_trainer(plan: StudyPlan, stream: Stream, *, store: RunFolder, monitor: Monitor) -> Trainer:
    """The trainer that a study file asks for, with its checkpoints in the run folder."""
    settings = _settings(plan)
    trainer: Trainer
    if is_boosted(plan.model):
        from dynsnap.boost import BoostTrainer

        trainer = BoostTrainer(
            stream,
            **settings,
            monitor=monitor,
            checkpoints=store.checkpoints(lambda spec: round_key(trainer, spec)),
            keep_weights=store.keeps_weights,
        )
    else:
        trainer = needed("dynsnap.train", "torch").TorchTrainer(
            stream,
            **settings,
            monitor=monitor,
            checkpoints=store.checkpoints(lambda spec: round_key(trainer, spec)),
            keep_weights=store.keeps_weights,
            parents=store.learners() if store.keeps_weights else None,
        )
    store.device = getattr(trainer, "hardware", "CPU")
    return trainer


def check_model(plan: StudyPlan) -> Iterator[str]:
    """Refuse a model and settings that do not exist; say what is not installed.

    What a setting may be is for the trainer to say, which knows the data. A factory of the user's
    own is not imported: who looks at a plan has not decided to run it.
    """
    try:
        _settings(plan, importing=False)
    except _NotInstalledError as error:
        yield f"The model cannot be made yet: {error}"
    if (own := plan.model.get("factory")) is not None:
        yield f"The model is built by your code, {own!r}, which only `dynsnap run` imports."


def _settings(plan: StudyPlan, *, importing: bool = True) -> dict[str, Any]:
    """What a trainer is made with, from [model] and [training].

    Args:
        plan: The study.
        importing: Whether a factory of the user's own is imported, and is what `model` is made of.
    """
    section = TomlTable(plan.training, "[training]", taken=["epochs"])
    if not is_boosted(plan.model):
        train = needed("dynsnap.train", "torch")
        model = module_factory(plan.model, importing=importing)
        return {"model": model, **_torch_settings(section, train)}
    every = section.take("checkpoint_every", float, 60.0)
    section.finish()
    if plan.starting_from_members:
        raise PlanError(
            f"{plan.starting_from_members[0].name} trains on from stored members, which networks "
            "can; boosted trees and scikit-learn's classifiers always start afresh. Leave `onward` "
            "and `refresh` out."
        )
    return {"model": _classifier(plan.model), "checkpoint_every": every}


def module_factory(
    model: Mapping[str, Any], *, importing: bool = True
) -> Callable[..., Any] | None:
    """The function that builds the module which a study file names.

    None for a factory of the user's own, unless `importing`.
    """
    settings = dict(model)
    own, name = settings.pop("factory", None), settings.pop("name", None)
    if (own is None) == (name is None):
        raise PlanError("[model] must say the `name` of a model, or a `factory` of your own.")
    if own is not None:
        _reference(own)
        return own_factory(own, settings) if importing else None
    return built_in(name, settings)


def built_in(name: Any, settings: Mapping[str, Any]) -> Callable[..., Any]:
    """The factory of a module that comes with dynsnap."""
    if not isinstance(name, str):
        raise PlanError(f"[model]: `name` must be text, got {name!r}.")
    factory: Callable[..., Any] = needed("dynsnap.train.models", "torch").by_name(name, **settings)
    return factory


def own_factory(reference: Any, settings: Mapping[str, Any]) -> Callable[..., Any]:
    """A function of the user's own, `package.module:name`, found as Python would find it.

    This imports, and so runs, what the reference names: it must come from the user.
    """
    module, name = _reference(reference)
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` has it, and a console script has not
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise PlanError(f"The model factory {reference!r} cannot be imported: {error}.") from error
    if not callable(found):
        raise PlanError(f"The model factory {reference!r} is not a function.")
    models = needed("dynsnap.train.models", "torch")
    factory: Callable[..., Any] = models.with_settings(found, settings, name=reference)
    return factory


def _reference(text: Any) -> tuple[str, str]:
    module, _, name = str(text).partition(":")
    if not (isinstance(text, str) and module and name):
        raise PlanError(f"A model factory is named as MODULE:NAME, got {text!r}.")
    return module, name


def _torch_settings(section: TomlTable, train: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kinds: dict[str, type] = {
        "batch_size": int,
        "learning_rate": float,
        "prepare": str,
        "device": str,
        "precision": str,
        "checkpoint_every": float,
    }
    for name, kind in kinds.items():
        value = section.take(name, kind, None)
        if value is not None:
            found[name] = value
    adam = section.take("adam", dict, {})
    augment = section.take_any("augment", False)
    section.finish()
    found["optimizer"] = _built(train.Adam, adam, "[training.adam]")
    if augment is not False:
        settings = {} if augment is True else augment
        if not isinstance(settings, dict):
            raise PlanError(
                f"[training]: `augment` must be true, or a table of its settings, got {augment!r}."
            )
        found["augment"] = _built(train.ShiftsAndFlips, settings, "[training.augment]")
    return found


def _built(kind: Any, settings: dict[str, Any], where: str) -> Any:
    """A dataclass of settings from a table of the file."""
    section = TomlTable(settings, where)
    given = {
        field.name: section.take_any(field.name, field.default)
        for field in dataclasses.fields(kind)
    }
    section.finish()
    try:
        return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in given.items()})
    except TypeError as error:
        raise PlanError(f"{where} cannot be used as it stands: {error}.") from error


def is_boosted(model: Mapping[str, Any]) -> bool:
    """Whether a model is a classifier of XGBoost, LightGBM or scikit-learn, and no module."""
    name = model.get("name")
    if "backend" in model:
        return str(model["backend"]) == "boost"
    return isinstance(name, str) and (name in _BOOSTED or name.startswith("sklearn."))


def _classifier(model: Mapping[str, Any]) -> Any:
    settings = dict(model)
    name = settings.pop("name")
    path, _, attribute = _BOOSTED.get(name, name).rpartition(".")
    if name not in _BOOSTED and path not in _SCIKIT:
        raise PlanError(
            f"[model]: {name!r} is not in a module of scikit-learn that has classifiers. "
            f"{did_you_mean(path, _SCIKIT)}"
        )
    kind = getattr(needed(path, "boost"), attribute, None)
    if not isinstance(kind, type) or not hasattr(kind, "predict_proba"):
        raise PlanError(f"[model]: {name!r} is not a classifier that gives probabilities.")
    known = _parameters(kind)
    for setting in settings:
        # XGBoost and LightGBM take anything, and train without what they do not know.
        if setting not in known:
            raise PlanError(
                f"[model]: {name} has no setting `{setting}`. {did_you_mean(setting, known)}"
            )
    try:
        return kind(**settings)
    except TypeError as error:
        raise PlanError(f"[model]: {name} cannot be set up: {error}.") from error


def _parameters(kind: type) -> set[str]:
    """The keywords that a classifier and its base classes name."""
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {
        name
        for parent in kind.__mro__
        if parent is not object
        for name, parameter in inspect.signature(parent).parameters.items()
        if parameter.kind in named
    }


class _NotInstalledError(PlanError):
    """A library that is not there."""


def needed(module: str, extra: str) -> Any:
    """A module of dynsnap, or of a library that is an extra of it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _NotInstalledError(
            f"This needs {error.name or module}, which is not installed. "
            f"Install it with: pip install 'dynsnap[{extra}]'"
        ) from error
