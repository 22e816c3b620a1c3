"""Every parameter of LightGBM and XGBoost, by each of its names, is obeyed or refused by name."""

import re
from functools import cache

import numpy as np
import pytest
import xgboost.sklearn
from lightgbm import LGBMClassifier
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from xgboost import XGBClassifier

from dynsnap import DynSnapClassifier
from dynsnap.boost._lightgbm import all_aliases
from dynsnap.boost._xgboost import _names
from dynsnap.errors import PlanError

pytestmark = pytest.mark.slow  # every parameter of both libraries

ROWS = 60
INPUTS = np.random.default_rng(0).normal(size=(ROWS, 3))
INPUTS[:, 0] = np.arange(ROWS) % 5
LABELS = np.arange(ROWS) % 2


def fitted(model, labels=LABELS):
    estimator = DynSnapClassifier(model, members=1, snapshots=1, epochs=1, random_state=0)
    return estimator.fit(INPUTS, labels)


def text(model):
    """What is stored of LightGBM's only learner."""
    return fitted(model)._fitted.learners[0].decode()


@cache
def plain():
    return text(LGBMClassifier())


# --- LightGBM -------------------------------------------------------------------------------

# Another value than the usual one for each parameter that a round obeys, and how LightGBM writes
# it into its models.
OBEYED = {
    "bagging_fraction": (0.5, "0.5"),
    "bagging_freq": (2, "2"),
    "bin_construct_sample_cnt": (50, "50"),
    "boost_from_average": (False, "0"),
    "cat_l2": (5, "5"),
    "cat_smooth": (5, "5"),
    "categorical_feature": ([0], "0"),
    "cegb_penalty_feature_coupled": ([1, 2, 3], "1,2,3"),
    "cegb_penalty_feature_lazy": ([1, 2, 3], "1,2,3"),
    "cegb_penalty_split": (0.5, "0.5"),
    "cegb_tradeoff": (0.5, "0.5"),
    "device_type": ("cpu", "cpu"),
    "enable_bundle": (False, "0"),
    "extra_trees": (True, "1"),
    "feature_contri": ([0.5, 1, 1], "0.5,1,1"),
    "feature_fraction": (0.5, "0.5"),
    "feature_fraction_bynode": (0.5, "0.5"),
    "feature_pre_filter": (False, "0"),
    "gpu_device_id": (1, "1"),
    "gpu_device_id_list": ("1", "1"),
    "gpu_platform_id": (1, "1"),
    "gpu_use_dp": (True, "1"),
    "histogram_pool_size": (50, "50"),
    "interaction_constraints": ([[0, 1], [2]], "[0,1],[2]"),
    "is_enable_sparse": (False, "0"),
    "is_unbalance": (True, "1"),
    "learning_rate": (0.5, "0.5"),
    "lambda_l1": (0.5, "0.5"),
    "lambda_l2": (0.5, "0.5"),
    "linear_lambda": (0.5, "0.5"),
    "linear_tree": (True, "1"),
    "max_bin": (50, "50"),
    "max_bin_by_feature": ([50, 50, 50], "50,50,50"),
    "max_cat_threshold": (5, "5"),
    "max_cat_to_onehot": (5, "5"),
    "max_delta_step": (0.5, "0.5"),
    "max_depth": (2, "2"),
    "min_data_in_bin": (5, "5"),
    "min_data_in_leaf": (5, "5"),
    "min_data_per_group": (5, "5"),
    "min_gain_to_split": (0.5, "0.5"),
    "min_sum_hessian_in_leaf": (0.5, "0.5"),
    "monotone_constraints": ([1, 0, -1], "1,0,-1"),
    "monotone_constraints_method": ("intermediate", "intermediate"),
    "monotone_penalty": (0.5, "0.5"),
    "neg_bagging_fraction": (0.5, "0.5"),
    "num_gpu": (2, "2"),
    "num_grad_quant_bins": (8, "8"),
    "num_leaves": (5, "5"),
    "path_smooth": (0.5, "0.5"),
    "pos_bagging_fraction": (0.5, "0.5"),
    "quant_train_renew_leaf": (True, "1"),
    "saved_feature_importance_type": (1, "1"),
    "scale_pos_weight": (2, "2"),
    "sigmoid": (2, "2"),
    "stochastic_rounding": (False, "0"),
    "use_missing": (False, "0"),
    "use_quantized_grad": (True, "1"),
    "zero_as_missing": (True, "1"),
}
# What the documentation leaves to the round: the same learner comes of it.
LEFT = {"num_threads": 2, "verbosity": 0, "random_state": 5}
SAID_AGAIN = {
    "deterministic": True,
    "force_row_wise": True,
    "force_col_wise": False,
    "boosting": "gbdt",
    "data_sample_strategy": "bagging",
    "tree_learner": "serial",
    "num_iterations": 1,
    "learning_rate": 0.1,
    "objective": "binary",
}


@pytest.mark.parametrize(
    "main",
    [
        pytest.param(name, marks=[] if place % 4 == 0 else pytest.mark.slow)
        for place, name in enumerate(sorted(all_aliases()))
    ],
)
def test_every_parameter_of_lightgbm_is_obeyed_or_refused_by_the_name_that_was_given(main):
    for name in {main, *all_aliases()[main]}:
        value, written = OBEYED.get(main, (99, None))
        left = LEFT.get(name, LEFT.get(main))
        if left is not None:
            assert text(LGBMClassifier(**{name: left})) == plain()
            continue
        try:
            found = text(LGBMClassifier(**{name: value}))
        except PlanError as error:
            assert f"`{name}" in str(error)
            # By its own name, what LightGBM obeys is obeyed.
            assert name != main or written is None
        else:
            assert f"[{main}: {written}]" in found


@pytest.mark.parametrize("name", SAID_AGAIN)
def test_what_a_round_does_anyway_may_be_said(name):
    assert text(LGBMClassifier(**{name: SAID_AGAIN[name]})) == plain()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"seed": 0}, "seed"),
        ({"bagging_fraction_seed": 0}, "bagging_fraction_seed"),
        ({"metric": "auc"}, "metric"),
        ({"deterministic": False}, "deterministic"),
        ({"force_col_wise": True}, "force_col_wise"),
        ({"max_leaf": 5}, "max_leaf"),  # LightGBM would go by the constructor's `num_leaves`
        ({"l1_regularization": 0.5}, "l1_regularization"),
        ({"min_data_in_leaf": 5, "min_child_samples": 6}, "min_data_in_leaf"),
        ({"mc": [1, 0, 0], "monotone_constraints": [0, 0, 0]}, "mc"),
        ({"importance_type": "gain"}, "importance_type"),
        ({"objective": "multiclass"}, "objective"),  # of two classes
    ],
)
def test_lightgbm_passes_over_nothing_that_is_given(given, named):
    with pytest.raises(PlanError, match=f"`{named}"):
        text(LGBMClassifier(**given))


# --- XGBoost --------------------------------------------------------------------------------

HANDED_ON = {
    "alpha": 0.5,
    "base_score": 0.25,
    "colsample_bylevel": 0.5,
    "colsample_bynode": 0.5,
    "colsample_bytree": 0.5,
    "debug_synchronize": True,
    "device": "cpu",
    "enable_categorical": True,
    "eta": 0.5,
    "fail_on_invalid_gpu_id": True,
    "feature_types": ["c", "q", "q"],
    "feature_weights": [0.5, 1, 1],
    "gamma": 0.5,
    "grow_policy": "lossguide",
    "interaction_constraints": "[[0, 1], [2]]",
    "lambda": 0.5,
    "learning_rate": 0.5,
    "max_bin": 50,
    "max_cached_hist_node": 5,
    "max_cat_threshold": 5,
    "max_cat_to_onehot": 5,
    "max_delta_step": 0.5,
    "max_depth": 2,
    "max_leaves": 5,
    "min_child_weight": 0.5,
    "min_split_loss": 0.5,
    "missing": 3.0,
    "monotone_constraints": "(1,0,-1)",
    "multi_strategy": "one_output_per_tree",
    "num_parallel_tree": 2,
    "reg_alpha": 0.5,
    "reg_lambda": 0.5,
    "sampling_method": "uniform",
    "scale_pos_weight": 2,
    "subsample": 0.5,
    "tree_method": "exact",
    "validate_parameters": True,
}
# These are arguments of the data or of the interface, and no parameters of a booster.
OF_THE_DATA = {"enable_categorical", "feature_types", "feature_weights", "missing"}


@pytest.mark.parametrize("name", HANDED_ON)
def test_parameters_of_xgboost_reach_its_training_as_they_are(name, monkeypatch):
    seen, data, train = [], [], xgboost.sklearn.train
    matrix = XGBClassifier._create_dmatrix
    monkeypatch.setattr(
        xgboost.sklearn,
        "train",
        lambda params, *a, **k: seen.append(params) or train(params, *a, **k),
    )
    monkeypatch.setattr(
        XGBClassifier, "_create_dmatrix", lambda self, **k: data.append(k) or matrix(self, **k)
    )
    given = {name: HANDED_ON[name]}
    if name == "feature_types":
        given["enable_categorical"] = True
    fitted(XGBClassifier(**given))
    found = data[0] if name in OF_THE_DATA else seen[0]
    assert found[name] == HANDED_ON[name]


REFUSED = {
    **dict.fromkeys(("aft_loss_distribution", "quantile_alpha", "huber_slope"), 0.5),
    **dict.fromkeys(("rate_drop", "skip_drop", "top_k", "feature_selector"), 0.5),
    "boost_from_average": 0,
    "booster": "dart",
    "callbacks": [object()],
    "disable_default_eval_metric": True,
    "early_stopping_rounds": 2,
    "eval_metric": "auc",
    "extmem_single_page": True,
    "importance_type": "gain",
    "n_estimators": 9,
    "name": "dart",
    "num_class": 2,
    "num_feature": 3,
    "num_target": 1,
    "num_trees": 1,
    "objective": "multi:softprob",
    "process_type": "update",
    "refresh_leaf": 0,
    "seed": 0,
    "seed_per_iteration": True,
    "sparse_threshold": 0.5,
    "specified_updater": True,
    "updater": "grow_colmaker",
    "updater_seq": "grow_colmaker",
}


@pytest.mark.parametrize("name", REFUSED)
def test_parameters_of_xgboost_without_an_effect_are_refused_by_name(name):
    with pytest.raises(PlanError, match=f"`{name}"):
        fitted(XGBClassifier(**{name: REFUSED[name]}))


def test_every_parameter_of_xgboost_is_either_or():
    known = {*XGBClassifier().get_params(), *_names()}
    left = {"n_jobs", "nthread", "random_state", "verbosity"}
    assert known <= {*HANDED_ON, *REFUSED, *left}
    assert not HANDED_ON.keys() & REFUSED.keys()


def test_xgboost_is_not_given_one_parameter_by_two_names():
    with pytest.raises(PlanError, match="`eta`"):
        fitted(XGBClassifier(eta=0.5, learning_rate=0.1))
    with pytest.raises(PlanError, match="`lambda`"):
        fitted(XGBClassifier(reg_lambda=0.5, **{"lambda": 0.1}))


# --- scikit-learn ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("warm_start", RandomForestClassifier(warm_start=True)),
        ("warm_start", MLPClassifier(warm_start=True)),
        ("warm_start", SGDClassifier(loss="log_loss", warm_start=True)),
        (
            "logisticregression__warm_start",
            make_pipeline(LogisticRegression(warm_start=True)),
        ),
        ("estimator__warm_start", BaggingClassifier(LogisticRegression(warm_start=True))),
        ("learning_rate", MLPClassifier(learning_rate="adaptive")),
        ("power_t", MLPClassifier(power_t=0.3)),
        ("max_fun", MLPClassifier(max_fun=3)),
    ],
)
def test_settings_of_scikit_learn_without_an_effect_are_refused_by_name(name, model):
    with pytest.raises(PlanError, match=f"`{re.escape(name)}"):
        fitted(model)
