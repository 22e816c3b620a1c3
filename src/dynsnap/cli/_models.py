"""From the words of a study file to trainers, and from saved ensembles to scores."""

import dataclasses
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dynsnap._types import AnyArray, MemberScores
from dynsnap.data import Stream
from dynsnap.ensemble import Monitor, Trainer, round_key
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.store import RunFolder, SavedEnsemble
from dynsnap.study import StudyPlan, TomlTable

_BOOSTED = {"xgboost": "xgboost.XGBClassifier", "lightgbm": "lightgbm.LGBMClassifier"}


def make_trainer(plan: StudyPlan, stream: Stream, *, store: RunFolder, monitor: Monitor) -> Trainer:
    """The trainer that a study file asks for, with its checkpoints in the run folder."""
    settings = _settings(plan)
    trainer: Trainer
    if _is_boosted(plan.model):
        from dynsnap.boost import BoostTrainer

        trainer = BoostTrainer(
            stream,
            **settings,
            monitor=monitor,
            checkpoints=store.checkpoints(lambda spec: round_key(trainer, spec)),
            keep_weights=store.keeps_weights,
        )
    else:
        trainer = _needed("dynsnap.train", "torch").TorchTrainer(
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

    What a setting may be is for the trainer to say, which knows the data.
    """
    try:
        _settings(plan)
    except _NotInstalledError as error:
        yield f"The model cannot be made yet: {error}"


def _settings(plan: StudyPlan) -> dict[str, Any]:
    """What a trainer is made with, from [model] and [training]."""
    section = TomlTable(plan.training, "[training]", taken=["epochs"])
    if not _is_boosted(plan.model):
        train = _needed("dynsnap.train", "torch")
        return {"model": module_factory(plan.model), **_torch_settings(section, train)}
    every = section.take("checkpoint_every", float, 60.0)
    section.finish()
    if plan.starting_from_members:
        raise PlanError(
            f"{plan.starting_from_members[0].name} trains on from stored members, which networks "
            "can; boosted trees and scikit-learn's classifiers always start afresh. Leave `onward` "
            "and `refresh` out."
        )
    return {"model": _classifier(plan.model), "checkpoint_every": every}


def make_scorer(
    ensemble: SavedEnsemble, *, factory: str | None, device: str
) -> Callable[[AnyArray], MemberScores]:
    """What scores inputs with the members of a saved ensemble."""
    model = dict(ensemble.model)
    if _is_boosted(model):
        from dynsnap.boost import score

        def boosted(inputs: AnyArray) -> MemberScores:
            scores = score(ensemble.learners, inputs, classes=len(ensemble.classes))
            return scores[ensemble.positions]

        return boosted
    model.pop("backend", None)
    # A file may come from anywhere, so code that it names is not run: the caller names it.
    if factory is not None:
        model = {**model, "factory": factory}
        model.pop("name", None)
    elif "name" not in model:
        its = f", {model['factory']!r}," if "factory" in model else ""
        raise PlanError(
            f"This ensemble was trained with a model of its maker's own{its} whose code no file "
            "holds. Name its factory with --model MODULE:FACTORY if you trust it."
        )
    train = _needed("dynsnap.train", "torch")
    predictor = train.Predictor(ensemble.learners, model=module_factory(model), device=device)

    def scored(inputs: AnyArray) -> MemberScores:
        scores: MemberScores = predictor(inputs)[ensemble.positions]
        return scores

    return scored


def module_factory(model: Mapping[str, Any]) -> Callable[..., Any]:
    """The function that builds the module which a study file names."""
    settings = dict(model)
    own, name = settings.pop("factory", None), settings.pop("name", None)
    factory: Callable[..., Any]
    if own is not None:
        found = _imported(own)
        factory = _needed("dynsnap.train.models", "torch").with_settings(found, settings, name=own)
    elif isinstance(name, str):
        factory = _needed("dynsnap.train.models", "torch").by_name(name, **settings)
    else:
        raise PlanError("[model] must say the `name` of a model, or a `factory` of your own.")
    return factory


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


def _is_boosted(model: Mapping[str, Any]) -> bool:
    name = model.get("name")
    if "backend" in model:
        return str(model["backend"]) == "boost"
    return isinstance(name, str) and (name in _BOOSTED or name.startswith("sklearn."))


def _classifier(model: Mapping[str, Any]) -> Any:
    settings = dict(model)
    name = settings.pop("name")
    path, _, attribute = _BOOSTED.get(name, name).rpartition(".")
    kind = getattr(_needed(path, "boost"), attribute, None)
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


def _imported(reference: Any) -> Callable[..., Any]:
    """A function of the user's own, `package.module:name`, found as Python would find it."""
    module, _, name = str(reference).partition(":")
    if not (isinstance(reference, str) and module and name):
        raise PlanError(f"A model factory is named as MODULE:NAME, got {reference!r}.")
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` has it, and a console script has not
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise PlanError(f"The model factory {reference!r} cannot be imported: {error}.") from error
    if not callable(found):
        raise PlanError(f"The model factory {reference!r} is not a function.")
    return found  # type: ignore[no-any-return]


class _NotInstalledError(PlanError):
    """A library that is not there."""


def _needed(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name == module != package and importlib.util.find_spec(package) is not None:
            raise PlanError(f"There is no {module} in {package}.") from error
        raise _NotInstalledError(
            f"This needs {error.name or module}, which is not installed. "
            f"Install it with: pip install 'dynsnap[{extra}]'"
        ) from error
