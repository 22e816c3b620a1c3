"""Sizes of the programs that convolve in residual blocks: which are fastest on this GPU.

    python benchmarks/block_sizes.py --loads 24x32 36x128 --save sizes.json

For each stage of the paper's ResNets in bfloat16, for what follows the convolution, and for each
load (rounds x batch), every number of places, threads, loads ahead and rows is timed; all have to
compute what the first does. The best has the lowest sum of times, each as a share of today's.
`_block_fast` has the sizes that were best on one H200.
"""

import argparse
import itertools
import json
import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from blocks import replayed

from dynsnap.train.side_by_side import _block_fast as fast
from dynsnap.train.side_by_side._convolution_fast import Size

fast.PROGRAMS = 0  # programs go down the rows however few they are: that is to be measured
STAGES = ((32, 16), (16, 32), (8, 64))  # side, channels
ENDINGS = ("measured", "masked", "added", "rectified", "carried")


def candidates(channels: int, ending: str) -> list[Size]:
    blocks = (128, 256) if channels < 64 else (64, 128)
    ahead = (1, 2, 3) if channels == 16 else (2, 3, 4)
    at_once = [
        Size(block=block, warps=warps, stages=stages)
        for block, warps, stages in itertools.product(blocks, (4, 8), ahead)
    ]
    if channels > 16 or ending in ("measured", "masked"):
        return at_once
    return at_once + [
        Size(block=block, warps=warps, stages=stages, rows=rows)
        for (block, warps), stages, rows in itertools.product(
            ((64, 4), (128, 8)), (2, 3), (4, 8, 16)
        )
    ]


class Task:
    """Some convolutions of a stage, on other images each."""

    def __init__(
        self, side: int, channels: int, ending: str, rounds: int, batch: int, copies: int
    ) -> None:
        generator = torch.Generator("cuda").manual_seed(0)

        def draw(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator, device="cuda")

        shape = (rounds * batch, side, side, channels)
        self.images = [[draw(*shape).bfloat16() for _ in range(3)] for _ in range(copies)]
        self.kernels = draw(rounds * channels, 3, 3, channels).bfloat16() / channels
        self.moments = draw(3, rounds * channels).abs()
        self.ending, self.rounds = ending, rounds

    def run(self) -> list[torch.Tensor]:
        found = []
        for source, shown, other in self.images:
            more = () if self.ending == "measured" else (shown, other, self.moments)
            found.append(fast._convolved(source, self.kernels, self.rounds, self.ending, *more)[0])
        return found


def compiled(work: tuple[int, int, str, list[Size]]) -> None:
    side, channels, ending, sizes = work
    task = Task(side, channels, ending, 2, 32, 1)
    for size in sizes:
        fast.SIZES[channels, ending] = size
        try:
            task.run()
        except Exception as error:  # too large for a multiprocessor
            print(channels, ending, size, type(error).__name__, flush=True)
    torch.cuda.synchronize()


def timed(task: Task, repeats: int) -> float:
    """Microseconds of one convolution."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(4):
            task.run()
    return replayed(graph, repeats) / 4 / len(task.images)


def compared(
    side: int, channels: int, ending: str, loads: list[tuple[int, int]], repeats: int
) -> Size:
    """The best size of one convolution; prints them all."""
    sums: dict[Size, float] = {}
    kept = fast.SIZES.get((channels, ending))
    for rounds, batch in loads:
        task = Task(side, channels, ending, rounds, batch, 4)
        today = fast._size(task.images[0][0], rounds, ending)
        expected, usual = task.run(), 0.0
        for size in dict.fromkeys([today, *candidates(channels, ending)]):
            fast.SIZES[channels, ending] = size
            if fast._size(task.images[0][0], rounds, ending) != size:
                print(f"| {channels} | {ending} | {size} | does not fit |")
                sums[size] = math.inf
                continue
            try:
                found = task.run()
            except Exception as error:  # too large for a multiprocessor
                print(f"| {channels} | {ending} | {size} | {type(error).__name__} |")
                sums[size] = math.inf
                continue
            took = timed(task, repeats)
            usual = usual or took
            error = max(
                float((a.float() - b.float()).abs().max() / b.float().abs().max())
                for a, b in zip(found, expected, strict=True)
            )
            worth = took / usual if error < 0.01 else math.inf  # bfloat16 keeps eight bits
            sums[size] = sums.get(size, 0.0) + worth
            print(
                f"| {channels} | {ending} | {rounds}x{batch} | {size.block} | {size.warps} | "
                f"{size.stages} | {size.rows} | {took:.1f} | {worth:.2f} | {error:.4f} |",
                flush=True,
            )
        if kept is None:
            del fast.SIZES[channels, ending]
        else:
            fast.SIZES[channels, ending] = kept
    best = min(sums, key=sums.__getitem__)
    print(f"best: {channels} {ending} {best}: {sums[best] / len(loads):.2f}", flush=True)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--loads", nargs="+", default=["24x32", "36x128"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    loads = [(int(one.split("x")[0]), int(one.split("x")[1])) for one in arguments.loads]
    tasks = [(*stage, ending) for stage in STAGES for ending in ENDINGS]
    work = [
        (side, channels, ending, candidates(channels, ending)[start::4])
        for side, channels, ending in tasks
        for start in range(4)
    ]
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        list(pool.map(compiled, work))
    print("| channels | ending | load | places | warps | stages | rows | µs | share | error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    for side, channels, ending in tasks:
        best = compared(side, channels, ending, loads, arguments.repeats)
        rows.append([channels, ending, best.block, best.warps, best.stages, best.rows])
        if arguments.save:
            arguments.save.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
