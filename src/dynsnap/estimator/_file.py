"""A fitted estimator as an ensemble file: learners in safe formats beside a manifest in JSON."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap._renamed import with_new_names
from dynsnap._types import AnyArray
from dynsnap._untrusted import (
    AnyOf,
    Flag,
    ListOf,
    MapOf,
    Null,
    Number,
    OneOf,
    Schema,
    Table,
    Text,
    Whole,
    mismatch,
)
from dynsnap.data import frame_type_from_json, frame_type_to_json
from dynsnap.ensemble import COMBINATIONS
from dynsnap.errors import DynSnapError, FileError, InputError, PlanError, did_you_mean
from dynsnap.estimator._configured import OLD_NAMES, ConfiguredEnsemble, Estimator
from dynsnap.estimator._fitted import Fitted, Member
from dynsnap.estimator._settings import refuse_unused
from dynsnap.store import SavedEnsemble, environment, load_ensemble, save_ensemble
from dynsnap.trainers import BACKENDS, for_model, saved_by, trainer_name

# What a file calls the parameters that have another name by now: files of all versions are read.
STORED_NAMES = {"carry_over": "carry", "max_accuracy_gap": "lag", "selection_holdout": "untouched"}

_MOST_MEMBERS = 10_000
_MOST_BYTES = 1 << 28  # of class labels in one array

_COUNT = Whole(1, 2**31)
_NAME = Text(free=True)  # of a class or a column

# The parameters of an estimator that JSON can hold; what only training looks at may be anything.
_SETTINGS = Table(
    {},
    {
        "method": Text(longest=100),
        "members": AnyOf(OneOf(("auto",)), _COUNT),
        "snapshots": _COUNT,
        "epochs": _COUNT,
        "combination": OneOf(COMBINATIONS),
        "beta": AnyOf(OneOf(("mean",)), Number()),
        "validation": Number(0, 1),
        "dropout": Number(0, 1),
        "tolerance": AnyOf(Null(), Number()),
        "most_rounds": AnyOf(Null(), _COUNT),
        "carry": Number(),
        "lag": Number(),
        "untouched": Number(0, 1),
        "retraining": AnyOf(
            Null(),
            Table(
                {},
                {
                    "warm_start": Flag(),
                    "epochs_share": Number(0, 1),
                    "restart_rate": Number(0),
                    "distill_weight": Number(0, 1),
                    "temperature": Number(0),
                    "distill_rows": OneOf(("all", "right", "wrong")),
                    "views": _COUNT,
                    "new_class_weight": Number(1),
                    "interpolate": Flag(),
                },
            ),
        ),
        "average": AnyOf(Null(), Number(0, 1)),
        "smoothing": AnyOf(Null(), Number(0, 1)),
        "batch_size": _COUNT,
        "learning_rate": Number(),
        "optimizer": Null(),
        "loss": Null(),
        "augment": Null(),
        "prepare": AnyOf(Null(), Text(longest=100)),
        "device": Text(longest=100),
        "precision": Text(longest=100),
        "warmup": Whole(0, 2**31),
        "class_weight": AnyOf(Null(), OneOf(("balanced",)), MapOf(Number(0), most=100_000)),
        "selection_metric": Text(longest=100),
        "random_state": AnyOf(Null(), Whole(-(2**63), 2**64)),
        "keep_data": Flag(),
    },
)
_MEMBER = Table(
    {
        "round": Whole(),
        "epoch": Whole(),
        "accuracy": Number(0, 1),
        "learner": Whole(0, _MOST_MEMBERS),
    },
    {"attempt": Whole(0, _MOST_MEMBERS), "generation": Whole(0, 1_000_000)},
)
ESTIMATOR: Schema = Table(
    {
        "backend": Text(form=r"[\w.-]{1,100}"),
        "members": ListOf(_MEMBER, least=1, most=_MOST_MEMBERS),
        "passes": Whole(1, _MOST_MEMBERS),
        "rounds": Whole(),
        "cost": Number(0),
        "seed": Whole(0, 2**128),
        "settings": _SETTINGS,
        "lost": ListOf(Text(longest=100), most=100),
        "classes": ListOf(AnyOf(Flag(), Number(), _NAME), least=1),
        "class_type": Text(form=r"object|[<>|=]?[biufU]\d{1,5}"),
        "shape": AnyOf(Null(), ListOf(Whole(0, 2**40), most=16)),
        "allow_nan": Flag(),
        "columns": ListOf(_NAME, most=10_000_000),
    },
    {
        "learned": ListOf(ListOf(Whole(0, 100_000), distinct=True), most=_MOST_MEMBERS),
        "untouched": Number(0, 1),
    },
)


def class_labels(about: dict[str, Any], names: tuple[str, ...]) -> AnyArray:
    """The labels of the classes, of the type that they had.

    Raises:
        ValueError: They are not those that the ensemble names.
    """
    kind = np.dtype(about["class_type"])
    if kind.itemsize * len(about["classes"]) > _MOST_BYTES:
        raise ValueError(f"`class_type` asks for too much memory: {about['class_type']}")
    labels = np.array(about["classes"], dtype=kind)
    if tuple(str(label) for label in labels) != names:
        raise ValueError("`classes` are not those of the ensemble")
    return labels


# What a file states of its trainer is not what the next training imports, and how a training is
# watched is not part of an ensemble.
_NOT_STORED = (
    *("model", "monitor", "trainer", "preset"),
    *("n_jobs", "verbose", "callbacks", "checkpoint"),
)
_SIZES = ("members", "snapshots", "epochs")
_STORED_IF_SET = ("warmup", "class_weight", "selection_metric")
# What the ensemble file has a place of its own for; the rest of `Fitted` goes beside it.
_OWN_PLACE = ("learners", "members", "generation", "heard", "history")


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
        "learned": [list(columns) for columns in made.learned],
        "settings": settings,
        "lost": lost,
        "classes": classes.tolist(),
        "class_type": "object" if classes.dtype == object else classes.dtype.str,
        "shape": estimator._shape,
        "allow_nan": estimator._allow_nan,
        "columns": [str(name) for name in getattr(estimator, "feature_names_in_", ())],
    }
    reading = _reading(estimator, about["columns"])
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
            known=made.known(len(classes)),
            model=estimator._described or {"backend": made.backend},
            about={"estimator": about, "environment": environment(), "reading": reading},
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
            f"{path} is an ensemble that an older `dynsnap train` wrote, for `dynsnap predict` "
            "alone. Train it again: rounds in the run folder are not trained twice."
        )
    try:
        if (problem := mismatch(ESTIMATOR, about)) is not None:
            raise ValueError(problem)
        made = _fitted(saved, about)
        classes = class_labels(about, saved.classes)
        estimator = kind(model, **{**_current(about["settings"]), **settings}, trainer=trainer)
        _note_inputs(estimator, about, saved.about.get("reading", {}).get("frame"))
    except (ValueError, OverflowError, InputError) as error:
        raise FileError(f"{path} cannot be read as a DynSnapClassifier: {error}.") from error
    given = {**settings} if model is None else {**settings, "model": model}
    estimator._lost = tuple(name for name in ["model", *about["lost"]] if name not in given)
    try:
        backend = saved_by(made.backend, asked=trainer, option='`load(path, trainer="NAME")`')
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from error
    if model is None and "name" in saved.model and backend.name in BACKENDS.own:
        # One of dynsnap's own models, which a file may choose between.
        estimator.model = backend.restore(dict(saved.model), factory=None)
        estimator._described = dict(saved.model)
        if callable(estimator.model):
            estimator._lost = tuple(name for name in estimator._lost if name != "model")
        else:
            estimator.model = None
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
    """What fitting had left behind, if all that it states about the ensemble is so."""
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
        heard=()
        if saved.known is None or about.get("learned")
        else tuple(map(tuple, saved.known.tolist())),
    )
    if trainer_name(saved.model) != made.backend:
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


def _reading(estimator: ConfiguredEnsemble, columns: list[str]) -> dict[str, Any]:
    """How `dynsnap predict` reads new inputs: the columns that the model was fitted with."""
    found: dict[str, Any] = {"allow_missing": True} if estimator._allow_nan else {}
    if estimator._columns is not None:
        # Gaps are for the model to refuse, which may fill them first.
        return {"frame": frame_type_to_json(estimator._columns), "allow_missing": True}
    if estimator._shape is None:
        return {"text": "text"}
    if estimator._shape == ():  # a dict or a Dataset, which no file that is read holds
        return {}
    return found | ({"features": columns} if columns else {})


def _note_inputs(
    estimator: ConfiguredEnsemble, about: dict[str, Any], frame: list[dict[str, Any]] | None
) -> None:
    shape, columns = about["shape"], about["columns"]
    estimator._columns = None if frame is None else frame_type_from_json(frame)
    if estimator._columns is not None and shape != [len(estimator._columns)]:
        raise ValueError(f"{len(estimator._columns)} columns do not fit inputs of shape {shape}")
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
    usual = estimator._usual()
    for name, value in estimator.get_params(deep=False).items():
        # What a file states of its trainer is not what the next training imports.
        if name in _NOT_STORED:
            continue
        if name in _STORED_IF_SET and value == usual[name]:
            continue  # files without them are read by earlier versions
        value = estimator._size(name) if name in _SIZES else value
        value = _plain(value)
        try:
            json.dumps(value)
        except TypeError:
            if name != "random_state":  # the next generation may draw from another
                lost.append(name)
        else:
            settings[STORED_NAMES.get(name, name)] = value
    return settings, lost


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's, also in the weights of classes."""
    if isinstance(value, dict):
        return {_plain(key): _plain(one) for key, one in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _current(stored: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a file by the names that they have today."""
    today = {old: new for new, old in STORED_NAMES.items()}
    return {today.get(name, name): value for name, value in stored.items()}
