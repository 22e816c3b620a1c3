"""Where kernels of our own can run."""

import importlib.util

from torch import Tensor

_HAS_TRITON = importlib.util.find_spec("triton") is not None


def has_kernels(tensor: Tensor) -> bool:
    """Whether kernels written in Triton can work on a tensor."""
    return tensor.is_cuda and _HAS_TRITON
