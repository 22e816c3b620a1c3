"""Where kernels of our own can run."""

import importlib.util

import torch
from torch import Tensor

_TYPES = (torch.bfloat16, torch.float16, torch.float32)
_HAS_TRITON = importlib.util.find_spec("triton") is not None


def has_kernels(tensor: Tensor) -> bool:
    """Whether kernels written in Triton can work on a tensor."""
    return tensor.is_cuda and tensor.dtype in _TYPES and _HAS_TRITON
