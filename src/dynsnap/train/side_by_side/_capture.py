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
    # On a stream of its own: graphs that are replayed beside each other must share no workspace.
    with torch.cuda.graph(graph, stream=side):
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


class Replays:
    """Captured steps that know nothing of each other: each goes ahead on a stream of its own."""

    def __init__(self, steps: Sequence[Step], device: torch.device) -> None:
        self.steps, self._device = steps, device
        several = device.type == "cuda" and len(steps) > 1
        self._streams: list[Any] = [
            torch.cuda.Stream(device) if several else None  # type: ignore[no-untyped-call]
            for _ in steps
        ]

    def run(self, which: Sequence[int], times: int) -> None:
        """Replay some of the steps so often."""
        streams = [self._streams[place] for place in which]
        used = [stream for stream in streams if stream is not None]
        for stream in used:
            stream.wait_stream(torch.cuda.current_stream(self._device))
        for _ in range(times):
            for place, stream in zip(which, streams, strict=True):
                with torch.cuda.stream(stream):  # None: where we are
                    self.steps[place]()
        for stream in used:
            torch.cuda.current_stream(self._device).wait_stream(stream)
