"""Numbers too small to matter, on which a CPU is tens of times slower.

A penalty on kernels drives those of dead channels towards nothing, and after some 100,000 steps
their sums are subnormal, which processors compute in microcode. A ResNet-56 after 200 epochs of
CIFAR-100, in float32 on one core, took 5.1 s for the scores of 32 images, and 0.13 s without them;
a step of training took 11 s and 0.4 s (benchmarks/dust.py).
"""

import contextlib
from collections.abc import Iterator

import torch

from dynsnap.train._prepare import State

# Times an activation it is still a normal number, whose smallest is about 1e-38; added to anything
# that shows in a score it is nothing.
LEAST = 1e-30


def without_dust(weights: State) -> State:
    """The weights with zeros for what is smaller than `LEAST`: the same scores.

    Example:
        >>> without_dust({"kernel": torch.tensor([1e-31, 1e-29])})
        {'kernel': tensor([0.0000e+00, 1.0000e-29])}
    """
    return {
        name: torch.where(value.abs() < LEAST, 0.0, value) if value.is_floating_point() else value
        for name, value in weights.items()
    }


@contextlib.contextmanager
def ignoring_dust() -> Iterator[None]:
    """Subnormal numbers count as nothing on this thread of a CPU, for as long as it lasts.

    Other threads of torch are as they were: there is no way to reach them.
    """
    before = float(torch.tensor(1e-39) * 1.0) == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
