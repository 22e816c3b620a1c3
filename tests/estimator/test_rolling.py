"""DynSnapClassifier(method="rolling"): members carried over by `retrain`."""

import functools

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from dynsnap import trainers
from dynsnap.errors import FileError, InputError, PlanError
from dynsnap.estimator import DynSnapClassifier
from dynsnap.train.models import mlp
from tests.estimator.data import blobs
from tests.messages import naming

KINDS = ["torch", "trees"]


def a_rolling_one(kind, **settings):
    chosen = {
        "method": "rolling",
        "members": 4,
        "snapshots": 2,
        "epochs": 8,
        "carry_over": 0.5,
        "max_accuracy_gap": 1.0,
        "selection_holdout": 0.2,
        "random_state": 0,
        **({"learning_rate": 0.05, "device": "cpu"} if kind == "torch" else {}),
        **settings,
    }
    return DynSnapClassifier(MODELS[kind](), **chosen)


def a_network():
    return functools.partial(mlp, hidden=(8,))


def trees():
    return HistGradientBoostingClassifier(max_depth=3)


MODELS = {"torch": a_network, "trees": trees}


@pytest.mark.parametrize("kind", KINDS)
def test_members_are_carried_over_and_a_new_class_is_learned(kind):
    inputs, labels = blobs(classes=4, rows=400)
    early = labels != "b"  # in the middle of the order, so that positions of classes move
    first = a_rolling_one(kind).fit(inputs[early][:200], labels[early][:200])
    second = first.retrain(inputs[~early], labels[~early])
    assert [one.generation for one in first.members_] == [1] * 4
    assert [one.generation for one in second.members_] == [1, 1, 2, 2]
    assert second.classes_.tolist() == ["a", "b", "c", "d"]
    assert second.cost_ < first.cost_ or second.rounds_ <= first.rounds_
    said = second.predict(inputs)
    assert np.mean(said[~early] == "b") > 0.8
    assert np.mean(said[early] == labels[early]) > 0.8
    # The old members never saw the new class, and their silence is no vote against it.
    known = second._found().known(4)
    assert known.tolist() == [[True, False, True, True]] * 2 + [[True] * 4] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_carried_over_says_what_it_said(kind):
    inputs, labels = blobs(classes=3, rows=300)
    first = a_rolling_one(kind, carry_over=1.0).fit(inputs[:200], labels[:200])
    second = first.retrain(inputs[200:], labels[200:])
    assert second.rounds_ == 0 and second.cost_ == 0 and second.generation_ == 2
    np.testing.assert_allclose(second.predict_proba(inputs), first.predict_proba(inputs), atol=1e-6)
    third = second.retrain(inputs[:50], labels[:50])
    assert {one.generation for one in third.members_} == {1}


def test_a_new_class_alone_makes_nobody_lag_behind():
    inputs, labels = blobs(classes=4, rows=400)
    early = labels != "b"  # a quarter of the rows is of a class that the old members never saw
    first = a_rolling_one("trees", max_accuracy_gap=0.1).fit(inputs[early], labels[early])
    second = first.retrain(inputs[~early], labels[~early])
    assert [one.generation for one in second.members_] == [1, 1, 2, 2]


def test_members_that_were_trained_on_the_rows_to_judge_by_are_not_carried_over():
    inputs, labels = blobs(classes=3, rows=300)
    usual = {
        "carry_over": 0.75,
        "max_accuracy_gap": 0.05,
        "selection_holdout": 0.1,
    }  # which are for rolling ensembles
    first = a_rolling_one("trees", method="dynsnap-cyc", **usual).fit(inputs[:200], labels[:200])
    first.set_params(method="rolling", selection_holdout=0.2)
    with pytest.raises(InputError, match=r"0%.*`selection_holdout` asks for 20%"):
        first.retrain(inputs[200:], labels[200:])
    other = a_rolling_one("trees").fit(inputs[:200], labels[:200])
    other.set_params(model=a_network())
    with pytest.raises(InputError, match=naming(r"\(boost\)", r"`model` \(torch\)", "`fit`")):
        other.retrain(inputs[200:], labels[200:])


def test_who_lags_behind_is_replaced():
    inputs, labels = blobs(classes=3, rows=400)
    shuffled = np.random.default_rng(0).permutation(labels[:60])
    first = a_rolling_one("trees", max_accuracy_gap=0.05).fit(
        inputs[:60], shuffled
    )  # learns nonsense
    second = first.retrain(inputs[60:], labels[60:])
    assert [one.generation for one in second.members_] == [2] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_holds_who_knows_what(kind, tmp_path):
    inputs, labels = blobs(classes=4, rows=300)
    early = labels != "b"
    first = a_rolling_one(kind).fit(inputs[early], labels[early])
    second = first.retrain(inputs[~early], labels[~early])
    second.save(tmp_path / "second.ensemble")
    model = MODELS[kind]()
    found = DynSnapClassifier.load(tmp_path / "second.ensemble", model=model)
    np.testing.assert_array_equal(found.predict_proba(inputs), second.predict_proba(inputs))
    assert found.members_ == second.members_
    before = first.predict_proba(inputs)
    third = found.retrain(inputs[:60], labels[:60], earlier=(inputs, labels))
    assert third.generation_ == 3
    np.testing.assert_array_equal(first.predict_proba(inputs), before)  # never modified


def test_no_generation_trains_on_the_selection_holdout(monkeypatch):
    seen = []
    backend = trainers.named("boost")
    real = backend.trainer

    def spied(stream, **settings):
        seen.append({stream.pool.inputs[row].tobytes() for row in stream.generations[-1]})
        seen.append({row.tobytes() for row in stream.evaluation["test"].inputs})
        return real(stream, **settings)

    monkeypatch.setattr(backend, "trainer", spied)
    inputs, labels = blobs(classes=3, rows=300)
    a_rolling_one("trees").fit(inputs[:150], labels[:150]).retrain(inputs[150:], labels[150:])
    trained = seen[0] | seen[2]
    assert not trained & (seen[1] | seen[3])
    assert seen[1] < seen[3]


def test_bad_input_gets_one_clear_line(tmp_path):
    inputs, labels = blobs(classes=3, rows=300)
    for carry_over, message in [(2, "between 0 and 1"), (0.01, "carry_over")]:
        with pytest.raises(PlanError, match=message):
            a_rolling_one("trees", carry_over=carry_over).fit(inputs, labels)
    with pytest.raises(InputError, match=naming("20 rows", "too few", "`selection_holdout`")):
        a_rolling_one("trees", selection_holdout=0.9).fit(inputs[:20], labels[:20])
    first = a_rolling_one("torch").fit(inputs[:200], labels[:200])
    rest = labels[200:] != "a"
    with pytest.raises(InputError, match=naming("class 'a'", "no rows", "`fit`")):
        first.retrain(
            inputs[200:][rest], labels[200:][rest], earlier=(inputs[200:][rest], labels[200:][rest])
        )
    with pytest.raises((InputError, ValueError), match=r"features|shape"):
        first.retrain(inputs[200:, :1], labels[200:])
    first.save(tmp_path / "first.ensemble")
    with pytest.raises(FileError, match=naming(r"'1\.bias'", r"\(8,\)", r"\(5,\)", "the factory")):
        DynSnapClassifier.load(
            tmp_path / "first.ensemble", model=functools.partial(mlp, hidden=(5,))
        )


@pytest.mark.parametrize("kind", KINDS)
def test_bagging_rolls_too_with_a_few_of_the_best_epochs_of_each_training(kind):
    inputs, labels = blobs(classes=3, rows=300)
    settings = {"method": "rolling-bagging", "members": 6, "snapshots": 4, "carry_over": 0.5}
    first = a_rolling_one(kind, **settings).fit(inputs[:200], labels[:200])
    assert first.rounds_ == 2 and len(first.members_) == 6
    second = first.retrain(inputs[200:], labels[200:])
    assert second.rounds_ == 1 and second.cost_ == 1
    assert [one.generation for one in second.members_] == [1] * 3 + [2] * 3
    assert np.mean(second.predict(inputs) == labels) > 0.8
