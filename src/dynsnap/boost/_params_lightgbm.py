"""Which of LightGBM's parameters reach a round, by any of their names.

LightGBM takes some 150 parameters by twice as many names. It passes over those that its
scikit-learn interface or the chosen objective has no use for, and where one goes by two names it
picks one of them. Here each is handed on as it is, or refused by the name that was given.
"""

import functools
from collections.abc import Mapping
from typing import Any

from dynsnap.boost._settings import defaults, refuse_strangers, refuse_unless, refuse_unused
from dynsnap.errors import PlanError

_SEEDS = "rounds draw their seeds from the ensemble's `random_state`."
_END = "a round is trained to its end, and the best of its epochs are kept."
_FILES = "it is for LightGBM's command line, and a round learns from arrays."
_ASKED = "it is for prediction, and members always give the probabilities of all their trees."
_SCORED = "epochs are judged by the accuracy on the validation rows."
_MACHINES = "a round is trained on one machine."
_BOOSTING = "it is for other kinds of boosting than gbdt."
_OBJECTIVE = "it is for other objectives than those of classes."

# Parameters without an effect on a round, by LightGBM's own names, and the reason.
_UNUSED = {
    **dict.fromkeys(
        (
            "seed",
            "bagging_seed",
            "feature_fraction_seed",
            "extra_seed",
            "data_random_seed",
            "drop_seed",
            "objective_seed",
        ),
        _SEEDS,
    ),
    **dict.fromkeys(("early_stopping_round", "early_stopping_min_delta"), _END),
    **dict.fromkeys(
        (
            "config",
            "task",
            "data",
            "valid",
            "input_model",
            "output_model",
            "output_result",
            "snapshot_freq",
            "save_binary",
            "parser_config_file",
            "precise_float_parser",
            "two_round",
            "header",
            "label_column",
            "weight_column",
            "group_column",
            "ignore_column",
            "convert_model",
            "convert_model_language",
            "refit_decay_rate",
            "metric_freq",
            "is_provide_training_metric",
        ),
        _FILES,
    ),
    **dict.fromkeys(
        (
            "start_iteration_predict",
            "num_iteration_predict",
            "predict_raw_score",
            "predict_leaf_index",
            "predict_contrib",
            "predict_disable_shape_check",
            "pred_early_stop",
            "pred_early_stop_freq",
            "pred_early_stop_margin",
        ),
        _ASKED,
    ),
    **dict.fromkeys(
        ("metric", "auc_mu_weights", "eval_at", "multi_error_top_k", "first_metric_only"), _SCORED
    ),
    **dict.fromkeys(
        (
            "machines",
            "machine_list_filename",
            "num_machines",
            "local_listen_port",
            "time_out",
            "pre_partition",
            "top_k",
        ),
        _MACHINES,
    ),
    **dict.fromkeys(
        (
            "xgboost_dart_mode",
            "drop_rate",
            "max_drop",
            "skip_drop",
            "uniform_drop",
            "top_rate",
            "other_rate",
        ),
        _BOOSTING,
    ),
    **dict.fromkeys(
        (
            "alpha",
            "bagging_by_query",
            "fair_c",
            "label_gain",
            "lambdarank_norm",
            "lambdarank_position_bias_regularization",
            "lambdarank_truncation_level",
            "poisson_max_delta_step",
            "reg_sqrt",
            "tweedie_variance_power",
        ),
        _OBJECTIVE,
    ),
    **dict.fromkeys(
        ("forcedbins_filename", "forcedsplits_filename"),
        "what a file holds is no part of a round's name, so a round would not be trained again "
        "when the file changes.",
    ),
    "num_class": "the number of classes follows from the labels.",
}
# What a round decides, whatever the model calls it, and which value says the same.
_FIXED = {"deterministic": True, "force_row_wise": True, "force_col_wise": False}
# What the documentation leaves to the round, beside `random_state`: they change no learner.
_LEFT = ("num_threads", "verbosity")


def check(model: Any) -> None:
    """Raise PlanError unless each parameter of an `LGBMClassifier` reaches the rounds."""
    params = model.get_params()
    refuse_strangers(model, params, (name for names in all_aliases().values() for name in names))
    for main, reason in _UNUSED.items():
        # `random_state` is left to the round, and what is switched off is off.
        names = sorted(aliases(main) - {"random_state"})
        off = (False, 0) if main == "early_stopping_round" else (False,)
        given = [name for name in names if not any(params.get(name) is one for one in off)]
        refuse_unused(model, given, reason)
    refuse_unused(model, ["importance_type"], "members are not asked what features are worth.")
    for main, only in _FIXED.items():
        refuse_unless(main, params.get(main), (only,), "a round decides how it is computed.")
    for alias in aliases("boosting"):
        refuse_unless(
            alias,
            params.get(alias),
            ("gbdt",),
            "the first iterations of a dart or rf booster are not what it was at that time, "
            "and goss fails where the learning rate changes.",
        )
    # With goss, a rate that falls makes LightGBM write beyond its arrays.
    refuse_unless(
        "data_sample_strategy",
        params.get("data_sample_strategy"),
        ("bagging",),
        "goss fails where the learning rate changes.",
    )
    for alias in aliases("tree_learner"):
        refuse_unless(alias, params.get(alias), ("serial",), _MACHINES)
    _check_names(model, params)
    refuse_unless(
        "objective",
        params.get("objective"),
        ("binary", "multiclass"),
        "members must give probabilities that sum to one.",
    )


def _check_names(model: Any, params: Mapping[str, Any]) -> None:
    """Raise PlanError where one parameter has two names, of which LightGBM would pick one."""
    own = defaults(type(model))
    # The constructor always gives a rate and an objective, so other names of them never win.
    always = ("learning_rate", "objective")
    for main, names in all_aliases().items():
        if main in ("num_iterations", *_LEFT):
            continue
        found = [name for name in names if params.get(name) is not None]
        named = next((name for name in names if name in own), None)
        others = sorted({*found} - {named})
        strange = [name for name in others if name != main or main in always]
        if named is not None and strange:
            raise PlanError(f"LGBMClassifier calls `{strange[0]}` by the name `{named}`. Use that.")
        if others and named in found and params[named] != own[named]:
            raise PlanError(
                f"The model has `{named}` and `{others[0]}`, which are two names of one "
                "parameter. Use one of them."
            )
        if len(others) > 1:
            raise PlanError(
                f"The model has `{others[0]}` and `{others[1]}`, which are two names of one "
                "parameter. Use one of them."
            )


def decided() -> set[str]:
    """All names of what a round decides, which would win over its own."""
    mains = ("num_iterations", "objective", "metric", "seed", *_FIXED, *_LEFT)
    return {alias for main in mains for alias in (main, *aliases(main))}


def aliases(name: str) -> set[str]:
    """All names of one of LightGBM's parameters."""
    return {name, *all_aliases().get(name, ())}


@functools.cache
def all_aliases() -> Mapping[str, list[str]]:
    """All parameters, each with all its names."""
    from lightgbm.basic import _ConfigAliases

    found: dict[str, list[str]] = _ConfigAliases._get_all_param_aliases()
    return found
