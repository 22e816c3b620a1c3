"""Scikit-learn's own checks of an estimator, all of them but one.

Fits with weights and with repeated rows are not alike to the last bit: rounds draw the rows that
they validate on, and of repeated rows they draw some. The same rows in another order are as little
alike. Besides, the check has 15 rows, and leaves a class with a single one, which is refused.
Scikit-learn excuses its own `BaggingClassifier` from this check. `test_weights.py` has what holds
instead: with fixed rows to validate on, a row of weight three is three rows.

Scikit-learn skips two by itself: array API inputs unless that is switched on, and data frames
where pandas is not installed.
"""

import numpy as np
import pytest
import torch
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.errors import InputError
from dynsnap.train.models import mlp

torch.set_num_threads(1)

SMALL = {"snapshots": 2, "members": 2, "random_state": 0}
TREES = HistGradientBoostingClassifier(max_leaf_nodes=5, min_samples_leaf=1)
TORCH = {"epochs": 20, "learning_rate": 0.05, "batch_size": 16, "device": "cpu"}
ESTIMATORS = {
    "logistic": DynSnapClassifier(LogisticRegression(), method="extbagging", **SMALL),
    "trees": DynSnapClassifier(TREES, epochs=6, **SMALL),
    "lightgbm": DynSnapClassifier(LGBMClassifier(min_child_samples=1), epochs=6, **SMALL),
    "xgboost": DynSnapClassifier(XGBClassifier(max_depth=2), epochs=6, **SMALL),
    "torch": DynSnapClassifier(mlp, **TORCH, **SMALL),
}
EXCUSED = "check_sample_weight_equivalence_on_dense_data"
SLOW = ("trees", "lightgbm", "xgboost", "torch")
# By names of our own: scikit-learn's show the address of a function, which no two workers share.
CHECKS = [
    pytest.param(
        estimator,
        check,
        id=f"{name}-{check.func.__name__}",
        marks=pytest.mark.slow if name in SLOW else [],
    )
    for name, subject in ESTIMATORS.items()
    for estimator, check in estimator_checks_generator(subject)
    if check.func.__name__ != EXCUSED
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learn_s_checks_pass(estimator, check):
    check(estimator)


def test_the_check_that_is_excused_is_one_that_scikit_learn_has():
    names = {check.func.__name__ for _, check in estimator_checks_generator(ESTIMATORS["torch"])}
    assert EXCUSED in names


def test_weights_are_repeated_rows_to_no_ensemble_that_draws_rows():
    rng = np.random.default_rng(0)
    inputs, labels = rng.random((60, 3)), np.arange(60) % 2
    order = rng.permutation(60)
    bagging = BaggingClassifier(LogisticRegression(), random_state=0)
    for subject in (ESTIMATORS["logistic"], bagging):
        one = clone(subject).fit(inputs, labels).predict_proba(inputs)
        other = clone(subject).fit(inputs[order], labels[order]).predict_proba(inputs)
        assert np.abs(one - other).max() > 1e-3
        checks = [check for _, check in estimator_checks_generator(subject)]
        (excused,) = [check for check in checks if check.func.__name__ == EXCUSED]
        with pytest.raises((AssertionError, InputError)):
            excused(clone(subject))


def test_there_are_checks_for_every_estimator():
    assert len(CHECKS) > 50 * len(ESTIMATORS)
