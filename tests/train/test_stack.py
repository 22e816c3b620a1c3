"""The hand-written arithmetic of stacks against torch's own."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from dynsnap.train._chain import MOST_PARAMETERS, chain
from dynsnap.train._stacked import Stack, drop, flatten, size, softmax, unflatten
from dynsnap.train.models import cnn, mlp


class Written(nn.Module):
    """A dense chain with a forward of its own."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 7)
        self.second = nn.Linear(7, 5, bias=False)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(5, 3)

    def forward(self, x):
        x = functional.relu(self.first(x.flatten(1)))
        return self.last(self.drop(torch.tanh(self.second(x))))


class Residual(Written):
    def forward(self, x):
        x = self.first(x.flatten(1))
        return self.last(self.second(x) + self.second(x))


class Branching(Written):
    def forward(self, x):
        return self.last(x) if x.sum() > 0 else self.first(x)


def test_a_chain_is_recognised_however_it_is_written():
    assert [layer.kind for layer in chain(Written())] == [
        "linear", "relu", "linear", "tanh", "dropout", "linear",
    ]  # fmt: skip
    assert [layer.kind for layer in chain(mlp(3, hidden=(4,)))] == ["linear", "relu", "linear"]


def _shared():
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.ReLU(), layer)


def _frozen():
    module = mlp(3)
    next(module.parameters()).requires_grad_(False)
    return module


def _hooked():
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    module[1].register_forward_hook(lambda *_: None)
    return module


@pytest.mark.parametrize(
    "module",
    [
        cnn(10),
        Residual(),
        Branching(),
        _shared(),
        _frozen(),
        _hooked(),
        nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(4, 2), nn.ReLU()),
        nn.Linear(4, 2).double(),
        nn.Linear(MOST_PARAMETERS, 2),
    ],
    ids=lambda module: type(module).__name__,
)
def test_any_other_module_is_not_a_chain(module):
    assert chain(module) is None


def stacked(count):
    modules = [Written() for _ in range(count)]
    layers = chain(modules[0])
    flat = torch.stack([flatten(layers, module.state_dict()) for module in modules]).detach()
    return modules, layers, flat


def test_weights_survive_being_flattened():
    modules, layers, flat = stacked(1)
    state = unflatten(layers, flat[0])
    assert size(layers) == len(flat[0])
    assert state.keys() == modules[0].state_dict().keys()
    assert all(torch.equal(state[k], v) for k, v in modules[0].state_dict().items())


def test_a_stack_computes_what_its_modules_compute():
    modules, layers, flat = stacked(4)
    inputs = torch.randn(4, 9, 12)
    logits = Stack(layers, flat).logits(inputs)
    for module, x, found in zip(modules, inputs, logits, strict=True):
        assert torch.allclose(found, module.eval()(x), atol=1e-6)


def test_the_gradient_written_by_hand_is_that_of_autograd():
    modules, layers, flat = stacked(3)
    inputs, labels = torch.randn(3, 9, 12), torch.randint(0, 3, (3, 9))
    mask = drop(torch.empty(3, 9, 5), 0.3, [torch.Generator().manual_seed(i) for i in range(3)])
    stack, into = Stack(layers, flat), Stack(layers, gradient := torch.zeros_like(flat))
    values = stack.forward(inputs, lambda *_: mask)
    slope = softmax(values[-1]) - functional.one_hot(labels, 3)
    stack.backward(values, slope / 9, into, lambda *_: mask)
    for row, module in enumerate(modules):
        x = torch.tanh(module.second(functional.relu(module.first(inputs[row]))))
        loss = functional.cross_entropy(module.last(x * mask[row]), labels[row])
        expected = torch.autograd.grad(loss, list(module.parameters()))
        names = [name for name, _ in module.named_parameters()]
        found = unflatten(layers, gradient[row])
        for name, value in zip(names, expected, strict=True):
            assert torch.allclose(found[name], value, atol=1e-6), name


def test_dropout_keeps_the_mean_and_draws_for_each_member_alone():
    generators = [torch.Generator().manual_seed(seed) for seed in (1, 2)]
    both = drop(torch.empty(2, 400, 50), 0.2, generators)
    alone = drop(torch.empty(1, 400, 50), 0.2, [torch.Generator().manual_seed(2)])
    assert torch.equal(both[1], alone[0])
    assert both.mean().item() == pytest.approx(1, abs=0.02)
    assert set(both.unique().tolist()) == {0.0, 1.25}


def test_softmax_is_torchs():
    logits = torch.randn(3, 7, 10)
    assert torch.allclose(softmax(logits), torch.softmax(logits, -1), atol=1e-7)
