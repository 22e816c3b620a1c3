"""A residual block of the GPU's kernels is what its layers are: in Triton's interpreter."""

import ast
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

# Read when Triton is imported. No other test needs a GPU.
os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is only needed for GPUs.")

from dynsnap.train.models._residual import Block
from dynsnap.train.side_by_side import _block
from dynsnap.train.side_by_side import _block_fast as block_fast
from dynsnap.train.side_by_side import _convolution_fast as fast
from dynsnap.train.side_by_side._group import GroupedNetwork

ROUNDS = 3

# channels, images of a round, their height and width
SHAPES = {
    "in pairs": (16, 2, (2, 6)),
    "an odd width": (16, 2, (4, 3)),
    "tap by tap": (32, 2, (4, 3)),
    "64 channels": (64, 2, (3, 4)),
}


def made(channels):
    """A grouped block in training, every parameter and statistic of every round its own."""
    torch.manual_seed(0)
    block = GroupedNetwork(
        nn.Sequential(Block(channels, channels, stride=1)), ROUNDS
    ).module.get_submodule("0")
    with torch.no_grad():
        for value in [*block.parameters(), *block.buffers()]:
            value.add_(torch.rand_like(value) * 0.5)
    return block.train()


def drawn(*shape):
    """Images, and slopes of what a block makes of them."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def stepped(block, images, slopes):
    """What it shows, all gradients, and the statistics that it remembers after."""
    images = images.clone().requires_grad_()
    shown = block(images)
    wanted = [images, *block.parameters()]
    gradients = torch.autograd.grad((shown * slopes).sum(), wanted)
    statistics = [value.clone() for value in block.buffers()]
    return [shown.detach(), *gradients, *statistics]


@torch.no_grad()
def looked_at(block, images):
    return block.eval()(images)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    SHAPES.values(),
    ids=SHAPES,
)
def test_kernels_compute_a_block_and_its_gradients_in_training_and_after(shape, monkeypatch):
    channels, count, (height, width) = shape
    images, slopes = drawn(ROUNDS * count, channels, height, width)
    expected = stepped(made(channels), images, slopes)
    monkeypatch.setattr(_block, "has_kernels", lambda _: True)
    monkeypatch.setattr(fast, "PLACES", 20)  # several parts, the last not full
    monkeypatch.setattr(block_fast, "VALUES", 8 * channels)  # several blocks of lines
    monkeypatch.setattr(block_fast, "_ahead", lambda _: 2)
    small = fast.Size(block=16, warps=4, stages=1)
    monkeypatch.setattr(block_fast, "_size", lambda *_: small)
    found = stepped(made(channels), images, slopes)
    assert len(found) == len(expected) == 2 + 6 + 4
    found.append(looked_at(made(channels), images))
    monkeypatch.setattr(_block, "has_kernels", lambda _: False)
    expected.append(looked_at(made(channels), images))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-4, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "height", "width", "streamed"),
    [
        (4, 8, 8, True),
        (2, 4, 16, True),
        (3, 8, 8, False),  # images are left over
        (1, 8, 8, False),  # of the round, though not of all rounds together
        (4, 6, 8, False),  # rows are left over
        (4, 4, 6, False),
    ],
)
def test_programs_that_go_down_the_rows_compute_the_same(
    count, height, width, streamed, monkeypatch
):
    images, slopes = drawn(ROUNDS * count, 16, height, width)
    monkeypatch.setattr(_block, "has_kernels", lambda _: True)
    monkeypatch.setattr(block_fast, "SIZES", {})
    monkeypatch.setattr(block_fast, "PROGRAMS", 0)
    expected = [*stepped(made(16), images, slopes), looked_at(made(16), images)]
    size = fast.Size(block=width, warps=4, stages=2, rows=4)  # two images at once
    endings = ("added", "rectified", "carried")
    monkeypatch.setattr(block_fast, "SIZES", {(16, ending): size for ending in endings})
    innermost = images.permute(0, 2, 3, 1)
    for ending in endings:
        assert (block_fast._size(innermost, ROUNDS, ending).rows > 0) == streamed
    found = [*stepped(made(16), images, slopes), looked_at(made(16), images)]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-4, atol=2e-4)


@pytest.mark.slow
def test_a_compiled_block_is_the_same(monkeypatch):
    images, slopes = drawn(ROUNDS * 2, 16, 4, 4)
    block = made(16)
    expected = [*stepped(block, images, slopes), looked_at(block, images)]
    monkeypatch.setattr(_block, "has_kernels", lambda _: True)
    torch._dynamo.reset()
    block = made(16)
    block.compile(backend="aot_eager", fullgraph=True)
    found = [*stepped(block, images, slopes), looked_at(block, images)]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("training", [True, False])
def test_a_round_that_diverges_shows_it_and_no_other_does(training, monkeypatch):
    monkeypatch.setattr(_block, "has_kernels", lambda _: True)
    images, _ = drawn(ROUNDS * 2, 16, 2, 4)
    for layer in ("first", "second"):
        block = made(16).train(training)
        with torch.no_grad():
            block.get_submodule(layer).weight[:16] = torch.nan
            finite = block(images).unflatten(0, (ROUNDS, -1)).isfinite()
        assert not finite[0].any()
        assert finite[1:].all()


def test_a_block_with_other_shapes_or_layers_is_left_to_its_layers(monkeypatch):
    def never(*_):
        raise AssertionError("not asked for")

    monkeypatch.setattr(_block, "has_kernels", lambda _: True)
    monkeypatch.setattr(_block, "_train", never)
    monkeypatch.setattr(_block, "_look", never)
    images, _ = drawn(ROUNDS * 2, 16, 4, 4)
    assert made(16).eval()(images).requires_grad  # they know no way back
    wider, uneven = Block(16, 16, stride=1), Block(16, 16, stride=1)
    wider.second = nn.Conv2d(16, 16, 5, padding=2)
    uneven.second_norm.eps = 0.5
    for other in (wider, uneven):
        assert GroupedNetwork(other, ROUNDS).module.train()(images).shape == images.shape
    for training in (True, False):
        halving = GroupedNetwork(nn.Sequential(Block(16, 32, stride=2)), ROUNDS).module.train(
            training
        )
        assert halving(images).shape == (ROUNDS * 2, 32, 2, 2)
        few = GroupedNetwork(nn.Sequential(Block(8, 8, stride=1)), ROUNDS).module.train(training)
        assert few(images[:, :8]).shape == (ROUNDS * 2, 8, 4, 4)


def test_few_or_narrow_programs_do_not_go_down_the_rows(monkeypatch):
    def goes(rounds, side):
        images = torch.empty(rounds * 32, side, side, 16, dtype=torch.bfloat16)
        return block_fast._size(images, rounds, "added").rows > 0

    assert goes(24, 32) and not goes(8, 32)  # too few to keep a GPU busy
    assert not goes(24, 256)  # not even a row of one image for a program
    monkeypatch.setattr(block_fast, "shared_memory", lambda _: 32 * 1024)
    assert not goes(24, 32)  # no room for it


def test_every_kernel_that_may_start_early_waits_before_anything_else():
    folder = Path(block_fast.__file__).parent
    found = {}
    for name in ("_block_kernels", "_convolution_kernels"):
        for part in ast.walk(ast.parse((folder / f"{name}.py").read_text())):
            if isinstance(part, ast.FunctionDef) and part.name != "take_over":
                first = part.body[1] if ast.get_docstring(part) else part.body[0]
                if any(one.arg == "EARLY" for one in part.args.args):
                    found[part.name] = ast.unparse(first)
    assert set(found) >= {"convolved", "streamed", "through_norm", "weigh_pairs", "added_up"}
    assert set(found.values()) == {"take_over(EARLY)"}


class Stream:
    """What a kernel on it comes after, as a vector clock."""

    def __init__(self, name):
        self.name, self.clock, self.joined = name, {}, True

    def launch(self):
        self.clock[self.name] = self.clock.get(self.name, 0) + 1
        return self.name, self.clock[self.name]

    def wait_stream(self, other):
        for name, count in other.clock.items():
            self.clock[name] = max(self.clock.get(name, 0), count)
        self.joined = True

    def follows(self, launched):
        name, count = launched
        return self.clock.get(name, 0) >= count


WRITTEN = {
    "convolved": {"result", "rows"},
    "settle_moments": {"statistics"},
    "summed_slopes": {"rows"},
}


@pytest.mark.parametrize("fails", [False, True])
def test_no_kernel_reads_or_writes_what_another_stream_is_still_at(fails, monkeypatch):
    from triton.runtime.interpreter import InterpretedFunction

    main, second = Stream("main"), Stream("second")
    current, touched, launches = [main], {}, []

    def launch(self, *arguments, grid, warmup=False, **options):
        name = self.fn.__name__
        if fails and name == "added_up":
            raise torch.OutOfMemoryError
        stream = current[-1]
        assert not (stream.joined and options.get("launch_pdl")), f"{name} starts before a join"
        stream.joined = False
        mine = stream.launch()
        written = WRITTEN.get(name, {"result"})
        for parameter, value in zip(self.arg_names, arguments, strict=False):
            if not isinstance(value, torch.Tensor):
                continue
            for at, wrote, other in touched.setdefault(value.data_ptr(), []):
                if wrote or parameter in written:
                    assert stream.follows(at), f"{name} does not wait for {other}"
            touched[value.data_ptr()].append((mine, parameter in written, name))
        launches.append(name)

    @contextlib.contextmanager
    def beside(stream):
        current.append(stream)
        try:
            yield
        finally:
            current.pop()

    monkeypatch.setattr(InterpretedFunction, "run", launch)
    monkeypatch.setattr(torch.cuda, "stream", beside)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _=None: current[-1])
    monkeypatch.setattr(block_fast, "_stream_of", lambda _: second)
    monkeypatch.setattr(
        block_fast,
        "_launch",
        lambda _, joins=False: {"EARLY": True} if joins else {"EARLY": True, "launch_pdl": True},
    )
    kept = []  # no memory is used twice

    def empty(*shape):
        kept.append(torch.empty(*shape))
        return kept[-1]

    def holding(make):
        def held(*arguments, **settings):
            kept.append(make(*arguments, **settings))
            return kept[-1]

        return held

    for place, name in ((torch, "empty_like"), (torch.Tensor, "new_empty")):
        monkeypatch.setattr(place, name, holding(getattr(place, name)))
    for channels, side in ((16, 8), (64, 4)):
        images = [empty(ROUNDS * 4, side, side, channels) for _ in range(5)]
        kernels = [empty(ROUNDS * channels, 3, 3, channels) for _ in range(2)]
        weight, moments = empty(ROUNDS * channels), [empty(3, ROUNDS * channels) for _ in range(2)]
        first = block_fast.Half(kernels[0], weight, images[0], images[1], moments[0], images[2])
        then = block_fast.Half(kernels[1], weight, images[2], images[3], moments[1], images[4])
        main.joined = True
        with pytest.raises(torch.OutOfMemoryError) if fails else contextlib.nullcontext():
            block_fast.backward(empty(*images[0].shape), first, then, ROUNDS)
        assert all(main.follows((name, count)) for name, count in second.clock.items())
    assert fails or launches.count("added_up") == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "gpu", [[], ["--gpu", "86", "--shared", "101376", "--float32"]], ids=["H200", "99 KB"]
)
def test_kernels_can_be_compiled_for_a_gpu(gpu, tmp_path):
    done = subprocess.run(
        [sys.executable, "benchmarks/compile_kernels.py", "--quick", *gpu],
        env={**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = {line.split()[0] for line in done.stdout.splitlines()}
    of_convolutions = {"pairs", "taps", "weigh_pairs", "weigh_taps"}
    of_norms = {"settle_moments", "settle_sums", "normalised", "summed_slopes", "through_norm"}
    assert names == of_convolutions | of_norms | {"convolved", "streamed", "added_up"}
