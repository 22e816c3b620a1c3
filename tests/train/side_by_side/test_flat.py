"""Parameters of all rounds in one vector are the parameters of all rounds."""

import torch

from dynsnap.train.models import resnet
from dynsnap.train.side_by_side._group import GroupedNetwork
from dynsnap.train.side_by_side._network import FlatLayout, place_of

ROUNDS = 3


def filled():
    module = GroupedNetwork(resnet(20, 10), ROUNDS).module
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in module.parameters():
            value.copy_(torch.rand(value.shape, generator=generator))
    return module


def test_views_of_the_vector_are_the_parameters_in_their_order():
    module = filled()
    layout = FlatLayout(module, ROUNDS)
    vector = layout.vector(module)
    assert vector.shape == (layout.size,) == (sum(p.numel() for p in module.parameters()),)
    for view, (name, value) in zip(layout.views(vector), module.named_parameters(), strict=True):
        assert torch.equal(view, value), name
        assert view.untyped_storage().data_ptr() == vector.untyped_storage().data_ptr()
        if view.ndim == 4:
            assert view.is_contiguous(memory_format=torch.channels_last)


def test_kernels_come_first():
    module = filled()
    layout = FlatLayout(module, ROUNDS)
    assert layout.kernels == sum(p.numel() for p in module.parameters() if p.ndim == 4)


def test_every_number_knows_its_round():
    module = filled()
    layout = FlatLayout(module, ROUNDS)
    owners = layout.owners(torch.device("cpu"))
    for value in layout.views(owners):
        for place in range(ROUNDS):
            assert (place_of(value, place, ROUNDS) == place).all()


def test_a_gradient_of_the_vector_is_that_of_its_parameters():
    module = filled()
    layout = FlatLayout(module, ROUNDS)
    vector = layout.vector(module).requires_grad_()
    views = layout.views(vector)
    loss = sum((place * view).square().sum() for place, view in enumerate(views))
    (found,) = torch.autograd.grad(loss, vector)
    for place, (slope, view) in enumerate(zip(layout.views(found), views, strict=True)):
        torch.testing.assert_close(slope, 2 * place**2 * view.detach())
