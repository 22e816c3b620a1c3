"""XGBoost: a snapshot is the booster cut to its first iterations, in XGBoost's own UBJSON."""

import functools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Labels, Scores
from dynsnap.boost import _check_xgboost
from dynsnap.boost._learner import (
    Cut,
    Loaded,
    Task,
    rates,
    seed,
    two_columns,
)
from dynsnap.boost._saver import State
from dynsnap.boost._settings import (
    refuse_other_length,
    refuse_strangers,
    refuse_unless,
    refuse_unused,
)
from dynsnap.boost._watch import Watch
from dynsnap.ensemble import Recipe
from dynsnap.errors import PlanError

_MISSING = "dynsnap_missing"  # the number that stands for no value: a booster does not know it


class XGBoostLearner:
    """An `XGBClassifier`, trained by its own `fit`."""

    kind = "xgboost"

    def __init__(self, model: Any) -> None:
        import xgboost

        if isinstance(model, xgboost.XGBRFClassifier):
            raise PlanError(
                "XGBRFClassifier grows one forest and has no iterations to take snapshots of. "
                "Use XGBClassifier, or scikit-learn's RandomForestClassifier."
            )
        params = model.get_params()
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
        refuse_unused(
            model,
            ["early_stopping_rounds"],
            "a round is trained to its end, and the best of its epochs are kept.",
        )
        if params.get("callbacks"):
            refuse_unused(model, ["callbacks"], "a round has callbacks of its own.")
        refuse_strangers(model, params, _names())
        self._model = model
        given = (params.get(name) for name in ("learning_rate", "eta"))
        self._rate = float(next((rate for rate in given if rate is not None), 0.3))
        self._module = xgboost
        # An updater that was chosen by hand cannot be renewed, and a GPU's keeps more than that.
        device = str(params.get("device") or "cpu")
        self._resumable = not params.get("updater") and device.startswith("cpu")

    @property
    def version(self) -> str:
        return str(self._module.__version__)

    def check(self, recipe: Recipe) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        refuse_other_length(self._model, ["n_estimators"], recipe.epochs)

    def open(self, state: State, task: Task, *, trust: bool) -> Any:
        if not trust:
            task.check_fits(_check_xgboost.check(state["booster"], len(task.classes)))
        booster = self._module.Booster()
        booster.load_model(bytearray(state["booster"]))
        return booster

    def fit(self, task: Task, watch: Watch, begun: Any) -> Cut:
        from sklearn.base import clone

        # XGBoost keeps the margins of the evaluation set and adds each new tree to them, so that
        # looking on after every iteration costs one pass over the trees, not one per iteration.
        # A booster that is read back adds them up in the same order, to the same bits.
        def look(_truth: Labels, scores: Scores) -> float:
            watch.show(two_columns(scores))
            return 0.0

        schedule, resumable = rates(task.recipe, self._rate), self._resumable
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

        others = {"seed": task.seed, "nthread": 1}  # XGBoost's own names of two of these
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
            **{name: value for name, value in others.items() if name in self._model.get_params()},
        )
        # The labels are not looked at: a validation row may be of a class that was never seen.
        unused = np.zeros(len(task.validation), dtype=np.int64)
        model.fit(
            task.inputs,
            task.labels,
            eval_set=[(task.validation, unused)],
            verbose=False,
            xgb_model=begun,
        )
        booster = model.get_booster()
        booster.set_attr(**{_MISSING: repr(float(model.missing))})

        def cut(epoch: int) -> bytes:
            return _raw(booster[: epoch + 1])

        return cut


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


def _raw(booster: Any) -> bytes:
    return bytes(booster.save_raw("ubj"))


def load(payload: bytes, columns: int, *, trust: bool) -> Loaded:
    """A stored booster, ready to score."""
    import xgboost

    width = None if trust else _check_xgboost.check(payload, columns)
    booster = xgboost.Booster()
    booster.load_model(bytearray(payload))

    missing = float(booster.attr(_MISSING) or "nan")

    def predict(inputs: AnyArray) -> Scores:
        return two_columns(booster.inplace_predict(inputs, missing=missing))

    return predict, width
