"""Torch modules, by `dynsnap.train`."""

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynsnap.data import Stream
from dynsnap.ensemble import Checkpoints, Monitor, Trainer
from dynsnap.errors import FileError, InputError, PlanError, did_you_mean
from dynsnap.study import TomlTable
from dynsnap.trainers._backend import (
    SETTINGS,
    Backend,
    ScoreMembers,
    check_reference,
    imported,
    needed,
    of_each,
)
from dynsnap.trainers._boost import BOOSTED


class TorchBackend(Backend):
    """Functions and classes that build a torch module."""

    name = "torch"
    settings = frozenset(SETTINGS)
    warm_start = True
    items = True
    codistill = True
    averages = True

    def takes(self, model: Any) -> bool:
        """Whether this can be called to build a module."""
        return callable(model)

    def describes(self, model: Mapping[str, Any]) -> bool:
        """Whether the [model] of a study is a module: it is, where it is nothing else."""
        return True

    def trainer(
        self,
        stream: Stream,
        *,
        model: Any,
        settings: Mapping[str, Any],
        monitor: Monitor | None = None,
        checkpoints: Checkpoints | None = None,
        keep_weights: bool = True,
        parents: Callable[[str], bytes] | None = None,
    ) -> Trainer:
        trainer: Trainer = needed("dynsnap.train", "torch").TorchTrainer(
            stream,
            model=model,
            monitor=monitor,
            checkpoints=checkpoints,
            keep_weights=keep_weights,
            parents=parents,
            **settings,
        )
        return trainer

    def scorer(
        self,
        learners: Sequence[bytes],
        *,
        model: Any,
        classes: int,
        members: int,
        settings: Mapping[str, Any],
        trust: bool,
    ) -> ScoreMembers:
        if not callable(model):
            raise InputError(
                "The members are torch modules, whose code no file holds: pass the function that "
                "builds them, as in `DynSnapClassifier.load(path, model=...)`."
            )
        own = settings.get("prepare")
        score: ScoreMembers = needed("dynsnap.train", "torch").Predictor(
            learners,
            model=model,
            prepare=None if own is None or isinstance(own, str) else own,
            device=settings["device"],
            members=members,
            classes=classes,
        )
        return score

    def widened(self, learner: bytes, *, model: Any, classes: int, places: Sequence[int]) -> bytes:
        train = needed("dynsnap.train", "torch")
        made: bytes = train.widened(learner, model=model, classes=classes, places=places)
        return made

    def check_weights(self, model: Any) -> None:
        """The trainer checks whether its loss takes them."""

    def configure(
        self, model: Mapping[str, Any], training: Mapping[str, Any], *, importing: bool = True
    ) -> tuple[Any, dict[str, Any]]:
        train = needed("dynsnap.train", "torch")
        made = _module_factory(model, importing=importing)
        return made, _settings(TomlTable(training, "[training]", taken=["epochs"]), train)

    def restore(self, model: Mapping[str, Any], *, factory: str | None) -> Any:
        settings = dict(model)
        own, name = settings.pop("factory", None), settings.pop("name", None)
        if factory is not None:
            return _own_factory(factory, settings)
        if name is not None:
            needed("dynsnap.train", "torch")  # what is not installed is no fault of the file's
            try:
                return _built_in(name, settings)
            except PlanError as error:
                raise FileError(f"The ensemble's model cannot be built: {error}") from error
        its = f", {own!r}," if own is not None else ""
        raise PlanError(
            f"This ensemble was trained with a model of its maker's own{its} whose code no file "
            "holds. Name its factory with --model MODULE:FACTORY if you trust it."
        )


def _module_factory(model: Mapping[str, Any], *, importing: bool) -> Callable[..., Any] | None:
    """The function that builds the module which a study file names.

    None for a factory of the user's own, unless `importing`.
    """
    settings = dict(model)
    own, name = settings.pop("factory", None), settings.pop("name", None)
    if (own is None) == (name is None):
        raise PlanError("[model] must say the `name` of a model, or a `factory` of your own.")
    if own is not None:
        check_reference(own)
        return _own_factory(own, settings) if importing else None
    return _built_in(name, settings)


def _built_in(name: Any, settings: Mapping[str, Any]) -> Callable[..., Any]:
    """The factory of a module that comes with dynsnap."""
    if not isinstance(name, str):
        raise PlanError(f"[model]: `name` must be text, got {name!r}.")
    if difflib.get_close_matches(name, BOOSTED, n=1):  # a typo, which is no reason to ask for torch
        raise PlanError(f"[model]: there is no model {name!r}. {did_you_mean(name, BOOSTED)}")
    models = needed("dynsnap.train.models", "torch")
    if name not in models.NAMES:
        known = did_you_mean(name, (*models.NAMES, *BOOSTED))
        raise PlanError(
            f"[model]: there is no model {name!r}. {known} A classifier of scikit-learn is named "
            'in full, such as "sklearn.linear_model.LogisticRegression".'
        )
    factory: Callable[..., Any] = models.by_name(name, **settings)
    return factory


def _own_factory(reference: Any, settings: Mapping[str, Any]) -> Callable[..., Any]:
    """A function of the user's own, `package.module:name`, found as Python would find it.

    This imports, and so runs, what the reference names: it must come from the user.
    """
    found = imported(reference)
    models = needed("dynsnap.train.models", "torch")
    factory: Callable[..., Any] = models.with_settings(found, settings, name=reference)
    return factory


def _settings(section: TomlTable, train: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kinds: dict[str, type] = {
        "batch_size": int,
        "learning_rate": float,
        "prepare": str,
        "device": str,
        "precision": str,
        "checkpoint_every": float,
        "warmup": int,
    }
    for name, kind in kinds.items():
        value = section.take(name, kind, None)
        if value is not None:
            found[name] = value
    adam = section.take("adam", dict, {})
    optimizer = _named(section, "optimizer")
    loss = _named(section, "loss")
    augment = section.take_any("augment", False)
    found |= of_each(section)
    section.finish()
    if optimizer is not None and adam:
        raise PlanError(
            "[training.adam] and `optimizer` both set the optimiser. Keep one of them: "
            '[training.optimizer] with name = "adam" takes the same settings.'
        )
    found["optimizer"] = _built(train.Adam, adam, "[training.adam]")
    if optimizer is not None:
        found["optimizer"] = train.named_optimizer(*optimizer, where="[training.optimizer]")
    if loss is not None:
        found["loss"] = train.named_loss(*loss, where="[training.loss]")
    if augment is not False:
        settings = {} if augment is True else augment
        if not isinstance(settings, dict):
            raise PlanError(
                f"[training]: `augment` must be true, or a table of its settings, got {augment!r}."
            )
        found["augment"] = _built(train.ShiftsAndFlips, settings, "[training.augment]")
    return found


def _named(section: TomlTable, key: str) -> tuple[str, dict[str, Any]] | None:
    """A name, or a table of a name and settings: the name and the settings."""
    found = section.take_any(key)
    if found is None or isinstance(found, str):
        return None if found is None else (found, {})
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        raise PlanError(
            f"[training]: `{key}` must be a name, or a table with a `name` and settings, got "
            f"{found!r}."
        )
    return found["name"], {name: value for name, value in found.items() if name != "name"}


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
