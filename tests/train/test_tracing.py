"""The graph that fx finds, found without its patches."""

import threading

import pytest
import torch
from torch import fx, nn
from torch.nn import functional

from dynsnap.train._threads import Tracer
from dynsnap.train.models import cnn, fasttext, mlp, resnet
from tests.messages import naming
from tests.train.test_stack import Written


class Scaled(nn.Module):
    """Parameters, buffers and tensors of its own, used without a layer."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.BatchNorm1d(4), nn.ReLU()))
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.zeros(4))
        self.plain = torch.ones(4)

    def forward(self, x, *, times=2):
        for _ in range(times if isinstance(times, int) else 2):
            x = functional.relu(self.inner(x), inplace=True) * self.scale + self.shift
            x = torch.cat([x[:, :3], x[:, 3:]], dim=1)[:, :3]
        return self.scale[:3] * x - self.plain[:3] if False else x.mean(dim=1, keepdim=True)


MODULES = {
    "dense": (mlp(3), torch.rand(4, 64)),
    "convolutions": (cnn(3), torch.rand(4, 1, 8, 8)),
    "residual": (resnet(20, classes=3, inputs=(1, 8, 8)), torch.rand(4, 1, 8, 8)),
    "words": (fasttext(3, words=20), torch.randint(0, 20, (4, 5))),
    "written": (Written(), torch.rand(4, 12)),
    "scaled": (Scaled(), torch.rand(4, 3)),
    "linear": (nn.Linear(3, 2), torch.rand(4, 3)),
    "nothing": (nn.Identity(), torch.rand(4, 3)),
}


def steps(graph):
    """What is done, one after another; fx fetches weights earlier, and each once."""
    return [(node.op, str(node.target)) for node in graph.nodes if node.op != "get_attr"]


@pytest.mark.parametrize("name", MODULES)
def test_the_graph_is_the_one_that_fx_finds(name):
    module, inputs = MODULES[name]
    module.eval()
    graph = Tracer().trace(module)
    assert not any("forward" in vars(part) for part in module.modules())
    assert steps(graph) == steps(fx.Tracer().trace(module))
    with torch.no_grad():
        assert torch.equal(fx.GraphModule(module, graph)(inputs), module(inputs))


def test_what_a_forward_pass_makes_of_weights_is_no_constant():
    class Made(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return x * self.scale.exp()

    module = Made()
    with pytest.raises(ValueError, match=naming("tensor", "recorded")):
        Tracer().trace(module)
    assert list(module.state_dict()) == ["scale"]


def test_other_modules_run_while_one_is_traced():
    """The forward pass that is traced waits for another thread, which runs a module."""
    other, found = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), []

    class Waiting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            def run():
                found.append(other(torch.ones(1, 2)))

            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
            return self.layer(x)

    Tracer().trace(Waiting())
    assert torch.equal(found[0], other(torch.ones(1, 2)))
