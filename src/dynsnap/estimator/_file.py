"""A fitted estimator in one file: learners in their libraries' safe formats, beside JSON."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import dynsnap
from dynsnap._types import AnyArray
from dynsnap.errors import FileError, PlanError, did_you_mean
from dynsnap.estimator._fitted import Fitted, Member
from dynsnap.store import read_container, write_container

if TYPE_CHECKING:
    from dynsnap.estimator._classifier import DynSnapClassifier

FORMAT = 1
_KIND = "classifier"


def write(path: Path, estimator: "DynSnapClassifier") -> None:
    """Write a fitted estimator, or leave things as they were."""
    made: Fitted = estimator._fitted
    suffix = "safetensors" if made.backend == "torch" else "learner"
    parts: dict[str, bytes | AnyArray] = {
        f"learners/{number:04}.{suffix}": content for number, content in enumerate(made.learners)
    }
    settings, lost = _settings(estimator)
    facts = {
        "kind": _KIND,
        "format": FORMAT,
        "dynsnap": dynsnap.__version__,
        "settings": settings,
        "lost": lost,
        "classes": {"values": estimator.classes_.tolist(), "dtype": estimator.classes_.dtype.str},
        "shape": estimator._shape,
        "columns": [str(name) for name in getattr(estimator, "feature_names_in_", ())],
        "learners": list(parts),
        **{
            field.name: getattr(made, field.name)
            for field in dataclasses.fields(made)
            if field.name not in ("learners", "members")
        },
        "members": [dataclasses.asdict(member) for member in made.members],
    }
    write_container(path, parts, facts)


def read(
    path: Path, kind: "type[DynSnapClassifier]", model: Any, settings: dict[str, Any]
) -> "DynSnapClassifier":
    """Read a fitted estimator, and make sure that it can predict."""
    container = read_container(path)
    facts = container.facts
    if facts.get("kind") != _KIND:
        raise FileError(f"{path} is not a saved classifier: it holds {facts.get('kind')!r}.")
    if facts.get("format") != FORMAT:
        raise FileError(
            f"{path} has the format {facts.get('format')}, and this dynsnap reads {FORMAT}: it was "
            "written by another version. Upgrade with `pip install -U dynsnap`."
        )
    known = {**facts["settings"], **settings}
    if unknown := sorted(set(settings) - set(kind(None).get_params(deep=False))):
        raise PlanError(
            f"DynSnapClassifier has no parameter {unknown[0]!r}. "
            f"{did_you_mean(unknown[0], kind(None).get_params(deep=False))}"
        )
    estimator = kind(model, **known)
    made = Fitted(
        learners=tuple(container.bytes_of(name) for name in facts["learners"]),
        members=tuple(Member(**member) for member in facts["members"]),
        **{
            field.name: facts[field.name]
            for field in dataclasses.fields(Fitted)
            if field.name not in ("learners", "members")
        },
    )
    classes = np.array(facts["classes"]["values"], dtype=facts["classes"]["dtype"])
    shape = facts["shape"]
    estimator._shape = None if shape is None else tuple(shape)
    if estimator._shape is not None:
        estimator.n_features_in_ = shape[0]
    if facts["columns"]:
        estimator.feature_names_in_ = np.array(facts["columns"], dtype=object)
    estimator._lost = tuple(name for name in facts["lost"] if name not in settings)
    estimator._become(made, classes, data=None)
    return estimator


def _settings(estimator: "DynSnapClassifier") -> tuple[dict[str, Any], list[str]]:
    """The parameters that JSON can hold, and the names of the others that matter to training."""
    settings: dict[str, Any] = {}
    lost: list[str] = []
    for name, value in estimator.get_params(deep=False).items():
        if name in ("model", "monitor"):
            continue
        value = value.item() if isinstance(value, np.generic) else value
        try:
            json.dumps(value)
        except TypeError:
            if name != "random_state":
                lost.append(name)
        else:
            settings[name] = value
    return settings, lost
