"""Weights of rows and classes, and groups: laws that hold for every kind of model."""

import numpy as np
import pytest
import sklearn
import torch
from hypothesis import given
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_sample_weight
from torch import nn
from torch.nn import functional
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.boost import BoostTrainer
from dynsnap.data import Pool, Stream, draw_groups, split, training_weights
from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.errors import InputError, PlanError
from dynsnap.estimator._rows import RowFacts
from dynsnap.train import TorchTrainer
from dynsnap.train.models import mlp
from tests.estimator.data import blobs
from tests.messages import naming

torch.set_num_threads(1)

MODELS = {
    "torch": mlp,
    "lightgbm": LGBMClassifier(min_child_samples=1),
    "xgboost": XGBClassifier(max_depth=2),
    "histogram": HistGradientBoostingClassifier(max_depth=2, min_samples_leaf=1),
    "linear": LogisticRegression(),
    "stepped": SGDClassifier(loss="log_loss"),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
}


def made(kind, **settings):
    several = {"members": 2, "snapshots": 2, "epochs": 4}
    if kind in ("linear", "pipeline"):
        several = {"method": "extbagging", "members": 2, "epochs": 1}
    own = {"device": "cpu", "learning_rate": 0.05} if kind == "torch" else {}
    return DynSnapClassifier(MODELS[kind], random_state=3, **{**several, **own, **settings})


# --- laws of weights ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_a_row_without_weight_is_a_row_that_is_not_there(kind):
    inputs, labels = blobs(3, 90)
    weights = np.arange(90) % 3 * 1.5
    noisy = np.where(weights == 0, np.roll(labels, 1), labels)
    whole = made(kind).fit(inputs, noisy, sample_weight=weights)
    there = weights > 0
    part = made(kind).fit(inputs[there], labels[there], sample_weight=weights[there])
    np.testing.assert_array_equal(whole.predict_proba(inputs), part.predict_proba(inputs))


@pytest.mark.parametrize("kind", ["torch", "lightgbm", "linear"])
def test_rows_that_all_weigh_one_are_rows_without_weights(kind):
    inputs, labels = blobs(3, 60)
    plain = made(kind).fit(inputs, labels)
    ones = made(kind).fit(inputs, labels, sample_weight=np.ones(60))
    np.testing.assert_array_equal(plain.predict_proba(inputs), ones.predict_proba(inputs))


def fixed_stream(repeats, *, weighted):
    """Rows to train on, with weights or several times; a class of its own is validated on."""
    rng = np.random.default_rng(5)
    labels = np.arange(len(repeats)) % 2
    inputs = np.round(rng.standard_normal((len(repeats), 3)) + labels[:, None], 1)
    rows = np.arange(len(repeats)) if weighted else np.repeat(np.arange(len(repeats)), repeats)
    held = np.full(4, 2)
    pool = Pool(
        name="fixed",
        inputs=np.concatenate([inputs[rows], rng.standard_normal((4, 3))]).astype(np.float32),
        labels=np.concatenate([labels[rows], held]),
        classes=("no", "yes", "held out"),
        ids=np.arange(len(rows) + 4),
        weights=np.concatenate([repeats.astype(float), np.ones(4)]) if weighted else None,
    )
    return Stream(
        pool=pool,
        generations=(np.arange(len(pool)),),
        validation=(np.array([0, 0, 4]),),
        evaluation={"test": pool.take(np.arange(len(pool) - 4, len(pool)))},
        late=("held out",),
    )


FULL = {"device": "cpu", "batch_size": 1000, "learning_rate": 0.05, "prepare": "features"}
EXACT = {
    "stacked": lambda stream: TorchTrainer(stream, model=mlp, **FULL),
    "a loss of torch": lambda stream: TorchTrainer(
        stream, model=mlp, loss=nn.MultiMarginLoss, **FULL
    ),
    "a function": lambda stream: TorchTrainer(
        stream, model=mlp, loss=functional.cross_entropy, **FULL
    ),
    "lightgbm": lambda stream: BoostTrainer(
        stream,
        model=LGBMClassifier(min_child_samples=0, min_data_in_bin=1),
    ),
    "xgboost": lambda stream: BoostTrainer(stream, model=XGBClassifier(tree_method="exact")),
    "histogram": lambda stream: BoostTrainer(
        stream, model=HistGradientBoostingClassifier(min_samples_leaf=1)
    ),
    "gradient": lambda stream: BoostTrainer(stream, model=GradientBoostingClassifier(max_depth=2)),
}


@pytest.mark.parametrize("kind", EXACT)
def test_a_row_of_weight_three_is_three_rows(kind):
    """With all rows in one step, and no setting that counts rows and not their weights."""
    repeats = np.arange(24) % 3 + 1
    recipe = Recipe(schedule=Schedule("constant"), epochs=3, snapshots=1, selection="last")
    spec = RoundSpec(recipe=recipe, generation=1)
    weighted, repeated, plain = (
        next(iter(EXACT[kind](stream).train([spec]))).scores["test"]
        for stream in (
            fixed_stream(repeats, weighted=True),
            fixed_stream(repeats, weighted=False),
            fixed_stream(np.ones(24, int), weighted=False),
        )
    )
    np.testing.assert_allclose(weighted, repeated, atol=2e-5)
    assert np.abs(weighted - plain).max() > 1e-3


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), min_size=2, max_size=20),
    st.dictionaries(st.sampled_from("abcd"), st.floats(0.1, 10)),
)
def test_weights_of_classes_multiply_those_of_rows(rows, given_weights):
    labels, weights = (np.array(column) for column in zip(*rows, strict=True))
    pool = Pool(
        name="drawn",
        inputs=labels[:, None],
        labels=labels,
        classes=tuple("abcd"),
        ids=np.arange(len(labels)),
        weights=weights.astype(float),
    )
    everything = np.arange(len(labels))
    names = np.array(pool.classes)[labels]
    expected = weights * compute_sample_weight({**dict.fromkeys("abcd", 1), **given_weights}, names)
    found = training_weights(pool, everything, given_weights)
    np.testing.assert_allclose(found, expected)
    balanced = training_weights(pool, everything, "balanced")
    totals = np.bincount(labels, balanced)
    assert np.allclose(totals[totals > 0], weights.sum() / len(set(labels.tolist())))


@pytest.mark.parametrize("kind", ["torch", "lightgbm", "linear"])
def test_a_class_weight_is_the_weight_of_its_rows(kind):
    inputs, labels = blobs(3, 90)
    # One learner per round, of its last epoch: weights of rows count in validation too.
    settings = {"method": "singlebase", "members": 1, "snapshots": 1, "epochs": 1}
    by_class = made(kind, class_weight={"a": 4.0, "c": 0.5}, **settings).fit(inputs, labels)
    weights = np.where(labels == "a", 4.0, np.where(labels == "c", 0.5, 1.0))
    by_row = made(kind, **settings).fit(inputs, labels, sample_weight=weights)
    plain = made(kind, **settings).fit(inputs, labels)
    found = by_class.predict_proba(inputs)
    np.testing.assert_array_equal(found, by_row.predict_proba(inputs))
    assert (found != plain.predict_proba(inputs)).any()


# --- where scikit-learn hands weights on ----------------------------------------------------


def test_weights_are_routed_through_pipelines_and_searches():
    inputs, labels = blobs(2, 120)
    wrong = np.arange(120) % 5 < 3
    noisy = np.where(wrong, np.where(labels == "a", "b", "a"), labels)
    weights = np.where(wrong, 0.0, 1.0)
    one = made("linear")
    scaled = make_pipeline(MinMaxScaler(), one)
    assert scaled.fit(inputs, noisy).score(inputs, labels) < 0.5
    scaled.fit(inputs, noisy, dynsnapclassifier__sample_weight=weights)
    assert scaled.score(inputs, labels) > 0.9
    with sklearn.config_context(enable_metadata_routing=True):
        asking = one.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaled = make_pipeline(MinMaxScaler(), asking)
        given = {"params": {"sample_weight": weights}}
        found = cross_validate(scaled, inputs, noisy, cv=3, **given)["test_score"]
        assert found.min() > 0.8
        grid = {"dynsnapclassifier__model__C": [0.1, 1.0]}
        search = GridSearchCV(scaled, grid, cv=2).fit(inputs, noisy, sample_weight=weights)
        assert search.score(inputs, noisy, sample_weight=weights) > 0.9
        assert search.best_score_ > 0.9


def test_a_pipeline_inside_that_asks_for_weights_is_stored(tmp_path):
    inputs, labels = blobs(2, 60)
    weights = np.arange(60) % 3
    plain = make_pipeline(MinMaxScaler(), LogisticRegression())
    given = {"method": "extbagging", "members": 2, "random_state": 0}
    expected = DynSnapClassifier(plain, **given).fit(inputs, labels, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = make_pipeline(
            MinMaxScaler(), LogisticRegression().set_fit_request(sample_weight=True)
        )
        fitted = DynSnapClassifier(asking, **given).fit(inputs, labels, sample_weight=weights)
    fitted.save(tmp_path / "asking.dynsnap")
    loaded = DynSnapClassifier.load(tmp_path / "asking.dynsnap")
    np.testing.assert_array_equal(loaded.predict_proba(inputs), expected.predict_proba(inputs))


def test_class_weights_of_numpy_are_stored(tmp_path):
    inputs, labels = blobs(2, 60)
    numbers = (labels == "a").astype(int)
    first = made("linear", class_weight={np.int64(0): np.float32(2)}).fit(inputs, numbers)
    first.save(tmp_path / "first.dynsnap")
    loaded = DynSnapClassifier.load(tmp_path / "first.dynsnap", model=LogisticRegression())
    later = loaded.retrain(inputs, numbers, earlier=(inputs, numbers))
    expected = first.retrain(inputs, numbers)
    np.testing.assert_array_equal(later.predict_proba(inputs), expected.predict_proba(inputs))


def test_later_generations_keep_the_weights_of_earlier_rows(tmp_path):
    inputs, labels = blobs(3, 90)
    weights = 1.0 + np.arange(90) % 3
    early, late = slice(0, 60), slice(60, 90)
    first = made("linear").fit(inputs[early], labels[early], sample_weight=weights[early])
    held = first.retrain(inputs[late], labels[late], sample_weight=weights[late])
    first.save(tmp_path / "first.dynsnap")
    loaded = DynSnapClassifier.load(tmp_path / "first.dynsnap", model=LogisticRegression())
    given = loaded.retrain(
        inputs[late],
        labels[late],
        sample_weight=weights[late],
        earlier=(inputs[early], labels[early], weights[early]),
    )
    np.testing.assert_array_equal(held.predict_proba(inputs), given.predict_proba(inputs))
    unweighted = first.retrain(inputs[late], labels[late])
    assert (held.predict_proba(inputs) != unweighted.predict_proba(inputs)).any()


# --- groups ---------------------------------------------------------------------------------


@given(st.data())
def test_no_draw_cuts_a_group_or_takes_all_of_a_class(data):
    rows = data.draw(st.integers(4, 40))
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows)))
    groups = np.array(data.draw(st.lists(st.integers(0, 9), min_size=rows, max_size=rows)))
    counts = np.minimum(np.maximum(np.bincount(labels, minlength=3) // 4, 1), 5)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    try:
        drawn = draw_groups(labels, groups, counts, rng)
    except Exception as error:
        # Every group holds all rows of some class, or there is but one.
        total = np.bincount(labels, minlength=3)
        for group in set(groups.tolist()):
            mine = np.bincount(labels[groups == group], minlength=3)
            assert ((mine == total) & (total > 0)).any(), error
        return
    assert drawn.any() and not drawn.all()
    assert not set(groups[drawn].tolist()) & set(groups[~drawn].tolist())
    whole = set(labels.tolist()) - set(labels[~drawn].tolist())
    assert all(counts[label] >= (labels == label).sum() for label in whole)


def test_splits_of_groups_come_near_the_share_that_was_asked_for():
    rng = np.random.default_rng(0)
    labels, groups = np.arange(600) % 3, rng.integers(0, 120, 600)
    for seed in range(10):
        drawn = draw_groups(labels, groups, np.full(3, 20), np.random.default_rng(seed))
        assert np.abs(np.bincount(labels[drawn], minlength=3) - 20).max() <= 6


@pytest.mark.parametrize("settings", [{}, {"members": "auto", "most_rounds": 2}])
def test_a_model_that_knows_rows_by_heart_is_not_judged_on_their_group(settings):
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(60), 4)
    inputs, labels = rng.standard_normal((60, 3))[groups], rng.integers(0, 2, 60)[groups]
    tree = DynSnapClassifier(
        DecisionTreeClassifier(),
        **{"method": "extbagging", "members": 4, "epochs": 1, "random_state": 0, **settings},
    )
    assert tree.fit(inputs, labels).accuracies_.mean() > 0.9
    assert tree.fit(inputs, labels, groups=groups).accuracies_.mean() < 0.75
    assert tree.retrain(inputs, labels, groups=groups).accuracies_.mean() < 0.75


def test_a_group_is_held_out_for_selection_as_a_whole():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(60), 4)
    inputs, labels = rng.standard_normal((240, 3)), rng.integers(0, 2, 60)[groups]
    inputs[:, 0] = groups  # by which a tree can tell a row's group
    rolling = DynSnapClassifier(
        HistGradientBoostingClassifier(min_samples_leaf=1),
        method="rolling",
        members=2,
        snapshots=2,
        epochs=4,
        selection_holdout=0.2,
        random_state=0,
    )
    first = rolling.fit(inputs, labels, groups=groups)
    later = first.retrain(inputs, labels, groups=groups)
    # A cut group would have given its label away.
    assert later.accuracies_.max() < 0.9


def test_torch_rounds_of_groups_train_on_the_rows_that_are_left():
    rng = np.random.default_rng(2)
    labels = np.arange(80) % 2
    inputs = rng.standard_normal((80, 3)) + labels[:, None]
    groups = rng.integers(0, 9, 80)  # of many sizes, so rounds train on different numbers of rows
    estimator = DynSnapClassifier(
        mlp, members=4, snapshots=2, epochs=2, batch_size=100, device="cpu", random_state=0
    ).fit(inputs, labels, groups=groups)
    assert len(estimator.members_) == 4
    ids = np.arange(80)
    pool = Pool(
        name="grouped", inputs=inputs, labels=labels, classes=("a", "b"), ids=ids, groups=groups
    )
    stream = Stream(
        pool=pool,
        generations=(np.arange(80),),
        validation=(np.array([8, 8]),),
        evaluation={"test": pool},
    )
    train, validation = split(stream, 1, np.random.default_rng(0))
    assert not set(groups[train].tolist()) & set(groups[validation].tolist())


# --- what cannot be honoured is refused by name ---------------------------------------------


@pytest.mark.parametrize(
    ("given_weights", "named"),
    [
        (-np.ones(60), "sample_weight"),
        (np.ones(59), "sample_weight"),
        (np.full(60, np.nan), "NaN"),
        (np.zeros(60), "zero|sample_weight"),
        (np.ones((60, 2)), "[Ss]ample"),
        (["heavy"] * 60, "heavy"),
    ],
)
def test_weights_that_make_no_sense_are_refused(given_weights, named):
    with pytest.raises(ValueError, match=named) as caught:
        made("linear").fit(*blobs(2, 60), sample_weight=given_weights)
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"class_weight": {"a": 1, "z": 2}}, ["class_weight", "'z'", "'b'"]),
        ({"class_weight": {"a": -1}}, ["class_weight", "-1", "'a'"]),
        ({"class_weight": "heavy"}, ["class_weight", "heavy"]),
        (
            {"model": LogisticRegression(class_weight="balanced"), "class_weight": {"a": 2}},
            ["both"],
        ),
        ({"model": KNeighborsClassifier(), "class_weight": "balanced"}, ["KNeighborsClassifier"]),
        (
            {
                "model": VotingClassifier([("a", LogisticRegression())], voting="soft"),
                "class_weight": "balanced",
            },
            ["VotingClassifier", "sample_weight"],
        ),
    ],
)
def test_class_weights_that_cannot_be_honoured_are_refused(settings, parts):
    one = {"model": LogisticRegression(), "method": "extbagging", "members": 1, "epochs": 1}
    with pytest.raises(PlanError, match=naming(*parts)):
        DynSnapClassifier(**{**one, **settings}).fit(*blobs(2, 60))


def test_a_model_or_a_loss_that_takes_no_weights_is_refused():
    inputs, labels = blobs(2, 60)
    near = DynSnapClassifier(KNeighborsClassifier(), method="extbagging", members=1, epochs=1)
    with pytest.raises(PlanError, match=naming("KNeighborsClassifier", "sample_weight")):
        near.fit(inputs, labels, sample_weight=np.arange(60))
    own = made("torch", loss=lambda outputs, truth: functional.cross_entropy(outputs, truth))
    with pytest.raises(PlanError, match=naming("`loss`", "reduction")):
        own.fit(inputs, labels, sample_weight=np.arange(60))


def test_a_group_is_the_same_whatever_its_type():
    whole, real = RowFacts.of(4, groups=[1, 1, 2, 3]), RowFacts.of(3, groups=[1.0, np.nan, 2.5])
    joined = whole.joined(real, rows=(4, 3))
    assert joined.groups.tolist() == ["1", "1", "2", "3", "1", "nan", "2.5"]


def test_groups_that_cannot_be_kept_whole_are_refused():
    inputs, labels = blobs(2, 60)
    with pytest.raises(InputError, match=naming("`groups`", "one group")):
        made("linear").fit(inputs, labels, groups=np.zeros(60))
    with pytest.raises(InputError, match="`groups`"):
        made("linear").fit(inputs, labels, groups=np.zeros(59))
    fitted = made("linear").fit(inputs, labels, groups=np.arange(60) % 9)
    with pytest.raises(InputError, match=naming("`groups`", "new rows")):
        fitted.retrain(inputs, labels)
    with pytest.raises(InputError, match=naming("`groups`", "earlier rows")):
        made("linear").fit(inputs, labels).retrain(inputs, labels, groups=np.arange(60))
    by_class = (labels == "a").astype(int)
    with pytest.raises(Exception, match=naming("2 groups", "`groups`")):
        made("linear").fit(inputs, labels, groups=by_class)
