"""The selection metric of an estimator: its own names, scorers of scikit-learn, and refusals."""

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import f1_score, make_scorer
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.boost import BoostTrainer
from dynsnap.data import from_generations
from dynsnap.ensemble import Recipe, RoundSpec, Schedule, survivors
from dynsnap.errors import PlanError, TrainingError
from dynsnap.store import RunFolder
from dynsnap.testing import check_trainer
from dynsnap.train import TorchTrainer
from dynsnap.train.models import mlp
from tests.messages import naming
from tests.train import made

torch.set_num_threads(1)

SMALL = {"members": 2, "snapshots": 2, "epochs": 4, "random_state": 0}
POOL = dataclasses.replace(made.blobs(rows=60), weights=1.0 + np.arange(60) % 3)
STREAM = from_generations(POOL, [np.arange(60)], test=POOL, validation=0.25)
TRAINERS = {
    "torch": lambda monitor, checkpoints: TorchTrainer(
        STREAM,
        model=mlp,
        device="cpu",
        learning_rate=0.05,
        selection_metric="log_loss",
        class_weight="balanced",
        monitor=monitor,
        checkpoints=checkpoints,
        checkpoint_every=0,
    ),
    "xgboost": lambda monitor, checkpoints: BoostTrainer(
        STREAM,
        model=XGBClassifier(max_depth=2),
        selection_metric="f1",
        monitor=monitor,
        checkpoints=checkpoints,
        checkpoint_every=0,
    ),
}
RECIPE = Recipe(schedule=Schedule("step"), epochs=4, snapshots=2)


@pytest.mark.parametrize("kind", TRAINERS)
def test_trainers_keep_their_contract_with_weights_and_another_metric(kind):
    check_trainer(TRAINERS[kind], stream=STREAM, recipes=[RECIPE])


@pytest.mark.parametrize("kind", TRAINERS)
def test_a_stored_round_keeps_what_it_was_selected_by(kind, tmp_path):
    (done,) = TRAINERS[kind](None, None).train([RoundSpec(recipe=RECIPE, generation=1)])
    assert len(done.selection_curve) == 4
    np.testing.assert_allclose(done.selection, done.selection_curve[done.epochs], rtol=1e-6)
    with RunFolder(tmp_path / "run") as folder:
        folder.put("a" * 32, done)
        again = folder.get("a" * 32, done.spec)
    np.testing.assert_array_equal(again.selection, done.selection)
    np.testing.assert_array_equal(again.selection_curve, done.selection_curve)
    np.testing.assert_array_equal(survivors(again.judged), survivors(done.selection))


def plain(**settings):
    return BoostTrainer(STREAM, model=XGBClassifier(), **settings).fingerprint


def test_a_metric_is_part_of_the_name_of_a_trainer_unless_it_is_the_usual_one():
    assert plain() == plain(selection_metric="accuracy", class_weight=None)
    named = [plain(selection_metric="f1"), plain(selection_metric="log_loss")]
    named += [plain(class_weight="balanced"), plain(class_weight={"a": 2.0}), plain()]
    assert len(set(named)) == len(named)


def imbalanced():
    rng = np.random.default_rng(0)
    labels = (rng.uniform(size=200) < 0.1).astype(int)
    return rng.standard_normal((200, 3)) + 0.7 * labels[:, None], labels


@pytest.mark.parametrize("model", [mlp, HistGradientBoostingClassifier(max_depth=2)])
@pytest.mark.parametrize(
    "metric",
    ["balanced_accuracy", "roc_auc", make_scorer(f1_score, zero_division=0.0)],
    ids=["own", "by name", "scorer"],
)
def test_estimators_select_by_any_scorer(model, metric):
    own = {"device": "cpu"} if model is mlp else {}
    inputs, labels = imbalanced()
    weights = 1.0 + labels
    found = DynSnapClassifier(model, selection_metric=metric, **SMALL, **own)
    found.fit(inputs, labels, sample_weight=weights)
    assert len(found.members_) == 2


def test_the_metric_decides_which_epochs_are_kept():
    inputs, labels = imbalanced()
    # By its own wish an estimator keeps its first epochs, or its last ones.
    calls = []

    def rising(_estimator, X, y):
        calls.append((X.shape, set(y)))
        return float(len(calls))

    one = {**SMALL, "method": "singlebase", "members": 1}
    trees = DynSnapClassifier(XGBClassifier(), selection_metric=rising, **one).fit(inputs, labels)
    assert trees.members_[0].epoch == 3
    assert calls[0] == ((20, 3), {0, 1})
    falling = DynSnapClassifier(
        XGBClassifier(), selection_metric=lambda *_: -float(len(calls.append(0) or calls)), **one
    )
    assert falling.fit(inputs, labels).members_[0].epoch == 0


@pytest.mark.parametrize(
    ("metric", "parts"),
    [
        ("balanced_acuracy", ["balanced_acuracy", "balanced_accuracy"]),
        (f1_score, ["f1_score", "make_scorer"]),
        (3, ["selection_metric", "3"]),
    ],
)
def test_what_is_no_metric_is_refused(metric, parts):
    with pytest.raises(PlanError, match=naming(*parts)):
        DynSnapClassifier(XGBClassifier(), selection_metric=metric, **SMALL).fit(*imbalanced())


def test_a_metric_that_judges_nothing_ends_the_training():
    estimator = DynSnapClassifier(
        XGBClassifier(), selection_metric=lambda *_: float("nan"), **SMALL
    )
    with pytest.raises(TrainingError, match=naming("selection metric", "nan")):
        estimator.fit(*imbalanced())


def test_a_file_holds_the_name_of_a_metric_and_asks_for_a_scorer_again(tmp_path):
    inputs, labels = imbalanced()
    for metric in ("f1", make_scorer(f1_score)):
        fitted = DynSnapClassifier(
            XGBClassifier(), selection_metric=metric, class_weight={1: 2.0}, **SMALL
        ).fit(inputs, labels)
        fitted.save(tmp_path / "it.dynsnap")
        loaded = DynSnapClassifier.load(tmp_path / "it.dynsnap", model=XGBClassifier())
        np.testing.assert_array_equal(loaded.predict(inputs), fitted.predict(inputs))
        if metric == "f1":
            later = loaded.retrain(inputs, labels, earlier=(inputs, labels))
            expected = fitted.retrain(inputs, labels).predict_proba(inputs)
            np.testing.assert_array_equal(later.predict_proba(inputs), expected)
        else:
            with pytest.raises(ValueError, match="`selection_metric`"):
                loaded.retrain(inputs, labels, earlier=(inputs, labels))
