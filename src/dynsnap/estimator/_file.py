"""A fitted estimator as an ensemble file: learners in safe formats beside a manifest in JSON."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap._renamed import with_new_names
from dynsnap._untrusted import mismatch
from dynsnap.errors import DynSnapError, FileError, InputError, PlanError, did_you_mean
from dynsnap.estimator._configured import OLD_NAMES, ConfiguredEnsemble, Estimator
from dynsnap.estimator._fitted import Fitted, Member
from dynsnap.estimator._manifest import ESTIMATOR, STORED_NAMES, class_labels
from dynsnap.estimator._settings import refuse_unused
from dynsnap.store import SavedEnsemble, environment, load_ensemble, save_ensemble
from dynsnap.trainers import for_model, saved_by

# What the ensemble file has a place of its own for; the rest of `Fitted` goes beside it.
_OWN_PLACE = ("learners", "members", "generation")


def write(path: Path, estimator: ConfiguredEnsemble) -> str:
    """Write a fitted estimator, or leave things as they were; the SHA-256 of the file."""
    made: Fitted = estimator._fitted
    settings, lost = _settings(estimator)
    classes = estimator.classes_
    about = {
        STORED_NAMES.get(field.name, field.name): getattr(made, field.name)
        for field in dataclasses.fields(made)
        if field.name not in _OWN_PLACE
    }
    about |= {
        "members": [dataclasses.asdict(member) for member in made.members],
        "settings": settings,
        "lost": lost,
        "classes": classes.tolist(),
        "class_type": "object" if classes.dtype == object else classes.dtype.str,
        "shape": estimator._shape,
        "allow_nan": estimator._allow_nan,
        "columns": [str(name) for name in getattr(estimator, "feature_names_in_", ())],
    }
    return save_ensemble(
        path,
        SavedEnsemble(
            method=settings["method"],
            generation=made.generation,
            combination=settings["combination"],
            classes=tuple(str(name) for name in classes),
            accuracy=made.accuracies,
            learners=made.learners,
            positions=made.places,
            model={"backend": made.backend},
            about={"estimator": about, "environment": environment()},
        ),
    )


def read(
    path: Path,
    kind: type[Estimator],
    model: Any,
    settings: dict[str, Any],
    *,
    trainer: str | None,
    sha256: str | None,
    trust: bool,
) -> Estimator:
    """Read a fitted estimator, and make sure that it can predict."""
    names = kind(None).get_params(deep=False)
    settings = with_new_names(settings, OLD_NAMES, f"{kind.__name__}.load", stacklevel=4)
    for name in settings:
        if name not in names:
            raise PlanError(
                f"DynSnapClassifier has no parameter {name!r}. {did_you_mean(name, names)}"
            )
    saved = load_ensemble(path, sha256=sha256)
    about = saved.about.get("estimator")
    if about is None:
        raise FileError(
            f"{path} is an ensemble, but was not saved by DynSnapClassifier. Use `dynsnap predict`."
        )
    try:
        if (problem := mismatch(ESTIMATOR, about)) is not None:
            raise ValueError(problem)
        made = _fitted(saved, about)
        classes = class_labels(about, saved.classes)
        estimator = kind(model, **{**_current(about["settings"]), **settings}, trainer=trainer)
        _note_inputs(estimator, about)
    except (ValueError, OverflowError, InputError) as error:
        raise FileError(f"{path} cannot be read as a DynSnapClassifier: {error}.") from error
    given = {**settings} if model is None else {**settings, "model": model}
    estimator._lost = tuple(name for name in ["model", *about["lost"]] if name not in given)
    try:
        backend = saved_by(made.backend, asked=trainer, option='`load(path, trainer="NAME")`')
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from error
    if model is not None and for_model(model, trainer).name != made.backend:
        raise InputError(
            f"{path} was made with a model of another kind ({made.backend}) than `model`. "
            "Pass what it was made with."
        )
    refuse_unused(backend, settings, names, "what this file holds")
    try:
        return estimator._become(made, classes, data=None, trust=trust)
    except DynSnapError as error:
        raise type(error)(f"{path}: {error}") from error


def _fitted(saved: SavedEnsemble, about: dict[str, Any]) -> Fitted:
    """What fitting had left behind, if all that it says of the ensemble is so."""
    made = Fitted(
        learners=saved.learners,
        members=tuple(Member(**member) for member in about["members"]),
        generation=saved.generation,
        learned=tuple(map(tuple, about.get("learned", ()))),
        selection_holdout=float(about.get(STORED_NAMES["selection_holdout"], 0)),
        **{
            field.name: about[field.name]
            for field in dataclasses.fields(Fitted)
            if field.name not in (*_OWN_PLACE, "learned", "selection_holdout")
        },
    )
    if saved.model.get("backend") != made.backend:
        raise ValueError("`backend` is not that of the ensemble")
    if made.places.tolist() != saved.positions.tolist():
        raise ValueError("`members` are not those of the ensemble")
    if any(one.attempt >= made.passes for one in made.members):
        raise ValueError(f"`members` are of more passes than {made.passes}")
    if len(made.learners) * made.passes != len(made.members):
        raise ValueError(
            f"{len(made.learners)} learners of {made.passes} passes do not give "
            f"{len(made.members)} members"
        )
    if made.learned:
        columns = {column for each in made.learned for column in each}
        if made.passes > 1 or len(made.learned) != len(made.learners) or not all(made.learned):
            raise ValueError("`learned` must have the classes of each learner")
        if max(columns) >= len(saved.classes):
            raise ValueError("`learned` names classes that the ensemble has not")
    return made


def _note_inputs(estimator: ConfiguredEnsemble, about: dict[str, Any]) -> None:
    shape, columns = about["shape"], about["columns"]
    estimator._shape = None if shape is None else tuple(shape)
    estimator._allow_nan = about["allow_nan"]
    if shape is not None and len(shape) == 1:
        estimator.n_features_in_ = shape[0]
    if columns:
        if shape != [len(columns)]:
            raise ValueError(f"`columns` has {len(columns)} names for inputs of the shape {shape}")
        estimator.feature_names_in_ = np.array(columns, dtype=object)


def _settings(estimator: ConfiguredEnsemble) -> tuple[dict[str, Any], list[str]]:
    """The parameters that JSON can hold, and the names of the others that matter to training."""
    settings: dict[str, Any] = {}
    lost: list[str] = []
    for name, value in estimator.get_params(deep=False).items():
        # What a file states of its trainer is not what the next training imports.
        if name in ("model", "monitor", "trainer"):
            continue
        value = value.item() if isinstance(value, np.generic) else value
        try:
            json.dumps(value)
        except TypeError:
            if name != "random_state":  # the next generation may draw from another
                lost.append(name)
        else:
            settings[STORED_NAMES.get(name, name)] = value
    return settings, lost


def _current(stored: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a file by the names that they have today."""
    today = {old: new for new, old in STORED_NAMES.items()}
    return {today.get(name, name): value for name, value in stored.items()}
