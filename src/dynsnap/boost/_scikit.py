"""Scikit-learn: snapshots where a classifier learns in steps, one learner per round elsewhere."""

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Scores
from dynsnap.boost import _skops
from dynsnap.boost._learner import Cut, FitTask, Loaded, rates, seed
from dynsnap.boost._saver import State
from dynsnap.boost._settings import (
    numbered_class_weights,
    refuse_other_length,
    refuse_unused,
    refuse_warm_start,
)
from dynsnap.boost._structure import invalid
from dynsnap.boost._watch import EpochWatch
from dynsnap.ensemble import Recipe
from dynsnap.errors import PlanError

_AT_ONCE = 2**26  # numbers that a prediction may hold beside its inputs
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
        refuse_warm_start(model)
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

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        return open_model(state["learner"], task, trust=trust), state["learner"]

    def fit(self, task: FitTask, watch: EpochWatch, begun: Any) -> Cut:
        # It is done after the first epoch, and cannot stop before: there is nothing in between.
        if begun is None:
            model = self._fresh(task).fit(task.inputs, task.labels)
            learner = _skops.dump(model)
        else:
            model, learner = begun
        scores = model.predict_proba(task.validation)
        while len(watch.curve) < task.recipe.epochs:
            watch.show(scores)
            watch.rest(lambda: {"learner": learner})
        return lambda _epoch: learner

    def _fresh(self, task: FitTask) -> Any:
        """An unfitted copy whose randomness, at any depth, comes from the round's seed."""
        from sklearn.base import clone

        model = clone(self._model)
        fixed: dict[str, Any] = {}
        for key, value in model.get_params(deep=True).items():
            name = key.rpartition("__")[2]
            if name == "random_state":
                fixed[key] = seed(task, key)
            elif name == "n_jobs" and value is not None:
                fixed[key] = 1
        return model.set_params(**fixed, **numbered_class_weights(model, task.classes))


class SteppedLearner(ScikitLearner):
    """A classifier that learns by `partial_fit`, one pass over the data per epoch."""

    kind = "sklearn"

    def check(self, recipe: Recipe) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        refuse_other_length(self._model, ["max_iter"], recipe.epochs)
        refuse_early_stopping(self._model)
        if hasattr(self._model, "learning_rate_init"):  # a network
            reason = "the recipe's schedule drives the rate."
            refuse_unused(self._model, ["learning_rate", "power_t"], reason)
            refuse_unused(self._model, ["max_fun"], "it is for the solver lbfgs.")

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        kept = {int(name): part for name, part in state.items() if name != "model"}
        return open_model(state["model"], task, trust=trust), kept

    def fit(self, task: FitTask, watch: EpochWatch, begun: Any) -> Cut:
        kept: dict[int, Any]  # a learner, or what `_stored` made of it before the round was stopped
        if begun is None:
            model, kept = self._fresh(task).set_params(early_stopping=False), {}
        else:
            model, kept = begun
        name = "learning_rate_init" if hasattr(model, "learning_rate_init") else "eta0"
        schedule = rates(task.recipe, getattr(self._model, name))
        classes = np.unique(task.labels)
        for epoch in range(len(watch.curve), task.recipe.epochs):
            rate = float(schedule[epoch])
            # A seed per epoch: with one for all, every pass would take the rows in the same order.
            model.set_params(random_state=seed(task, epoch), **{name: rate})
            if hasattr(model, "_optimizer"):  # the MLP's, made in the first epoch
                model._optimizer.learning_rate_init = model._optimizer.learning_rate = rate
            model.partial_fit(task.inputs, task.labels, classes=classes)
            wanted = watch.show(model.predict_proba(task.validation)).tolist()
            kept = {
                at: kept[at] if at in kept else copy.deepcopy(model)
                for at in wanted
                if at in kept or at == epoch
            }
            watch.rest(partial(_state, model, kept))
        return lambda at: _stored(kept[at])


def refuse_early_stopping(model: Any) -> None:
    """Raise PlanError if a classifier is set to stop where a round is trained to its end."""
    if getattr(model, "early_stopping", False) in (False, "auto"):
        unused = ["n_iter_no_change", "tol", "validation_fraction"]
    else:
        unused = ["early_stopping"]
    refuse_unused(
        model, unused, "a round is trained to its end, and the best of its epochs are kept."
    )


def _state(model: Any, kept: Mapping[int, Any]) -> State:
    learners = {str(at): _stored(learner) for at, learner in kept.items()}
    return {"model": _skops.dump(model), **learners}


def _stored(learner: Any) -> bytes:
    """A learner that will not be trained any more, as bytes."""
    if isinstance(learner, bytes):
        return learner
    learner = copy.copy(learner)
    if hasattr(learner, "_optimizer"):
        del learner._optimizer  # it is twice the size of the weights, and training is over
    return _skops.dump(learner)


def open_model(content: bytes, task: FitTask, *, trust: bool) -> Any:
    """A classifier from a checkpoint, which must be one for the task."""
    if trust:
        return _skops.load(content)
    model, facts = _skops.load_checked(content)
    _check_classes(facts.outputs, len(task.classes))
    task.check_fits(facts.inputs)
    return model


def load(payload: bytes, columns: int, *, trust: bool) -> Loaded:
    """A stored classifier, ready to score."""
    if trust:
        model, width = _skops.load(payload), None
        rows: int | None = None
    else:
        model, facts = _skops.load_checked(payload)
        _check_classes(facts.outputs, columns)
        width, rows = facts.inputs, max(1, _AT_ONCE // max(facts.width, columns))

    def predict(inputs: AnyArray) -> Scores:
        if rows is None or len(inputs) <= rows:
            return predict_part(inputs)
        starts = range(0, len(inputs), rows)
        return np.concatenate([predict_part(inputs[start : start + rows]) for start in starts])

    def predict_part(inputs: AnyArray) -> Scores:
        # A step with `copy=False` writes to what it is given, which others are asked about, too.
        kept = inputs.view()
        kept.flags.writeable = False
        try:
            return np.asarray(model.predict_proba(kept))
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            return np.asarray(model.predict_proba(inputs.copy()))

    return predict, width


def _check_classes(found: int | None, expected: int) -> None:
    if found != expected:
        raise invalid(f"it knows {found} classes, but {expected} are expected")
