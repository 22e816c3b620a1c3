"""XGBoost: a snapshot is the booster cut to its first iterations, in XGBoost's own UBJSON."""

from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Labels, Scores
from dynsnap.boost import _check_xgboost, _params_xgboost
from dynsnap.boost._learner import (
    Cut,
    FitTask,
    Loaded,
    rates,
    seed,
    two_columns,
)
from dynsnap.boost._saver import State
from dynsnap.boost._settings import refuse_other_length
from dynsnap.boost._watch import EpochWatch
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
        _params_xgboost.check(model)
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

    def check(self, recipe: Recipe) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        refuse_other_length(self._model, ["n_estimators"], recipe.epochs)

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        if not trust:
            task.check_fits(_check_xgboost.check(state["booster"], len(task.classes)))
        booster = self._module.Booster()
        booster.load_model(bytearray(state["booster"]))
        return booster

    def fit(self, task: FitTask, watch: EpochWatch, begun: Any) -> Cut:
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
