"""Sizes of the programs that convolve in residual blocks: which are fastest on this GPU.

    python benchmarks/block_sizes.py --rounds 18 --save sizes.json

For each stage of a ResNet-56 in bfloat16, and for what follows the convolution, every number of
places, threads and loads ahead is timed; all have to compute what the first does. `_block_fast` has
the sizes that were fastest on one H200.
"""

import argparse
import itertools
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from dynsnap.train.side_by_side import _block_fast as fast
from dynsnap.train.side_by_side._convolution_fast import Size

STAGES = ((32, 16), (16, 32), (8, 64))  # side, channels
BATCH = 32
ENDINGS = ("measured", "masked", "added")


def candidates(channels: int) -> list[Size]:
    blocks = (128, 256) if channels < 64 else (64, 128)
    ahead = (1, 2, 3) if channels == 16 else (2, 3, 4)
    at_once = [
        Size(block=block, warps=warps, stages=stages)
        for block, warps, stages in itertools.product(blocks, (4, 8), ahead)
    ]
    if channels == 64:  # too few rows to go down
        return at_once
    side = 512 // channels
    return at_once + [
        Size(block=block, warps=warps, stages=stages, rows=rows)
        for (block, warps), stages, rows in itertools.product(
            ((64, 4), (128, 8)), (2, 3), (side // 8, side // 4, side // 2)
        )
    ]


class Task:
    """Some convolutions of a stage, on other images each."""

    def __init__(self, side: int, channels: int, ending: str, rounds: int, copies: int) -> None:
        generator = torch.Generator("cuda").manual_seed(0)

        def draw(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator, device="cuda")

        shape = (rounds * BATCH, side, side, channels)
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


def compiled(work: tuple[int, int, str, int, list[Size]]) -> None:
    side, channels, ending, rounds, sizes = work
    task = Task(side, channels, ending, rounds, 1)
    for size in sizes:
        fast.SIZES[channels, ending] = size
        try:
            task.run()
        except Exception as error:  # too large for a multiprocessor
            print(channels, ending, size, type(error).__name__, flush=True)
    torch.cuda.synchronize()


def timed(task: Task, repeats: int) -> float:
    task.run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(4):
            task.run()
    graph.replay()
    took = []
    for _ in range(5):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        for _ in range(repeats):
            graph.replay()
        ended.record()
        torch.cuda.synchronize()
        took.append(begun.elapsed_time(ended) / repeats / 4 / len(task.images) * 1e3)
    return sorted(took)[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=18)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    tasks = [(*stage, ending) for stage in STAGES for ending in ENDINGS]
    work = [
        (side, channels, ending, arguments.rounds, candidates(channels)[start::4])
        for side, channels, ending in tasks
        for start in range(4)
    ]
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        list(pool.map(compiled, work))
    best = {}
    print("| channels | ending | places | warps | stages | rows | µs | error |")
    print("|---|---|---|---|---|---|---|---|")
    for side, channels, ending in tasks:
        task = Task(side, channels, ending, arguments.rounds, 4)
        fast.SIZES.pop((channels, ending), None)
        usual = fast._size(task.images[0][0], ending, paired=channels == 16)
        expected, times = task.run(), {}
        for size in [usual, *candidates(channels)]:
            fast.SIZES[channels, ending] = size
            try:
                found = task.run()
                took = timed(task, arguments.repeats)
            except Exception as error:
                print(f"| {channels} | {ending} | {size} | {type(error).__name__} |")
                continue
            error = max(
                float((a.float() - b.float()).abs().max())
                for a, b in zip(found, expected, strict=True)
            )
            if error < 0.05:
                times[size] = took
            print(
                f"| {channels} | {ending} | {size.block} | {size.warps} | {size.stages} | {size.rows} | "
                f"{took:.1f} | {error:.4f} |{' (today)' if size == usual else ''}",
                flush=True,
            )
        best[channels, ending] = min(times, key=times.__getitem__)
        fast.SIZES.pop((channels, ending))
    for (channels, ending), size in best.items():
        print("best", channels, ending, size)
    if arguments.save:
        rows = [
            [*key, size.block, size.warps, size.stages, size.rows] for key, size in best.items()
        ]
        arguments.save.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
