"""XGBoost: its parameters, and snapshots: the booster cut to its first iterations."""

import functools
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dynsnap._types import Floats, Labels, Positions, Scores
from dynsnap.boost import _check_xgboost
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
    refuse_other_length,
    refuse_unknown_parameters,
    refuse_unless,
    refuse_unused,
)
from dynsnap.data import Frame, columns_in_words
from dynsnap.ensemble import Recipe
from dynsnap.errors import FileError, PlanError

_SCORED = "epochs are judged by the `selection_metric` on the validation rows."
_MODEL = "XGBoost finds it out from the data."
# Parameters without an effect on a round, and the reason.
_UNUSED = {
    "early_stopping_rounds": "a round is trained to its end, and the best of its epochs are kept.",
    "callbacks": "a round has callbacks of its own.",
    "eval_metric": _SCORED,
    "disable_default_eval_metric": _SCORED,
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


def check_parameters(model: Any) -> None:
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
    refuse_unknown_parameters(model, params, _names())


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


_MISSING = "dynsnap_missing"  # the number that stands for no value: a booster does not know it


class XGBoostLearner:
    """An `XGBClassifier`, trained by its own `fit`."""

    kind = "xgboost"
    by_name = False

    def __init__(self, model: Any) -> None:
        import xgboost

        if isinstance(model, xgboost.XGBRFClassifier):
            raise PlanError(
                "XGBRFClassifier grows one forest and has no iterations to take snapshots of. "
                "Use XGBClassifier, or scikit-learn's RandomForestClassifier."
            )
        check_parameters(model)
        params = model.get_params()
        self._model = model
        given = (params.get(name) for name in ("learning_rate", "eta"))
        self._rate = float(next((rate for rate in given if rate is not None), 0.3))
        self._module = xgboost
        # What a GPU's updater keeps from iteration to iteration cannot be made again.
        self._resumable = str(params.get("device") or "cpu").startswith("cpu")

    @property
    def version(self) -> str:
        return str(self._module.__version__)

    def check(self, recipe: Recipe, *, shortened: bool = False) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        if not shortened:
            refuse_other_length(self._model, ["n_estimators"], recipe.epochs)

    def check_frame(self, frame: Frame | None) -> None:
        if frame is None:
            return
        params = self._model.get_params()
        if frame.categorical and not params.get("enable_categorical"):
            raise PlanError(
                f"{columns_in_words(frame.named('category'), starts=True)} with categories: set "
                "`enable_categorical=True` of XGBClassifier."
            )
        if params.get("feature_types") is not None:
            raise PlanError(
                "The types of a frame's columns are known, and the model has `feature_types`, too. "
                "Leave it out."
            )

    def check_continues(self) -> None:
        """It can, by `xgb_model`."""

    def check_weights(self) -> None:
        """It can."""

    def check_copies(self) -> None:
        """It can."""

    def begin(self, payload: bytes, places: Positions, task: FitTask, *, trust: bool) -> Any:
        if not trust:
            task.check_fits(_check_xgboost.check(payload, len(places)))
        booster = self._module.Booster()
        booster.load_model(bytearray(payload))
        missing, own = missing_value(booster), float(self._model.missing)
        if repr(missing) != repr(own):
            raise FileError(
                f"The deployed booster takes {missing} for a missing value, and the model {own}: "
                "trees of both cannot be one booster. Set `missing` as it was."
            )
        if len(places) < len(task.classes):
            rows = self._module.DMatrix(
                task.inputs, missing=own, nthread=1, **_feature_types(task), **_categories(task)
            )
            raw = two_raw_columns(booster.predict(rows, output_margin=True))
            model = json.loads(bytes(booster.save_raw("json")))
            _widen(model["learner"], places, first_scores(task, places, raw))
            booster = self._module.Booster()
            booster.load_model(bytearray(json.dumps(model).encode()))
        return booster

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        if not trust:
            task.check_fits(_check_xgboost.check(state["booster"], len(task.classes)))
        booster = self._module.Booster()
        booster.load_model(bytearray(state["booster"]))
        return booster

    def fit(self, task: FitTask, watch: EpochRecorder, begun: Any) -> Cut:
        from sklearn.base import clone

        # XGBoost keeps the margins of the evaluation set and adds each new tree to them, so that
        # looking on after every iteration costs one pass over the trees, not one per iteration.
        # A booster that is read back adds them up in the same order, to the same bits.
        def look(_truth: Labels, scores: Scores) -> float:
            watch.show(two_columns(scores))
            return 0.0

        schedule, resumable = rates(task.recipe, self._rate), self._resumable
        earlier = 0 if begun is None else begun.num_boosted_rounds() - len(watch.curve)
        method = self._model.get_params().get("tree_method") or "auto"
        another = "hist" if method in ("approx", "exact") else "approx"

        class Iterations(self._module.callback.TrainingCallback):  # type: ignore[misc, name-defined]
            # XGBoost's own LearningRateScheduler sets a rate after its iteration, one too late.
            def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                iteration = len(watch.curve)
                # Where an updater is in its random numbers is stored nowhere, so each iteration
                # gets a new one, with a seed of its own. A change of method and back makes it;
                # asking for the configuration makes the change happen.
                model.set_param({"tree_method": another})
                model.save_config()
                model.set_param(
                    {
                        "tree_method": method,
                        "seed": seed(task, iteration),
                        "learning_rate": float(schedule[iteration]),
                    }
                )
                return False

            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                watch.rest((lambda: {"booster": _raw(model)}) if resumable else None)
                return False

        model = clone(self._model).set_params(
            n_estimators=task.recipe.epochs - len(watch.curve),
            objective="binary:logistic",  # becomes multi:softprob with more than two classes
            eval_metric=look,
            disable_default_eval_metric=True,
            early_stopping_rounds=None,
            callbacks=[Iterations()],
            random_state=task.seed,
            n_jobs=1,
            verbosity=0,
            # XGBoost's own name of it.
            **({"nthread": 1} if "nthread" in self._model.get_params() else {}),
            **_feature_types(task),
        )
        # The labels are not looked at: a validation row may be of a class that was never seen.
        unused = np.zeros(len(task.validation), dtype=np.int64)
        model.fit(
            task.inputs,
            task.labels,
            sample_weight=task.weights,
            eval_set=[(task.validation, unused)],
            verbose=False,
            xgb_model=begun,
        )
        booster = model.get_booster()
        booster.set_attr(**{_MISSING: repr(float(model.missing))})

        def cut(epoch: int) -> bytes:
            return _raw(booster[: earlier + epoch + 1])

        return cut


def _feature_types(task: FitTask) -> dict[str, Any]:
    """Which columns are categories and which are numbers, as XGBoost calls them."""
    if task.categorical is None:
        return {}
    columns = range(task.inputs.shape[1])
    return {"feature_types": ["c" if one in task.categorical else "q" for one in columns]}


def _categories(task: FitTask) -> dict[str, Any]:
    return {"enable_categorical": True} if task.categorical else {}


def _widen(learner: dict[str, Any], places: Positions, scores: Floats) -> None:
    """Give a booster, as XGBoost's JSON has it, trees of one leaf for classes it does not know."""
    model, params = learner["gradient_booster"]["model"], learner["learner_model_param"]
    classes, scores = len(scores), scores.copy()
    base, trees_of = json.loads(params["base_score"]), places
    each = isinstance(base, list)  # before 3.1, one number stood for all classes
    if learner["objective"]["name"] == "binary:logistic":
        given = base[0] if each else base
        # What it adds to the second class is taken from the first: only differences count.
        scores[places[0]] = -np.log(given / (1 - given))
        trees_of, base = places[1:], [0.0] if each else 0.0
    if each:
        found = np.zeros(classes)
        found[trees_of] = base
        base = found.tolist()
    params["base_score"] = json.dumps(base, separators=(",", ":"))
    params["num_class"] = str(classes)
    learner["objective"] = {
        "name": "multi:softprob",
        "softmax_multiclass_param": {"num_class": str(classes)},
    }
    old, info = model["trees"], np.array(model["tree_info"])
    parallel = int(model["gbtree_model_param"]["num_parallel_tree"])
    of = dict(zip(trees_of.tolist(), range(len(trees_of)), strict=True))
    trees: list[dict[str, Any]] = []
    for iteration, (begin, end) in enumerate(itertools.pairwise(model["iteration_indptr"])):
        for place in range(classes):
            if place in of:
                mine = [old[at] for at in range(begin, end) if info[at] == of[place]]
            else:
                score = float(scores[place]) / parallel if iteration == 0 else 0.0
                mine = [_leaf(old[0], score) for _ in range(parallel)]
            trees += [{**tree, "id": len(trees) + at} for at, tree in enumerate(mine)]
    iterations = len(model["iteration_indptr"]) - 1
    model["trees"] = trees
    model["tree_info"] = np.tile(np.repeat(np.arange(classes), parallel), iterations).tolist()
    model["iteration_indptr"] = (np.arange(iterations + 1) * classes * parallel).tolist()
    model["gbtree_model_param"]["num_trees"] = str(len(trees))


def _leaf(tree: Mapping[str, Any], score: float) -> dict[str, Any]:
    """A tree of one leaf, with the fields that another tree has."""
    alone: dict[str, Any] = {
        "base_weights": [score],
        "left_children": [-1],
        "parents": [2**31 - 1],
        "right_children": [-1],
        "split_conditions": [score],
        "tree_param": {**tree["tree_param"], "num_deleted": "0", "num_nodes": "1"},
    }
    # XGBoost distinguishes whole numbers from others: each field keeps its kind.
    rest = {
        name: [] if name.startswith("categories") else [type(values[0])(0)]
        for name, values in tree.items()
        if name not in alone and name != "id"
    }
    return {**rest, **alone}


def _raw(booster: Any) -> bytes:
    return bytes(booster.save_raw("ubj"))


def read(payload: bytes, columns: int, *, trust: bool) -> tuple[Any, int | None]:
    """A stored booster, and how many features it takes, where that is known."""
    import xgboost

    width = None if trust else _check_xgboost.check(payload, columns)
    booster = xgboost.Booster()
    booster.load_model(bytearray(payload))
    return booster, width


def missing_value(booster: Any) -> float:
    """The number that stands for no value."""
    return float(booster.attr(_MISSING) or "nan")


def load(payload: bytes, columns: int, *, trust: bool) -> Loaded:
    """A stored booster, ready to score."""
    booster, width = read(payload, columns, trust=trust)
    missing = missing_value(booster)

    def predict(inputs: Any) -> Scores:
        return two_columns(booster.inplace_predict(as_numbers(inputs), missing=missing))

    return predict, width
