"""One network that is retrained from the one that is deployed."""

import copy

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.ensemble import SINGLE
from dynsnap.errors import FileError, InputError, PlanError
from dynsnap.predictions import Predictions, write
from dynsnap.train.models import mlp
from tests.messages import naming

RNG = np.random.default_rng(0)
LABELS = np.array(["a", "b", "c", "d"])[np.arange(240) % 4]
INPUTS = (RNG.normal(size=(4, 6))[np.arange(240) % 4] * 2 + RNG.normal(size=(240, 6))).astype(
    np.float32
)
FIRST = np.flatnonzero((np.arange(240) < 120) & (LABELS != "b"))  # "b" is new, and not the last


def single(method="single", model=mlp, **settings):
    usual = {"epochs": 6, "learning_rate": 0.02, "batch_size": 16, "random_state": 0}
    usual = usual | {"device": "cpu"} if model is mlp else {"random_state": 0}
    return DynSnapClassifier(model, method=method, **{**usual, **settings})


def grown(**settings):
    old = single(**settings).fit(INPUTS[FIRST], LABELS[FIRST])
    return old, old.retrain(INPUTS[120:], LABELS[120:])


@pytest.mark.parametrize("method", SINGLE)
def test_a_single_network_is_retrained_and_learns_the_new_class(method):
    old, new = grown(method=method)
    assert len(old.members_) == len(new.members_) == 1
    both = 2 if method == "single-codistill" else 1
    assert old.cost_ == both
    assert new.cost_ == (2 if method == "single-long" else both)
    assert new.generation_ == 2
    is_new = LABELS == "b"
    assert (new.predict(INPUTS)[is_new] == "b").mean() > 0.5
    assert new.score(INPUTS, LABELS) > 0.7


TREES = {
    "lightgbm": LGBMClassifier(num_leaves=4, min_child_samples=5, learning_rate=0.3),
    "xgboost": XGBClassifier(max_depth=2, missing=-9.0),
    "histogram": HistGradientBoostingClassifier(max_depth=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TREES)
def test_boosted_trees_are_retrained_as_networks_are(name, tmp_path):
    def grow(method, **retraining):
        asked = {"retraining": retraining} if retraining else {}
        return grown(method=method, model=TREES[name], epochs=8, **asked)

    old, new = grow("single")
    assert (old.cost_, new.cost_, new.generation_) == (1, 1, 2)
    assert new.score(INPUTS, LABELS) > 0.8
    assert (new.predict(INPUTS)[LABELS == "b"] == "b").mean() > 0.5
    old.save(tmp_path / "old.ensemble")
    loaded = DynSnapClassifier.load(tmp_path / "old.ensemble", model=TREES[name])
    again = loaded.retrain(INPUTS[120:], LABELS[120:], earlier=(INPUTS[FIRST], LABELS[FIRST]))
    np.testing.assert_array_equal(again.predict_proba(INPUTS), new.predict_proba(INPUTS))

    _, still = grow("single-warm", restart_rate=1e-9, epochs_share=0.25)
    assert still.cost_ == 0.25
    known = still.predict_proba(INPUTS)[:, [0, 2, 3]]
    known = known / known.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(known, old.predict_proba(INPUTS), atol=1e-5)
    _, taught = grow("single-distill", distill_rows="right")
    assert taught.score(INPUTS, LABELS) > 0.7


def test_trees_of_another_library_teach_and_are_not_continued():
    old = single(model=TREES["xgboost"], epochs=4).fit(INPUTS[FIRST], LABELS[FIRST])
    old.set_params(model=TREES["lightgbm"])
    with pytest.raises(FileError, match=naming("xgboost", "LGBMClassifier", "single-distill")):
        old.retrain(INPUTS[120:], LABELS[120:])
    old.set_params(method="single-distill")
    assert old.retrain(INPUTS[120:], LABELS[120:]).score(INPUTS, LABELS) > 0.6


@pytest.mark.parametrize("method", ["single", "single-distill"])
def test_a_new_class_is_learned_beside_the_others_also_from_a_teacher_alone(method):
    _, new = grown(method=method, retraining={"distill_weight": 1.0})
    assert new.score(INPUTS, LABELS) > 0.8


def test_what_is_new_is_new_to_the_deployed_network_whatever_a_teacher_knows():
    teacher = LogisticRegression().fit(INPUTS, LABELS)  # which knows "b"

    def scores(later, weight):
        old = single(retraining={"new_class_weight": weight}).fit(INPUTS[FIRST], LABELS[FIRST])
        made = old.retrain(INPUTS[120:][later], LABELS[120:][later], teacher=teacher)
        return made.predict_proba(INPUTS)

    every = np.ones(120, bool)
    assert not np.array_equal(scores(every, 1), scores(every, 4))
    knows = np.isin(LABELS, ["a", "c"])
    teacher.fit(INPUTS[knows], LABELS[knows])  # but not "d", which the deployed network does
    known = LABELS[120:] != "b"
    np.testing.assert_array_equal(scores(known, 1), scores(known, 4))


@pytest.mark.parametrize("weight", [np.float32(4), np.int64(4)])
def test_numbers_of_numpy_are_numbers(weight, tmp_path):
    _, new = grown(retraining={"new_class_weight": weight})
    _, usual = grown(retraining={"new_class_weight": 4.0})
    np.testing.assert_array_equal(new.predict_proba(INPUTS), usual.predict_proba(INPUTS))
    new.save(tmp_path / "new.ensemble")
    loaded = DynSnapClassifier.load(tmp_path / "new.ensemble", model=mlp)
    assert loaded.get_params()["retraining"] == {"new_class_weight": 4}


def test_it_starts_from_the_deployed_network():
    old, new = grown(retraining={"restart_rate": 1e-6, "distill_weight": 0.0})
    seen = LABELS != "b"
    # At next to no rate it stays what it was, with an untrained output for the new class.
    before = old.predict_proba(INPUTS)
    after = new.predict_proba(INPUTS)[:, [0, 2, 3]]
    after = after / after.sum(1, keepdims=True)
    np.testing.assert_allclose(after[seen], before[seen], atol=1e-3)


def test_a_loaded_network_is_retrained_as_one_that_was_kept(tmp_path):
    old, new = grown(retraining={"epochs_share": 0.5, "views": 2}, smoothing=0.1, average=0.9)
    path = tmp_path / "old.ensemble"
    old.save(path)
    loaded = DynSnapClassifier.load(path, model=mlp)
    assert loaded.get_params()["retraining"] == {"epochs_share": 0.5, "views": 2}
    again = loaded.retrain(INPUTS[120:], LABELS[120:], earlier=(INPUTS[FIRST], LABELS[FIRST]))
    np.testing.assert_array_equal(again.predict_proba(INPUTS), new.predict_proba(INPUTS))


def test_an_ensemble_is_not_retrained_as_a_single_network():
    old = single("extbagging", members=2).fit(INPUTS[FIRST], LABELS[FIRST])
    old.set_params(method="single", members=20)
    with pytest.raises(InputError, match=naming("single", "2")):
        old.retrain(INPUTS[120:], LABELS[120:])


def test_a_network_of_another_architecture_is_refused():
    old = single().fit(INPUTS[FIRST], LABELS[FIRST])
    old.set_params(model=_wider)
    with pytest.raises(Exception, match=r"[Dd]oes not fit|does not fit") as caught:
        old.retrain(INPUTS[120:], LABELS[120:])
    assert "\n" not in str(caught.value)


def _wider(inputs, classes):
    return mlp(inputs=inputs, classes=classes, hidden=[7])


@pytest.mark.parametrize("later", [LABELS[120:] != "b", np.ones(120, bool)])
def test_the_first_layer_that_does_not_fit_is_named_alone(later):
    old = single().fit(INPUTS[FIRST], LABELS[FIRST]).set_params(model=_wider)
    with pytest.raises(FileError, match="does not fit") as caught:
        old.retrain(INPUTS[120:][later], LABELS[120:][later])
    assert str(caught.value).count("weight") + str(caught.value).count("bias") == 1


@pytest.mark.parametrize("model", [_wider, TREES["lightgbm"]])
def test_a_network_of_another_architecture_or_library_learns_from_the_deployed_scores(model):
    old = single().fit(INPUTS[FIRST], LABELS[FIRST])
    said = old.predict_proba(INPUTS)
    usual = {"learning_rate": 1e-3, "batch_size": 128, "device": "auto", "epochs": 8}
    changes = {"learning_rate": 0.02} if model is _wider else usual
    old.set_params(model=model, method="single-distill", **changes)
    new = old.retrain(INPUTS[120:], LABELS[120:])
    assert (new.generation_, new.cost_) == (2, 1)
    assert new.score(INPUTS, LABELS) > 0.6
    np.testing.assert_array_equal(old.predict_proba(INPUTS), said)
    again = copy.deepcopy(old)  # which opens its learners anew
    np.testing.assert_array_equal(again.predict_proba(INPUTS), said)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"retraining": {"distill_weight": 1.5}}, ["`distill_weight`", "1.5"]),
        ({"retraining": {"distil_weight": 0.5}}, ["`distil_weight`", "distill_weight"]),
        ({"retraining": {"distill_weight": True}}, ["`distill_weight`", "True"]),
        ({"retraining": {"new_class_weight": True}}, ["`new_class_weight`", "True"]),
        ({"retraining": {"new_class_weight": 0.5}}, ["`new_class_weight`", "0.5"]),
        ({"retraining": {"new_class_weight": float("nan")}}, ["`new_class_weight`", "nan"]),
        ({"retraining": {"new_class_weight": float("inf")}}, ["`new_class_weight`", "inf"]),
        ({"method": "singlebase", "retraining": {"views": 2}}, ["`views`", "singlebase"]),
        (
            {"retraining": {"interpolate": True, "warm_start": False}},
            ["`interpolate`", "`warm_start`"],
        ),
        ({"retraining": [0.5]}, ["`retraining`", "list"]),
        ({"retraining": {5: 0.5}}, ["`5`"]),
        ({"method": "single-interpolated", "selection_holdout": 0}, ["`selection_holdout`"]),
        ({"average": 1.0}, ["`average`", "1.0"]),
        ({"average": 0.9, "epochs": 1, "batch_size": 1000}, ["`average`"]),
        ({"model": LogisticRegression()}, ["LogisticRegression", "afresh", "single-distill"]),
        ({"model": GaussianNB(), "retraining": {"interpolate": True}}, ["`interpolate`"]),
        ({"model": LGBMClassifier(), "retraining": {"temperature": 2.0}}, ["`temperature`", "2.0"]),
        ({"model": KNeighborsClassifier(), "method": "single-distill"}, ["`sample_weight`"]),
        ({"model": LogisticRegression(), "method": "single-ema"}, ["`average`"]),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, named):
    with pytest.raises(PlanError, match=naming(*named)):
        single(**settings).fit(INPUTS, LABELS)


@pytest.mark.parametrize("model", [*TREES.values(), GaussianNB()])
def test_models_without_a_second_network_refuse_codistillation_by_name(model):
    with pytest.raises(PlanError, match=naming("single-codistill", "torch", "singlebase")):
        single("single-codistill", model=model).fit(INPUTS, LABELS)


def ensemble():
    return single("extbagging", members=2).fit(INPUTS[FIRST], LABELS[FIRST])


def so_far():
    """All rows of a retrain of `ensemble`, in their order, and their classes."""
    return np.concatenate([INPUTS[FIRST], INPUTS[120:]]), np.concatenate(
        [LABELS[FIRST], LABELS[120:]]
    )


@pytest.mark.parametrize("method", ["single-distill", "single"])
def test_an_ensemble_or_a_file_of_its_scores_teaches(method, tmp_path):
    teacher = ensemble()
    rows, _ = so_far()
    said = Predictions(
        ids=np.arange(len(rows)),
        classes=[str(one) for one in teacher.classes_],
        scores=teacher.predict_proba(rows),
    )
    write(said, tmp_path / "said.parquet")
    old = single(method).fit(INPUTS[FIRST], LABELS[FIRST])
    made = [
        old.retrain(INPUTS[120:], LABELS[120:], teacher=one).predict_proba(INPUTS)
        for one in (teacher, said, tmp_path / "said.parquet", None)
    ]
    np.testing.assert_array_equal(made[0], made[1])
    np.testing.assert_array_equal(made[0], made[2])
    assert not np.array_equal(made[0], made[3])


def test_a_file_that_numbers_other_rows_is_refused_by_its_truth():
    teacher, (rows, labels) = ensemble(), so_far()
    said = Predictions(
        ids=np.arange(len(rows))[::-1],
        classes=sorted({*labels.tolist()}),
        scores=np.pad(teacher.predict_proba(rows), ((0, 0), (0, 1))),
        truth=labels.tolist(),
    )
    old = single("single-distill").fit(INPUTS[FIRST], LABELS[FIRST])
    with pytest.raises(InputError, match=naming("teacher", "truth")):
        old.retrain(INPUTS[120:], LABELS[120:], teacher=said)


def test_an_ensemble_goes_on_as_one_network_that_learns_from_it():
    old = ensemble().set_params(method="single-distill", members=20)
    new = old.retrain(INPUTS[120:], LABELS[120:])
    assert len(new.members_) == 1
    assert new.generation_ == 2
    assert (new.predict(INPUTS)[LABELS == "b"] == "b").mean() > 0.5
    trees = single("single-distill", model=TREES["lightgbm"], epochs=8)
    taught = trees.fit(INPUTS[FIRST], LABELS[FIRST]).retrain(
        INPUTS[120:], LABELS[120:], teacher=old
    )
    assert taught.score(INPUTS, LABELS) > 0.6


def test_teachers_that_cannot_teach_are_refused_in_one_line(tmp_path):
    old = single("single-distill").fit(INPUTS[FIRST], LABELS[FIRST])

    def refused(teacher, *named, by=InputError, of=old):
        with pytest.raises(by, match=naming(*named)) as caught:
            of.retrain(INPUTS[120:], LABELS[120:], teacher=teacher)
        assert "\n" not in str(caught.value)

    def said(classes=("a", "c", "d"), rows=120, scores=True):
        kind = {"scores": np.full((rows, len(classes)), 1 / len(classes))}
        if not scores:
            kind = {"labels": [classes[0]] * rows}
        return Predictions(ids=np.arange(rows), classes=classes, **kind)

    write(said(), tmp_path / "few.parquet")
    refused(tmp_path / "few.parquet", "few.parquet", "training rows")
    refused(said(("x", "y"), rows=210), "'x'", "'a'")
    refused(said(scores=False), "scores")
    refused(3, "`teacher`", "int")
    other = GaussianNB().fit(INPUTS[:, :3], LABELS)
    refused(other, "GaussianNB", "6 features")
    plain = single("singlebase").fit(INPUTS[FIRST], LABELS[FIRST])
    refused(other, "singlebase", "single-distill", by=PlanError, of=plain)
    named = single("single-distill", retraining={"teacher": "sha256:" + "0" * 64})
    with pytest.raises(PlanError, match=naming("`teacher`", "retrain")):
        named.fit(INPUTS[FIRST], LABELS[FIRST])
