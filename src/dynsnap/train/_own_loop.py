"""Torch's part of a training loop that is not ours: its state as bytes, and scores of snapshots."""

import contextlib
import json
import math
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from dynsnap._types import AnyArray, Scores
from dynsnap._untrusted import parse_json
from dynsnap.data import is_dataset
from dynsnap.ensemble import Distillation
from dynsnap.errors import FileError, InputError, TrainingError
from dynsnap.train._distillation import UNKNOWN, mixed, soft_losses
from dynsnap.train._factory import Blueprint
from dynsnap.train._prepare import State
from dynsnap.train._threads import on_one_thread
from dynsnap.train._weights import StoredLearner, pack, unpack

Weights: TypeAlias = Mapping[str, Any]  # tensors or arrays by name


class Stateful(Protocol):
    """A module, an optimiser, or anything else that can be saved and restored."""

    def state_dict(self) -> Mapping[str, Any]: ...

    def load_state_dict(self, state: Any, /) -> Any: ...


def copied(weights: Weights) -> State:
    """Weights as tensors of their own on the CPU, which further training leaves as they are.

    Raises:
        TrainingError: Something among them is no tensor and no array.
    """
    found: State = {}
    for name, value in weights.items():
        if not isinstance(value, Tensor | np.ndarray | np.generic):
            raise TrainingError(
                f"The weights hold a {type(value).__name__} under {name!r}, and a snapshot is made "
                "of tensors and arrays. Leave it out of `state_dict`."
            )
        tensor = value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
        # A compiled module has another name for all that it holds. Weights that two layers share
        # are stored once for each: safetensors has no links.
        found[name.replace("_orig_mod.", "")] = tensor.detach().cpu().contiguous().clone()
    return found


def check_trained(weights: State, *, what: str) -> None:
    """Raise TrainingError if weights hold NaN. An infinity may be part of a mask.

    Args:
        weights: The weights.
        what: What they are called, as in "epoch 3".
    """
    for name, value in weights.items():
        if value.is_floating_point() and bool(value.isnan().any()):
            raise TrainingError(
                f"The weights {name!r} hold NaN after {what}: training has diverged. Earlier "
                "epochs are kept; lower the learning rate, and run the loop again."
            )


def check_same_shapes(weights: State, first: State, *, what: str) -> None:
    """Raise TrainingError unless weights have the names and shapes of others.

    Args:
        weights: The weights.
        first: Those that they must be like.
        what: What to call the first, as in "epoch 3".
    """
    for name in [*first, *(name for name in weights if name not in first)]:
        own, other = (_shape(state.get(name)) for state in (weights, first))
        if own != other:
            raise TrainingError(
                f"The weights {name!r} {own}, but {other} in {what}. Members of one ensemble must "
                "be snapshots of one architecture: build the model the same way in every round."
            )


def _shape(value: Tensor | None) -> str:
    return "are missing" if value is None else f"have the shape {tuple(value.shape)}"


def learner_of(weights: State, *, classes: int, inputs: Sequence[int] | None) -> bytes:
    """A snapshot as a stored learner.

    Args:
        weights: Its weights.
        classes: How many classes it scores.
        inputs: The shape of one input where the module takes plain numbers and gives logits, so
            that `dynsnap predict` can score with it; None for inputs of any other kind.
    """
    return StoredLearner(
        weights=weights,
        prepared={},
        classes=classes,
        offers={} if inputs is None else {"inputs": tuple(inputs)},
        prepare=None if inputs is None else {"kind": "features"},
    ).to_bytes()


def weights_of(learner: bytes) -> tuple[State, int]:
    """The weights of a stored learner, and how many classes it scores."""
    found = StoredLearner.from_bytes(learner)
    return found.weights, found.classes


# --- an unfinished round ------------------------------------------------------------------------


class _Drawn:
    """A generator of random numbers, saved and restored as modules and optimisers are."""

    def __init__(self, generator: torch.Generator | np.random.Generator | random.Random) -> None:
        self._own = generator

    def state_dict(self) -> dict[str, Any]:
        if isinstance(self._own, torch.Generator):
            return {"state": self._own.get_state()}
        if isinstance(self._own, np.random.Generator):
            return {"state": dict(self._own.bit_generator.state)}
        return {"state": self._own.getstate()}

    def load_state_dict(self, state: Any, /) -> None:
        if isinstance(self._own, torch.Generator):
            self._own.set_state(state["state"])
        elif isinstance(self._own, np.random.Generator):
            self._own.bit_generator.state = state["state"]
        else:
            self._own.setstate(state["state"])


def stateful(part: Any) -> Stateful | None:
    """What saves and restores a part of a loop; None for something without a state."""
    if isinstance(part, torch.Generator | np.random.Generator | random.Random):
        return _Drawn(part)
    known = hasattr(part, "state_dict") and hasattr(part, "load_state_dict")
    return part if known else None


def pack_loop(
    parts: Mapping[str, Stateful], kept: Mapping[int, State], header: Mapping[str, Any]
) -> bytes:
    """The state of a loop as bytes: tensors in safetensors, everything else in JSON.

    Args:
        parts: What the loop trains with, by name.
        kept: The snapshots so far, by epoch.
        header: What else to store.

    Raises:
        TrainingError: A state holds something that neither tensors nor JSON can hold.
    """
    tensors: State = {}
    plain = {name: _plain(part.state_dict(), tensors, name) for name, part in parts.items()}
    random_states = _plain(_random_states(), tensors, "random")
    groups = {"loop": tensors, **{f"kept{epoch}": state for epoch, state in kept.items()}}
    whole = {**header, "kept": list(kept), "parts": plain, "random": random_states}
    return pack(groups, {"loop": json.dumps(whole)})


def unpack_loop(content: bytes, *, what: str) -> tuple[dict[str, Any], dict[int, State]]:
    """What `pack_loop` was given: a header with its parts, and the snapshots.

    Raises:
        FileError: The bytes are damaged, or of another kind.
    """
    groups, header = unpack(content, what=what)
    try:
        whole = parse_json(header["loop"].encode())
        tensors = groups.get("loop", {})
        kept = {int(epoch): groups[f"kept{epoch}"] for epoch in whole["kept"]}
        parts = {name: _restored(part, tensors) for name, part in whole["parts"].items()}
        return {**whole, "parts": parts, "random": _restored(whole["random"], tensors)}, kept
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{what} cannot be read: it lacks {error}.") from error


def restore_loop(parts: Mapping[str, Stateful], header: Mapping[str, Any]) -> None:
    """Set what a loop trains with, and the random numbers, to where `pack_loop` found them."""
    for name, part in parts.items():
        try:
            part.load_state_dict(header["parts"][name])
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            reason = str(error).partition("\n")[0].rstrip(".:")
            raise FileError(
                f"The checkpoint does not fit the {name} of this loop: {reason}. Go on with the "
                "code that began the round, or remove the checkpoint to start it over."
            ) from error
    try:
        _set_random_states(header["random"])
    except (KeyError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise FileError(f"The checkpoint has no state of random numbers: {error}.") from error


@contextlib.contextmanager
def same_random_numbers() -> Iterator[None]:
    """Leave the global generators as they were, whatever is drawn from them within."""
    before = _random_states()
    try:
        yield
    finally:
        _set_random_states(before)


def _random_states() -> dict[str, Any]:
    """The global generators of Python, numpy and torch."""
    _, keys, place, has_gauss, gauss = np.random.get_state(legacy=True)
    version, words, spare = random.getstate()
    states: dict[str, Any] = {
        "python": [version, list(words), spare],
        "numpy": [torch.as_tensor(np.asarray(keys, np.int64)), place, has_gauss, gauss],
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def _set_random_states(states: Mapping[str, Any]) -> None:
    version, words, spare = states["python"]
    random.setstate((version, tuple(words), spare))
    keys, place, has_gauss, gauss = states["numpy"]
    np.random.set_state(("MT19937", keys.numpy().astype(np.uint32), place, has_gauss, gauss))
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])


def _plain(value: Any, tensors: State, where: str) -> Any:
    """A nested state as JSON, its tensors put aside under their place."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return {"array": _plain(torch.as_tensor(value), tensors, where)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}  # which JSON has not
    if value is None or isinstance(value, bool | int | float | str):
        return {"plain": value}
    if isinstance(value, Mapping):
        # Keys may be numbers, which a JSON object has not.
        pairs = [
            [_plain(key, tensors, where), _plain(one, tensors, f"{where}.{key}")]
            for key, one in value.items()
        ]
        return {"map": pairs}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_plain(one, tensors, where) for one in value]}
    raise TrainingError(
        f"The state of {where} holds a {type(value).__name__}, which a checkpoint cannot: it is "
        "made of tensors, numbers and texts. Hand in an object whose `state_dict` has only those."
    )


def _restored(value: Mapping[str, Any], tensors: State) -> Any:
    ((kind, held),) = value.items()
    if kind == "tensor":
        return tensors[held]
    if kind == "array":
        return _restored(held, tensors).numpy()
    if kind == "float":
        return float(held)
    if kind == "map":
        return {_restored(key, tensors): _restored(one, tensors) for key, one in held}
    if kind in ("list", "tuple"):
        found = [_restored(one, tensors) for one in held]
        return found if kind == "list" else tuple(found)
    if kind != "plain":
        raise ValueError(f"a state of the kind {kind!r}")
    return held


# --- scores -------------------------------------------------------------------------------------

_SCORED_AT_ONCE = 256


class ModuleScores:
    """Scores inputs with the weights of a snapshot: what `SnapshotKeeper` asks for as `score`.

    Args:
        build: Builds the module, as in `ModuleScores(Net)`. It is given `classes` where it has such
            a parameter.
        forward: Called with the module and a batch, for a module that is not called as
            `module(batch)`, or `module(**batch)` where inputs are a dict. It gives logits, or
            something that has `logits`.
        softmax: Whether outputs are logits. False for a module that gives probabilities.
        batch_size: Inputs that are scored at once.
        device: Where to compute.

    Example:
        >>> import torch
        >>> score = ModuleScores(lambda classes: torch.nn.Linear(2, classes))
        >>> weights = {"weight": torch.zeros(3, 2), "bias": torch.zeros(3)}
        >>> score(weights, np.ones((1, 2)), 3).round(2).tolist()
        [[0.33000001311302185, 0.33000001311302185, 0.33000001311302185]]
    """

    def __init__(
        self,
        build: Callable[..., nn.Module],
        *,
        forward: Callable[[nn.Module, Any], Any] | None = None,
        softmax: bool = True,
        batch_size: int = _SCORED_AT_ONCE,
        device: str = "cpu",
    ) -> None:
        self._build = build
        self._forward = forward or _called
        self._own_forward = forward is not None
        self._softmax = softmax
        self._batch = batch_size
        self._device = torch.device(device)
        self._modules: dict[int, nn.Module] = {}
        self._lock = threading.Lock()  # one module holds the weights of one member at a time

    def inputs_of(self, inputs: Any) -> tuple[int, ...] | None:
        """The shape of one input where `dynsnap predict` can score in the same way, else None."""
        shape = getattr(inputs, "shape", None)
        kind = str(getattr(inputs, "dtype", ""))
        plain = shape is not None and "float" in kind and self._softmax and not self._own_forward
        return tuple(shape[1:]) if plain and shape is not None else None

    def __call__(self, weights: Weights, inputs: Any, classes: int, /) -> Scores:
        """Scores (inputs, classes) of one snapshot."""
        with self._lock:
            module = self._module(classes)
            try:
                module.load_state_dict({name: torch.as_tensor(v) for name, v in weights.items()})
            except RuntimeError as error:
                reason = " ".join(str(error).split())[:200]
                raise InputError(
                    f"The snapshot, of {classes} classes, does not fit the module that `build` "
                    f"gives: {reason}. Hand in what built the modules of the loop; where classes "
                    "are new, with a parameter `classes`."
                ) from error
            return on_one_thread(lambda: self._scores(module, inputs))

    def _module(self, classes: int) -> nn.Module:
        if classes not in self._modules:
            made = Blueprint(factory=self._build, classes=classes, offers={}).build()
            self._modules[classes] = made.to(self._device).eval()
        return self._modules[classes]

    def _scores(self, module: nn.Module, inputs: Any) -> Scores:
        own = next((one.dtype for one in module.parameters()), torch.float32)
        found = []
        with torch.inference_mode():
            for batch in batches(inputs, self._batch):
                outputs = self._forward(module, _placed(batch, self._device, own))
                logits = getattr(outputs, "logits", outputs)
                if not isinstance(logits, Tensor) or logits.ndim != 2:
                    shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits)
                    raise InputError(
                        f"The module must give a row of scores for each input, got {shape}. Hand "
                        "in `forward=` that picks them."
                    )
                rows = logits.float()
                found.append((rows.softmax(dim=1) if self._softmax else rows).cpu().numpy())
        return np.concatenate(found)


def _called(module: nn.Module, batch: Any) -> Any:
    return module(**batch) if isinstance(batch, Mapping) else module(batch)


def count_of(inputs: Any) -> int:
    """How many inputs there are: rows of an array, a tensor or a list, or of a dict of them.

    Raises:
        InputError: They have no length, or the values of a dict are of different lengths.
    """
    if isinstance(inputs, Mapping):
        counts = {name: count_of(values) for name, values in inputs.items()}
        if len(set(counts.values())) != 1:
            raise InputError(f"The inputs of a dict must be of one length, got {counts}.")
        return next(iter(counts.values()))
    try:
        if not is_dataset(inputs):
            return len(inputs)
    except TypeError:
        pass
    hint = " Stack the inputs of its items first." if is_dataset(inputs) else ""
    raise InputError(
        "Inputs must be an array, a tensor, a list or a dict of them, which have a length, got "
        f"{type(inputs).__name__}.{hint}"
    )


def batches(inputs: Any, size: int) -> Iterator[Any]:
    """The inputs in parts of at most so many rows, each of the kind that they are."""
    for start in range(0, count_of(inputs), size):
        rows = slice(start, start + size)
        yield (
            {name: values[rows] for name, values in inputs.items()}
            if isinstance(inputs, Mapping)
            else inputs[rows]
        )


def _placed(batch: Any, device: torch.device, floating: torch.dtype) -> Any:
    """A batch as tensors on a device; what no tensor can hold stays as it is."""
    if isinstance(batch, Mapping):
        return {name: _placed(values, device, floating) for name, values in batch.items()}
    array: AnyArray | Tensor = batch if isinstance(batch, Tensor) else np.asarray(batch)
    if not isinstance(array, Tensor) and array.dtype.kind not in "buif":
        return batch
    if not isinstance(array, Tensor) and not array.flags.writeable:
        array = array.copy()  # of a frame, which torch would warn of
    tensor = torch.as_tensor(array)
    return tensor.to(device, floating if tensor.is_floating_point() else None)


# --- learning from a deployed ensemble ----------------------------------------------------------


def check_distillation(weight: float, temperature: float) -> None:
    """Raise PlanError unless a teacher's weight and the temperature make sense."""
    Distillation(teacher="", weight=weight, temperature=temperature)


def taught_losses(logits: Tensor, labels: Tensor, *, weight: float, temperature: float) -> Tensor:
    """The loss of each row by its label and, where it has one, by its teacher.

    Args:
        logits: Of the student, (rows, classes).
        labels: Positions of classes, (rows,); or with a teacher (rows, 1 + classes): the position,
            then the teacher's scores, none above zero for a row without a teacher, and below zero
            for a class that the teacher does not know. Where labels have no say, that is zero:
            nothing else would keep rows of the other classes from it.
        weight: The weight of the teacher.
        temperature: What the logits of both are divided by.
    """
    if labels.ndim == 1:
        return nn.functional.cross_entropy(logits, labels, reduction="none")
    if labels.ndim != 2 or labels.shape[1] != 1 + logits.shape[1]:
        expected = (len(logits), 1 + logits.shape[1])
        raise InputError(
            f"Labels with a teacher must be (rows, 1 + classes), {expected}, but have the shape "
            f"{tuple(labels.shape)}. `taught_labels` makes them."
        )
    own, scores = labels[:, 0].long(), labels[:, 1:]
    labelled = nn.functional.cross_entropy(logits, own, reduction="none")
    softened = scores.clamp(min=0) ** (1 / temperature)
    total = softened.sum(dim=1, keepdim=True)
    targets = softened / total.clamp(min=1e-12)
    if weight < 1:
        targets = torch.where(scores < 0, UNKNOWN, targets)
    taught = soft_losses(logits, targets, temperature)
    return mixed(taught, labelled, weight * (total.squeeze(1) > 0).float())
