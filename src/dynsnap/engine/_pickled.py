"""A trainer as bytes: pickled once by the driver, checked by every worker that loads it.

This is pickle between the processes of one program. Files are never read with it.
"""

import importlib
import io
import pickle
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import dynsnap
from dynsnap.ensemble import Checkpoints, Monitor, Trainer
from dynsnap.errors import PlanError, TrainingError

# A spec gives the same bits only where these versions match.
_BITS_DEPEND_ON = ("numpy", "torch", "scikit-learn", "lightgbm", "xgboost", "xgboost-cpu")

# Objects that stay with the driver, recognised by their methods.
_ROLES = {
    role: [word for word in vars(protocol) if not word.startswith("_")]
    for role, protocol in (("monitor", Monitor), ("checkpoints", Checkpoints))
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PickledTrainer:
    """A trainer as bytes, with its arrays apart.

    Attributes:
        versions: The library versions of the driver.
        path: `sys.path` of the driver.
        fingerprint: The trainer's fingerprint.
        content: The trainer without its arrays.
        arrays: The buffers of its arrays, in order.
    """

    versions: Mapping[str, str]
    path: tuple[str, ...]
    fingerprint: str
    content: bytes
    arrays: Sequence[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A pickled trainer, and the monitor and checkpoints that stay with the driver."""

    pickled: PickledTrainer
    monitor: Monitor | None
    checkpoints: Checkpoints | None


def pack(trainer: Trainer, pickler: type[Any] = pickle.Pickler) -> Packed:
    """Pickle a trainer. Its monitor and its checkpoints stay here.

    Args:
        trainer: The trainer.
        pickler: A subclass of pickle.Pickler, which may support more types.
    """
    kept: dict[str, Any] = {}
    arrays: list[pickle.PickleBuffer] = []

    class Packer(pickler):  # type: ignore[misc]  # whose base is only known here
        def persistent_id(self, thing: Any) -> str | None:
            if isinstance(thing, types.ModuleType):
                return f"module {thing.__name__}"
            role = _role(thing)
            if role is not None and kept.setdefault(role, thing) is not thing:
                raise PlanError(f"A trainer with more than one {role} cannot be packed to workers.")
            return role

    content = io.BytesIO()
    try:
        Packer(content, protocol=5, buffer_callback=arrays.append).dump(trainer)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise PlanError(
            f"{type(trainer).__name__} cannot be packed to workers: {error}. What it is made with "
            "(model, loss, augmentation) must be functions or classes of a module, not lambdas."
        ) from error
    pickled = PickledTrainer(
        versions=versions(),
        path=tuple(sys.path),
        fingerprint=trainer.fingerprint,
        content=content.getvalue(),
        arrays=arrays,
    )
    return Packed(pickled, kept.get("monitor"), kept.get("checkpoints"))


def check_versions(pickled: PickledTrainer, *, where: str) -> None:
    """Raise unless this process has the driver's library versions."""
    here = versions()
    for name in sorted({*pickled.versions, *here}):
        ours, theirs = here.get(name), pickled.versions.get(name)
        if ours != theirs:
            raise TrainingError(
                f"The worker on {where} has {name} {ours or '(none)'}, but the study was started "
                f"with {theirs or '(none)'}. Install the same version there."
            )


def unpack(
    pickled: PickledTrainer,
    *,
    monitor: Monitor,
    checkpoints: Checkpoints,
    where: str = "this machine",
) -> Trainer:
    """Load a pickled trainer, with proxies for the driver's monitor and checkpoints."""
    check_versions(pickled, where=where)
    # The user's own modules are found where the driver found them.
    sys.path.extend(folder for folder in pickled.path if folder not in sys.path)

    class Unpacker(pickle.Unpickler):
        def persistent_load(self, role: str) -> Any:
            if role.startswith("module "):
                return importlib.import_module(role.removeprefix("module "))
            return {"monitor": monitor, "checkpoints": checkpoints}[role]

    trainer: Trainer = Unpacker(io.BytesIO(pickled.content), buffers=pickled.arrays).load()
    # Compute the fingerprint afresh: code of the same version may differ.
    vars(trainer).pop("fingerprint", None)
    if trainer.fingerprint != pickled.fingerprint:
        raise TrainingError(
            f"The worker on {where} would train other rounds: its model, its device or its "
            "libraries differ from those the study was started with. Make them the same."
        )
    return trainer


def versions() -> dict[str, str]:
    """Versions that the bits of a round depend on."""
    found = {"dynsnap": dynsnap.__version__, "Python": "{}.{}".format(*sys.version_info)}
    for name in _BITS_DEPEND_ON:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _role(thing: Any) -> str | None:
    kind = type(thing)
    for role, words in _ROLES.items():
        if all(callable(getattr(kind, word, None)) for word in words):
            return role
    return None
