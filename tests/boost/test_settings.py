"""What a model is set to is obeyed, or refused by name."""

import inspect

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.boost import BoostTrainer
from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.errors import PlanError, TrainingError
from tests.boost.streams import digits
from tests.messages import naming

EPOCHS = 4
STEP = Recipe(schedule=Schedule("step"), epochs=EPOCHS, snapshots=2)

# By the parameter that has no effect on a round.
REFUSED = {
    "early_stopping_round": LGBMClassifier(early_stopping_round=3),
    "early_stopping_rounds": LGBMClassifier(early_stopping_rounds=3),
    "early_stopping": LGBMClassifier(early_stopping=3),
    "n_iter_no_change": LGBMClassifier(n_iter_no_change=3),
    "num_iterations": LGBMClassifier(num_iterations=9),
    "num_boost_round": LGBMClassifier(num_boost_round=9),
    "n_estimators": LGBMClassifier(n_estimators=9),
    "eta": LGBMClassifier(eta=0.3),
    "application": LGBMClassifier(application="regression"),
    "max_dept": LGBMClassifier(max_dept=3),
    "xgboost early_stopping_rounds": XGBClassifier(early_stopping_rounds=3),
    "xgboost n_estimators": XGBClassifier(n_estimators=9),
    "xgboost callbacks": XGBClassifier(callbacks=[object()]),
    "xgboost max_dept": XGBClassifier(max_dept=3),
    "histogram max_iter": HistGradientBoostingClassifier(max_iter=9),
    "histogram early_stopping": HistGradientBoostingClassifier(early_stopping=True),
    "histogram scoring": HistGradientBoostingClassifier(scoring="accuracy"),
    "gradient n_estimators": GradientBoostingClassifier(n_estimators=9),
    "gradient n_iter_no_change": GradientBoostingClassifier(n_iter_no_change=2),
    "mlp max_iter": MLPClassifier(max_iter=9),
    "mlp early_stopping": MLPClassifier(early_stopping=True),
    "mlp tol": MLPClassifier(tol=0.1),
    "mlp learning_rate": MLPClassifier(solver="sgd", learning_rate="adaptive"),
    "sgd max_iter": SGDClassifier(loss="log_loss", max_iter=9),
    "sgd early_stopping": SGDClassifier(loss="log_loss", early_stopping=True),
    "dummy constant": DummyClassifier(strategy="constant", constant=1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_setting_without_an_effect_is_refused_by_its_name(name):
    with pytest.raises(PlanError, match=f"`{name.rpartition(' ')[2]}"):
        BoostTrainer(digits(), model=REFUSED[name]).train([RoundSpec(recipe=STEP, generation=1)])


@pytest.mark.parametrize(
    "model",
    [
        LGBMClassifier(n_estimators=EPOCHS),
        LGBMClassifier(num_iterations=EPOCHS),
        XGBClassifier(n_estimators=EPOCHS),
        HistGradientBoostingClassifier(max_iter=EPOCHS, early_stopping=False),
        GradientBoostingClassifier(n_estimators=EPOCHS),
    ],
)
def test_as_many_iterations_as_a_round_has_are_fine(model):
    (done,) = BoostTrainer(digits(), model=model).train([RoundSpec(recipe=STEP, generation=1)])
    assert len(done.curve) == EPOCHS


@pytest.mark.parametrize("name", ["random_state", "num_threads", "nthread", "verbose"])
def test_other_names_of_what_a_round_decides_change_nothing(name):
    plain, named = (
        list(BoostTrainer(digits(), model=model).train([RoundSpec(recipe=STEP, generation=1)]))
        for model in (LGBMClassifier(), LGBMClassifier(**{name: 2}))
    )
    assert plain[0].weights == named[0].weights


def test_what_xgboost_calls_otherwise_changes_nothing():
    plain, named = (
        list(BoostTrainer(digits(), model=model).train([RoundSpec(recipe=STEP, generation=1)]))
        for model in (
            XGBClassifier(subsample=0.5),
            XGBClassifier(subsample=0.5, random_state=9, nthread=2),
        )
    )
    assert (plain[0].scores["test"] == named[0].scores["test"]).all()


@pytest.mark.parametrize("kind", [LGBMClassifier, XGBClassifier])
def test_every_parameter_that_a_library_names_is_known(kind):
    names = inspect.signature(kind.__mro__[1]).parameters
    values = {name: None for name in names if name not in ("kwargs", "learning_rate")}
    BoostTrainer(digits(), model=kind(**values))


def test_a_failure_of_xgboost_is_told_without_its_trace():
    ensemble = DynSnapClassifier(XGBClassifier(max_depth=-2), members=1, snapshots=1, epochs=1)
    with pytest.raises(
        TrainingError, match=naming("XGBClassifier", "round 0", "max_depth", "-2")
    ) as caught:
        ensemble.fit(np.eye(8), np.arange(8) % 2)
    assert "Stack trace" not in str(caught.value)


# --- weights of classes ---------------------------------------------------------------------

WEIGHED = {
    "lightgbm": lambda weights: LGBMClassifier(min_child_samples=2, class_weight=weights),
    "logistic": lambda weights: LogisticRegression(class_weight=weights),
    "pipeline": lambda weights: make_pipeline(
        StandardScaler(), LogisticRegression(class_weight=weights)
    ),
    "forest": lambda weights: RandomForestClassifier(n_estimators=3, class_weight=weights),
    "histogram": lambda weights: HistGradientBoostingClassifier(class_weight=weights),
    "sgd": lambda weights: SGDClassifier(loss="log_loss", class_weight=weights),
}


def clouds(names):
    """Three clouds that overlap, of classes with these names."""
    rng = np.random.default_rng(3)
    labels = np.arange(90) % 3
    return labels[:, None] + rng.normal(size=(90, 2)), np.array(names)[labels]


def scores(model, names):
    ensemble = DynSnapClassifier(model, method="extbagging", members=2, epochs=3, random_state=0)
    inputs, labels = clouds(names)
    return ensemble.fit(inputs, labels).predict_proba(inputs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WEIGHED)
def test_weights_of_classes_follow_their_names(kind):
    model = WEIGHED[kind]
    expected = scores(model({0: 1, 1: 9, 2: 1}), [0, 1, 2])
    assert expected[:, 1].mean() > scores(model(None), [0, 1, 2])[:, 1].mean() + 0.05
    for names in ([1, 2, 3], [5.0, 6.0, 7.0], ["ant", "bee", "cow"]):
        weights = dict(zip(names, [1, 9, 1], strict=True))
        assert (scores(model(weights), names) == expected).all()
    # Those without a weight count once, and a 2 stands for 2.0.
    assert (scores(model({2: 9}), [1, 2, 3]) == expected).all()
    assert (scores(model({2: 9}), [1.0, 2.0, 3.0]) == expected).all()


def test_a_weight_lands_on_the_class_that_lightgbm_alone_would_put_it_on():
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(300, 4)), (rng.random(300) < 0.8) + 1
    model = LGBMClassifier(class_weight={1: 50})
    ensemble = DynSnapClassifier(model, members=3, snapshots=3, epochs=10, random_state=0)
    share = np.mean(ensemble.fit(inputs, labels).predict(inputs) == 1)
    alone = LGBMClassifier(class_weight={1: 50}, n_estimators=10, verbosity=-1)
    assert np.mean(alone.fit(inputs, labels).predict(inputs) == 1) > 0.8
    assert share > 0.8


def test_weights_may_be_of_classes_that_arrive_later():
    model = LGBMClassifier(class_weight={"zero": 1, "one": 1, "two": 1, "three": 5})
    (done,) = BoostTrainer(digits(), model=model).train([RoundSpec(recipe=STEP, generation=1)])
    assert (done.scores["test"][:, :, 3] == 0).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LGBMClassifier(class_weight={"seven": 2}), "`class_weight` names 'seven'"),
        (LogisticRegression(class_weight={"One": 2}), 'Did you mean "one"'),
        (LogisticRegression(class_weight={0: 2}), naming("`class_weight`", "names 0", "'zero'")),
        (
            BaggingClassifier(LogisticRegression(class_weight={"one": 2})),
            "`estimator__class_weight` names classes",
        ),
    ],
)
def test_weights_of_what_is_no_class_are_refused(model, message):
    with pytest.raises(PlanError, match=message):
        BoostTrainer(digits(), model=model)


def test_rounds_with_weights_by_place_are_not_taken_for_those_by_name():
    plain, weighed = (
        BoostTrainer(digits(), model=LGBMClassifier(class_weight=weights)).fingerprint
        for weights in (None, {"one": 2})
    )
    assert "weights by name" in weighed
    assert "weights by name" not in plain
