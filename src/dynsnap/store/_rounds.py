"""A round as parts of a container, and back."""

import contextlib
import functools
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.ensemble import Round, RoundSpec
from dynsnap.errors import DynSnapError, FileError
from dynsnap.store import _manifests
from dynsnap.store._container import Container, DamagedError

FORMAT = 1  # raised whenever an older dynsnap could not read what this one writes

_LIBRARIES = ("dynsnap", "numpy", "torch", "scikit-learn", "xgboost-cpu", "xgboost", "lightgbm")


def parts(done: Round, *, weights: bool, half: bool) -> dict[str, bytes | AnyArray]:
    """What is kept of a round, by the names of its parts."""
    kept: dict[str, bytes | AnyArray] = {
        "accuracy.npy": np.asarray(done.accuracy, np.float64),
        "epochs.npy": np.asarray(done.epochs, np.int64),
        "curve.npy": np.asarray(done.curve, np.float64),
    }
    for name, values in (("selection", done.selection), ("selection_curve", done.selection_curve)):
        if values is not None:
            kept[f"{name}.npy"] = np.asarray(values, np.float64)
    for name, scores in done.scores.items():
        kept[f"scores.{name}.npy"] = np.asarray(scores, np.float16 if half else np.float32)
    if weights:
        for position, learner in enumerate(done.weights):
            kept[f"weights.{position:04}.bin"] = learner
    return kept


def facts(
    key: str, done: Round, *, training_epochs: int | None, device: str | None
) -> dict[str, Any]:
    """What is known about a round beside its arrays."""
    return {
        "format": FORMAT,
        "key": key,
        "name": str(done.spec),
        "spec": done.spec.facts(),
        "seed": done.spec.seed,
        "best_accuracy": float(done.accuracy.max()),
        "seconds": done.seconds,
        "cost": done.spec.recipe.epochs / training_epochs if training_epochs else None,
        "environment": environment(device),
    }


def restored(container: Container, spec: RoundSpec) -> Round:
    """The round that a container holds, its scores mapped from the file."""
    container.check(_manifests.ROUND)
    known = json.dumps(container.facts["spec"], sort_keys=True, separators=(",", ":"))
    if known != spec.canonical():
        raise DamagedError(f"{container.path} is damaged: it holds another round than its name.")
    names = sorted(container.spans)
    try:
        return Round(
            spec=spec,
            accuracy=np.array(container.array("accuracy.npy")),
            epochs=np.array(container.array("epochs.npy"), np.intp),
            curve=np.array(container.array("curve.npy")),
            scores={
                name.removeprefix("scores.").removesuffix(".npy"): container.array(name)
                for name in names
                if name.startswith("scores.")
            },
            weights=container.numbered("weights"),
            seconds=float(container.facts["seconds"]),
            selection=_optional(container, "selection.npy"),
            selection_curve=_optional(container, "selection_curve.npy"),
        )
    except (KeyError, TypeError, ValueError, DynSnapError) as error:
        raise DamagedError(f"{container.path} is damaged: {error}") from error


def _optional(container: Container, name: str) -> AnyArray | None:
    return np.array(container.array(name)) if name in container.spans else None


def check_format(known: Mapping[str, Any], path: object) -> None:
    """Raise where something was written by a dynsnap that is newer than this one."""
    found = known.get("format")
    if isinstance(found, int) and found > FORMAT:
        raise FileError(
            f"{path} has the format {found}, and this dynsnap knows up to {FORMAT}: "
            "it was written by a newer version. Upgrade with `pip install -U dynsnap`."
        )


def environment(device: str | None = None) -> dict[str, str]:
    """The versions and the machine that a round was trained with.

    Nothing is imported to find out, and nothing that names the host is kept.
    """
    found = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **_versions(),
    }
    if device is not None:
        found["device"] = device
    return found


@functools.cache  # looked up once, and not again for every round that is stored
def _versions() -> Mapping[str, str]:
    found = {}
    for library in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[library] = importlib.metadata.version(library)
    return found
