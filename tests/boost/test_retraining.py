"""Boosted trees that go on from the deployed ones, or learn from their scores."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from xgboost import XGBClassifier

from dynsnap import seeds
from dynsnap.boost import BoostTrainer, check_retraining, score, soft_label_rows
from dynsnap.boost._learner import one_thread
from dynsnap.boost._snapshots import features, header
from dynsnap.data import Stream, split
from dynsnap.ensemble import (
    NEW_CLASS_WEIGHT,
    CheckpointsInMemory,
    Distillation,
    Recipe,
    Retraining,
    RoundSpec,
    Schedule,
    round_key,
)
from dynsnap.errors import DynSnapError, FileError, InputError, Interrupted, PlanError
from dynsnap.testing import RecordingMonitor, assert_same_round
from tests.boost.streams import digits
from tests.messages import naming

FIRST = Recipe(schedule=Schedule("constant"), epochs=4, snapshots=1, selection="last")
NEXT = dataclasses.replace(FIRST, epochs=3)
STILL = dataclasses.replace(NEXT, rate=1e-9)
CONTINUING = {
    "lightgbm": LGBMClassifier(num_leaves=5, learning_rate=0.3),
    "xgboost": XGBClassifier(max_depth=2),
    "histogram": HistGradientBoostingClassifier(max_depth=2, max_bins=32),
}
RANDOM = {
    "lightgbm": LGBMClassifier(num_leaves=5, subsample=0.7, subsample_freq=1, colsample_bytree=0.6),
    "xgboost": XGBClassifier(max_depth=2, subsample=0.6, num_parallel_tree=2),
    "histogram": HistGradientBoostingClassifier(max_depth=2, max_bins=16, max_features=0.5),
}


def some_digits(first, second, *, inputs=slice(None)) -> Stream:
    """Digits of these classes in two generations, of which the second has more rows."""
    whole = digits()
    rows = [
        generation[np.isin(whole.pool.labels[generation], classes)][: 150 * number]
        for number, generation, classes in zip(
            (1, 3), (whole.generations[1],) * 2, (first, second), strict=True
        )
    ]
    pool = dataclasses.replace(whole.pool, inputs=whole.pool.inputs[:, inputs])
    test = whole.evaluation["test"]
    test = dataclasses.replace(test, inputs=test.inputs[:, inputs])
    counts = tuple(np.where(np.isin(np.arange(4), classes), 8, 0) for classes in (first, second))
    return Stream(pool=pool, generations=tuple(rows), validation=counts, evaluation={"test": test})


SAME = some_digits([0, 1, 2], [0, 1, 2])


def deployed(model, stream, recipe=FIRST, **options):
    """A round of the first generation, and what finds its learner."""
    spec = RoundSpec(recipe=recipe, generation=1, seed=5)
    (done,) = BoostTrainer(stream, model=model, **options).train([spec])
    return done, {"a/0": done.weights[0]}


def retrained(model, stream, learners, recipe=NEXT, distill=None, warm=True, often=1.0, **options):
    trainer = BoostTrainer(stream, model=model, parents=learners.__getitem__, **options)
    spec = RoundSpec(
        recipe=recipe,
        generation=2,
        seed=5,
        parent="a/0" if warm else None,
        distillation=distill,
        new_class_weight=often,
    )
    (done,) = trainer.train([spec])
    return done


def teaching(**settings):
    return Distillation(teacher="a/0", **settings)


# --- rows with soft labels ---------------------------------------------------------------------


def slow_rows(labels, scores, weight, heard):
    """A row after another, a class after another."""
    found = []
    for row, label in enumerate(labels):
        weights = {}
        for place in range(scores.shape[1]):
            part = weight if heard[row] else 0.0
            target = part * scores[row, place] + (1 - part) * (place == label)
            if target >= 0.001 or place == label:
                weights[place] = target
        total = sum(weights.values())
        found += [(row, place, target / total) for place, target in weights.items()]
    return found


@given(st.data())
@settings(max_examples=30)
def test_rows_with_soft_labels_are_those_of_a_slow_reference(data):
    rows, classes = data.draw(st.integers(0, 6)), data.draw(st.integers(2, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores = rng.dirichlet(np.full(classes, 0.2), rows)
    labels, heard = rng.integers(0, classes, rows), rng.random(rows) < 0.7
    # Of a teacher that gives the label nothing at all, nothing of the row might be left.
    weight = data.draw(st.floats(0, 0.999))
    of, as_label, weights = soft_label_rows(labels, scores, weight=weight, heard=heard)
    expected = slow_rows(labels, scores, weight, heard)
    assert list(zip(of.tolist(), as_label.tolist(), strict=True)) == [one[:2] for one in expected]
    np.testing.assert_allclose(weights, [one[2] for one in expected], rtol=1e-9)
    np.testing.assert_allclose(np.bincount(of, weights, rows), 1)
    assert {*as_label} >= {*labels}, "no class is lost"


def test_soft_labels_that_make_no_sense_are_refused():
    labels, scores, heard = np.array([0, 1]), np.full((2, 2), 0.5), np.ones(2, dtype=bool)
    with pytest.raises(PlanError, match=naming("`weight`", "1.5")):
        soft_label_rows(labels, scores, weight=1.5, heard=heard)
    with pytest.raises(InputError, match=naming("1", "(2, 2)")):
        soft_label_rows(labels[:1], scores, weight=0.5, heard=heard)
    with pytest.raises(InputError, match=naming("scores")):
        soft_label_rows(labels, scores * 2, weight=0.5, heard=heard)


# --- going on ------------------------------------------------------------------------------------


def rows_of(spec, stream):
    return split(stream, spec.generation, seeds.generator(spec.seed, spec.canonical(), "split"))


def by_library(name, stream, old, spec, learners):
    """Scores of what the library itself makes of the same rows, and of the same soft labels."""
    train, _ = rows_of(spec, stream)
    inputs, labels = features(stream.pool.inputs[train]), stream.pool.labels[train]
    weights = None
    if spec.distillation is not None:
        said = score([*learners.values()], inputs, classes=4)[0].astype(float)
        said /= said.sum(axis=1, keepdims=True)
        heard = np.ones(len(labels), dtype=bool)
        weight = spec.distillation.weight
        of, labels, weights = soft_label_rows(labels, said, weight=weight, heard=heard)
        inputs = inputs[of]
    first, _ = rows_of(old.spec, stream)
    early = stream.pool.inputs[first], stream.pool.labels[first]
    test = stream.evaluation["test"].inputs
    if name == "lightgbm":
        fixed = {"verbosity": -1, "n_jobs": 1, "force_row_wise": True}
        make = lambda epochs: LGBMClassifier(  # noqa: E731
            num_leaves=5, learning_rate=0.3, n_estimators=epochs, **fixed
        )
        model = make(4).fit(*early)
        model = make(3).fit(inputs, labels, sample_weight=weights, init_model=model)
    else:
        model = XGBClassifier(max_depth=2, n_estimators=4, n_jobs=1).fit(*early)
        again = XGBClassifier(max_depth=2, n_estimators=3, n_jobs=1)
        model = again.fit(inputs, labels, sample_weight=weights, xgb_model=model.get_booster())
    return model.predict_proba(test)


@pytest.mark.parametrize("distill", [None, teaching(weight=0.7)])
@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_a_booster_goes_on_as_its_library_would(name, distill):
    old, learners = deployed(CONTINUING[name], SAME)
    done = retrained(CONTINUING[name], SAME, learners, distill=distill)
    expected = by_library(name, SAME, old, done.spec, learners)
    np.testing.assert_allclose(done.scores["test"][0, :, :3], expected, atol=1e-5)


def test_histograms_go_on_from_what_the_deployed_trees_say_of_new_rows():
    """On other rows, scikit-learn's own `warm_start` has old trees score by bins of new ones."""
    model = CONTINUING["histogram"]
    old, learners = deployed(model, SAME)
    done = retrained(model, SAME, learners, recipe=STILL)
    np.testing.assert_allclose(done.scores["test"], old.scores["test"], atol=1e-6)
    train, _ = rows_of(done.spec, SAME)
    inputs, labels = SAME.pool.inputs[train], SAME.pool.labels[train]
    after = retrained(model, SAME, learners).weights[0]
    with one_thread():
        said = score([*learners.values(), after], inputs, classes=4)
    losses = -np.log(said[:, np.arange(len(labels)), labels]).mean(axis=1)
    assert losses[1] < 0.8 * losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUING)
@pytest.mark.parametrize(
    ("first", "second", "models"),
    [
        ([0, 1, 2], [0, 1, 2, 3], CONTINUING),
        ([0, 2, 3], [0, 1, 2, 3], RANDOM),
        ([1, 3], [1, 2, 3], RANDOM),
        ([1, 2], [0, 1, 2, 3], CONTINUING),
    ],
    ids=["one more", "one between", "third", "two more"],
)
def test_new_classes_widen_the_deployed_trees(name, first, second, models):
    stream = some_digits(first, second)
    old, learners = deployed(models[name], stream)
    still = retrained(models[name], stream, learners, recipe=STILL).scores["test"][0]
    known, new = still[:, first], np.setdiff1d(second, first)
    # At next to no rate: what it was, and the new classes as frequent as they are.
    np.testing.assert_allclose(
        known / known.sum(axis=1, keepdims=True), old.scores["test"][0][:, first], atol=1e-5
    )
    assert (still[:, new] > 0).all()
    assert 0.05 < still[:, new].sum(axis=1).mean() < 0.8
    longer = dataclasses.replace(NEXT, epochs=10)
    done = retrained(models[name], stream, learners, recipe=longer)
    assert header(done.weights[0], 4).seen.tolist() == second
    # What was widened is checked as any other: to score, and to go on from once more.
    test = stream.evaluation["test"].inputs
    with one_thread():
        checked = score(done.weights, test, classes=4)
    np.testing.assert_array_equal(checked, done.scores["test"])
    again = retrained(models[name], stream, {"a/0": done.weights[0]}, recipe=STILL)
    np.testing.assert_allclose(again.scores["test"], done.scores["test"], atol=1e-5)
    truth = stream.evaluation["test"].labels
    labels = done.scores["test"][0].argmax(axis=1)
    for place in second:
        assert (labels[truth == place] == place).mean() > 0.6


@pytest.mark.parametrize("name", CONTINUING)
def test_new_trees_are_added_to_the_deployed_ones(name):
    _, learners = deployed(CONTINUING[name], SAME)
    counts = [
        _trees(name, learner)
        for learner in (*learners.values(), *retrained(CONTINUING[name], SAME, learners).weights)
    ]
    assert counts == [4 * 3, (4 + 3) * 3]


def _trees(name, learner):
    payload = header(learner, 4).payload
    if name == "lightgbm":
        return payload.count(b"\nTree=")
    if name == "histogram":
        from dynsnap.boost import _skops

        return sum(map(len, _skops.load(payload)._predictors))
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(bytearray(payload))
    return len(booster.get_dump())


@pytest.mark.parametrize("name", CONTINUING)
def test_a_student_is_closer_to_its_teacher_than_a_fresh_learner(name):
    stream, model = digits(), CONTINUING[name]
    longer = dataclasses.replace(FIRST, epochs=15)
    old, learners = deployed(model, stream)
    plain, taught = (
        retrained(model, stream, learners, warm=False, recipe=longer, distill=how)
        for how in (None, teaching(weight=0.9))
    )
    known = stream.evaluation["test"].labels < 3
    apart = [
        np.abs(done.scores["test"][0][known] - old.scores["test"][0][known]).mean()
        for done in (plain, taught)
    ]
    assert apart[1] < apart[0]
    # Of the class that the teacher does not know, labels are learned.
    assert (taught.scores["test"][0][~known].argmax(axis=1) == 3).mean() > 0.8


@pytest.mark.parametrize(
    "model",
    [GradientBoostingClassifier(max_depth=2), GaussianNB(), RandomForestClassifier(5)],
    ids=lambda model: type(model).__name__,
)
def test_every_classifier_that_takes_weights_can_be_taught_by_any_other(model):
    _, learners = deployed(CONTINUING["xgboost"], SAME)
    plain, taught = (
        retrained(model, SAME, learners, warm=False, distill=how)
        for how in (None, teaching(rows="right"))
    )
    assert not np.array_equal(plain.scores["test"], taught.scores["test"])


@pytest.mark.slow
@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("distill", [None, teaching()], ids=["labels", "taught"])
def test_a_round_that_was_stopped_goes_on_to_the_same_bits(name, distill):
    stream, model = digits(), RANDOM[name]
    recipe = dataclasses.replace(NEXT, rate=0.5)
    _, learners = deployed(model, stream)
    whole = retrained(model, stream, learners, recipe=recipe, distill=distill)
    kept = CheckpointsInMemory()
    options = {"recipe": recipe, "distill": distill, "checkpoints": kept}
    for _ in range(2):
        with pytest.raises(Interrupted):
            monitor = RecordingMonitor(stop_after=1)
            retrained(model, stream, learners, monitor=monitor, **options)
    again = retrained(model, stream, learners, **options)
    assert_same_round(again, whole)
    assert again.weights == whole.weights


def test_rounds_that_start_from_nothing_keep_their_names_and_bits():
    model = CONTINUING["lightgbm"]
    spec = RoundSpec(recipe=FIRST, generation=1, seed=5)
    trainers = [
        BoostTrainer(digits(), model=model),
        BoostTrainer(digits(), model=model, parents={}.__getitem__),
    ]
    assert len({round_key(trainer, spec) for trainer in trainers}) == 1
    assert json.loads(trainers[0].fingerprint)[0] == "boost/2"


# --- bad input -----------------------------------------------------------------------------------


def test_trees_of_another_library_are_not_gone_on_from():
    _, learners = deployed(CONTINUING["lightgbm"], SAME)
    for other in ("xgboost", "histogram"):
        with pytest.raises(FileError, match=naming("lightgbm", type(CONTINUING[other]).__name__)):
            retrained(CONTINUING[other], SAME, learners)
    _, learners = deployed(GaussianNB(), SAME)
    with pytest.raises(FileError, match=naming("GaussianNB", "HistGradientBoostingClassifier")):
        retrained(CONTINUING["histogram"], SAME, learners)


@pytest.mark.parametrize("name", CONTINUING)
@pytest.mark.parametrize("how", [{}, {"warm": False, "distill": teaching()}])
def test_other_features_and_classes_are_refused_in_one_line(name, how):
    model = CONTINUING[name]
    _, learners = deployed(model, SAME)
    fewer = some_digits([0, 1, 2], [0, 1, 2], inputs=slice(60))
    with pytest.raises(DynSnapError, match=naming("64", "60")) as caught:
        retrained(model, fewer, learners, **how)
    assert "\n" not in str(caught.value)
    if not how:
        with pytest.raises(DynSnapError, match=naming("'zero'")):
            retrained(model, some_digits([1, 2], [1, 2]), learners)


@pytest.mark.parametrize("name", CONTINUING)
def test_a_stored_learner_is_checked_before_its_library_reads_it(name):
    model = CONTINUING[name]
    _, learners = deployed(model, SAME)
    content = learners["a/0"]
    for bad in (content[:-40], b"no learner", content.replace(b'"format":1', b'"format":9')):
        for how in ({}, {"warm": False, "distill": teaching()}):
            with pytest.raises(FileError):
                retrained(model, SAME, {"a/0": bad}, **how)
    from dynsnap.boost import _snapshots

    stored = header(content, 4)
    forged = stored.payload[: len(stored.payload) // 2]
    kind = type("Kind", (), {"kind": stored.kind, "version": "1"})
    bad = _snapshots.pack(forged, learner=kind, seen=stored.seen)
    with pytest.raises(FileError):
        retrained(model, SAME, {"a/0": bad})


@pytest.mark.parametrize(
    ("model", "spec", "named"),
    [
        (MLPClassifier(), {"parent": "a/0"}, ["MLPClassifier", "afresh", "round 0"]),
        (GradientBoostingClassifier(), {"parent": "a/0"}, ["GradientBoostingClassifier", "afresh"]),
        (MLPClassifier(), {"distillation": teaching()}, ["MLPClassifier", "labels alone"]),
        (KNeighborsClassifier(), {"distillation": teaching()}, ["KNeighbors", "`sample_weight`"]),
        (XGBClassifier(), {"distillation": teaching(temperature=2.0)}, ["`temperature`", "2.0"]),
        (XGBClassifier(), {"distillation": teaching(rows="wrong")}, ["`distill_rows`", "wrong"]),
        (LGBMClassifier(), {"parent": "a/0", "interpolate": True}, ["`interpolate`"]),
        (LGBMClassifier(), {"distillation": teaching(), "generation": 1}, ["first"]),
    ],
)
def test_what_a_library_cannot_do_is_refused_by_name(model, spec, named):
    one = dataclasses.replace(NEXT, epochs=1)
    trainer = BoostTrainer(SAME, model=model, parents={}.__getitem__)
    with pytest.raises(PlanError, match=naming(*named)):
        trainer.train([RoundSpec(**{"recipe": one, "generation": 2, **spec})])


def test_categories_of_arrays_are_refused_by_name():
    model = HistGradientBoostingClassifier(categorical_features=[0])
    with pytest.raises(PlanError, match=naming("`categorical_features", "frame", r"\[data\]")):
        BoostTrainer(SAME, model=model)


def test_a_round_that_needs_a_stored_learner_says_where_to_find_one():
    for model, spec in (
        (LGBMClassifier(), {"parent": "a/0"}),
        (LogisticRegression(), {"distillation": teaching()}),
    ):
        with pytest.raises(PlanError, match=naming("`parents`")):
            one = dataclasses.replace(NEXT, epochs=1)
            BoostTrainer(SAME, model=model).train([RoundSpec(recipe=one, generation=2, **spec)])


def test_another_number_for_missing_values_is_refused():
    _, learners = deployed(CONTINUING["xgboost"], SAME)
    with pytest.raises(FileError, match=naming("`missing`", "nan", "0.0")):
        retrained(XGBClassifier(max_depth=2, missing=0), SAME, learners)


def test_a_length_that_the_first_training_had_is_no_obstacle_to_a_shorter_one():
    model = LGBMClassifier(num_leaves=5, n_estimators=4)
    _, learners = deployed(model, SAME)
    assert len(retrained(model, SAME, learners).curve) == 3


def test_a_weight_for_new_classes_is_for_those_who_draw_rows():
    check_retraining(LGBMClassifier(), Retraining(new_class_weight=NEW_CLASS_WEIGHT))
    with pytest.raises(PlanError, match=naming("`new_class_weight`", "`class_weight`")):
        check_retraining(LGBMClassifier(), Retraining(new_class_weight=2.0))
    model, stream = CONTINUING["histogram"], some_digits([0, 1, 2], [0, 1, 2, 3])
    _, learners = deployed(model, stream)
    plain, often = (retrained(model, stream, learners, often=weight) for weight in (1.0, 4.0))
    assert np.array_equal(plain.scores["test"], often.scores["test"])
