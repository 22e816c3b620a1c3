"""Compile every kernel for an H100 or H200 as the paper's ResNets launch it, without such a GPU.

    python benchmarks/compile_kernels.py
    python benchmarks/compile_kernels.py --quick    each in one or two of its shapes
    python benchmarks/compile_kernels.py --gpu 86 --shared 101376 --float32    for a smaller GPU

Triton's interpreter computes with them, but takes what the compiler refuses. Prints a line for each
kernel that was compiled: its name, and the bytes that it shares between threads. Fails if these are
more than the GPU has.
"""

import argparse
import inspect
import re

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from dynsnap.train.side_by_side import _block_fast as block
from dynsnap.train.side_by_side import _convolution_fast as fast
from dynsnap.train.side_by_side._convolution_kernels import STARTS_EARLY
from dynsnap.train.side_by_side._window import Window

POINTERS = {torch.bfloat16: "*bf16", torch.float32: "*fp32"}
ROUNDS, BATCH = 2, 32
TOUCH = re.compile(r"\b(ld|st|atom|red)\.(global|relaxed|v\d)|cp\.async")
# image side, channels, filters, kernel side, stride, before
CONVOLUTIONS = (
    (32, 4, 16, 3, 1, 1),
    (32, 16, 32, 3, 2, 0),
    (32, 16, 32, 1, 2, 0),
    (16, 32, 64, 3, 2, 0),
    (16, 32, 64, 1, 2, 0),
)
BLOCKS = ((32, 16), (16, 32), (8, 64))


def compiled(kernel, arguments, options):
    """A kernel for these arguments, which are looked at as a launch looks at them."""
    bound = inspect.signature(kernel.fn).bind(*arguments, **options)
    signature, constants, divisible = {}, {}, {}
    for place, (name, value) in enumerate(bound.arguments.items()):
        if kernel.params[place].is_constexpr or (isinstance(value, int) and value == 1):
            signature[name], constants[place,] = "constexpr", value
            continue
        pointer = isinstance(value, torch.Tensor)
        whole = "fp32" if isinstance(value, float) else "i32"
        signature[name] = POINTERS[value.dtype] if pointer else whole
        if pointer or (whole == "i32" and value % 16 == 0):
            divisible[place,] = [["tt.divisibility", 16]]
    return ASTSource(kernel, signature, constexprs=constants, attrs=divisible)


def launched(convolutions, blocks, dtype, room, *, hopper):
    """All launches of a training step, each once: kernel, arguments, warps and stages."""
    launches = {}

    def note(self, *arguments, grid, warmup, num_warps=4, num_stages=3, **options):
        further = {"launch_pdl": options.pop("launch_pdl", False)}
        further |= {"num_warps": num_warps, "num_stages": num_stages}
        source = compiled(self, arguments, options)
        kind = repr((self.fn.__name__, source.signature, source.constants, further))
        launches.setdefault(kind, (source, further))

    JITFunction.run = note
    if hopper and STARTS_EARLY:
        block._launch = lambda *_, **how: {"EARLY": True, "launch_pdl": not how}
    fast.shared_memory = block.shared_memory = lambda _: room
    block.PROGRAMS = 0  # so few rounds would not go down the rows
    half = {"dtype": dtype}
    for side, channels, filters, kernel, stride, before in convolutions:
        window = Window(side=kernel, stride=stride, before=before)
        images = torch.empty(ROUNDS * BATCH, side, side, channels, **half)
        kernels = torch.empty(ROUNDS * filters, kernel, kernel, channels, **half)
        found = fast.convolve(images, kernels, ROUNDS, window, (side // stride,) * 2)
        fast.back_to_images(found, kernels, ROUNDS, window, (side, side))
        fast.back_to_kernels(found, images, ROUNDS, window)
    for side, channels in blocks:
        images = torch.empty(ROUNDS * BATCH, side, side, channels, **half)
        kernels = torch.empty(ROUNDS * channels, 3, 3, channels, **half)
        weight = torch.empty(ROUNDS * channels)
        for carried in (None, images):
            block.forward(images, kernels, weight, weight, carried, ROUNDS, 1e-3)
            block.look(images, kernels, torch.empty(2, len(weight)), carried, ROUNDS)
        kept = block.Half(kernels, weight, images, images, torch.empty(3, len(weight)), images)
        block.backward(images, kept, kept, ROUNDS)
    return list(launches.values())


def check_wait(code):
    """A kernel that may start early must not touch memory before it has waited."""
    lines = code.splitlines()
    waits = [place for place, line in enumerate(lines) if "griddepcontrol.wait" in line]
    touches = [place for place, line in enumerate(lines) if TOUCH.search(line)]
    if not waits or waits[0] > min(touches):
        raise SystemExit("A kernel that starts early reads or writes before it waits.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="each in one or two of its shapes")
    parser.add_argument("--gpu", type=int, default=90, help="its compute capability, times ten")
    parser.add_argument("--shared", type=int, default=227 * 1024, help="its bytes for a program")
    parser.add_argument("--float32", action="store_true", help="instead of bfloat16")
    settings = parser.parse_args()
    some = slice(2) if settings.quick else slice(None)
    dtype = torch.float32 if settings.float32 else torch.bfloat16
    of = launched(
        CONVOLUTIONS[some], BLOCKS[some], dtype, settings.shared, hopper=settings.gpu >= 90
    )
    wrong = 0
    for source, options in of:
        target = GPUTarget("cuda", settings.gpu, 32)
        found = triton.compile(source, target=target, options=options)
        wrong += found.metadata.shared > settings.shared
        if options["launch_pdl"]:
            check_wait(found.asm["ptx"])
        print(source.fn.fn.__name__, found.metadata.shared)
    if wrong:
        raise SystemExit(f"{wrong} kernels share more than {settings.shared:,} bytes.")


if __name__ == "__main__":
    main()
