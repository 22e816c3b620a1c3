"""LightGBM: a snapshot is the booster cut to its first iterations, in its own text format."""

import warnings
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Labels, Scores
from dynsnap.boost._learner import Cut, Predict, Task, rates, refuse_unknown, two_columns
from dynsnap.boost._watch import Watch
from dynsnap.ensemble import Recipe


class LightGBMLearner:
    """An `LGBMClassifier`, trained by its own `fit`."""

    kind = "lightgbm"

    def __init__(self, model: Any) -> None:
        import lightgbm

        params = model.get_params()
        for alias in ("boosting_type", "boosting", "boost"):
            refuse_unknown(
                alias,
                params.get(alias),
                ("gbdt", "goss"),
                "the first iterations of a dart or rf booster are not what it was at that time.",
            )
        refuse_unknown(
            "objective",
            params.get("objective"),
            ("binary", "multiclass"),
            "members must give probabilities that sum to one.",
        )
        self._model = model
        names = ("learning_rate", "shrinkage_rate", "eta")
        self._rate = next((float(params[name]) for name in names if params.get(name)), 0.1)
        self._module = lightgbm

    @property
    def version(self) -> str:
        return str(self._module.__version__)

    def check(self, recipe: Recipe) -> None:
        """Every recipe without dropout will do."""

    def fit(self, task: Task, watch: Watch) -> Cut:
        from sklearn.base import clone

        # As with XGBoost, the library adds each new tree to the scores that it keeps.
        def look(_truth: Labels, scores: Scores) -> tuple[str, float, bool]:
            watch.show(two_columns(scores))
            return "seen", 0.0, True

        schedule = rates(task.recipe, self._rate)
        model = clone(self._model).set_params(
            n_estimators=task.recipe.epochs,
            objective=None,  # binary or multiclass, by the labels
            metric="None",
            random_state=task.seed,
            n_jobs=1,
            deterministic=True,
            force_row_wise=True,
            verbosity=-1,
        )
        # The labels are not looked at, but LightGBM wants each of them to be a known one.
        unused = np.zeros(len(task.validation), dtype=np.int64)
        with warnings.catch_warnings():
            # `eval_set` has a new spelling since 4.7, which older versions do not know.
            warnings.filterwarnings("ignore", message=".*eval_set.*")
            model.fit(
                task.inputs,
                task.labels,
                eval_set=[(task.validation, unused)],
                eval_metric=look,
                callbacks=[self._module.reset_parameter(learning_rate=schedule.tolist())],
            )
        booster = model.booster_

        def cut(epoch: int) -> bytes:
            # A booster that found nothing more to split is shorter, and is then kept whole.
            return str(booster.model_to_string(num_iteration=epoch + 1)).encode()

        return cut


def load(payload: bytes) -> Predict:
    """A stored booster, ready to score."""
    import lightgbm

    booster = lightgbm.Booster(model_str=payload.decode())

    def predict(inputs: AnyArray) -> Scores:
        return two_columns(np.asarray(booster.predict(inputs)))

    return predict
