"""Noise of our own: what torch would draw with the same seed, and nothing of torch's is touched."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from dynsnap.train._threads import OwnRandom

DRAWS = {
    "dropout": lambda x: nn.Dropout(0.3)(x),
    "dropout in place": lambda x: nn.Dropout(0.3, inplace=True)(x.clone()),
    "dropout 1d": lambda x: nn.Dropout1d(0.3)(x[..., 0]),
    "dropout 2d": lambda x: nn.Dropout2d(0.3)(x),
    "dropout 3d": lambda x: nn.Dropout3d(0.3)(x.unsqueeze(-1)),
    "alpha dropout": lambda x: nn.AlphaDropout(0.3)(x),
    "alpha dropout of features": lambda x: nn.FeatureAlphaDropout(0.3)(x),
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "rand": lambda x: torch.rand(x.shape),
    "randn": lambda x: torch.randn(4, 2),
    "randint": lambda x: torch.randint(0, 9, (5,)),
    "randperm": lambda x: torch.randperm(9),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "normal": lambda x: torch.normal(x, 2.0),
    "multinomial": lambda x: torch.multinomial(torch.ones(5), 3),
    "exponential": lambda x: torch.empty(4).exponential_(),
    "random leaky": lambda x: functional.rrelu(x, training=True),
    "gumbel": lambda x: functional.gumbel_softmax(x),
    "uniform": lambda x: nn.init.kaiming_uniform_(torch.empty(3, 3)),
}


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
@pytest.mark.parametrize("draw", DRAWS)
def test_own_noise_is_what_torch_draws_with_the_same_seed(draw, mode):
    value = torch.linspace(-2, 2, 96).reshape(2, 3, 4, 4)
    with torch.random.fork_rng(devices=[]), mode():
        torch.manual_seed(7)
        expected = [DRAWS[draw](value) for _ in range(2)]
    before = torch.get_rng_state()
    with mode(), OwnRandom(7):
        found = [DRAWS[draw](value) for _ in range(2)]
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_a_generator_that_was_asked_for_is_used():
    with OwnRandom(1):
        found = torch.rand(3, generator=torch.Generator().manual_seed(2))
    assert torch.equal(found, torch.rand(3, generator=torch.Generator().manual_seed(2)))


@pytest.mark.parametrize("train", [True, False])
def test_the_dropout_of_a_gpu_draws_from_our_generator_too(train):
    value = torch.ones(400)
    before = torch.get_rng_state()
    with torch.inference_mode():
        found = []
        for _ in range(2):
            with OwnRandom(3):
                found.append(torch.ops.aten.native_dropout(value, 0.25, train))
    (kept, mask), again = found
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(kept, again[0])
    assert torch.equal(kept, value * mask / (0.75 if train else 1))
    assert mask.float().mean().item() == pytest.approx(0.75 if train else 1, abs=0.1)
