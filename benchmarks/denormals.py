"""Numbers too small to matter on a CPU: what they cost a residual network, and what is left of it.

    python benchmarks/denormals.py --share 0.1

A penalty on kernels makes such numbers in long trainings. Here the kernels of some channels of a
fresh network are scaled down to where their sums are subnormal. Seconds for 32 images on one
thread, the median of five: as torch computes them, and as dynsnap does.
"""

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from dynsnap.train._devices import flushing_denormals, without_denormals
from dynsnap.train.models import resnet


def seconds(step: Callable[[], object]) -> float:
    """The median of five calls after a first one."""
    times = []
    for _ in range(6):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def dusty(depth: int, share: float) -> nn.Module:
    """A network of whose channels some are dead: kernels of about 1e-38."""
    torch.manual_seed(0)
    model = resnet(depth, 100)
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, nn.Conv2d):
                part.weight[torch.rand(len(part.weight)) < share] *= 1e-37
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--depth", type=int, default=56)
    parser.add_argument("--share", type=float, default=0.1, help="of the channels")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    images, labels = torch.randn(32, 3, 32, 32), torch.randint(0, 100, (32,))
    model = dusty(arguments.depth, arguments.share)

    def scores(weights: dict[str, torch.Tensor]) -> Callable[[], object]:
        def step() -> object:
            with torch.inference_mode():
                return torch.func.functional_call(model.eval(), weights, (images,))

        return step

    def training(context: Callable[[], contextlib.AbstractContextManager[None]]) -> float:
        def step() -> None:
            with context():
                loss = functional.cross_entropy(model.train()(images), labels)
                torch.autograd.grad(loss, list(model.parameters()))

        return seconds(step)

    weights = dict(model.state_dict())
    rows = {
        "scores": (seconds(scores(weights)), seconds(scores(without_denormals(weights)))),
        "a step of training": (training(contextlib.nullcontext), training(flushing_denormals)),
    }
    print("| | torch | dynsnap | ratio |\n|---|---|---|---|")
    for name, (plain, ours) in rows.items():
        print(f"| {name} | {plain:.2f} s | {ours:.2f} s | {plain / ours:.0f} |")


if __name__ == "__main__":
    main()
