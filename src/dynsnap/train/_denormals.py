"""Flush denormals to zero: they slow a CPU down by a factor of ten or more.

A penalty on kernels drives those of dead channels towards nothing, and after some 100,000 steps
their sums are subnormal, which processors compute in microcode (benchmarks/denormals.py).
"""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

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
