"""Grouped layers compute what the plain ones compute, whatever trick they use."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from dynsnap.train.models import resnet
from dynsnap.train.models._residual import SameConv
from dynsnap.train.side_by_side._group import Grouping, can_be_grouped
from dynsnap.train.side_by_side._layers import (
    GroupedConvolution,
    GroupedDropout,
    GroupedHalving,
    GroupedLinear,
)

ROUNDS = 3


def filled(layer, plains):
    """Put the plain layers' weights into their places."""
    with torch.no_grad():
        for name in ("weight", "bias"):
            if getattr(layer, name) is not None:
                getattr(layer, name).copy_(torch.cat([getattr(one, name) for one in plains]))
    return layer


@pytest.mark.parametrize(
    "make",
    [
        lambda: SameConv(3, 16, 3),  # fewer inputs than outputs: padded to a square
        lambda: SameConv(16, 16, 3),
        lambda: SameConv(8, 4, 3),  # more inputs than outputs: left as it is
        lambda: SameConv(4, 8, 1, 2),  # a projection: a matrix product
        lambda: nn.Conv2d(4, 6, 5, padding=2, stride=2),
        lambda: nn.Conv2d(4, 6, 1),
    ],
)
def test_a_grouped_convolution_is_its_members_side_by_side(make):
    torch.manual_seed(0)
    plains = [make().double() for _ in range(ROUNDS)]
    layer = filled(GroupedConvolution(plains[0], ROUNDS, bias=True), plains).double()
    images = torch.randn(2, ROUNDS, plains[0].in_channels, 8, 8, dtype=torch.float64)
    alone = torch.cat([one(images[:, place]) for place, one in enumerate(plains)], dim=1)
    torch.testing.assert_close(layer(images.flatten(1, 2)), alone)


@pytest.mark.parametrize(("inputs", "outputs", "side"), [(4, 8, 8), (4, 8, 7), (4, 4, 8)])
def test_a_halving_convolution_cut_into_phases_is_the_lopsided_one(inputs, outputs, side):
    torch.manual_seed(0)
    plains = [SameConv(inputs, outputs, 3, 2).double() for _ in range(ROUNDS)]
    layer = filled(GroupedHalving(plains[0], ROUNDS, bias=True), plains).double()
    images = torch.randn(2, ROUNDS, inputs, side, side, dtype=torch.float64, requires_grad=True)
    alone = torch.cat([one(images[:, place]) for place, one in enumerate(plains)], dim=1)
    together = layer(images.flatten(1, 2))
    torch.testing.assert_close(together, alone)
    both = [torch.autograd.grad(out.square().sum(), images)[0] for out in (alone, together)]
    torch.testing.assert_close(*both)


def test_a_grouped_linear_layer_is_its_members_side_by_side():
    torch.manual_seed(0)
    plains = [nn.Linear(5, 4) for _ in range(ROUNDS)]
    layer = filled(GroupedLinear(plains[0], ROUNDS), plains)
    rows = torch.randn(6, ROUNDS, 5)
    alone = torch.cat([one(rows[:, place]) for place, one in enumerate(plains)], dim=1)
    torch.testing.assert_close(layer(rows.flatten(1)), alone)


def test_every_round_has_a_dropout_rate_of_its_own():
    torch.manual_seed(0)
    layer = GroupedDropout(2)
    layer.get_buffer("rates").copy_(torch.tensor([0.0, 0.5]))
    dropped = (layer(torch.ones(400, 2 * 50)).view(400, 2, 50) == 0).float().mean(dim=(0, 2))
    assert dropped[0] == 0
    assert abs(dropped[1] - 0.5) < 0.02
    assert torch.equal(layer.eval()(torch.ones(3, 4)), torch.ones(3, 4))


def test_a_resnet_can_be_grouped():
    assert can_be_grouped(resnet(20, 10, dropout=0.1), torch.randn(3, 3, 32, 32))


class MixesChannels(nn.Module):
    """Normalises over all channels, so rounds side by side would leak into each other."""

    def __init__(self):
        super().__init__()
        self.first, self.output = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)

    def forward(self, images):
        return self.output(functional.softmax(self.first(images).mean((2, 3)), dim=1))


class Branches(nn.Module):
    """Takes a way that depends on the numbers, which cannot be traced."""

    def __init__(self):
        super().__init__()
        self.output = nn.Linear(3, 5)

    def forward(self, images):
        means = images.mean((2, 3))
        return self.output(means if means.sum() > 0 else -means)


@pytest.mark.parametrize("make", [MixesChannels, Branches])
def test_a_module_that_grouping_would_falsify_is_found_out(make):
    assert not can_be_grouped(make(), torch.randn(3, 3, 8, 8))


def test_a_bias_that_batch_norm_takes_off_is_folded_into_its_mean():
    torch.manual_seed(0)
    plain = resnet(20, 10).eval()
    with torch.no_grad():
        plain.stem.bias.fill_(0.7)
        plain.stem_norm.running_mean.fill_(0.2)
    folded = Grouping(plain, 2).fold(plain.state_dict())
    assert "stem.bias" not in folded
    torch.testing.assert_close(folded["stem_norm.running_mean"], torch.full((16,), -0.5))
