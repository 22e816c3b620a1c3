"""Scikit-learn: snapshots where a classifier learns in steps, one learner per round elsewhere."""

import copy
from typing import Any

import numpy as np

from dynsnap import seeds
from dynsnap._types import AnyArray, Scores
from dynsnap.boost import _skops
from dynsnap.boost._learner import Cut, Predict, Task, rates
from dynsnap.boost._watch import Watch
from dynsnap.ensemble import Recipe
from dynsnap.errors import PlanError

MANY = "MLPClassifier, SGDClassifier, HistGradientBoostingClassifier, GradientBoostingClassifier"


class ScikitLearner:
    """A scikit-learn classifier that is fitted in one go and gives one learner per round."""

    kind = "sklearn"

    def __init__(self, model: Any) -> None:
        from sklearn.base import is_classifier

        name = type(model).__name__
        if not is_classifier(model):
            raise PlanError(f"`model` must be a classifier, got {name}.")
        # A stack asks its last estimator, which it may have only after it was fitted.
        if not hasattr(model, "predict_proba") and not hasattr(model, "final_estimator"):
            raise PlanError(
                f"{name} gives no probabilities as it is set up. Choose a loss that does "
                '(SGDClassifier: loss="log_loss"), or wrap it in CalibratedClassifierCV.'
            )
        for key, value in model.get_params(deep=True).items():
            if key.rpartition("__")[2] == "class_weight" and isinstance(value, dict):
                raise PlanError(
                    f"The model's `{key}` names classes, which are numbered anew in each "
                    'generation. Use `class_weight="balanced"` or None.'
                )
        self._model = model

    @property
    def version(self) -> str:
        import sklearn

        return str(sklearn.__version__)

    def check(self, recipe: Recipe) -> None:
        """Raise PlanError if several snapshots are asked of a classifier that has one."""
        if recipe.snapshots > 1:
            raise PlanError(
                f"{type(self._model).__name__} gives one learner per round, but the recipe asks "
                f"for {recipe.snapshots} snapshots. Use `snapshots=1` (method extbagging), or one "
                f"of XGBClassifier, LGBMClassifier, {MANY}."
            )

    def fit(self, task: Task, watch: Watch) -> Cut:
        model = self._fresh(task).fit(task.inputs, task.labels)
        scores = model.predict_proba(task.validation)
        for _ in range(task.recipe.epochs):  # it was done after the first
            watch.show(scores)
        return lambda _epoch: _skops.dump(model)

    def _fresh(self, task: Task) -> Any:
        """An unfitted copy whose randomness, at any depth, comes from the round's seed."""
        from sklearn.base import clone

        model = clone(self._model)
        fixed: dict[str, Any] = {}
        for key, value in model.get_params(deep=True).items():
            name = key.rpartition("__")[2]
            if name == "random_state":
                fixed[key] = _seed(task.seed, key)
            elif name == "n_jobs" and value is not None:
                fixed[key] = 1
        return model.set_params(**fixed)


class StagedLearner(ScikitLearner):
    """Gradient boosting, whose snapshots are prefixes of its iterations.

    Its learning rate is one number, so it stays the same in all iterations: a schedule only says
    where the windows are.
    """

    kind = "sklearn"

    def check(self, recipe: Recipe) -> None:
        """Every recipe without dropout will do."""

    def fit(self, task: Task, watch: Watch) -> Cut:
        model = self._fresh(task)
        histogram = hasattr(model, "max_iter")
        own = (
            {"max_iter": task.recipe.epochs, "early_stopping": False}
            if histogram
            else {"n_estimators": task.recipe.epochs, "n_iter_no_change": None}
        )
        model.set_params(**own, warm_start=False).fit(task.inputs, task.labels)
        for scores in model.staged_predict_proba(task.validation):
            watch.show(scores)

        def cut(epoch: int) -> bytes:
            prefix = copy.copy(model)
            if histogram:
                prefix._predictors = model._predictors[: epoch + 1]
            else:
                prefix.estimators_ = model.estimators_[: epoch + 1]
                prefix.n_estimators_ = epoch + 1
            return _skops.dump(prefix)

        return cut


class SteppedLearner(ScikitLearner):
    """A classifier that learns by `partial_fit`, one pass over the data per epoch."""

    kind = "sklearn"

    def check(self, recipe: Recipe) -> None:
        """Every recipe without dropout will do."""

    def fit(self, task: Task, watch: Watch) -> Cut:
        model = self._fresh(task).set_params(early_stopping=False)
        name = "learning_rate_init" if hasattr(model, "learning_rate_init") else "eta0"
        classes = np.unique(task.labels)
        kept: dict[int, Any] = {}
        for epoch, rate in enumerate(rates(task.recipe, getattr(model, name))):
            # A seed per epoch: with one for all, every pass would take the rows in the same order.
            model.set_params(random_state=_seed(task.seed, epoch), **{name: float(rate)})
            if hasattr(model, "_optimizer"):  # the MLP's, made in the first epoch
                model._optimizer.learning_rate_init = model._optimizer.learning_rate = float(rate)
            model.partial_fit(task.inputs, task.labels, classes=classes)
            wanted = watch.show(model.predict_proba(task.validation)).tolist()
            kept = {
                at: kept[at] if at in kept else copy.deepcopy(model)
                for at in wanted
                if at in kept or at == epoch
            }

        def cut(at: int) -> bytes:
            learner = copy.copy(kept[at])
            if hasattr(learner, "_optimizer"):
                del learner._optimizer  # it is twice the size of the weights, and training is over
            return _skops.dump(learner)

        return cut


def adapt(model: Any) -> ScikitLearner:
    """The way in which a scikit-learn classifier is trained."""
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPClassifier

    if isinstance(model, GradientBoostingClassifier | HistGradientBoostingClassifier):
        return StagedLearner(model)
    # The MLP's solver "lbfgs" has no epochs, and no `partial_fit`.
    if isinstance(model, MLPClassifier | SGDClassifier) and hasattr(model, "partial_fit"):
        return SteppedLearner(model)
    return ScikitLearner(model)


def load(payload: bytes) -> Predict:
    """A stored classifier, ready to score."""
    model = _skops.load(payload)

    def predict(inputs: AnyArray) -> Scores:
        return np.asarray(model.predict_proba(inputs))

    return predict


def _seed(seed: int, name: int | str) -> int:
    return seeds.number(seed, name) % 2**31
