"""LightGBM: its parameters, and snapshots: the booster cut to its first iterations."""

import functools
import inspect
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dynsnap._types import Floats, Labels, Positions, Scores
from dynsnap.boost import _check_lightgbm
from dynsnap.boost._learner import (
    Cut,
    EpochRecorder,
    FitTask,
    Loaded,
    State,
    as_numbers,
    first_scores,
    rates,
    seed,
    two_columns,
    two_raw_columns,
)
from dynsnap.boost._settings import (
    check_categories,
    defaults,
    numbered_class_weights,
    refuse_other_length,
    refuse_unknown_parameters,
    refuse_unless,
    refuse_unused,
)
from dynsnap.data import Frame
from dynsnap.ensemble import Recipe
from dynsnap.errors import FileError, PlanError

_SEEDS = "rounds draw their seeds from the ensemble's `random_state`."
_END = "a round is trained to its end, and the best of its epochs are kept."
_FILES = "it is for LightGBM's command line, and a round learns from arrays."
_ASKED = "it is for prediction, and members always give the probabilities of all their trees."
_SCORED = "epochs are judged by the `selection_metric` on the validation rows."
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
# What a round decides, whatever the model calls it, and which value states the same.
_FIXED = {"deterministic": True, "force_row_wise": True, "force_col_wise": False}
# What the documentation leaves to the round, beside `random_state`: they change no learner.
_LEFT = ("num_threads", "verbosity")


def check_parameters(model: Any) -> None:
    """Raise PlanError unless each parameter of an `LGBMClassifier` reaches the rounds."""
    params = model.get_params()
    refuse_unknown_parameters(
        model, params, (name for names in all_aliases().values() for name in names)
    )
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


class LightGBMLearner:
    """An `LGBMClassifier`, trained by its own `fit`."""

    kind = "lightgbm"
    by_name = False

    def __init__(self, model: Any) -> None:
        import lightgbm

        check_parameters(model)
        params = model.get_params()
        self._model = model
        self._rate = float(params["learning_rate"])
        self._module = lightgbm
        # What these keep from iteration to iteration is in no file, and cannot be made again.
        stateful = any(name.startswith("cegb_") and params[name] for name in params)
        names = aliases("device_type")
        device = next((params[name] for name in names if params.get(name)), "cpu")
        self._resumable = not stateful and not params.get("use_quantized_grad") and device == "cpu"

    @property
    def version(self) -> str:
        return str(self._module.__version__)

    def check(self, recipe: Recipe, *, shortened: bool = False) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        if not shortened:
            refuse_other_length(self._model, sorted(aliases("num_iterations")), recipe.epochs)

    def check_frame(self, frame: Frame | None) -> None:
        if frame is None:
            return
        check_categories(self._model, frame, every=False)

    def check_continues(self) -> None:
        """It can, by `init_model`."""

    def check_weights(self) -> None:
        """It can."""

    def check_copies(self) -> None:
        """It can."""

    def begin(self, payload: bytes, places: Positions, task: FitTask, *, trust: bool) -> Any:
        if not trust:
            payload, features = _check_lightgbm.check(payload, len(places), whole=True)
            task.check_fits(features)
        booster = self._module.Booster(model_str=payload.decode())
        if len(places) < len(task.classes):
            raw = two_raw_columns(np.asarray(booster.predict(task.inputs, raw_score=True)))
            text = _widened(payload, places, first_scores(task, places, raw))
            booster = self._module.Booster(model_str=text.decode())
        return booster, []

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        text = state["booster"]
        if not trust:
            text, features = _check_lightgbm.check(text, len(task.classes), whole=True)
            task.check_fits(features)
        booster = self._module.Booster(model_str=text.decode())
        return booster, [int(length) for length in json.loads(state["lengths"])]

    def fit(self, task: FitTask, watch: EpochRecorder, begun: Any) -> Cut:
        booster, lengths = begun or (None, [])
        schedule = rates(task.recipe, self._rate)

        # As with XGBoost, the library adds each new tree to the scores that it keeps.
        def look(_truth: Labels, scores: Scores) -> tuple[str, float, bool]:
            watch.show(two_columns(scores))
            return "seen", 0.0, True

        frequency: int | None = None  # of drawing the rows to learn from; -1 without columns

        def before(env: Any) -> None:
            nonlocal frequency
            epoch = len(watch.curve)
            if frequency is None:
                frequency = _bagging_frequency(env.model)
            if frequency < 0:
                return  # LightGBM takes no settings where there is nothing to learn from
            own = {"learning_rate": float(schedule[epoch]), "num_iterations": task.recipe.epochs}
            fresh = {"feature_fraction_seed": seed(task, epoch), "extra_seed": seed(task, epoch)}
            if frequency > 0:
                # The rows, which stay for some iterations, are drawn again in each of them.
                fresh["bagging_seed"] = seed(task, f"bag {epoch // frequency}")
                fresh["bagging_freq"] = frequency
            # Where LightGBM is in its random numbers is stored nowhere, so each iteration starts
            # new ones. What stays as it is would go on: all change to something else and back.
            env.model.reset_parameter({name: value + 1 for name, value in fresh.items()})
            env.model.reset_parameter({**fresh, **own})

        def after(env: Any) -> None:
            # An iteration that found nothing to split has left no trees.
            lengths.append(env.model.current_iteration())
            watch.rest((lambda: _state(env.model, lengths)) if self._resumable else None)

        before.before_iteration = True  # type: ignore[attr-defined]  # as LightGBM wants it said
        framed = task.categorical is not None
        model = self._fresh(leaving=aliases("categorical_feature") if framed else ()).set_params(
            n_estimators=task.recipe.epochs - len(watch.curve),
            objective=None,  # binary or multiclass, by the labels
            metric="None",
            random_state=task.seed,
            n_jobs=1,
            deterministic=True,
            force_row_wise=True,
            verbosity=-1,
            **numbered_class_weights(self._model, task.classes),
        )
        # The labels are not looked at, but LightGBM wants each of them to be a known one.
        unused = np.zeros(len(task.validation), dtype=np.int64)
        # `eval_set` has another spelling since 4.7.
        new = "eval_X" in inspect.signature(model.fit).parameters
        shown = {"eval_X": task.validation, "eval_y": unused}
        model.fit(
            task.inputs,
            task.labels,
            sample_weight=task.weights,
            eval_metric=look,
            callbacks=[before, after],
            init_model=booster,
            categorical_feature=list(task.categorical) if task.categorical else "auto",
            **(shown if new else {"eval_set": [tuple(shown.values())]}),
        )
        return lambda epoch: _text(model.booster_, lengths[epoch])

    def _fresh(self, *, leaving: Iterable[str] = ()) -> Any:
        """An unfitted copy without other names of what the round decides, which would win."""
        from sklearn.base import clone

        skipped = decided() | {*leaving}
        params = clone(self._model).get_params()
        return type(self._model)(
            **{name: value for name, value in params.items() if name not in skipped}
        )


def _bagging_frequency(booster: Any) -> int:
    """After how many iterations a booster draws its rows anew, -1 if no column is drawn."""
    data = booster.train_set
    if not any(data.feature_num_bin(column) > 1 for column in range(data.num_feature())):
        return -1
    # The one place that states it, whichever of its names the user has chosen.
    found = re.search(r"\[bagging_freq: (\d+)\]", booster.model_to_string(num_iteration=1))
    return int(found[1]) if found else 0


_LEAF = b"""Tree=0
num_leaves=1
num_cat=0
split_feature=
split_gain=
threshold=
decision_type=
left_child=
right_child=
leaf_value=%s
leaf_weight=
leaf_count=%d
internal_value=
internal_weight=
internal_count=
is_linear=0
shrinkage=1


"""


def _widened(text: bytes, places: Positions, scores: Floats) -> bytes:
    """A booster with trees of one leaf for classes that it does not know, as LightGBM's text.

    Args:
        text: The booster, which was checked.
        places: Where each class that it knows is among all.
        scores: The raw scores that the other classes begin with.
    """
    at, classes = text.index(b"\n\n") + 2, len(scores)
    head = text[:at]
    sizes = [int(size) for size in head[head.index(b"\ntree_sizes=") :].split(b"=")[1].split()]
    ends = at + np.cumsum([0, *sizes])
    old = [text[begin:end] for begin, end in itertools.pairwise(ends.tolist())]
    if b"\nobjective=binary" in head:
        if b"\nobjective=binary sigmoid:1\n" not in head:
            raise FileError(
                "The deployed booster has two classes and a `sigmoid` of its own, so it cannot "
                "be given more classes. Start anew with `fit`, or with another method."
            )
        places = places[1:]  # the first of two classes has no trees
    trees = []
    for first in range(0, len(old), len(places)):
        new = [_LEAF % (repr(float(one)).encode(), 0) for one in scores * (first == 0)]
        for place, tree in zip(places.tolist(), old[first:], strict=False):
            new[place] = tree
        trees += new
    named = [b"Tree=%d%s" % (n, tree[tree.index(b"\n") :]) for n, tree in enumerate(trees)]
    for name, value in (
        (b"num_class", b"%d" % classes),
        (b"num_tree_per_iteration", b"%d" % classes),
        (b"objective", b"multiclass num_class:%d" % classes),
        (b"tree_sizes", b" ".join(b"%d" % len(tree) for tree in named)),
    ):
        head = re.sub(rb"(?m)^%s=.*$" % name, name + b"=" + value, head, count=1)
    return head + b"".join(named) + text[ends[-1] :]


def _state(booster: Any, lengths: list[int]) -> State:
    return {
        "booster": _text(booster, lengths[-1]),
        "lengths": json.dumps(lengths).encode(),
    }


def _text(booster: Any, iterations: int) -> bytes:
    return str(booster.model_to_string(num_iteration=iterations)).encode()


def read(payload: bytes, columns: int, *, trust: bool) -> tuple[Any, int | None]:
    """A stored booster, and how many features it takes, where that is known."""
    import lightgbm

    width = None
    if not trust:
        payload, width = _check_lightgbm.check(payload, columns)
    return lightgbm.Booster(model_str=payload.decode()), width


def load(payload: bytes, columns: int, *, trust: bool) -> Loaded:
    """A stored booster, ready to score."""
    booster, width = read(payload, columns, trust=trust)

    def predict(inputs: Any) -> Scores:
        return two_columns(np.asarray(booster.predict(as_numbers(inputs))))

    return predict, width
