"""Fused residual blocks on one GPU: what starting kernels early and a second stream bring.

    python benchmarks/blocks.py --rounds 9 18

All blocks of a ResNet-56 that keep their shape, at the paper's sizes, forward and backward as one
CUDA graph, batch 32, in bfloat16: microseconds of the whole chain, with kernels that start early or
not, and gradients of convolution kernels beside the others or not. Every way has to compute the
same bits, and the script fails where one does not.
"""

import argparse
import itertools
import json
import time

import torch

from dynsnap.train.side_by_side import _block_fast as fast
from dynsnap.train.side_by_side._convolution_fast import Size

STAGES = ((32, 16, 9), (16, 32, 8), (8, 64, 8))  # side, channels, blocks
BATCH = 32


class Chain:
    """Blocks one behind the other: every block is shown what the one before it shows."""

    def __init__(self, side: int, channels: int, blocks: int, rounds: int) -> None:
        generator = torch.Generator("cuda").manual_seed(side)

        def draw(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
            return torch.randn(shape, generator=generator, device="cuda").to(dtype)

        self.rounds = rounds
        half = torch.bfloat16
        self.images = draw(rounds * BATCH, side, side, channels, dtype=half)
        self.slopes = draw(rounds * BATCH, side, side, channels, dtype=half)
        shape = (rounds * channels, 3, 3, channels)
        self.halves = [
            [
                (
                    (draw(*shape) / (3 * channels**0.5)).to(half),
                    1 + draw(rounds * channels) / 10,
                    draw(rounds * channels) / 10,
                )
                for _ in range(2)
            ]
            for _ in range(blocks)
        ]

    def step(self) -> list[torch.Tensor]:
        kept, given = [], self.images
        for (first, weight, bias), (second, weight_then, bias_then) in self.halves:
            rounds = self.rounds
            found, moments, inner = fast.forward(given, first, weight, bias, None, rounds, 1e-3)
            found_then, moments_then, shown = fast.forward(
                inner, second, weight_then, bias_then, given, rounds, 1e-3
            )
            kept.append(
                (
                    fast.Half(first, weight, given, found, moments, inner),
                    fast.Half(second, weight_then, inner, found_then, moments_then, shown),
                )
            )
            given = shown
        gradients, slopes = [given], self.slopes
        for one, two in reversed(kept):
            slopes, *others = fast.backward(slopes, one, two, self.rounds)
            gradients += others
        return [*gradients, slopes]


def measured(chains: list[Chain], repeats: int) -> tuple[float, float, list[torch.Tensor]]:
    """Microseconds of a step as one graph, seconds of its first run, and what it computes."""
    start = time.perf_counter()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for chain in chains:
            chain.step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = [value for chain in chains for value in chain.step()]
    return replayed(graph, repeats), first, [value.clone() for value in results]


def replayed(graph: torch.cuda.CUDAGraph, repeats: int) -> float:
    """Microseconds of a graph: the median of five."""
    for _ in range(5):
        graph.replay()
    took = []
    for _ in range(5):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        for _ in range(repeats):
            graph.replay()
        ended.record()
        torch.cuda.synchronize()
        took.append(begun.elapsed_time(ended) / repeats * 1e3)
    return sorted(took)[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, nargs="+", default=[9, 18])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--sizes", type=argparse.FileType(), help="from block_sizes.py")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This measures a GPU, and there is none here.")
    for channels, ending, block, warps, stages, rows in (
        json.load(arguments.sizes) if arguments.sizes else []
    ):
        fast.SIZES[channels, ending] = Size(block=block, warps=warps, stages=stages, rows=rows)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print("| rounds | early | beside | µs | first run, s | equal |")
    print("|---|---|---|---|---|---|")
    wrong = 0
    for rounds in arguments.rounds:
        chains, expected = [Chain(*stage, rounds) for stage in STAGES], None
        for early, beside in itertools.product((False, True), repeat=2):
            fast.EARLY, fast.BESIDE = early, beside
            took, first, found = measured(chains, arguments.repeats)
            expected = expected or found
            equal = all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
            equal &= all(bool(value.isfinite().all()) for value in found)
            wrong += not equal
            print(
                f"| {rounds} | {early} | {beside} | {took:.0f} | {first:.1f} | {equal} |",
                flush=True,
            )
    if wrong:
        raise SystemExit(f"{wrong} ways computed something else.")


if __name__ == "__main__":
    main()
