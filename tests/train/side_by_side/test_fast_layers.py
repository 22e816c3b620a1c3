"""Faster layers are put into a module only where it goes on to compute the same."""

import torch
from torch import nn

from dynsnap.train.models import resnet
from dynsnap.train.side_by_side._layers import Convolution, GroupedBatchNorm, with_fast_layers

BATCH = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def kinds(module):
    return {type(layer) for layer in module.modules()}


def test_a_resnet_gets_faster_layers_under_the_same_names():
    plain = resnet(20, 10, dropout=0.1)
    fast = with_fast_layers(plain, BATCH)
    assert {Convolution, GroupedBatchNorm} <= kinds(fast)
    assert not {nn.Conv2d, nn.BatchNorm2d} & kinds(fast)
    names = {name for name in plain.state_dict() if not name.endswith("num_batches_tracked")}
    assert set(fast.state_dict()) == names


class AsksItsLayer(nn.Module):
    """Wants something of its convolution that the faster one does not have."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)

    def forward(self, images):
        return self.first(images).flatten(1)[:, : self.first.out_channels]


class Doubled(nn.Conv2d):
    """A convolution that is more than one."""

    def forward(self, images):
        return 2 * super().forward(images)


def test_a_module_that_needs_its_own_layers_keeps_them():
    for plain in (AsksItsLayer(), nn.Sequential(Doubled(3, 4, 3), nn.Flatten())):
        assert Convolution not in kinds(with_fast_layers(plain, BATCH))


def test_the_faster_convolution_follows_autocast():
    layer = Convolution(nn.Conv2d(3, 4, 3, padding=1), 1, bias=True)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(BATCH).dtype == torch.bfloat16
    assert layer(BATCH).dtype == torch.float32
