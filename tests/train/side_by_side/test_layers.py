"""Grouped layers compute what the plain ones compute, whatever trick they use."""

import pytest
import torch
from torch import nn

from dynsnap.train.models import resnet
from dynsnap.train.models._residual import SameConv
from dynsnap.train.side_by_side._group import GroupedNetwork, can_be_grouped
from dynsnap.train.side_by_side._layers import (
    GroupedBatchNorm,
    GroupedConvolution,
    GroupedDropout,
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


CONVOLUTIONS = {
    "stem": lambda: SameConv(3, 16, 3),
    "square": lambda: SameConv(16, 16, 3),
    "halving": lambda: SameConv(8, 4, 3, 2),
    "projection": lambda: SameConv(4, 8, 1, 2),
    "5x5": lambda: nn.Conv2d(4, 6, 5, padding=2, stride=2),
    "1x1": lambda: nn.Conv2d(4, 6, 1),
    "same": lambda: nn.Conv2d(4, 6, 3, padding="same"),
    "valid": lambda: nn.Conv2d(4, 6, 3, padding="valid", bias=False),
}


@pytest.mark.parametrize("side", [8, 7])
@pytest.mark.parametrize("make", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_a_grouped_convolution_is_its_members_one_behind_the_other(make, side):
    torch.manual_seed(0)
    plains = [make().double() for _ in range(ROUNDS)]
    assert GroupedConvolution.suits(plains[0])
    layer = filled(GroupedConvolution(plains[0], ROUNDS, bias=True), plains).double()
    images = torch.randn(ROUNDS, 2, plains[0].in_channels, side, side, dtype=torch.float64)
    images.requires_grad_()
    alone = torch.cat([one(images[place]) for place, one in enumerate(plains)])
    together = layer(images.flatten(0, 1))
    torch.testing.assert_close(together, alone)
    slopes = torch.autograd.grad(alone.square().sum(), [images, *[one.weight for one in plains]])
    found = torch.autograd.grad(together.square().sum(), [images, layer.weight])
    torch.testing.assert_close(found[0], slopes[0])
    torch.testing.assert_close(found[1], torch.cat(slopes[1:]))


@pytest.mark.parametrize(
    "plain",
    [
        nn.Conv2d(4, 4, (3, 1)),
        nn.Conv2d(4, 4, 3, stride=(1, 2)),
        nn.Conv2d(4, 4, 3, dilation=2),
        nn.Conv2d(4, 4, 3, groups=2),
        nn.Conv2d(4, 4, 3, padding=(1, 0)),
        nn.Conv2d(4, 4, 2, padding="same"),
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"),
    ],
    ids=str,
)
def test_a_convolution_of_another_kind_is_left_alone(plain):
    assert not GroupedConvolution.suits(plain)


def test_a_grouped_batch_norm_is_its_members_one_behind_the_other():
    torch.manual_seed(0)
    plains = [nn.BatchNorm2d(5, eps=1e-3, momentum=0.01).double() for _ in range(ROUNDS)]
    with torch.no_grad():
        for one in plains:
            one.weight.normal_()
            one.bias.normal_()
    layer = filled(GroupedBatchNorm(plains[0], ROUNDS).double(), plains)
    images = 3 + torch.randn(ROUNDS, 4, 5, 3, 2, dtype=torch.float64)
    for training in (True, False):
        alone = [one.train(training)(images[place]) for place, one in enumerate(plains)]
        together = layer.train(training)(images.flatten(0, 1))
        torch.testing.assert_close(together, torch.cat(alone))
    for name in ("running_mean", "running_var"):
        expected = torch.cat([getattr(one, name) for one in plains])
        torch.testing.assert_close(getattr(layer, name), expected)


class NormAndDropout(nn.Module):
    """Everything that a step moves besides weights: statistics, and what is dropped next."""

    def __init__(self):
        super().__init__()
        self.norm = GroupedBatchNorm(nn.BatchNorm2d(4), 2)
        self.dropout = GroupedDropout(2)
        self.dropout.rates.fill_(0.3)

    def forward(self, images):
        return self.dropout(self.norm(images).flatten(1))


@pytest.mark.slow
def test_a_compiled_step_goes_back_by_what_it_saw_not_by_what_it_left():
    images = 3 + torch.randn(8, 4, 5, 5, generator=torch.Generator().manual_seed(0))
    slopes = torch.randn(8, 100, generator=torch.Generator().manual_seed(1))
    found = []
    for backend in ("eager", "aot_eager"):
        module = NormAndDropout().train()
        torch._dynamo.reset()
        step = torch.compile(module, backend=backend)
        given = images.clone().requires_grad_()
        found.append(torch.autograd.grad((step(given) * slopes).sum(), given)[0])
    torch.testing.assert_close(found[1], found[0])


def test_a_grouped_linear_layer_is_its_members_one_behind_the_other():
    torch.manual_seed(0)
    plains = [nn.Linear(5, 4) for _ in range(ROUNDS)]
    layer = filled(GroupedLinear(plains[0], ROUNDS), plains)
    rows = torch.randn(ROUNDS, 6, 5)
    alone = torch.cat([one(rows[place]) for place, one in enumerate(plains)])
    torch.testing.assert_close(layer(rows.flatten(0, 1)), alone)


def test_what_is_dropped_looks_random_and_is_another_in_every_step_and_round():
    layer = GroupedDropout(3)
    layer.rates.fill_(0.3)
    layer.salts.copy_(torch.tensor([1.0, 2.0, 2.0]))
    masks = torch.stack([layer(torch.ones(3 * 64, 50)).view(3, 64, 50) == 0 for _ in range(40)])
    shares = masks.double()
    assert (shares.mean(dim=(0, 2, 3)) - 0.3).abs().max() < 0.005
    assert (shares.mean(dim=(0, 1, 2)) - 0.3).abs().max() < 0.03  # no unit is favoured
    assert (shares.mean(dim=(0, 1, 3)) - 0.3).abs().max() < 0.03  # nor an input
    assert torch.equal(masks[:, 1], masks[:, 2]) and not torch.equal(masks[:, 0], masks[:, 1])
    flat = shares[:, :2].reshape(80, -1)
    apart = torch.corrcoef(flat) - torch.eye(80)
    assert apart.abs().max() < 0.08  # 3,200 units: four deviations and a half


def test_every_round_has_a_dropout_rate_of_its_own():
    layer = GroupedDropout(2)
    layer.get_buffer("rates").copy_(torch.tensor([0.0, 0.5]))
    dropped = (layer(torch.ones(2 * 400, 50)).view(2, 400, 50) == 0).float().mean(dim=(1, 2))
    assert dropped[0] == 0
    assert abs(dropped[1] - 0.5) < 0.02
    assert torch.equal(layer.eval()(torch.ones(3, 4)), torch.ones(3, 4))


def test_a_resnet_can_be_grouped():
    assert can_be_grouped(resnet(20, 10, dropout=0.1), torch.randn(3, 3, 32, 32))


class MixesImages(nn.Module):
    """Takes off the mean of the batch, so rounds side by side would leak into each other."""

    def __init__(self):
        super().__init__()
        self.first, self.output = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)

    def forward(self, images):
        return self.output(self.first(images - images.mean(0)).mean((2, 3)))


class Branches(nn.Module):
    """Takes a way that depends on the numbers, which cannot be traced."""

    def __init__(self):
        super().__init__()
        self.output = nn.Linear(3, 5)

    def forward(self, images):
        means = images.mean((2, 3))
        return self.output(means if means.sum() > 0 else -means)


@pytest.mark.parametrize("make", [MixesImages, Branches])
def test_a_module_that_grouping_would_falsify_is_found_out(make):
    assert not can_be_grouped(make(), torch.randn(3, 3, 8, 8))


def test_a_bias_that_batch_norm_takes_off_is_folded_into_its_mean():
    torch.manual_seed(0)
    plain = resnet(20, 10).eval()
    with torch.no_grad():
        plain.stem.bias.fill_(0.7)
        plain.stem_norm.running_mean.fill_(0.2)
    folded = GroupedNetwork(plain, 2).fold(plain.state_dict())
    assert "stem.bias" not in folded
    torch.testing.assert_close(folded["stem_norm.running_mean"], torch.full((16,), -0.5))
