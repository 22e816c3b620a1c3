"""What a keeper cannot make sense of is refused in one line, and nothing is lost."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from dynsnap.ensemble import Rolling
from dynsnap.errors import DynSnapError, InputError, PlanError, TrainingError
from dynsnap.keeper import EvaluationSet, ModuleScores
from dynsnap.keeper._ensemble import positions_in
from dynsnap.keeper._folder import KeeperManifest
from tests.keeper.loops import Counter, keeper, net, points, score_counter, train
from tests.messages import naming


@pytest.fixture
def training(tmp_path):
    """A round that has begun and has one epoch behind it."""
    kept = keeper(tmp_path / "run", score=score_counter)
    rounds = kept.rounds()
    found = next(rounds)
    found.begin(Counter())
    found.end_epoch(0, 0.5)
    yield found
    rounds.close()


@pytest.mark.parametrize("epoch", [0, 2, 3, -1])
def test_epochs_out_of_order_are_refused(training, epoch):
    with pytest.raises(TrainingError, match=naming(f"epoch {epoch}", "epoch 1 is next")):
        training.end_epoch(epoch, 0.5)
    training.end_epoch(1, 0.6)  # nothing is lost


@pytest.mark.parametrize("accuracy", [float("nan"), 1.5, -0.1, 87.0])
def test_a_score_that_is_no_accuracy_is_refused(training, accuracy):
    with pytest.raises(TrainingError, match=naming("epoch 1", "from 0 to 1", f"{accuracy:g}")):
        training.end_epoch(1, accuracy)
    assert training.epochs_done == 1


def test_an_epoch_without_a_score_and_a_round_without_an_end_are_refused(tmp_path):
    training = next(keeper(tmp_path / "run").rounds())
    with pytest.raises(TrainingError, match=naming("begun", "epochs")):
        training.end_epoch(0, 0.5)
    with pytest.raises(TrainingError, match=naming("Epoch 0", "end_epoch")):
        list(training.epochs(Counter()))
    with pytest.raises(TrainingError, match=naming("0 of 4 epochs")):
        for _ in keeper(tmp_path / "other").rounds():
            pass
    with pytest.raises(PlanError, match=naming("model", "state_dict", "int")):
        next(keeper(tmp_path / "third").rounds()).begin(3)
    with pytest.raises(TrainingError, match=naming("accuracy", "str")):
        training.end_epoch(0, "0.5")


def test_weights_that_change_shape_between_snapshots_are_refused(training):
    model = training._parts["model"]
    model.weights = torch.zeros(2)
    with pytest.raises(TrainingError, match=naming("epochs", r"\(2,\)", r"\(1,\)")):
        training.end_epoch(1, 0.9)
    assert training.epochs_done == 1
    model.state_dict = lambda: {"epochs": torch.zeros(1), "more": torch.zeros(1)}
    with pytest.raises(TrainingError, match=naming("more", "missing")):
        training.end_epoch(1, 0.9)
    model.state_dict = lambda: {"epochs": "three"}
    with pytest.raises(TrainingError, match=naming("epochs", "str")):
        training.end_epoch(1, 0.9)


def test_rounds_of_another_architecture_are_refused(tmp_path):
    kept = keeper(tmp_path / "run", score=score_counter, beta=0.0)
    with pytest.raises(TrainingError, match=naming("rounds before", r"\(1,\)", r"\(2,\)")):
        for number, training in enumerate(kept.rounds()):
            model = Counter()
            model.weights = torch.zeros(1 + number)
            for epoch in training.epochs(model):
                training.end_epoch(epoch, 0.5)


def test_a_state_that_is_no_data_is_refused(tmp_path):
    class Odd(Counter):
        def state_dict(self):
            return {"odd": object()}

    training = next(keeper(tmp_path / "run").rounds())
    training.begin(Counter(), Odd())
    with pytest.raises(TrainingError, match=naming("optimizer", "odd", "object")):
        training.end_epoch(0, 0.5)


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"method": "mcdropout"}, ["mcdropout", "dynsnap-cyc"]),
        ({"method": "single"}, ["single", "rolling"]),
        ({"method": "dynsnap-cyk"}, ["dynsnap-cyk", "dynsnap-cyc"]),
        ({"rolling": Rolling()}, ["rolling", "dynsnap-cyc"]),
        ({"generation": 2}, ["2", "1"]),
        ({"generation": 0}, ["generation", "0"]),
        ({"warmup": 9}, ["warmup", "4", "9"]),
        ({"warmup": -1}, ["warmup"]),
        ({"epochs": 5, "snapshots": 4}, ["5", "4"]),
        ({"checkpoint_every": 0}, ["checkpoint_every"]),
        ({"classes": ["a"]}, ["classes"]),
        ({"classes": ["a", "a"]}, ["classes"]),
        ({"test": [1, 2]}, ["truth", "list"]),
        ({"test": ([1, 2], [0])}, ["test", "2", "1"]),
        ({"test": ([1, 2], [0, 7])}, ["test", "7"]),
        ({"test": ([1, 2], ["left", "under"])}, ["under"]),
        ({"test": (iter([1]), [0])}, ["length", "iterator"]),
        ({"test": ({"a": [1], "b": [1, 2]}, [0])}, ["a", "b"]),
        ({"test": EvaluationSet([1, 2], [0, 1], ids=["x", "x"])}, ["ids", "x"]),
        ({"test": (TensorDataset(torch.ones(2, 2)), [0, 1])}, ["TensorDataset", "array"]),
        ({"test": (DataLoader(range(2)), [0, 1])}, ["DataLoader", "array"]),
        ({"classes": 3}, ["classes", "3"]),
        ({"score": None}, ["score", "NoneType"]),
        ({"score": net}, ["score", "ModuleScores"]),
        ({"score": net()}, ["score", "ModuleScores"]),
        ({"epochs": "4"}, ["epochs", "4"]),
        ({"seed": None}, ["seed", "None"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"resamples": 0}, ["resamples", "0"]),
        ({"selection_holdout": points(9)}, ["selection_holdout", "dynsnap-cyc"]),
    ],
)
def test_settings_that_make_no_sense_are_refused_early(tmp_path, settings, parts):
    with pytest.raises(DynSnapError, match=naming(*parts)):
        keeper(tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_an_ensemble_needs_all_rounds(tmp_path):
    kept = keeper(tmp_path / "run")
    with pytest.raises(PlanError, match=naming("Generation 1", "rounds")):
        kept.ensemble()
    with pytest.raises(PlanError, match=naming("no generation 3")):
        kept.ensemble(3)


@pytest.mark.parametrize(
    ("score", "parts"),
    [
        (lambda weights, inputs, classes: np.zeros((3, 3)), ["score", r"\(3, 3\)", "60"]),
        (lambda weights, inputs, classes: np.full((60, 3), np.nan), ["finite"]),
        (lambda weights, inputs, classes: np.full((60, 3), 0.5), ["sum to one", "softmax"]),
        (ModuleScores(lambda: torch.nn.Linear(2, 3)), ["build"]),
        (ModuleScores(net, forward=lambda module, batch: batch[0]), ["forward", "row"]),
    ],
)
def test_scores_that_are_none_are_refused(tmp_path, score, parts):
    training = next(keeper(tmp_path / "run", score=score).rounds())
    with pytest.raises(InputError, match=naming(*parts)):
        for epoch in training.epochs(net()):
            training.end_epoch(epoch, 0.5)


def test_numbers_and_names_of_other_libraries_are_taken(tmp_path):
    numbers = {"epochs": np.int64(4), "members": np.int32(3), "snapshots": np.int64(2)}
    kept = keeper(tmp_path / "run", seed=np.uint8(7), generation=np.int64(1), **numbers)
    train(kept)
    same = keeper(tmp_path / "run", seed=7, epochs=4, members=3, snapshots=2)
    assert list(same.rounds()) == []
    for names in (torch.arange(3), np.arange(3), range(3)):
        assert keeper(tmp_path / "other", classes=names).classes == ("0", "1", "2")


def test_whole_numbers_are_names_of_classes_that_have_such_names():
    assert positions_in(["1", "2", "3"], [1, 2, 2], "truth").tolist() == [0, 1, 1]
    with pytest.raises(InputError, match=naming("truth", "0", "1, 2, 3")):
        positions_in(["1", "2", "3"], [0, 1, 2], "truth")
    with pytest.raises(InputError, match=naming("truth", "-1")):
        positions_in(["a", "b"], [-1, 0], "truth")


def test_accuracies_that_are_not_one_number_are_refused(training):
    for wrong in (torch.ones(2), np.ones(1), np.array("x"), None, 0.5 + 0j):
        with pytest.raises(TrainingError, match=naming("accuracy", "number", type(wrong).__name__)):
            training.end_epoch(1, wrong)
    training.end_epoch(1, torch.tensor(0.5))
    assert training.epochs_done == 2


def test_a_training_that_diverges_is_refused_and_goes_on_before_that(tmp_path):
    model = net()
    training = next(keeper(tmp_path / "run").rounds())
    training.begin(model)
    training.end_epoch(0, 0.5)
    with torch.no_grad():
        model[0].weight[0, 0] = float("nan")
    with pytest.raises(TrainingError, match=naming("0.weight", "NaN", "epoch 1")):
        training.end_epoch(1, 0.9)
    assert next(keeper(tmp_path / "run").rounds()).epochs_done == 1


def test_groups_that_join_an_optimiser_are_refused(tmp_path):
    model = net()
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    training = next(keeper(tmp_path / "run").rounds())
    with pytest.raises(PlanError, match=naming("optimiser", "1 group", "2")):
        for epoch in training.epochs(model, optimizer):
            optimizer.add_param_group({"params": model[3].parameters()})
            training.end_epoch(epoch, 0.5)


def test_a_loop_that_is_killed_as_it_begins_can_begin_again(tmp_path, monkeypatch):
    """A study without a manifest would be taken for one of `dynsnap study`."""

    def killed(manifest):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(KeeperManifest, "write", killed)
        next(keeper(tmp_path / "run").rounds())
    rounds = keeper(tmp_path / "run").rounds()
    next(rounds)
    rounds.close()
    (tmp_path / "run/study.toml").unlink()
    train(keeper(tmp_path / "run"))
    assert (tmp_path / "run/study.toml").exists()
