"""Scikit-learn's gradient boosting: snapshots are prefixes of the iterations.

The learning rate is one number there, so it stays the same in all iterations: a schedule only
says where the windows are.
"""

import copy
import io
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dynsnap._types import Scores
from dynsnap.boost import _skops
from dynsnap.boost._learner import Cut, FitTask
from dynsnap.boost._saver import State
from dynsnap.boost._scikit import ScikitLearner, open_model, refuse_early_stopping
from dynsnap.boost._settings import refuse_other_length, refuse_unused
from dynsnap.boost._structure import invalid
from dynsnap.boost._watch import EpochWatch
from dynsnap.boost.rebuilt import array
from dynsnap.ensemble import Recipe


class GradientLearner(ScikitLearner):
    """A `GradientBoostingClassifier`."""

    def check(self, recipe: Recipe) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        refuse_other_length(self._model, ["n_estimators"], recipe.epochs)
        refuse_early_stopping(self._model)

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        model, raw = open_model(state["model"], task, trust=trust), array(state["raw"])
        # Compiled code writes to it, row by row.
        shape = (len(task.labels), model.n_trees_per_iteration_)
        if raw.shape != shape or raw.dtype != np.float64:
            raise invalid(f"its scores have the shape {raw.shape} instead of {shape}")
        return model, raw

    def fit(self, task: FitTask, watch: EpochWatch, begun: Any) -> Cut:
        epochs = task.recipe.epochs
        if begun is None:
            model = self._fresh(task)
        else:
            model, raw = begun
            # Adding the trees up again could round otherwise than adding them one by one did.
            model._raw_predict = lambda _inputs: raw
        stages: Iterator[Scores] = iter(())

        def monitor(epoch: int, _model: Any, local: dict[str, Any]) -> bool:
            nonlocal stages
            if epoch == started:
                stages = itertools.islice(
                    model.staged_predict_proba(task.validation), started, None
                )
            watch.show(next(stages))
            watch.rest(
                lambda: {
                    "model": _skops.dump(_cut_estimators(model, epoch + 1)),
                    "raw": _array(local["raw_predictions"]),
                }
            )
            return False

        started = len(watch.curve)
        model.set_params(
            n_estimators=epochs, n_iter_no_change=None, warm_start=begun is not None
        ).fit(task.inputs, task.labels, monitor=monitor)
        vars(model).pop("_raw_predict", None)
        model.set_params(warm_start=False)
        return lambda epoch: _skops.dump(_cut_estimators(model, epoch + 1))


class HistogramLearner(ScikitLearner):
    """A `HistGradientBoostingClassifier`."""

    def check(self, recipe: Recipe) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        refuse_other_length(self._model, ["max_iter"], recipe.epochs)
        refuse_early_stopping(self._model)
        refuse_unused(self._model, ["scoring"], "it is for early stopping.")

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        return open_model(state["model"], task, trust=trust)

    def fit(self, task: FitTask, watch: EpochWatch, begun: Any) -> Cut:
        model = self._fresh(task) if begun is None else begun
        raw: Any = None
        if begun is not None:
            *_, raw = model._staged_raw_predict(task.validation)

        def ended() -> None:
            """An iteration is over, and its trees are the last ones."""
            nonlocal raw
            last = copy.copy(model)
            last._predictors = model._predictors[-1:]
            if raw is not None:
                last._baseline_prediction = raw
            (raw,) = last._staged_raw_predict(task.validation)
            watch.show(model._loss.predict_proba(raw))
            watch.rest(lambda: {"model": _skops.dump(_settled(model))})

        def begins() -> None:
            if len(model._predictors) > len(watch.curve):
                ended()

        # There is no way to be told of an iteration's end, but each begins by asking the loss.
        losses = model._get_loss
        model._get_loss = lambda **given: _Listening(losses(**given), begins)
        model.set_params(
            max_iter=task.recipe.epochs, early_stopping=False, warm_start=begun is not None
        ).fit(task.inputs, task.labels)
        ended()
        model = _settled(model).set_params(warm_start=False)

        def cut(epoch: int) -> bytes:
            prefix = copy.copy(model)
            prefix._predictors = model._predictors[: epoch + 1]
            return _skops.dump(prefix)

        return cut


class _Listening:
    """A loss that says when it is asked for gradients."""

    def __init__(self, loss: Any, asked: Callable[[], None]) -> None:
        self.loss = loss
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loss, name)

    def gradient_hessian(self, **given: Any) -> Any:
        self._asked()
        return self.loss.gradient_hessian(**given)


def _settled(model: Any) -> Any:
    """A histogram model as `fit` would leave it if the iteration that has ended were the last."""
    found = copy.copy(model)
    del found._get_loss
    found._loss = model._loss.loss
    found.train_score_ = np.asarray(model.train_score_)
    found.validation_score_ = np.asarray(model.validation_score_)
    vars(found).pop("_in_fit", None)
    return found


def _cut_estimators(model: Any, iterations: int) -> Any:
    prefix = copy.copy(model)
    vars(prefix).pop("_raw_predict", None)
    prefix.estimators_ = model.estimators_[:iterations]
    prefix.n_estimators_ = iterations
    return prefix


def _array(values: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()
