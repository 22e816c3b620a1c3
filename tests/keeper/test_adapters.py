"""Lightning, Hugging Face, skorch and Keras as they are: rates, resuming, and wrong settings."""

import doctest
import importlib
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import dynsnap
from dynsnap.errors import DynSnapError
from dynsnap.keeper import ModuleScores
from tests.cli.studies import dynsnap as command
from tests.documents import blocks
from tests.keeper.loops import keeper, net, points
from tests.keeper.test_keeper import assert_same_rounds
from tests.messages import naming

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*(dataloader|num_workers|pin_memory|litlogger)"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
PAGE = (Path(__file__).parents[2] / "docs/your-own-loop.md").read_text(encoding="utf-8")
NAMES = {
    "lightning": "Lightning",
    "transformers": "Hugging Face",
    "skorch": "skorch",
    "keras": "Keras",
}
RATE = 0.05

os.environ.setdefault("KERAS_BACKEND", "torch")
torch.set_num_threads(1)


class StopError(Exception):
    """Ends a training as a kill does: without a word to the keeper."""


# --- each library's own way to train the points of `loops` --------------------------------------


def fit_lightning(
    training, *, epochs, validated=True, stop=None, rates=None, scheduled=False, data=None, **own
):
    import lightning
    from torch.utils.data import DataLoader, TensorDataset

    from dynsnap.keeper.lightning import SnapshotCallback

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, inputs):
            return self.net(inputs)

        def training_step(self, batch, number):
            rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])
            if len(rates) == stop:
                raise StopError
            return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

        def validation_step(self, batch, number):
            self.log("val_acc", (self(batch[0]).argmax(dim=1) == batch[1]).float().mean())

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), lr=RATE)
            if not scheduled:
                return optimizer
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    inputs, labels = (torch.as_tensor(one) for one in points(90))
    rows = TensorDataset(inputs, labels)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        callbacks=[SnapshotCallback(training, per_step=own.pop("per_step", False))],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **own,
    )
    loader = DataLoader(rows, batch_size=30, shuffle=True) if data is None else data
    trainer.fit(Net(), loader, DataLoader(rows, batch_size=90) if validated else None)


class Logits(torch.nn.Module):
    """A module as those of Hugging Face are: keywords in, a dict out."""

    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, points, labels=None):
        return {"logits": self.net(points)}


def fit_transformers(
    training, *, epochs, validated=True, stop=None, rates=None, scheduled=False, several=False
):
    import transformers

    from dynsnap.keeper.transformers import DistillationLoss, SnapshotCallback

    class Watch(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **of):
            if len(rates) == stop:
                raise StopError

        def on_pre_optimizer_step(self, args, state, control, optimizer, **of):
            rates.append(optimizer.param_groups[0]["lr"])

    inputs, labels = points(90)
    rows = [{"points": one, "labels": label} for one, label in zip(inputs, labels, strict=True)]
    transformers.Trainer(
        Logits(),
        transformers.TrainingArguments(
            output_dir=str(training_folder(training)),
            num_train_epochs=epochs,
            eval_strategy="epoch" if validated else "no",
            learning_rate=RATE,
            per_device_train_batch_size=30,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            warmup_steps=5 if scheduled else 0,
            seed=training.seed,
            data_seed=training.seed + training.epochs_done,
        ),
        train_dataset=rows,
        eval_dataset={"some": rows[:30], "all": rows} if several else rows,
        compute_metrics=lambda one: {
            "accuracy": (one.predictions.argmax(axis=1) == one.label_ids).mean()
        },
        compute_loss_func=DistillationLoss(),
        callbacks=[
            SnapshotCallback(training, metric=f"eval_{'all_' if several else ''}accuracy"),
            Watch(),
        ],
    ).train()


def training_folder(training):
    return Path(training._checkpoints._folder.path) / "trainer"


def fit_skorch(training, *, epochs, validated=True, stop=None, rates=None, scheduled=False):
    import skorch
    from skorch.callbacks import Callback, LRScheduler
    from skorch.helper import predefined_split

    from dynsnap.keeper.skorch import SnapshotCallback

    class Watch(Callback):
        def on_batch_begin(self, net, training=False, **of):
            if training:
                rates.append(net.optimizer_.param_groups[0]["lr"])
                if len(rates) == stop:
                    raise StopError

    inputs, labels = points(90)
    split = predefined_split(skorch.dataset.Dataset(inputs, labels)) if validated else None
    skorch.NeuralNetClassifier(
        net,
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=RATE,
        batch_size=30,
        iterator_train__shuffle=True,
        max_epochs=epochs,
        train_split=split,
        callbacks=[SnapshotCallback(training), Watch(), *([LRScheduler()] if scheduled else [])],
        verbose=0,
    ).fit(inputs, labels)


def build_keras(shaped=True):
    """A model that knows the shape of its inputs, or learns it from the first of them."""
    import keras

    layers = keras.layers
    made = [layers.Dense(8, "relu"), layers.Dropout(0.2), layers.Dense(3, "softmax")]
    return keras.Sequential([keras.Input((2,)), *made] if shaped else made)


def fit_keras(
    training, *, epochs, validated=True, stop=None, rates=None, rate=RATE, others=(), named=True
):
    import keras

    from dynsnap.keeper.keras import SnapshotCallback

    class Watch(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            rates.append(float(self.model.optimizer.learning_rate))
            if len(rates) == stop:
                raise StopError

    inputs, labels = points(90)
    model = build_keras(named)
    model.compile(
        keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(
        inputs,
        labels,
        batch_size=30,
        epochs=epochs,
        validation_data=(inputs, labels) if validated else None,
        callbacks=[SnapshotCallback(training), Watch(), *others],
        verbose=0,
    )


def scores_of(library):
    if library == "keras":
        from dynsnap.keeper.keras import KerasScores

        return KerasScores(build_keras)
    if library == "transformers":
        return ModuleScores(Logits, forward=lambda module, batch: module(points=batch)["logits"])
    if library == "lightning":  # a Lightning module is its net and nothing else here
        return ModuleScores(lambda: torch.nn.ModuleDict({"net": net()}), forward=_net)
    return ModuleScores(net)


def _net(module, batch):
    return module["net"](batch)


FITS = {
    "lightning": fit_lightning,
    "transformers": fit_transformers,
    "skorch": fit_skorch,
    "keras": fit_keras,
}


@pytest.fixture(params=FITS)
def library(request):
    pytest.importorskip(request.param)
    return request.param


def kept(folder, library, **settings):
    return keeper(folder, score=scores_of(library), members=1, beta=0.0, **settings)


def seed(library, training):
    torch.manual_seed(training.seed)
    if library == "keras":
        import keras

        keras.utils.set_random_seed(training.seed)


def train(folder, library, *, stop=None):
    """Train the only round of a keeper; the learning rate of every step."""
    rates = []
    for training in kept(folder, library).rounds():
        seed(library, training)
        FITS[library](training, epochs=training.epochs_left, stop=stop, rates=rates)
    return rates


# --- what they have in common -------------------------------------------------------------------


def test_the_rates_are_those_of_the_round_and_a_stopped_one_goes_on(library, tmp_path):
    rates = train(tmp_path / "whole", library)
    training = next(kept(tmp_path / "other", library).rounds())
    steps = 3 if library == "transformers" else 1
    expected = [
        RATE * training.rate(epoch, step=step * (steps > 1), steps=steps)
        for epoch in range(4)
        for step in range(3)
    ]
    assert rates == pytest.approx(expected)
    with pytest.raises(StopError):
        train(tmp_path / "stopped", library, stop=8)  # in the third epoch
    rounds = kept(tmp_path / "stopped", library).rounds()
    assert next(rounds).epochs_done == 2
    rounds.close()
    assert train(tmp_path / "stopped", library) == pytest.approx(expected[6:])
    assert_same_rounds(tmp_path / "stopped", tmp_path / "whole")


def test_a_training_that_never_validates_is_refused(library, tmp_path):
    rounds = kept(tmp_path / "run", library).rounds()
    training = next(rounds)
    with pytest.raises(DynSnapError, match=naming("valid|eval")):
        FITS[library](training, epochs=4, validated=False, rates=[])
    assert not training.finished
    rounds.close()


def test_epochs_that_are_not_those_of_the_round_are_refused(library, tmp_path):
    rounds = kept(tmp_path / "run", library).rounds()
    training = next(rounds)
    with pytest.raises(DynSnapError, match=naming("4 epochs left", "3", "training.epochs_left")):
        FITS[library](training, epochs=3, rates=[])
    rounds.close()


def test_the_examples_of_the_adapters_run(library):
    """They are not among the doctests of every day: each imports its library."""
    module = importlib.import_module(f"dynsnap.keeper.{library}")
    assert doctest.testmod(module).failed == 0
    assert len(Path(module.__file__).read_text(encoding="utf-8").splitlines()) <= 150


def test_a_loss_is_no_score(tmp_path):
    from dynsnap.keeper._round import metric_of

    with pytest.raises(DynSnapError, match=naming("val_loss", "higher")):
        metric_of({"val_loss": 0.4}, "val_loss", epoch=0, hint="")
    with pytest.raises(DynSnapError, match=naming("Epoch 3", "val_acc", "val_accuracy")):
        metric_of({"val_accuracy": 0.4}, "val_acc", epoch=3, hint="")


def test_schedulers_of_one_s_own(tmp_path):
    rounds = kept(tmp_path / "run", "lightning").rounds()
    with pytest.raises(DynSnapError, match=naming("StepLR", "configure_optimizers")):
        fit_lightning(next(rounds), epochs=4, rates=[], scheduled=True)
    rounds.close()
    rates = []
    (training,) = [next(kept(tmp_path / "other", "transformers").rounds())]
    fit_transformers(training, epochs=4, rates=rates, scheduled=True, several=True)
    assert rates[0] == RATE  # that of Hugging Face has no effect
    assert training.finished  # by one of two evaluation sets
    with pytest.raises(DynSnapError, match=naming("LRScheduler")):
        fit_skorch(next(kept(tmp_path / "third", "skorch").rounds()), epochs=4, scheduled=True)


def test_keras_has_schedules_and_models_of_several_kinds(tmp_path):
    import keras

    from dynsnap.keeper.keras import KerasScores

    def training(name):
        return next(kept(tmp_path / name, "keras").rounds())

    falling = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    with pytest.raises(DynSnapError, match=naming("LearningRateSchedule")):
        fit_keras(training("schedule"), epochs=4, rates=[], rate=falling)
    other = keras.callbacks.LearningRateScheduler(lambda epoch: 1.0)
    with pytest.raises(DynSnapError, match=naming("learning rate", "callback")):
        fit_keras(training("callback"), epochs=4, rates=[], others=[other])
    # A model that is built by its first inputs is trained and scored as any other.
    score = KerasScores(lambda: build_keras(shaped=False))
    loop = keeper(tmp_path / "built", score=score, members=1, beta=0.0)
    for one in loop.rounds():
        fit_keras(one, epochs=4, rates=[], named=False)
    assert loop.ensemble().predict(points(5)[0]).shape == (5,)
    weights = loop.ensemble().weights[0]
    for wrong in ([keras.layers.Dense(3)], [keras.layers.Dense(9), keras.layers.Dense(3)]):
        build = KerasScores(lambda made=wrong: keras.Sequential([keras.Input((2,)), *made]))
        with pytest.raises(DynSnapError, match=naming("snapshot", "`build`")):
            build(weights, points(5)[0], 3)


def test_lightning_moves_the_rate_in_every_step_where_it_knows_their_number(tmp_path):
    from torch.utils.data import DataLoader, IterableDataset

    class Endless(IterableDataset):
        def __iter__(self):
            return zip(*(torch.as_tensor(one) for one in points(90)), strict=True)

    rates = []
    training = next(kept(tmp_path / "run", "lightning").rounds())
    fit_lightning(training, epochs=4, rates=rates, per_step=True)
    expected = [
        RATE * training.rate(epoch, step=step, steps=3) for epoch in range(4) for step in range(3)
    ]
    assert rates == pytest.approx(expected)
    loader = DataLoader(Endless(), batch_size=30)
    training = next(kept(tmp_path / "other", "lightning").rounds())
    with pytest.raises(DynSnapError, match=naming("per_step", "length")):
        fit_lightning(training, epochs=4, rates=[], per_step=True, data=loader)
    training = next(kept(tmp_path / "third", "lightning").rounds())
    fit_lightning(training, epochs=4, rates=[], data=loader)
    assert training.finished
    training = next(kept(tmp_path / "fourth", "lightning").rounds())
    with pytest.raises(DynSnapError, match=naming("max_steps", "5")):
        fit_lightning(training, epochs=4, rates=[], max_steps=5)


def test_a_backend_of_keras_that_is_not_there_is_named(tmp_path):
    own = {**os.environ, "KERAS_BACKEND": "tensorflow"}
    pytest.importorskip("keras")
    ended = subprocess.run(
        [sys.executable, "-c", "import dynsnap.keeper.keras"],
        env=own,
        check=False,
        capture_output=True,
        text=True,
    )
    assert "KERAS_BACKEND=torch" in ended.stderr.splitlines()[-1]


def test_the_loss_of_distillation_is_that_of_studies():
    from dynsnap.keeper.transformers import DistillationLoss, taught_labels

    logits = torch.tensor([[2.0, 0.0, -1.0], [0.5, 0.5, 0.0], [0.0, 1.0, 3.0]])
    own, scores = [0, 1, 2], np.array([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0], [0.5, 0.5, 0.0]])
    labels = torch.as_tensor(taught_labels(own, scores))
    assert labels[2, 1:].tolist() == [0, 0, -1]  # the teacher does not know the last class
    expected = []
    for row, label, teacher in zip(logits.double(), own, scores[:, :2], strict=True):
        soft = teacher ** (1 / 2) / (teacher ** (1 / 2)).sum()
        taught = -4 * float((torch.as_tensor(soft) * torch.log_softmax(row[:2] / 2, 0)).sum())
        plain = -float(torch.log_softmax(row, 0)[label])
        expected.append(plain if label == 2 else 0.3 * taught + 0.7 * plain)
    loss = DistillationLoss(weight=0.3, temperature=2.0)
    assert float(loss({"logits": logits}, labels)) == pytest.approx(np.mean(expected), rel=1e-5)
    # A batch that is half of what is accumulated: the trainer counts all numbers of its labels.
    whole = loss({"logits": logits}, labels, num_items_in_batch=2 * labels.numel())
    assert float(whole) == pytest.approx(np.mean(expected) / 2, rel=1e-5)
    plain = torch.nn.functional.cross_entropy(logits, torch.tensor(own))
    assert float(loss((logits,), torch.tensor(own))) == pytest.approx(float(plain))
    for wrong in ({"weight": 0.0}, {"weight": 1.5}, {"temperature": 0.0}):
        with pytest.raises(DynSnapError, match=naming(*wrong)):
            DistillationLoss(**wrong)
    with pytest.raises(DynSnapError, match=naming(r"\(3, 3\)", r"\(3, 4\)")):
        loss({"logits": logits}, labels[:, :3])
    with pytest.raises(DynSnapError, match=naming("rows", r"\(3, 3\)")):
        taught_labels([0, 1], scores)
    with pytest.raises(DynSnapError, match=naming("finite", "row 1")):
        taught_labels(own, np.where(np.arange(3)[:, None] == 1, np.nan, scores))


def test_a_teacher_that_knows_no_class_leaves_labels_alone():
    from dynsnap.keeper.transformers import DistillationLoss, taught_labels

    own = [0, 1, 2]
    labels = torch.as_tensor(taught_labels(own, np.zeros((3, 3))))
    logits = torch.randn(3, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for weight in (0.5, 1.0):
        loss = DistillationLoss(weight=weight)({"logits": logits}, labels)
        plain = torch.nn.functional.cross_entropy(logits, torch.tensor(own))
        found, slow = (torch.autograd.grad(each, logits)[0] for each in (loss, plain))
        torch.testing.assert_close(loss, plain)
        torch.testing.assert_close(found, slow)


def test_without_a_say_of_labels_a_teacher_keeps_known_rows_from_new_classes():
    from dynsnap.keeper.transformers import DistillationLoss, taught_labels

    labels = torch.as_tensor(taught_labels([0, 1], np.array([[0.7, 0.3, 0.0], [0.2, 0.8, 0.0]])))
    logits = torch.zeros(2, 3, requires_grad=True)
    loss = DistillationLoss(weight=1.0)({"logits": logits}, labels)
    (slope,) = torch.autograd.grad(loss, logits)
    assert (slope[:, 2] > 0).all()


# --- the pages ----------------------------------------------------------------------------------


def test_the_section_of_a_library_runs(library, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    section = PAGE.partition(f"## {NAMES[library]}\n")[2].partition("\n## ")[0]
    assert f"dynsnap[{library}]" in section
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for example in (blocks(PAGE, "python")[0], *blocks(section, "python")):
            exec(compile(example, "docs/your-own-loop.md", "exec"), names)
    first, second = names["first"], names["second"]
    assert (first.generation, second.generation) == (1, 2)
    if library == "transformers":
        inputs, truth = names["part"](slice(500, 700)), names["topic"][500:700]
    else:
        inputs, truth = names["X"][1400:], names["y"][1400:]
    found = dynsnap.compare(
        first.predictions(inputs, truth=truth), second.predictions(inputs, truth=truth)
    )
    assert 0.5 < found.pairs[0].metrics["consistency"].value <= 1
    # Three of four members are carried over, unless the new one is much better.
    own = {one[sorted(one)[-1]].numpy().tobytes() for one in first.weights}
    assert any(one[sorted(one)[-1]].numpy().tobytes() in own for one in second.weights)
    assert second.save("second.ensemble")
    for arguments in (["report"], ["runs"]):
        ended = command(*arguments, f"runs/{library}")
        assert ended.exit_code == 0, ended.stderr
