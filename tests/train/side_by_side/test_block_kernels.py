"""A residual block of the GPU's kernels is what its layers are: in Triton's interpreter."""

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
    [(4, 8, 8, True), (2, 4, 16, True), (3, 8, 8, False), (4, 6, 8, False), (4, 4, 6, False)],
)
def test_programs_that_go_down_the_rows_compute_the_same(
    count, height, width, streamed, monkeypatch
):
    images, slopes = drawn(ROUNDS * count, 16, height, width)
    monkeypatch.setattr(_block, "has_kernels", lambda _: True)
    monkeypatch.setattr(block_fast, "SIZES", {})
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


@pytest.mark.slow
def test_kernels_can_be_compiled_for_a_gpu(tmp_path):
    done = subprocess.run(
        [sys.executable, "benchmarks/compile_kernels.py", "--quick"],
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
