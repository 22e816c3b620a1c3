import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier, Predictions
from dynsnap.ensemble import COMBINATIONS, METHODS, combine
from dynsnap.errors import InputError, Interrupted, PlanError
from dynsnap.train.models import cnn, fasttext, mlp
from tests.estimator.data import digits
from tests.messages import naming

torch.set_num_threads(1)

TORCH = {"epochs": 12, "learning_rate": 0.01, "prepare": "standardised", "device": "cpu"}
BOOST = {"epochs": 8}
MODELS = {"mlp": (mlp, TORCH), "xgboost": (XGBClassifier(max_depth=3), BOOST)}


def small(model=mlp, **settings):
    plain = TORCH if model is mlp else BOOST
    given = {"members": 4, "snapshots": 4, "random_state": 0, **plain, **settings}
    return DynSnapClassifier(model, **given)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MODELS)
def test_every_method_learns(name, method):
    model, _ = MODELS[name]
    estimator = small(model, method=method)
    (inputs, labels), _, (test, truth) = digits()
    if name == "xgboost" and method == "mcdropout":
        with pytest.raises(PlanError, match="MCDropout is for torch"):
            estimator.fit(inputs, labels)
        return
    estimator.fit(inputs, labels)
    assert estimator.score(test, truth) > 0.6  # of 0.85 that can be reached without the sixes
    assert len(estimator.members_) == (1 if method == "singlebase" else 4)
    assert estimator.accuracies_.tolist() == [one.accuracy for one in estimator.members_]
    rows = estimator.predict_proba(test)
    assert rows.shape == (len(test), 6)
    assert np.allclose(rows.sum(axis=1), 1)
    assert (estimator.predict(test) == estimator.classes_[rows.argmax(axis=1)]).all()


@pytest.mark.parametrize(
    ("method", "rounds", "cost"),
    [("singlebase", 1, 1.0), ("extbagging", 4, 4.0), ("snapshot", 1, 2.0), ("mcdropout", 1, 1.0)],
)
def test_rounds_and_cost_are_the_method_s(method, rounds, cost):
    estimator = small(method=method).fit(*digits()[0])
    assert (estimator.rounds_, estimator.cost_) == (rounds, cost)


def test_members_say_where_they_come_from():
    estimator = small(method="dynsnap-cyc", members=5).fit(*digits()[0])
    assert sorted({one.round for one in estimator.members_}) == list(range(estimator.rounds_))
    for one in estimator.members_:
        assert 0 <= one.epoch < 12
        assert one.attempt == 0
    passes = small(method="mcdropout").fit(*digits()[0])
    assert [(one.learner, one.attempt) for one in passes.members_] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
    ]


@pytest.mark.parametrize("how", COMBINATIONS)
def test_members_are_combined_as_asked(how):
    inputs, labels = digits()[0]
    estimator = small(combination=how).fit(inputs, labels)
    members = estimator._open()(inputs)[[one.learner for one in estimator.members_]]
    expected = combine(members, how=how, weights=estimator.accuracies_)
    assert (estimator.predict_proba(inputs) == expected).all()


@pytest.mark.parametrize("name", MODELS)
def test_the_same_random_state_gives_the_same_ensemble(name):
    (inputs, labels), _, (test, _) = digits()
    rows = [small(MODELS[name][0], random_state=s).fit(inputs, labels) for s in (3, 3, 4)]
    first, same, other = (estimator.predict_proba(test) for estimator in rows)
    assert (first == same).all()
    assert not (first == other).all()


def test_no_random_state_gives_another_ensemble_each_time():
    (inputs, labels), _, (test, _) = digits()
    estimator = small(random_state=None, method="singlebase", epochs=2)
    first = estimator.fit(inputs, labels).predict_proba(test)
    assert not (first == estimator.fit(inputs, labels).predict_proba(test)).all()
    generator = np.random.RandomState(5)
    estimator = small(random_state=generator, method="singlebase", epochs=2)
    assert estimator.fit(inputs, labels).predict_proba(test).shape == (len(test), 6)


def test_predicting_in_parts_gives_the_whole(monkeypatch):
    (inputs, labels), _, (test, _) = digits()
    estimator = small(XGBClassifier(max_depth=2)).fit(inputs, labels)
    whole = estimator.predict_proba(test)
    monkeypatch.setattr("dynsnap.estimator._fitted._SCORES_AT_ONCE", 24 * 100)
    assert (estimator.predict_proba(test) == whole).all()


# --- retraining -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_retraining_gives_a_new_estimator_that_knows_the_new_class(name):
    first, more, (test, truth) = digits()
    old = small(MODELS[name][0]).fit(*first)
    before = old.predict_proba(test)
    new = old.retrain(*more)
    assert "six" not in old.classes_
    assert "six" in new.classes_
    assert new.predict_proba(test).shape == (len(test), 7)
    assert (old.predict_proba(test) == before).all()
    assert new.score(test, truth) > old.score(test, truth) + 0.05
    assert (old.generation_, new.generation_, new.retrain(*more).generation_) == (1, 2, 3)


def test_a_generation_learns_from_all_data_so_far():
    first, more, (test, _) = digits()
    new = small().fit(*first).retrain(*more)
    everything = [np.concatenate(parts) for parts in zip(first, more, strict=True)]
    again = small().fit(*first).retrain(*more, earlier=first)
    assert (again.predict_proba(test) == new.predict_proba(test)).all()
    assert [part.shape for part in new._data] == [part.shape for part in everything]


def test_two_generations_never_share_their_randomness():
    """Even on the same data: or consistency would be flattered."""
    (inputs, labels), _, (test, _) = digits()
    old = small(method="singlebase", keep_data=False).fit(inputs, labels)
    one, rest = (inputs[:1], labels[:1]), (inputs[1:], labels[1:])
    new = old.retrain(*one, earlier=rest)
    assert old._fitted.seed == new._fitted.seed
    assert np.abs(old.predict_proba(test) - new.predict_proba(test)).max() > 0.01


def test_retraining_without_the_data_says_what_to_do():
    first, more, _ = digits()
    old = small(keep_data=False, method="singlebase", epochs=2).fit(*first)
    with pytest.raises(InputError, match=naming("the data", r"earlier=\(X_before, y_before\)")):
        old.retrain(*more)
    assert old.retrain(*more, earlier=first).generation_ == 2


def test_retraining_with_labels_of_another_kind_is_refused():
    first, (inputs, _), _ = digits()
    old = small(method="singlebase", epochs=2).fit(*first)
    with pytest.raises(InputError, match=naming("`y`", "one kind", "numbers after texts")):
        old.retrain(inputs, np.zeros(len(inputs), int))


def test_labels_and_inputs_keep_their_type_where_nothing_is_lost():
    (inputs, names), (later, more), _ = digits()
    numbers, further = (np.array([len(name) for name in part]) for part in (names, more))
    model = XGBClassifier(max_depth=2)
    old = small(model, method="singlebase").fit(inputs.astype(np.uint8), numbers)
    new = old.retrain(later, further.astype(float))
    assert new.classes_.dtype == old.classes_.dtype
    assert new._data[0].dtype == np.uint8
    wider = old.retrain(later + 0.5, further + 100.0)
    assert wider._data[0].dtype == float
    assert wider.classes_.tolist() == [*old.classes_.tolist(), 103, 104, 105]
    truth = new.predictions(later, truth=further.astype(float))
    assert truth.classes == tuple(str(label) for label in new.classes_)


# --- predictions ----------------------------------------------------------------------------


def test_predictions_are_the_scores_with_names():
    (inputs, labels), _, _ = digits()
    estimator = small(XGBClassifier(max_depth=2)).fit(inputs, labels)
    made = estimator.predictions(inputs, ids=[f"row {i}" for i in range(len(inputs))], truth=labels)
    assert isinstance(made, Predictions)
    assert made.ids[3] == "row 3"
    assert made.classes == tuple(estimator.classes_)
    assert (made.scores == estimator.predict_proba(inputs)).all()
    assert made.names_of(made.truth).tolist() == labels.tolist()
    assert estimator.predictions(inputs).truth is None
    with pytest.raises(InputError, match=naming("`X`", "`truth`", "431", "430")):
        estimator.predictions(inputs, truth=labels[:-1])


def test_predictions_know_true_classes_that_the_generation_has_not_seen():
    first, _, (test, truth) = digits()
    estimator = small(XGBClassifier(max_depth=2)).fit(*first)
    made = estimator.predictions(test, truth=truth)
    assert made.classes == (*estimator.classes_, "six")
    assert (made.scores[:, 6] == 0).all()
    accuracy = np.mean(made.labels == made.truth)
    assert accuracy == estimator.score(test, truth)


# --- inputs of every kind -------------------------------------------------------------------


def test_images_go_to_a_convolutional_module():
    (inputs, labels), _, _ = digits()
    images = (inputs * 15).astype(np.uint8).reshape(-1, 8, 8, 1)
    estimator = small(cnn, epochs=4, members=2, snapshots=2, learning_rate=0.01, device="cpu")
    estimator.fit(images[:200], labels[:200])
    assert estimator.score(images[200:], labels[200:]) > 0.5
    with pytest.raises(InputError, match=naming("`X`", r"\(8, 8, 1\)", r"\(4, 8, 1\)")):
        estimator.predict(images[:, :4])


def test_images_go_to_boosted_trees_too():
    (inputs, labels), _, _ = digits()
    estimator = small(XGBClassifier(max_depth=2)).fit(inputs.reshape(-1, 8, 8), labels)
    assert estimator.score(inputs.reshape(-1, 8, 8), labels) > 0.8


WORDS = {"sport": "ball goal team", "food": "bread salt soup", "music": "song drum band"}
TOPICS = list(WORDS) * 60
TEXTS = [f"the {WORDS[topic]} of day {row % 7}" for row, topic in enumerate(TOPICS)]


@pytest.mark.parametrize("kind", ["torch", "pipeline"])
def test_lists_of_texts_are_inputs(kind):
    if kind == "torch":
        model, settings = fasttext, {"epochs": 6, "learning_rate": 0.05, "device": "cpu"}
    else:
        model = make_pipeline(CountVectorizer(), LogisticRegression())
        settings = {"method": "extbagging"}
    estimator = small(model, **{"members": 2, "snapshots": 2, **settings}).fit(TEXTS, TOPICS)
    assert estimator.score(np.array(TEXTS), TOPICS) == 1
    assert estimator.predict(["soup with salt and bread"]) == ["food"]
    new = estimator.retrain(["a red car"] * 6, ["travel"] * 6)
    assert new.classes_.tolist() == ["food", "music", "sport", "travel"]
    with pytest.raises(InputError, match=naming("`X`", "list of texts", "single text")):
        estimator.predict("soup")
    with pytest.raises(InputError, match="row 1 is int"):
        estimator.predict(["soup", 3])
    with pytest.raises(InputError, match=naming("`X`", "texts", r"\(4,\)")):
        estimator.predict(np.zeros((2, 4)))


def test_missing_values_pass_where_the_model_has_a_way_with_them():
    inputs, labels = (part.copy() for part in digits()[0])
    inputs[::7, 3] = np.nan
    assert small(XGBClassifier(max_depth=2)).fit(inputs, labels).score(inputs, labels) > 0.8
    for model in (mlp, GaussianNB()):
        with pytest.raises(ValueError, match="contains NaN") as caught:
            small(model, method="singlebase").fit(inputs, labels)
        assert "\n" not in str(caught.value)


# --- scikit-learn ---------------------------------------------------------------------------


def test_images_of_floats_are_the_same_with_their_channels_last_or_first():
    rng = np.random.default_rng(0)
    last, labels = rng.normal(size=(40, 8, 8, 3)).astype(np.float32), np.arange(40) % 2
    first = last.transpose(0, 3, 1, 2)
    fits = [
        small(cnn, epochs=2, members=2, snapshots=2, device="cpu").fit(images, labels)
        for images in (last, first)
    ]
    assert (fits[0].predict_proba(last) == fits[1].predict_proba(first)).all()
    with pytest.raises(InputError, match=r"\(3, 8, 8\)"):
        fits[0].predict_proba(first)


@pytest.mark.parametrize("model", [mlp, XGBClassifier(max_depth=2), lambda classes: None])
def test_it_clones(model):
    estimator = small(model, combination="majority", beta=0.3)
    params, copied = estimator.get_params(deep=False), clone(estimator).get_params(deep=False)
    assert {**params, "model": None} == {**copied, "model": None}
    assert type(copied["model"]) is type(model)


@pytest.mark.parametrize("name", MODELS)
def test_it_works_in_a_pipeline_and_in_cross_validation(name):
    (inputs, labels), _, _ = digits()
    model = MODELS[name][0]
    own = {"prepare": "features"} if name == "mlp" else {}
    pipeline = make_pipeline(StandardScaler(), small(model, members=2, **own))
    assert cross_val_score(pipeline, inputs, labels, cv=2).mean() > 0.75


def test_it_works_in_a_grid_search_over_its_own_settings_and_the_model_s():
    inputs, labels = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=500)
    grid = GridSearchCV(
        DynSnapClassifier(model, method="extbagging", random_state=0),
        {"members": [1, 2], "model__C": [1e-6, 1.0]},
        cv=2,
    ).fit(inputs, labels)
    assert grid.best_params_["model__C"] == 1.0
    assert grid.score(inputs, labels) > 0.9


def test_a_fitted_estimator_travels_between_processes():
    (inputs, labels), _, _ = digits()
    for model in (mlp, XGBClassifier(max_depth=2)):
        estimator = small(model).fit(inputs, labels)
        copied = pickle.loads(pickle.dumps(estimator))  # noqa: S301 - as joblib does
        assert (copied.predict_proba(inputs) == estimator.predict_proba(inputs)).all()


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "dynsnap"}, naming("method 'dynsnap'", '"dynsnap-')),
        ({"combination": "mean"}, "no combination 'mean'"),
        ({"beta": 2}, naming("`beta`", '"mean"', "got 2")),
        ({"members": 0}, naming("`size`", "at least 1", "got 0")),
        ({"validation": 1.5}, naming("`validation`", "below 1", r"1\.5")),
        ({"snapshots": 20}, naming("`snapshots`", "12 epochs", "20")),
        ({"model": None}, naming("`model`", "torch module", "classifier", "NoneType", "`trainer`")),
        ({"model": nn.Linear(64, 6)}, naming("`model`", "fresh module", "got Linear")),
        ({"model": lambda: nn.Linear(64, 5)}, naming("5 outputs", "6 classes", "`classes`")),
        ({"model": lambda: nn.Linear(9, 6)}, naming("model", r"\(64,\)", "`inputs`")),
        (
            {"model": GaussianNB()},
            naming("GaussianNB", "4 snapshots", "`snapshots=1`", "extbagging"),
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(PlanError, match=message):
        small(**{"model": mlp, **settings}).fit(*digits()[0])


def test_a_class_with_too_few_rows_is_named():
    inputs, labels = digits()[0]
    few = np.concatenate([np.flatnonzero(labels != "two"), np.flatnonzero(labels == "two")[:1]])
    with pytest.raises(InputError, match=naming("Class .*two", "1 row", "too few", "10%")):
        small().fit(inputs[few], labels[few])
    # As a person writes it, and not as numpy shows it.
    with pytest.raises(InputError, match=r"^Class 1\.0 has 1 row"):
        DynSnapClassifier(LogisticRegression()).fit([[0.0], [1.0], [2.0]], [0.0, 0.0, 1.0])


def test_one_class_is_no_classification():
    inputs, labels = digits()[0]
    with pytest.raises(InputError, match=naming("two classes", "'zero'")):
        small().fit(inputs, np.full(len(labels), "zero"))


def test_labels_of_two_kinds_are_refused_in_one_line():
    labels = np.array(["a", 7] * 10, dtype=object)
    with pytest.raises(InputError, match=r"y .*7 is int"):
        DynSnapClassifier(LogisticRegression(), method="singlebase").fit(np.eye(20), labels)


@pytest.mark.parametrize("label", [None, float("nan")])
def test_missing_labels_are_refused(label):
    inputs, labels = digits()[0]
    with pytest.raises(InputError, match="y contains NaN"):
        small().fit(inputs, np.array([label, *labels[1:]], dtype=object))


@pytest.mark.parametrize(
    ("labels", "advice"),
    [
        (np.array([0, 1] * 5, object), r"astype\(int\)"),
        (np.array([0.0, 1.5] * 5, object), r"astype\(float\)"),
        (np.array([True, False] * 5, object), r"astype\(bool\)"),
        (np.array([b"a", b"b"] * 5), "decode"),
        (np.array([b"a", b"b"] * 5, object), "decode"),
    ],
)
def test_labels_of_an_unusual_type_get_one_line_with_the_way_out(labels, advice):
    with pytest.raises(InputError, match=naming("y", advice)) as refused:
        small(GaussianNB()).fit(np.eye(10), labels)
    assert "\n" not in str(refused.value)


def test_a_wrong_shape_is_one_line_that_shows_no_values():
    inputs, labels = digits()[0]
    with pytest.raises(InputError, match=naming("2D", "reshape")) as caught:
        small(GaussianNB()).fit(inputs[:, 0], labels)
    assert len(str(caught.value).splitlines()) == 1
    assert "[" not in str(caught.value)


@pytest.mark.parametrize(("first", "later"), [(int, bool), (bool, int), (float, bool)])
def test_booleans_and_numbers_are_not_merged(first, later):
    inputs = np.random.default_rng(0).normal(size=(40, 2))
    labels = inputs[:, 0] > 0
    model = small(GaussianNB(), method="extbagging", snapshots=1, epochs=200)
    old = model.fit(inputs, labels.astype(first))
    with pytest.raises(InputError, match=naming("`y`", "booleans", "numbers")):
        old.retrain(inputs, labels.astype(later))
    with pytest.raises(InputError, match=naming("`y`", "booleans", "numbers")):
        old.retrain(inputs, labels.astype(first), earlier=(inputs, labels.astype(later)))
    assert old.retrain(inputs, labels.astype(first)).classes_.tolist() == [0, 1]


def test_an_estimator_that_is_not_fitted_says_so():
    for ask in ("predict", "predict_proba", "predictions"):
        with pytest.raises(NotFittedError):
            getattr(small(), ask)(digits()[0][0])
    with pytest.raises(NotFittedError):
        small().retrain(*digits()[0])
    with pytest.raises(NotFittedError):
        small().save("nowhere")
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = small().members_


def test_a_monitor_may_stop_the_training():
    class Stop:
        def epoch_done(self, spec, epoch, accuracy):
            pass

        def stopping(self):
            return True

    for model in (mlp, HistGradientBoostingClassifier(max_depth=2)):
        with pytest.raises(Interrupted):
            small(model, monitor=Stop()).fit(*digits()[0])
