"""Where to compute, and how exactly."""

import contextlib
import importlib.util
import logging
from collections.abc import Iterator
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from dynsnap.errors import PlanError
from dynsnap.train._prepare import State

# Times an activation it is still a normal number, whose smallest is about 1e-38; added to anything
# that shows in a score it is nothing.
LEAST = 1e-30


def without_denormals(weights: State) -> State:
    """The weights with zeros for what is smaller than `LEAST`: the same scores.

    Example:
        >>> without_denormals({"kernel": torch.tensor([1e-31, 1e-29])})
        {'kernel': tensor([0.0000e+00, 1.0000e-29])}
    """
    return {name: _swept(value) for name, value in weights.items()}


def _swept(value: Tensor) -> Tensor:
    if not value.is_floating_point():
        return value
    denormals = (value.abs() < LEAST) & (value != 0)
    # Most need no second copy.
    return value.masked_fill(denormals, 0.0) if denormals.any() else value


@contextlib.contextmanager
def flushing_denormals() -> Iterator[None]:
    """Denormals are zero on this thread of a CPU, for as long as it lasts.

    Other threads of torch are as they were: there is no way to reach them.
    """
    before = float(torch.tensor(1e-39) * 1.0) == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]

log = logging.getLogger("dynsnap.train")


def choose_device(name: str) -> torch.device:
    """The device that a name stands for; "auto" is the best there is.

    Example:
        >>> choose_device("cpu")
        device(type='cpu')
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise PlanError(
            f'`device` must be "auto", "cpu", "cuda" or "mps", got {name!r}.'
        ) from error
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        raise PlanError(
            f'This machine, or this build of torch, has no device {name!r}. Use `device="auto"`.'
        )
    return device


def choose_precision(name: Precision, device: torch.device) -> torch.dtype:
    """The type that forward passes compute in; "auto" is bfloat16 on CUDA and float32 elsewhere.

    Example:
        >>> choose_precision("auto", torch.device("cpu"))
        torch.float32
    """
    if name not in ("auto", "float32", "bfloat16"):
        raise PlanError(f'`precision` must be "auto", "float32" or "bfloat16", got {name!r}.')
    if name == "bfloat16" and device.type == "mps":
        raise PlanError('`precision="bfloat16"` is for CUDA and the CPU; use "float32" on MPS.')
    mixed = name == "bfloat16" or (name == "auto" and device.type == "cuda")
    return torch.bfloat16 if mixed else torch.float32


def describe(device: torch.device, precision: torch.dtype) -> str:
    """The device in words."""
    kind = device.type.upper()
    if device.type == "cuda":
        kind = f"CUDA, {torch.cuda.get_device_name(device)}"
    return f"{kind}, {str(precision).removeprefix('torch.')}"


_KERNEL_TYPES = (torch.bfloat16, torch.float16, torch.float32)
_HAS_TRITON = importlib.util.find_spec("triton") is not None


def has_kernels(tensor: Tensor) -> bool:
    """Whether kernels written in Triton can work on a tensor."""
    return tensor.is_cuda and tensor.dtype in _KERNEL_TYPES and _HAS_TRITON
