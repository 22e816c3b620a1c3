"""Replaying a step as one CUDA graph instead of thousands of launches."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Step = Callable[[], None]


def captured(step: Step, state: list[Tensor]) -> Step:
    """The same step as a graph; the tensors of `state` are as they were before.

    Compiling and warming up run the step for real, so what it changed is put back in place: the
    graph holds addresses.
    """
    device = state[0].device
    if device.type != "cuda":
        return step
    before = [value.detach().clone() for value in state]
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream(device).wait_stream(side)
    graph: Any = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    with torch.no_grad():
        torch._foreach_copy_([value.detach() for value in state], before)
    replay: Step = graph.replay
    return replay


def beside(steps: Sequence[Step]) -> None:
    """Run steps beside each other: on a GPU each on a stream of its own, elsewhere in turn."""
    if len(steps) == 1 or not torch.cuda.is_available():
        for step in steps:
            step()
        return
    main = torch.cuda.current_stream()
    streams = [torch.cuda.Stream() for _ in steps]  # type: ignore[no-untyped-call]
    for step, stream in zip(steps, streams, strict=True):
        stream.wait_stream(main)
        with torch.cuda.stream(stream):
            step()
    for stream in streams:
        main.wait_stream(stream)
