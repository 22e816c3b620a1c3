"""The GPU's kernels compute what torch computes: in Triton's interpreter, without a GPU."""

import os

import pytest
import torch

# Read when Triton is imported. No other test needs a GPU.
os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is only needed for GPUs.")

from dynsnap.train.side_by_side import _convolution_fast as fast
from dynsnap.train.side_by_side._convolution import _plainly, _plainly_back, summed
from dynsnap.train.side_by_side._window import Window

ROUNDS = 2

# channels, filters, side, stride, before, images' height and width
SHAPES = {
    "pairs": (16, 16, 3, 1, 1, (4, 6)),
    "pairs from the stem": (4, 16, 3, 1, 1, (5, 4)),
    "weighed in pairs": (32, 32, 3, 1, 1, (4, 4)),
    "an odd width": (16, 16, 3, 1, 1, (4, 5)),
    "64 channels": (64, 64, 3, 1, 1, (4, 4)),
    "no power of two": (6, 20, 3, 1, 1, (5, 4)),
    "128 filters": (16, 128, 3, 1, 1, (2, 4)),
    "halving": (16, 32, 3, 2, 0, (6, 6)),
    "projection": (16, 32, 1, 2, 0, (6, 6)),
    "5 by 5": (5, 20, 5, 2, 2, (7, 5)),
    "every third": (16, 16, 3, 3, 1, (9, 7)),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_kernels_compute_a_convolution_and_its_gradients(shape, monkeypatch):
    monkeypatch.setattr(fast, "PLACES", 20)  # several parts, the last not full
    torch.manual_seed(0)
    channels, filters, side, stride, before, (height, width) = shape
    window = Window(side=side, stride=stride, before=before)
    size = [-(-pixels // stride) for pixels in (height, width)]
    images = torch.randn(ROUNDS * 3, height, width, channels)
    weights = torch.randn(ROUNDS * filters, side, side, channels)
    gradient = torch.randn(ROUNDS * 3, *size, filters)
    torch.testing.assert_close(
        fast.convolve(images, weights, ROUNDS, window, size),
        _plainly(images, weights, ROUNDS, window, size),
        rtol=1e-4,
        atol=1e-4,
    )
    for_images, for_kernels = _plainly_back(gradient, images, weights, ROUNDS, window)
    found = fast.back_to_images(gradient, weights, ROUNDS, window, (height, width))
    torch.testing.assert_close(found, for_images, rtol=1e-4, atol=1e-4)
    parts = fast.back_to_kernels(gradient, images, ROUNDS, window)
    assert parts.shape == fast.parts_shape(gradient, images, ROUNDS, window)
    torch.testing.assert_close(summed(parts), for_kernels, rtol=1e-4, atol=1e-4)
