"""Convolutions of many rounds on one GPU: our kernels against cuDNN's grouped ones, in one run.

    python benchmarks/convolutions.py --rounds 34 --batch 128
    python benchmarks/convolutions.py --rounds 36 --batch 32

The three stages of the paper's ResNets in bfloat16, microseconds: the convolution, its gradient of
the images, and that of the kernels. cuDNN gets the layout that it likes best, channels last with
all rounds' channels side by side.
"""

import argparse
import statistics
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from dynsnap.train.side_by_side import _convolution_fast as fast
from dynsnap.train.side_by_side._window import KEEPING_SHAPE

STAGES = ((32, 16), (16, 32), (8, 64))  # side of the image, channels


def microseconds(step: Callable[[], object], repeats: int = 10) -> float:
    """The median of five groups of launches, one behind the other."""
    step()
    times = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(repeats):
            step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / repeats)
    return statistics.median(times)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def ours(rounds: int, batch: int, side: int, channels: int) -> list[float]:
    images = random(rounds * batch, side, side, channels)
    kernels = random(rounds * channels, 3, 3, channels)
    gradient = torch.randn_like(images)
    size = (side, side)
    return [
        microseconds(lambda: fast.convolve(images, kernels, rounds, KEEPING_SHAPE, size)),
        microseconds(lambda: fast.back_to_images(gradient, kernels, rounds, KEEPING_SHAPE, size)),
        microseconds(lambda: fast.back_to_kernels(gradient, images, rounds, KEEPING_SHAPE)),
    ]


def cudnn(rounds: int, batch: int, side: int, channels: int) -> list[float]:
    def last(*shape: int) -> Tensor:
        return random(*shape).contiguous(memory_format=torch.channels_last).requires_grad_()

    images, kernels = (
        last(batch, rounds * channels, side, side),
        last(rounds * channels, channels, 3, 3),
    )
    result = functional.conv2d(images, kernels, padding=1, groups=rounds)
    gradient = torch.randn_like(result)
    back = torch.autograd.grad
    return [
        microseconds(lambda: functional.conv2d(images, kernels, padding=1, groups=rounds)),
        microseconds(lambda: back(result, images, gradient, retain_graph=True)),
        microseconds(lambda: back(result, kernels, gradient, retain_graph=True)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=34)
    parser.add_argument("--batch", type=int, default=128)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This measures a GPU, and there is none here.")
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {arguments}")
    print("| channels | ours | cuDNN | cuDNN / ours |")
    print("|---|---|---|---|")
    for side, channels in STAGES:
        shape = arguments.rounds, arguments.batch, side, channels
        mine, theirs = ours(*shape), cudnn(*shape)
        rows = [", ".join(f"{value:.0f}" for value in row) for row in (mine, theirs)]
        print(f"| {channels} | {rows[0]} | {rows[1]} | {sum(theirs) / sum(mine):.1f} |", flush=True)


if __name__ == "__main__":
    main()
