"""Members as plain torch modules: from inputs as the caller has them to scores, weights inside."""

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dynsnap.errors import FileError, PlanError
from dynsnap.train._factory import Blueprint
from dynsnap.train._preparations import from_header
from dynsnap.train._prepare import (
    Features,
    Images,
    ImagesFirst,
    Pixels,
    PixelsFirst,
    Preparation,
)
from dynsnap.train._weights import StoredLearner, check_claims
from dynsnap.train.side_by_side._group import GroupedNetwork, can_be_grouped

OPSET = 20
_PREPARED = "prepared_"  # before names of buffers: ONNX names results of operators "mean" as well


class MemberModule(nn.Module):
    """One member as a module of its own: preparation, network and softmax.

    Its inputs are those of `predict`: (batch, height, width, channels) for images, or (batch,
    channels, height, width) where the preparation says so; bytes where the member was trained on
    bytes. Its output is (batch, classes), rows that sum to one.

    Args:
        network: The caller's module, with the member's weights.
        prepare: How inputs are prepared.
        prepared: What the preparation has fitted.
        shape: The shape of one input as the caller has it.
    """

    def __init__(
        self,
        network: nn.Module,
        prepare: Preparation,
        prepared: Mapping[str, Tensor],
        shape: Sequence[int],
    ) -> None:
        super().__init__()
        self.network = network
        self._prepare = prepare
        self._names = tuple(prepared)
        for name, value in prepared.items():
            self.register_buffer(_PREPARED + name, value)
        self._images = isinstance(prepare, Images | ImagesFirst | Pixels)
        self._last = self._images and _channels_last(prepare)
        self._grey = self._images and len(shape) == 2
        self.shape = tuple(shape)
        self.dtype = torch.uint8 if isinstance(prepare, Pixels) else torch.float32

    @property
    def takes(self) -> str:
        """What the inputs are: "images" or "features"."""
        return "images" if self._images else "features"

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.softmax(self.network(self._prepared_input(inputs)).float(), -1)

    def _of_input(self, inputs: Tensor) -> Tensor:
        """Inputs as the caller has them, in the shape that the network takes."""
        raw = inputs.unsqueeze(-1) if self._grey else inputs
        raw = raw.permute(0, 3, 1, 2) if self._last else raw
        return raw if isinstance(self._prepare, Pixels) else raw.float()

    def _prepared_input(self, inputs: Tensor) -> Tensor:
        bound = {name: getattr(self, _PREPARED + name) for name in self._names}
        return self._prepare.apply(self._of_input(inputs), bound)

    def example(self, rows: int = 2) -> Tensor:
        """Inputs of the right shape and type."""
        return torch.zeros(rows, *self.shape, dtype=self.dtype)


def member_modules(
    weights: Sequence[bytes],
    *,
    model: Callable[..., nn.Module],
    shape: Sequence[int] | None = None,
) -> list[MemberModule]:
    """Stored learners as plain modules in evaluation mode, on the CPU.

    Args:
        weights: Learners as a round stores them, of one task.
        model: The factory that they were trained with.
        shape: The shape of one input, where it is known; bytes of images may lack channels.

    Raises:
        PlanError: A module cannot do what the learners do: drawing dropout, reading texts, or a
            preparation of the caller's own.
    """
    made = []
    for content in weights:
        one = StoredLearner.from_bytes(content)
        blueprint = Blueprint(factory=model, classes=one.classes, offers=one.offers)
        if one.passes > 1:
            raise PlanError(
                "The members draw dropout anew for each of their passes (mcdropout), which no "
                "plain module or graph repeats. Use an ensemble of another method."
            )
        if one.prepare is None:
            raise PlanError(
                "The members were trained with a preparation of your own, which is Python code. "
                "Prepare the inputs before the ensemble, and train it with prepare='features'."
            )
        prepare = from_header(one.prepare)
        if not isinstance(prepare, Features | Pixels):
            raise PlanError(
                "The members read texts: cutting a text into the words of a vocabulary is no "
                "operator of a plain module or graph. Serve this ensemble with `predict`."
            )
        check_claims([one], blueprint=blueprint, prepare=prepare, members=None, classes=None)
        network = blueprint.build(dropout=one.dropout)
        network.load_state_dict(one.weights)
        own = _own_shape(prepare, one.offers["inputs"], shape)
        made.append(MemberModule(network, prepare, one.prepared, own).eval())
    for module in made:
        module.requires_grad_(False)
    return made


def _own_shape(
    prepare: Preparation, inputs: Sequence[int], given: Sequence[int] | None
) -> tuple[int, ...]:
    """The shape of one input as a caller has it, from that which the module is fed."""
    if not isinstance(prepare, Images | ImagesFirst | Pixels):
        return tuple(inputs)
    channels, height, width = inputs
    last = _channels_last(prepare)
    own = (height, width, channels) if last else (channels, height, width)
    if given is None or tuple(given) == own:
        return own
    if isinstance(prepare, Pixels) and last and channels == 1 and tuple(given) == (height, width):
        return height, width
    raise FileError(
        f"The ensemble states inputs of the shape {tuple(given)}, but its learners take {own}."
    )


def _channels_last(prepare: Preparation) -> bool:
    """Whether images come as (batch, height, width, channels)."""
    return not isinstance(prepare, ImagesFirst | PixelsFirst)


class StackedModule(nn.Module):
    """All members as one network, for inputs that come one by one.

    A small network spends most of its time between its layers; stacked, the layers of all members
    are one each. It gives (members, batch, classes).

    Args:
        members: Modules of one structure.

    Raises:
        PlanError: The members cannot be computed as one network.
    """

    def __init__(self, members: Sequence[MemberModule]) -> None:
        super().__init__()
        first, count = members[0], len(members)
        if len({_structure(one) for one in members}) > 1:
            raise PlanError(
                "Members of different structure cannot be stacked: members of a rolling ensemble "
                "may know different classes. Use them one by one."
            )
        self._of_input = first._of_input
        for name in first._names:
            values = [getattr(one, _PREPARED + name) for one in members]
            self.register_buffer(_PREPARED + name, torch.stack(values).unsqueeze(1))
        self._names, self._prepare, self._count = first._names, first._prepare, count
        sample = first._prepared_input(first.example(2))
        if not can_be_grouped(first.network, sample):
            raise PlanError(
                f"{type(first.network).__name__} has layers that cannot be computed for many "
                "members at once. Use them one by one."
            )
        grouped = GroupedNetwork(first.network, count)
        tensors = grouped.module.state_dict(keep_vars=True)
        with torch.no_grad():
            for place, one in enumerate(members):
                for name, value in grouped.fold(one.network.state_dict()).items():
                    tensors[name].unflatten(0, (count, -1))[place].copy_(value)
        self.network = grouped.module.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        bound = {name: getattr(self, _PREPARED + name) for name in self._names}
        # The preparation of every member is its own, and elementwise.
        prepared = self._prepare.apply(self._of_input(inputs).unsqueeze(0), bound)
        prepared = prepared.expand(self._count, *prepared.shape[1:])
        logits = self.network(prepared.flatten(0, 1).contiguous())
        return torch.softmax(logits.float(), -1).view(self._count, -1, logits.shape[-1])


def _structure(module: MemberModule) -> str:
    state = [(name, tuple(v.shape), v.dtype) for name, v in module.state_dict().items()]
    return f"{module}{module.shape}{state}"


# --- ONNX -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ExportedModule:
    """A module as an ONNX model, and its weights by the names that the graph has for them."""

    model: Any
    weights: Mapping[str, Tensor]


def export_modules(modules: Sequence[MemberModule]) -> Iterator[ExportedModule]:
    """Each module as an ONNX model, by torch.export.

    Modules of one structure are traced once: what the trace found holds for the others, whose
    weights take the places of the first one's.

    Raises:
        PlanError: Something in a module has no counterpart in ONNX; names the member, the layer and
            the operator.
    """
    traced: dict[str, Any] = {}
    for number, module in enumerate(modules):
        state = dict(module.state_dict())
        key = _structure(module)
        found = traced.get(key)
        if found is None:
            try:
                found = _traced(module, module.example())
            except Exception as error:  # torch has dozens of ways to say that it cannot
                raise _unsupported(module, number, error) from error
            if not _holds(found, state):
                # A weight went into another constant: the trace is of this module alone.
                yield ExportedModule(found, {})
                continue
            traced[key] = found
        yield ExportedModule(found, state)


def _holds(traced: Any, state: Mapping[str, Tensor]) -> bool:
    """Whether a graph has all weights of a module as they are, so that others may replace them."""
    stored = {one.name: one.raw_data for one in traced.graph.initializer}
    return all(
        stored.get(name) == value.contiguous().numpy().tobytes()
        for name, value in state.items()
        if not name.endswith("num_batches_tracked")
    )


def _traced(module: nn.Module, example: Tensor) -> Any:
    with _quietly():
        program = torch.onnx.export(
            module,
            (example,),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
            input_names=["inputs"],
            output_names=["scores"],
            opset_version=OPSET,
            verbose=False,
            # It would fold batch norm into other weights; onnxruntime does so when it loads them.
            optimize=False,
        )
    assert program is not None
    return program.model_proto


def _unsupported(module: MemberModule, number: int, error: Exception) -> PlanError:
    layer, kind = _culprit(module, module.example())
    found = re.search(
        r"\b(?:torch\.ops\.)?(aten|prims|torchvision|quantized)[.:]+(\w+)", str(error)
    )
    operator = f", operator {found[1]}.{found[2]}" if found else ""
    reason = "" if found else f" Torch reports: {_reason(error)}."
    return PlanError(
        f"Member {number} cannot be exported to ONNX: its layer {layer!r} ({kind}{operator}) has "
        f"no counterpart there.{reason} Replace that layer and train again, or serve the ensemble "
        "with `predict`."
    )


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(("Failed to export", "-", "#"))]
    return (told[0] if told else type(error).__name__).rstrip(".")[:200]


def _culprit(module: nn.Module, example: Tensor) -> tuple[str, str]:
    """The innermost layer that cannot be exported alone, with the inputs that it gets."""
    name, part, inputs = "", module, (example,)
    while True:
        for child_name, child, given in _calls(part, inputs):
            if not _exportable(child, given):
                name, part, inputs = f"{name}.{child_name}".lstrip("."), child, given
                break
        else:
            break
    return name.removeprefix("network.") or "forward", type(part).__name__


def _calls(
    module: nn.Module, inputs: tuple[Any, ...]
) -> list[tuple[str, nn.Module, tuple[Any, ...]]]:
    """The direct parts of a module that a forward pass calls, in order, and their inputs."""
    found: list[tuple[str, nn.Module, tuple[Any, ...]]] = []
    hooks = [
        part.register_forward_pre_hook(
            lambda part, given, name=name: found.append((name, part, given))
        )
        for name, part in _nearest(module)
    ]
    try:
        with torch.no_grad(), contextlib.suppress(Exception):
            module(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _nearest(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The children of a module; lists and dicts of modules are never called, so theirs instead."""
    for name, part in module.named_children():
        if isinstance(part, nn.ModuleList | nn.ModuleDict):
            yield from _nearest(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", part


def _exportable(module: nn.Module, inputs: tuple[Any, ...]) -> bool:
    if not all(isinstance(one, Tensor) for one in inputs):
        return True  # it cannot be asked alone
    try:
        with _quietly():
            torch.onnx.export(module, inputs, dynamo=True, opset_version=OPSET, verbose=False)
    except Exception:  # whatever it is, the layer is not exportable
        return False
    return True


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep torch from describing its progress: what is wrong is raised."""
    log, level = logging.getLogger("torch.onnx"), logging.getLogger("torch.onnx").level
    log.setLevel(logging.ERROR)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
