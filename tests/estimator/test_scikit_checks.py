"""Scikit-learn's own checks of an estimator, all of them: none is expected to fail.

Scikit-learn skips two by itself: array API inputs unless that is switched on, and data frames
where pandas is not installed.
"""

import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

from dynsnap import DynSnapClassifier
from dynsnap.train.models import mlp

torch.set_num_threads(1)

SMALL = {"snapshots": 2, "members": 2, "random_state": 0}
TREES = HistGradientBoostingClassifier(max_leaf_nodes=5, min_samples_leaf=1)
TORCH = {"epochs": 20, "learning_rate": 0.05, "batch_size": 16, "device": "cpu"}
ESTIMATORS = {
    "logistic": DynSnapClassifier(LogisticRegression(), method="extbagging", **SMALL),
    "trees": DynSnapClassifier(TREES, epochs=6, **SMALL),
    "torch": DynSnapClassifier(mlp, **TORCH, **SMALL),
}
# By names of our own: scikit-learn's show the address of a function, which no two workers share.
CHECKS = [
    pytest.param(
        estimator,
        check,
        id=f"{name}-{check.func.__name__}",
        marks=pytest.mark.slow if name == "trees" else [],
    )
    for name, subject in ESTIMATORS.items()
    for estimator, check in estimator_checks_generator(subject)
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learn_s_checks_pass(estimator, check):
    check(estimator)


def test_there_are_checks_for_every_estimator():
    assert len(CHECKS) > 50 * len(ESTIMATORS)
