import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dynsnap.errors import PlanError
from dynsnap.train import Adam
from dynsnap.train.models import DEPTHS, NAMES, by_name, cnn, fasttext, mlp, resnet
from tests.marks import daily
from tests.messages import naming


def trainable(module):
    return sum(value.numel() for value in module.parameters())


@pytest.mark.parametrize(
    ("depth", "classes", "expected", "statistics"),
    [(20, 10, 273_066, 1_376), (56, 100, 863_556, 4_064)],
)
def test_resnets_have_the_sizes_of_the_paper(depth, classes, expected, statistics):
    module = resnet(depth, classes)
    assert trainable(module) == expected
    running = [value for name, value in module.named_buffers() if "running" in name]
    assert sum(value.numel() for value in running) == statistics


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_resnet_is_as_deep_as_it_says(depth):
    layers = [m for m in resnet(depth, 10).modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len([m for m in layers if not isinstance(m, nn.Conv2d) or m.kernel_size == (3, 3)]) == (
        depth
    )


def test_a_convolution_of_stride_two_pads_below_and_to_the_right_only():
    down = resnet(20, 10).blocks[3].first
    images = torch.randn(2, 16, 32, 32)
    expected = functional.conv2d(
        functional.pad(images, (0, 1, 0, 1)), down.weight, down.bias, stride=2
    )
    assert torch.equal(down(images), expected)
    assert expected.shape == (2, 32, 16, 16)


def test_batch_norm_and_projections_are_as_in_the_paper():
    module = resnet(20, 10)
    norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm2d)]
    assert {(m.eps, m.momentum) for m in norms} == {(1e-3, 0.01)}
    projections = [b.projection for b in module.blocks if isinstance(b.projection, nn.Conv2d)]
    assert [(p.kernel_size, p.bias is not None) for p in projections] == [((1, 1), True)] * 2


def test_the_initialisation_is_a_truncated_he_normal():
    torch.manual_seed(0)
    weight = resnet(20, 10).blocks[8].second.weight
    deviation = (2 / (64 * 9)) ** 0.5
    assert weight.std().item() == pytest.approx(deviation, rel=0.02)
    assert weight.abs().max().item() <= 2 * deviation / 0.8796 + 1e-6


def test_fasttext_has_the_size_of_the_paper():
    assert trainable(fasttext(10)) == 500_510


def test_fasttext_averages_words_and_not_padding():
    module = fasttext(3, words=20, width=5)
    short, padded = torch.tensor([[4, 7]]), torch.tensor([[4, 7, 0, 0], [1, 2, 3, 4]])
    expected = module.output(module.vectors.weight[[4, 7]].mean(dim=0, keepdim=True))
    assert torch.allclose(module(short), expected, atol=1e-6)
    assert torch.allclose(module(padded)[:1], expected, atol=1e-6)


def test_fasttext_scores_a_text_without_known_words():
    module = fasttext(3, words=20)
    assert torch.allclose(module(torch.zeros(1, 4, dtype=torch.int64)), module.output.bias)


@pytest.mark.parametrize(
    "name", daily(NAMES, *(name for name in NAMES if name not in ("resnet56", "resnet110")))
)
def test_every_named_model_takes_classes_and_dropout(name):
    table = {"inputs": (64,)} if name == "tabular-mlp" else {}
    module = by_name(name)(classes=7, dropout=0.25, **table)
    assert module.eval()
    flat, image = (2, 64), (2, 3, 32, 32)
    inputs = {"mlp": flat, "tabular-mlp": flat, "cnn": (2, 1, 8, 8), "fasttext": (2, 5)}.get(
        name, image
    )
    batch = torch.ones(inputs, dtype=torch.int64 if name == "fasttext" else torch.float32)
    assert module(batch).shape == (2, 7)
    assert [m.p for m in module.modules() if isinstance(m, nn.Dropout)] == [0.25]


def test_there_is_a_model_for_every_depth():
    assert {f"resnet{depth}" for depth in DEPTHS} < set(NAMES)
    assert len(NAMES) == 4 + len(DEPTHS)


def test_an_unknown_model_gets_a_suggestion():
    with pytest.raises(PlanError, match=naming("'fastext'", "fasttext")):
        by_name("fastext")


def test_an_unknown_setting_of_a_model_is_named():
    with pytest.raises(PlanError, match=naming("'mlp'", "`widths`")):
        by_name("mlp", widths=(3,))


def test_a_depth_that_the_paper_does_not_have_is_refused():
    with pytest.raises(PlanError, match=naming("`depth`", "20", "32", "18")):
        resnet(18, 10)


def test_images_that_do_not_suit_are_refused_by_shape():
    with pytest.raises(PlanError, match=naming("`cnn`", "images", r"\(64,\)")):
        cnn(10, inputs=(64,))
    with pytest.raises(PlanError, match=naming("images", r"\(8, 8\)")):
        resnet(20, 10, inputs=(8, 8))


def test_only_convolution_kernels_are_penalised():
    module = resnet(20, 10)
    decayed, rest = Adam(kernel_penalty=1e-4).groups(module)
    kernels = [m.weight for m in module.modules() if isinstance(m, nn.Conv2d)]
    assert decayed["weight_decay"] == 2e-4
    assert {id(v) for v in decayed["params"]} == {id(v) for v in kernels}
    assert len(decayed["params"]) + len(rest["params"]) == len(list(module.parameters()))


def test_the_penalty_has_the_gradient_of_its_formula():
    module = nn.Conv2d(1, 1, 3)
    adam = Adam(kernel_penalty=0.1)
    (group, _) = adam.groups(module)
    by_hand = torch.autograd.grad(0.1 * (module.weight**2).sum(), module.weight)[0]
    assert torch.allclose(group["weight_decay"] * module.weight, by_hand)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"betas": (0.9, 1.0)}, "`betas`"),
        ({"eps": 0.0}, "`eps` must be positive"),
        ({"kernel_penalty": -1.0}, naming("`kernel_penalty`", "negative", r"-1\.0")),
    ],
)
def test_settings_of_adam_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(PlanError, match=message):
        Adam(**settings)


def test_an_mlp_takes_images_and_features_alike():
    images = torch.from_numpy(np.zeros((2, 1, 8, 8), np.float32))
    assert mlp(4, inputs=(1, 8, 8), hidden=(5, 6))(images).shape == (2, 4)
    assert mlp(4, inputs=(64,), hidden=())(images.flatten(1)).shape == (2, 4)
