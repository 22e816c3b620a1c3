"""Where to compute, and how exactly."""

import logging
from typing import Literal, TypeAlias

import torch

from dynsnap.errors import PlanError

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
