"""Losses, optimisers and warm-up by name, and a study that sets all of them."""

import functools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from dynsnap.errors import PlanError
from dynsnap.testing import check_trainer
from dynsnap.train import Adam, Focal, TorchTrainer, named_loss, named_optimizer
from dynsnap.train.models import mlp
from tests.cli.studies import TINY, dynsnap
from tests.messages import naming
from tests.train.made import blobs, recipe, spec, stream_of

torch.set_num_threads(1)
STREAM = stream_of(blobs(rows=60))


def trained(asked=None, **settings):
    trainer = TorchTrainer(STREAM, model=mlp, device="cpu", batch_size=16, **settings)
    return next(iter(trainer.train([asked or spec()])))


@given(st.integers(0, 100), st.floats(0, 5))
def test_focal_loss_is_a_weighted_cross_entropy(seed, gamma):
    rng = torch.Generator().manual_seed(seed)
    logits, labels = torch.randn(6, 3, generator=rng), torch.arange(6) % 3
    each = Focal(gamma=gamma)(logits, labels, reduction="none")
    right = logits.softmax(dim=1)[torch.arange(6), labels]
    expected = (1 - right) ** gamma * functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(each, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(Focal(gamma=gamma)(logits, labels), each.mean())


def test_names_lead_to_what_torch_calls_by_them():
    assert named_optimizer("adam", {"eps": 1e-7}, where="here") == Adam(eps=1e-7)
    made = named_optimizer("sgd", {"momentum": 0.9}, where="here")
    assert isinstance(made, functools.partial)
    assert made([torch.nn.Parameter(torch.zeros(1))], 0.5).param_groups[0]["momentum"] == 0.9
    assert named_loss("cross_entropy", {}, where="here") is None
    assert named_loss("multi_margin", {"margin": 0.5}, where="here").margin == 0.5
    for call, name in ((named_optimizer, "os.system"), (named_loss, "weight")):
        with pytest.raises(PlanError, match=naming("here", name)):
            call(name, {}, where="here")
    with pytest.raises(PlanError, match=naming("here", "`lr`")):
        named_optimizer("sgd", {"lr": 1.0}, where="here")
    with pytest.raises(PlanError, match=naming("here", "`weight`")):
        named_loss("cross_entropy", {"weight": 1.0}, where="here")


def test_warm_up_begins_with_small_steps():
    plain, warm = trained(learning_rate=0.01), trained(learning_rate=0.01, warmup=3)
    assert (plain.scores["test"] != warm.scores["test"]).any()
    # One epoch of a warm-up of two is one epoch at half the rate.
    one = spec(epochs=1, snapshots=1, kind="constant")
    half = trained(one, learning_rate=0.01)
    grown = trained(one, learning_rate=0.02, warmup=2)
    np.testing.assert_array_equal(half.scores["test"], grown.scores["test"])
    with pytest.raises(PlanError, match=naming("`warmup`", "-1")):
        trained(warmup=-1)


def test_a_trainer_with_all_of_them_keeps_its_contract():
    check_trainer(
        lambda monitor, checkpoints: TorchTrainer(
            STREAM,
            model=mlp,
            device="cpu",
            batch_size=16,
            loss=named_loss("focal", {"gamma": 1.0}, where="loss"),
            optimizer=named_optimizer("rmsprop", {}, where="optimizer"),
            warmup=2,
            class_weight="balanced",
            selection_metric="balanced_accuracy",
            monitor=monitor,
            checkpoints=checkpoints,
            checkpoint_every=0,
        ),
        stream=STREAM,
        recipes=[recipe(epochs=3, snapshots=1)],
    )


def test_rounds_of_trainers_that_set_none_of_them_have_the_keys_that_they_had():
    plain = TorchTrainer(STREAM, model=mlp, device="cpu").fingerprint
    usual = {"loss": None, "warmup": 0, "class_weight": None, "selection_metric": "accuracy"}
    assert TorchTrainer(STREAM, model=mlp, device="cpu", **usual).fingerprint == plain
    for name, value in (("warmup", 1), ("class_weight", "balanced"), ("selection_metric", "f1")):
        changed = TorchTrainer(STREAM, model=mlp, device="cpu", **{name: value})
        assert changed.fingerprint != plain


@pytest.mark.slow
def test_a_study_sets_all_of_them(tmp_path):
    settings = """
warmup = 2
selection_metric = "balanced_accuracy"
class_weight = "balanced"
loss = "focal"

[training.optimizer]
name = "adamw"
weight_decay = 0.1
"""
    text = TINY.replace('device = "cpu"\n', f'device = "cpu"\n{settings}')
    (tmp_path / "study.toml").write_text(text.replace("epochs = 8", "epochs = 4"))
    ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run")
    assert ended.exit_code == 0, ended.stderr
    rounds = list((tmp_path / "run/rounds").glob("*.npz"))
    with np.load(rounds[0]) as stored:
        assert len(stored["selection_curve"]) == 4
    again = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run", "--no-training")
    assert again.exit_code == 0, again.stderr


def test_a_study_of_boosted_trees_sets_what_they_have(tmp_path):
    text = TINY.replace('name = "mlp"\nhidden = [8]', 'name = "xgboost"\nmax_depth = 2')
    text = text.replace('batch_size = 64\nlearning_rate = 0.01\ndevice = "cpu"\n', "%s")
    text = text.replace("epochs = 8", "epochs = 4")
    chosen = 'selection_metric = "f1"\n[training.class_weight]\n0 = 2.0\n'
    (tmp_path / "study.toml").write_text(text % chosen)
    ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "run")
    assert ended.exit_code == 0, ended.stderr
    (tmp_path / "study.toml").write_text(text % "warmup = 2\n")
    ended = dynsnap("run", tmp_path / "study.toml", "--out", tmp_path / "other")
    assert ended.exit_code == 2
    assert "`warmup`" in ended.stderr
