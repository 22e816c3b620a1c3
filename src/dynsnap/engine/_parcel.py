"""A trainer on its way to the workers: packed once, checked where it arrives.

This is pickle between processes of one program. Nothing that a user hands in is read with it.
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

# Same spec, same bits: only among workers that compute with the same of these.
_BITS_DEPEND_ON = ("numpy", "torch", "scikit-learn", "lightgbm", "xgboost", "xgboost-cpu")

# Those who stay with the driver, by what they can do.
_ROLES = {
    role: [word for word in vars(protocol) if not word.startswith("_")]
    for role, protocol in (("monitor", Monitor), ("checkpoints", Checkpoints))
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Parcel:
    """A packed trainer.

    Attributes:
        versions: Of what it was packed with.
        path: Where Python looked for modules there.
        fingerprint: The trainer's.
        content: The trainer without its arrays.
        arrays: The content of its arrays, one after another.
    """

    versions: Mapping[str, str]
    path: tuple[str, ...]
    fingerprint: str
    content: bytes
    arrays: Sequence[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """A parcel, and what stays behind: those who watch the training and keep its checkpoints."""

    parcel: Parcel
    monitor: Monitor | None
    checkpoints: Checkpoints | None


def pack(trainer: Trainer, pickler: type[Any] = pickle.Pickler) -> Sent:
    """Make a trainer ready to travel. Its monitor and its checkpoints stay here.

    Args:
        trainer: What travels.
        pickler: A kind of pickle.Pickler, which may be able to pack more than that.
    """
    kept: dict[str, Any] = {}
    arrays: list[pickle.PickleBuffer] = []

    class Packer(pickler):  # type: ignore[misc]  # whose base is only known here
        def persistent_id(self, thing: Any) -> str | None:
            if isinstance(thing, types.ModuleType):
                return f"module {thing.__name__}"
            role = _role(thing)
            if role is not None and kept.setdefault(role, thing) is not thing:
                raise PlanError(f"A trainer with more than one {role} cannot be sent to workers.")
            return role

    content = io.BytesIO()
    try:
        Packer(content, protocol=5, buffer_callback=arrays.append).dump(trainer)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise PlanError(
            f"{type(trainer).__name__} cannot be sent to workers: {error}. What it is made with "
            "(model, loss, augmentation) must be functions or classes of a module, not lambdas."
        ) from error
    parcel = Parcel(
        versions=versions(),
        path=tuple(sys.path),
        fingerprint=trainer.fingerprint,
        content=content.getvalue(),
        arrays=arrays,
    )
    return Sent(parcel, kept.get("monitor"), kept.get("checkpoints"))


def check_versions(parcel: Parcel, *, where: str) -> None:
    """Raise unless a trainer packed elsewhere gives the same rounds here."""
    here = versions()
    for name in sorted({*parcel.versions, *here}):
        ours, theirs = here.get(name), parcel.versions.get(name)
        if ours != theirs:
            raise TrainingError(
                f"The worker on {where} has {name} {ours or '(none)'}, but the study was started "
                f"with {theirs or '(none)'}. Install the same version there."
            )


def unpack(
    parcel: Parcel, *, monitor: Monitor, checkpoints: Checkpoints, where: str = "this machine"
) -> Trainer:
    """The trainer of a parcel, with stand-ins for those who stayed behind."""
    check_versions(parcel, where=where)
    # A factory of the user's own is found where the driver found it.
    sys.path.extend(folder for folder in parcel.path if folder not in sys.path)

    class Unpacker(pickle.Unpickler):
        def persistent_load(self, role: str) -> Any:
            if role.startswith("module "):
                return importlib.import_module(role.removeprefix("module "))
            return {"monitor": monitor, "checkpoints": checkpoints}[role]

    trainer: Trainer = Unpacker(io.BytesIO(parcel.content), buffers=parcel.arrays).load()
    # A fingerprint that came along would prove nothing: code of the same version may differ.
    vars(trainer).pop("fingerprint", None)
    if trainer.fingerprint != parcel.fingerprint:
        raise TrainingError(
            f"The worker on {where} would train other rounds: its model, its device or its "
            "libraries differ from those the study was started with. Make them the same."
        )
    return trainer


def versions() -> dict[str, str]:
    """What the bits of a round depend on, beside the trainer itself."""
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
