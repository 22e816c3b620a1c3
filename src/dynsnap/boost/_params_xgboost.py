"""Which of XGBoost's parameters reach a round, by any of their names."""

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dynsnap.boost._settings import refuse_strangers, refuse_unless, refuse_unused
from dynsnap.errors import PlanError

_MODEL = "XGBoost finds it out from the data."
# Parameters without an effect on a round, and the reason.
_UNUSED = {
    "early_stopping_rounds": "a round is trained to its end, and the best of its epochs are kept.",
    "callbacks": "a round has callbacks of its own.",
    "eval_metric": "epochs are judged by the accuracy on the validation rows.",
    "disable_default_eval_metric": "epochs are judged by the accuracy on the validation rows.",
    "importance_type": "members are not asked what features are worth.",
    "seed": "rounds draw their seeds from the ensemble's `random_state`.",
    "seed_per_iteration": "every iteration of a round has a seed of its own.",
    "num_class": "the number of classes follows from the labels.",
    "updater": "it follows from `tree_method`, which you can set.",
    "updater_seq": "it follows from `tree_method`, which you can set.",
    "specified_updater": "it follows from `tree_method`, which you can set.",
    "refresh_leaf": "it is for `process_type='update'`, and a round grows new trees.",
    "name": "the kind of booster is called `booster`.",
    **dict.fromkeys(("num_feature", "num_target", "num_trees", "boost_from_average"), _MODEL),
    **dict.fromkeys(
        (
            "feature_selector",
            "normalize_type",
            "one_drop",
            "rate_drop",
            "sample_type",
            "skip_drop",
            "top_k",
        ),
        "it is for other boosters than gbtree.",
    ),
    **dict.fromkeys(
        (
            "aft_loss_distribution",
            "aft_loss_distribution_scale",
            "expectile_alpha",
            "huber_slope",
            "lambdarank_bias_norm",
            "lambdarank_normalization",
            "lambdarank_num_pair_per_sample",
            "lambdarank_pair_method",
            "lambdarank_score_normalization",
            "lambdarank_unbiased",
            "ndcg_exp_gain",
            "quantile_alpha",
            "tweedie_variance_power",
        ),
        "it is for other objectives than those of classes.",
    ),
    "extmem_single_page": "rounds learn from arrays in memory.",
    "sparse_threshold": "no way to grow trees looks at it.",
}
# Two names of one parameter: XGBoost takes the one that comes last.
_TWICE = {
    "learning_rate": "eta",
    "gamma": "min_split_loss",
    "reg_alpha": "alpha",
    "reg_lambda": "lambda",
}


def check(model: Any) -> None:
    """Raise PlanError unless each parameter of an `XGBClassifier` reaches the rounds."""
    params: Mapping[str, Any] = model.get_params()
    refuse_unless(
        "booster",
        params.get("booster"),
        ("gbtree",),
        "the first iterations of a dart or linear booster are not what it was at that time.",
    )
    refuse_unless(
        "objective",
        params.get("objective"),
        ("binary:logistic", "multi:softprob"),
        "members must give probabilities.",
    )
    refuse_unless(
        "process_type",
        params.get("process_type"),
        ("default",),
        "a round grows new trees. Train a study or call `retrain` to learn from new data.",
    )
    for name, reason in _UNUSED.items():
        if params.get(name) is not None and not (name == "callbacks" and not params[name]):
            refuse_unused(model, [name], reason)
    for name, other in _TWICE.items():
        if params.get(name) is not None and params.get(other) is not None:
            raise PlanError(
                f"The model has `{name}` and `{other}`, which are two names of one parameter. "
                f"Use `{name}`."
            )
    refuse_strangers(model, params, _names())


@functools.cache
def _names() -> set[str]:
    """The parameters that XGBoost knows beside those of its scikit-learn interface."""
    import xgboost

    rows = xgboost.DMatrix(np.eye(2), label=[0, 1], nthread=1)
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, rows, 1)

    def inside(part: Any) -> Iterator[str]:
        for name, value in part.items() if isinstance(part, dict) else enumerate(part):
            if isinstance(value, dict | list):
                yield from inside(value)
            elif isinstance(name, str):
                yield name

    return {*inside(json.loads(booster.save_config())), "num_class", "verbosity"}
