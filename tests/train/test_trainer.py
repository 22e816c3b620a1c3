import functools
import logging
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from dynsnap.data import Pool
from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.errors import FileError, InputError, Interrupted, PlanError, TrainingError
from dynsnap.train import Adam, Predictor, ShiftsAndFlips, Standardised, TorchTrainer
from dynsnap.train.models import cnn, fasttext, mlp
from tests.messages import naming
from tests.train.made import Memory, Watcher, blobs, pictures, recipe, sentences, spec, stream_of

BLOBS = stream_of(blobs())


class Normed(nn.Module):
    """Batch norm and dropout: a module that behaves otherwise in training than in use."""

    made: ClassVar[list["Normed"]] = []

    def __init__(self, classes, inputs, dropout=0.0):
        super().__init__()
        self.norm = nn.BatchNorm1d(inputs[0])
        self.drop = nn.Dropout(dropout)
        self.last = nn.Linear(inputs[0], classes)
        self.calls = []
        Normed.made.append(self)

    def forward(self, x):
        self.calls.append((self.training, len(x), self.norm.running_mean.clone()))
        return self.last(self.drop(self.norm(x)))


def trainer(stream=BLOBS, model=mlp, **settings):
    return TorchTrainer(stream, model=model, **{"device": "cpu", "batch_size": 16, **settings})


def one(trainer, *specs):
    return next(iter(trainer.train(specs or [spec()])))


def test_a_round_has_everything_that_it_promises():
    watcher = Watcher()
    done = one(trainer(monitor=watcher, learning_rate=1e-2), asked := spec(epochs=6, snapshots=3))
    assert done.spec == asked
    assert done.curve.shape == (6,)
    assert [value for _, _, value in watcher.seen] == done.curve.tolist()
    assert done.accuracy.tolist() == done.curve[done.epochs].tolist()
    assert done.accuracy.tolist() == sorted(done.curve, reverse=True)[:3]
    scores = done.scores["test"]
    assert scores.shape == (3, 150, 3)
    assert scores.dtype == np.float32
    assert np.allclose(scores.sum(axis=2), 1, atol=1e-6)
    assert len(done.weights) == 3
    assert done.seconds > 0
    assert done.curve[-1] > 0.6


@pytest.mark.parametrize(
    ("stream", "model", "settings"),
    [
        (BLOBS, mlp, {}),
        (BLOBS, Normed, {"prepare": Standardised()}),
        (stream_of(pictures()), cnn, {"augment": ShiftsAndFlips(shift=0.05, flip=False)}),
        (stream_of(sentences()), fasttext, {}),
    ],
    ids=["features", "batch norm", "pictures", "text"],
)
def test_every_kind_of_data_is_learned_and_its_learners_score_as_they_did(stream, model, settings):
    way = trainer(stream, model, learning_rate=2e-2, **settings)
    done = one(way, spec(epochs=8, generation=2))
    assert done.accuracy.max() > 0.6
    again = way.score(done.weights, stream.evaluation["test"].inputs)
    assert again.tobytes() == done.scores["test"].tobytes()
    stored = Predictor(done.weights, model=model, device="cpu")
    assert stored.members == 2
    assert stored(stream.evaluation["test"].inputs).tobytes() == again.tobytes()


def test_validation_uses_eval_mode_only_and_changes_no_statistics():
    Normed.made.clear()
    way = trainer(model=Normed)
    done = one(way, asked := spec(epochs=3, dropout=0.3))
    assert done.spec == asked
    (used,) = [module for module in Normed.made if any(call[0] for call in module.calls)]
    held_out = int(BLOBS.validation[0].sum())
    steps = -(-(len(BLOBS.generations[0]) - held_out) // 16)
    modes = [(training, rows) for training, rows, _ in used.calls]
    assert modes == ([(True, 16)] * steps + [(False, held_out)]) * 3
    for before, after in zip(used.calls, used.calls[1:], strict=False):
        if not before[0]:  # after a validation the statistics are what they were before it
            assert torch.equal(before[2], after[2])


def test_every_round_draws_its_own_validation_rows_with_the_streams_counts():
    way = trainer()
    rounds = [way._open(spec(i)) for i in range(2)]
    for round_ in rounds:
        labels = BLOBS.pool.labels[round_.validation]
        assert np.bincount(labels).tolist() == BLOBS.validation[0].tolist()
        both = np.concatenate([round_.train, round_.validation])
        assert sorted(both.tolist()) == BLOBS.generations[0].tolist()
    assert rounds[0].validation.tolist() != rounds[1].validation.tolist()


def test_the_preparation_is_fitted_on_training_rows_only():
    pool = pictures()
    way = trainer(stream_of(pool), cnn)
    round_ = way._open(spec())
    expected = pool.inputs[round_.train].mean(axis=0).transpose(2, 0, 1) / 255
    assert np.allclose(round_.prepared["mean"].numpy(), expected, atol=1e-6)


def test_the_schedule_sets_the_rate_of_every_epoch():
    rates = []

    class Noting(torch.optim.SGD):
        def step(self, closure=None):
            rates.append([group["lr"] for group in self.param_groups])
            return super().step(closure)

    def two_groups(parameters, rate):
        first, *rest = parameters
        return Noting([{"params": [first], "lr": 10 * rate}, {"params": rest}], lr=rate)

    asked = RoundSpec(
        recipe=Recipe(schedule=Schedule("custom", (1.0, 0.5, 0.25)), epochs=3, snapshots=1),
        generation=1,
    )
    one(trainer(optimizer=two_groups, learning_rate=0.1, batch_size=1000), asked)
    assert rates == [[1.0, 0.1], [0.5, 0.05], [0.25, 0.025]]


def test_passes_leave_dropout_on_and_everything_else_off():
    for model in (functools.partial(mlp, hidden=(30,)), Normed):
        way = trainer(model=model)
        done = one(way, asked := spec(epochs=3, snapshots=2, dropout=0.4, passes=4))
        scores = done.scores["test"]
        assert scores.shape == (8, 150, 3)
        assert len(done.weights) == 2
        assert done.accuracy.tolist() == np.repeat(done.curve[done.epochs[::4]], 4).tolist()
        assert len({member.tobytes() for member in scores}) == 8
        assert way.score(done.weights, BLOBS.pool.inputs).tobytes() == scores.tobytes()
        assert one(way, asked).scores["test"].tobytes() == scores.tobytes()


def test_without_passes_dropout_is_off_in_the_scores():
    way = trainer(model=functools.partial(mlp, hidden=(30,)))
    done = one(way, spec(dropout=0.4))
    twice = [way.score(done.weights, BLOBS.pool.inputs) for _ in range(2)]
    assert twice[0].tobytes() == twice[1].tobytes()


def test_scores_without_weights_are_the_same_scores():
    with_, without = trainer(), trainer(keep_weights=False)
    a, b = one(with_), one(without)
    assert b.weights == ()
    assert a.scores["test"].tobytes() == b.scores["test"].tobytes()


def test_a_child_starts_from_its_parent():
    parent = one(trainer(), spec(epochs=6))
    stored = {"best": parent.weights[0]}
    way = trainer(parents=stored.__getitem__, learning_rate=1e-12)
    child = one(way, spec(1, generation=2, epochs=1, snapshots=1, parent="best"))
    assert np.allclose(child.scores["test"][0], parent.scores["test"][0], atol=1e-5)


def test_the_fingerprint_changes_with_everything_that_changes_a_round():
    def other(classes):
        return mlp(classes, inputs=(6,))

    prints = [
        trainer().fingerprint,
        trainer(stream_of(blobs(seed=1))).fingerprint,
        trainer(model=functools.partial(mlp, hidden=(5,))).fingerprint,
        trainer(model=other).fingerprint,
        trainer(optimizer=Adam(eps=1e-7)).fingerprint,
        trainer(optimizer=torch.optim.SGD).fingerprint,
        trainer(loss=nn.CrossEntropyLoss).fingerprint,
        trainer(augment=ShiftsAndFlips()).fingerprint,
        trainer(prepare="standardised").fingerprint,
        trainer(batch_size=17).fingerprint,
        trainer(learning_rate=1e-4).fingerprint,
        trainer(precision="bfloat16").fingerprint,
        trainer(name="second").fingerprint,
    ]
    assert len(set(prints)) == len(prints)
    assert trainer().fingerprint == prints[0]
    watched = trainer(monitor=Watcher(), checkpoints=Memory(), keep_weights=False)
    assert watched.fingerprint == prints[0]


def test_the_device_is_said_once(caplog):
    with caplog.at_level(logging.INFO, logger="dynsnap.train"):
        list(trainer().train([spec(), spec(1)]))
    assert [record.getMessage() for record in caplog.records] == ["Training on CPU, float32."]


def test_mixed_precision_learns_too():
    done = one(trainer(precision="bfloat16", learning_rate=1e-2), spec(epochs=6))
    assert done.curve[-1] > 0.6


def test_a_stop_says_what_becomes_of_unfinished_rounds():
    with pytest.raises(Interrupted, match=naming("finished", "saved")):
        list(trainer(monitor=Watcher(1), checkpoints=Memory()).train([spec()]))
    with pytest.raises(Interrupted, match=naming("finished", "lost")):
        list(trainer(monitor=Watcher(1)).train([spec()]))


@pytest.mark.parametrize("loss", [None, nn.CrossEntropyLoss()], ids=["stacked", "alone"])
def test_a_diverged_round_is_refused_by_name(loss):
    way = trainer(learning_rate=1e38, loss=loss)
    with pytest.raises(
        TrainingError, match=naming("round 3", "generation 1", "diverged", "learning rate")
    ):
        list(way.train([spec(3, epochs=5)]))


def test_an_output_width_that_does_not_fit_is_refused_before_training():
    with pytest.raises(PlanError, match=naming("7 outputs", "3 classes", "`classes`")):
        trainer(model=lambda: nn.Linear(6, 7))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Linear(6, 3), naming("`model`", "fresh module", "got Linear")),
        (nn.Linear(6, 3).cpu, naming("`model`", "fresh module", "twice")),
        (lambda: 5, naming("`model`", r"nn\.Module", r"int\.")),
        (lambda: nn.Linear(5, 3), naming("model", r"\(6,\)", "`inputs`")),
        (lambda: nn.Flatten(0), naming("model", r"\(inputs, classes\)", "2 inputs", r"\(12,\)")),
        (lambda: nn.LSTM(6, 3), naming("model", r"\(inputs, classes\)", "2 inputs", "tuple")),
    ],
)
def test_a_model_that_cannot_be_used_is_refused_at_once(model, message):
    with pytest.raises(PlanError, match=message):
        trainer(model=model)


def test_dropout_needs_a_factory_that_takes_it():
    way = trainer(model=lambda classes: nn.Linear(6, classes))
    with pytest.raises(PlanError, match=naming(r"dropout 0\.1", "factory", "`dropout`")):
        way.train([spec(dropout=0.1)])


def test_dropout_needs_a_layer_that_drops():
    way = trainer(model=lambda classes, dropout: nn.Linear(6, classes))
    with pytest.raises(PlanError, match=naming(r"dropout 0\.1", "dropout layer")):
        way.train([spec(dropout=0.1)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, naming("`batch_size`", "at least 1", "got 0")),
        ({"learning_rate": 0.0}, naming("`learning_rate`", "positive", r"0\.0")),
        ({"learning_rate": float("nan")}, naming("`learning_rate`", "positive", "nan")),
        ({"checkpoint_every": -1.0}, naming("`checkpoint_every`", "negative", r"-1\.0")),
        ({"optimizer": "adam"}, naming("`optimizer`", "callable", "str")),
        ({"loss": "ce"}, naming("`loss`", "callable", "str")),
        ({"augment": 3}, naming("`augment`", "callable", "int")),
        ({"device": "tpu9"}, "`device` must be .* got 'tpu9'"),
        ({"precision": "half"}, "`precision` must be .* got 'half'"),
        ({"prepare": "pixel"}, naming("'pixel'", '"pixels"')),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(PlanError, match=message):
        trainer(**settings)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_a_device_that_is_not_there_is_named():
    with pytest.raises(PlanError, match="no device 'cuda'"):
        trainer(device="cuda")


def test_an_optimiser_that_is_none_is_refused():
    with pytest.raises(PlanError, match=naming("`optimizer`", r"torch\.optim\.SGD", "gave str")):
        one(trainer(optimizer=lambda parameters, rate: "adam"))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (spec(generation=9), naming("generation 9", "has 2")),
        (spec(parent="k"), "hand in `parents`"),
        (
            RoundSpec(
                recipe=Recipe(schedule=Schedule("custom", (1.0,)), epochs=2, snapshots=1),
                generation=1,
            ),
            "1 multipliers for 2 epochs",
        ),
    ],
)
def test_a_spec_that_cannot_be_trained_is_refused_before_any_is(asked, message):
    watcher = Watcher()
    with pytest.raises(PlanError, match=message):
        trainer(monitor=watcher).train([spec(), asked])
    assert not watcher.seen


def test_what_fails_inside_a_step_is_told_with_the_round():
    way = trainer(loss=lambda logits, labels: (logits[:, :2] - labels).mean())
    with pytest.raises(
        TrainingError, match=naming("round 0", "epoch 0", "optimiser", "size of tensor")
    ):
        one(way)


def test_features_that_are_not_finite_are_refused():
    pool = blobs()
    inputs = pool.inputs.copy()
    inputs[3, 2] = np.nan
    broken = Pool(
        name="broken", inputs=inputs, labels=pool.labels, classes=pool.classes, ids=pool.ids
    )
    with pytest.raises(InputError, match="must be finite"):
        trainer(stream_of(broken))


def test_stored_learners_that_do_not_fit_are_refused():
    done = one(trainer())
    with pytest.raises(
        FileError, match=naming(r"'1\.bias'", r"\(128,\)", r"\(5,\)", "the factory")
    ):
        Predictor(done.weights, model=functools.partial(mlp, hidden=(5,)), device="cpu")
    with pytest.raises(FileError, match="damaged"):
        Predictor([done.weights[0][:100]], model=mlp, device="cpu")
    with pytest.raises(InputError, match="no learners"):
        Predictor([], model=mlp, device="cpu")


def test_inputs_of_another_shape_are_refused():
    done = one(trainer())
    with pytest.raises(InputError, match=naming(r"inputs \(6,\),", r"inputs \(5,\)")):
        Predictor(done.weights, model=mlp, device="cpu")(np.zeros((2, 5)))


def test_learners_of_different_tasks_do_not_mix():
    a, b = one(trainer()), one(trainer(stream_of(blobs(width=5))))
    with pytest.raises(FileError, match=naming("learners", "together", "one study")):
        Predictor([a.weights[0], b.weights[0]], model=mlp, device="cpu")


def test_members_of_rounds_with_and_without_passes_keep_their_order():
    way = trainer(model=functools.partial(mlp, hidden=(30,)))
    plain = one(way, spec(snapshots=1))
    passes = one(way, spec(snapshots=1, dropout=0.4, passes=3))
    mixed = way.score([passes.weights[0], plain.weights[0]], BLOBS.pool.inputs)
    assert mixed[:3].tobytes() == passes.scores["test"].tobytes()
    assert mixed[3:].tobytes() == plain.scores["test"].tobytes()


def test_nothing_is_trained_before_a_round_is_asked_for():
    watcher = Watcher()
    trainer(monitor=watcher).train([spec()])
    assert not watcher.seen
    assert recipe().epochs == 4
