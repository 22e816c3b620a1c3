"""Estimators that decide on the number of their members."""

import numpy as np
import pytest
import torch
from sklearn.naive_bayes import GaussianNB
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.errors import PlanError
from dynsnap.estimator._streams import rows_aside
from dynsnap.train.models import mlp
from tests.estimator.data import digits
from tests.messages import naming

torch.set_num_threads(1)

TORCH = {"epochs": 3, "learning_rate": 0.001, "prepare": "standardised", "device": "cpu"}
MODELS = {"mlp": (mlp, TORCH), "xgboost": (XGBClassifier(max_depth=2), {"epochs": 6})}


def automatic(name="mlp", **settings):
    model, plain = MODELS[name]
    given = {"members": "auto", "snapshots": 3, "tolerance": 0.01, "random_state": 0, **plain}
    return DynSnapClassifier(model, **{**given, **settings})


@pytest.mark.parametrize("name", MODELS)
def test_rounds_are_trained_until_another_is_not_worth_it(name):
    (inputs, labels), _, _ = digits()
    strict = automatic(name, tolerance=0.002, most_rounds=5).fit(inputs, labels)
    loose = automatic(name, tolerance=0.5, most_rounds=5).fit(inputs, labels)
    assert loose.rounds_ == 2 < strict.rounds_ <= 5
    assert len(strict.members_) > len(loose.members_)
    assert strict.members_[: len(loose.members_)] == loose.members_


def test_the_same_data_and_seed_decide_alike(tmp_path):
    (inputs, labels), (more, more_labels), (unseen, _) = digits()
    one, other = (automatic().fit(inputs, labels) for _ in range(2))
    assert one.members_ == other.members_
    later = one.retrain(more, more_labels)
    assert later.generation_ == 2 and later.rounds_ >= 2 and len(later.classes_) == 7
    later.save(tmp_path / "later")
    again = DynSnapClassifier.load(tmp_path / "later", model=mlp)
    assert again.members == "auto" and again.tolerance == 0.01
    np.testing.assert_array_equal(again.predict(unseen), later.predict(unseen))


def test_a_method_of_one_member_a_round_decides_too():
    (inputs, labels), _, _ = digits()
    bagged = DynSnapClassifier(
        GaussianNB(), method="extbagging", members="auto", most_rounds=4, random_state=0
    )
    assert 2 <= len(bagged.fit(inputs, labels).members_) == bagged.rounds_ <= 4


def test_rows_that_decide_are_not_trained_on_and_stay_when_data_grows():
    labels = np.arange(500) % 5
    aside = rows_aside(labels, 0.1, None)
    assert len(aside) == 50
    assert np.bincount(labels[aside]).tolist() == [10] * 5
    grown = rows_aside(np.concatenate([labels, labels[:200]]), 0.1, None)
    assert grown[grown < 500].tolist() == aside.tolist()


def test_no_more_rows_than_a_thousand_or_a_third_are_set_aside():
    assert len(rows_aside(np.zeros(50_000, int), 0.1, None)) == 1000
    assert len(rows_aside(np.zeros(9, int), 0.9, None)) == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"members": "many"}, 'or "auto", got'),
        ({"method": "snapshot"}, naming("snapshot", "one round", "number of members", '"auto"')),
        ({"method": "rolling"}, r'instead of "auto"'),
        ({"members": 3}, "`tolerance` has a meaning"),
        ({"tolerance": 1.5}, "above 0 and below 1"),
        ({"most_rounds": 1}, "at least 2"),
    ],
)
def test_what_cannot_be_decided_is_refused(wrong, message):
    (inputs, labels), _, _ = digits()
    with pytest.raises(PlanError, match=message):
        automatic(**wrong).fit(inputs, labels)


def test_too_few_rows_to_set_any_aside_are_refused():
    inputs, labels = np.arange(12.0).reshape(6, 2), [0, 1] * 3
    with pytest.raises(PlanError, match=naming('"auto"', "10th row", "number of members")):
        automatic().fit(inputs, labels)
