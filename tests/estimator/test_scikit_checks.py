"""Scikit-learn's own checks of an estimator, all of them: none is expected to fail.

Scikit-learn skips two by itself: array API inputs unless that is switched on, and data frames
where pandas is not installed.
"""

import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from dynsnap import DynSnapClassifier
from dynsnap.train.models import mlp

torch.set_num_threads(1)


@parametrize_with_checks(
    [
        DynSnapClassifier(LogisticRegression(), method="extbagging", members=2, random_state=0),
        DynSnapClassifier(
            HistGradientBoostingClassifier(max_leaf_nodes=5, min_samples_leaf=1),
            epochs=6,
            snapshots=2,
            members=2,
            random_state=0,
        ),
        DynSnapClassifier(
            mlp,
            epochs=20,
            snapshots=2,
            members=2,
            learning_rate=0.05,
            batch_size=16,
            device="cpu",
            random_state=0,
        ),
    ]
)
def test_scikit_learn_s_checks_pass(estimator, check):
    check(estimator)
