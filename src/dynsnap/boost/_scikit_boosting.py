"""Scikit-learn's boosted trees: every iteration is an epoch, and any of them can be cut off."""

import copy
import io
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dynsnap._types import Floats, Positions, Scores
from dynsnap.boost import _skops
from dynsnap.boost._learner import (
    Cut,
    EpochRecorder,
    FitTask,
    State,
    first_scores,
    two_raw_columns,
)
from dynsnap.boost._scikit import (
    CODES,
    ScikitLearner,
    check_classes,
    open_model,
    refuse_early_stopping,
    sample_weights,
)
from dynsnap.boost._settings import (
    check_categories,
    refuse_other_length,
    refuse_unused,
)
from dynsnap.boost._structure import invalid
from dynsnap.boost.rebuilt import array
from dynsnap.data import Frame, columns_in_words
from dynsnap.ensemble import Recipe
from dynsnap.errors import FileError, PlanError


class GradientLearner(ScikitLearner):
    """A `GradientBoostingClassifier`."""

    def check(self, recipe: Recipe, *, shortened: bool = False) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        if not shortened:
            refuse_other_length(self._model, ["n_estimators"], recipe.epochs)
        refuse_early_stopping(self._model)

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        model, raw = open_model(state["model"], task, trust=trust), array(state["raw"])
        # Compiled code writes to it, row by row.
        shape = (len(task.labels), model.n_trees_per_iteration_)
        if raw.shape != shape or raw.dtype != np.float64:
            raise invalid(f"its scores have the shape {raw.shape} instead of {shape}")
        return model, raw

    def fit(self, task: FitTask, watch: EpochRecorder, begun: Any) -> Cut:
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
        ).fit(task.inputs, task.labels, monitor=monitor, **sample_weights(task))
        vars(model).pop("_raw_predict", None)
        model.set_params(warm_start=False)
        return lambda epoch: _skops.dump(_cut_estimators(model, epoch + 1))


class HistogramLearner(ScikitLearner):
    """A `HistGradientBoostingClassifier`."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.by_name = False

    def check_frame(self, frame: Frame | None) -> None:
        if frame is None:
            refuse_unused(
                self._model,
                ["categorical_features"],
                "an array has no columns of categories here. Bring a frame; in a study, name the "
                "columns in [data] `categorical`.",
            )
        elif self._model.categorical_features is None and frame.categorical:
            raise PlanError(
                f"{columns_in_words(frame.named('category'), starts=True)} with categories: set "
                '`categorical_features="from_dtype"`.'
            )
        else:
            check_categories(self._model, frame, every=True)

    def check(self, recipe: Recipe, *, shortened: bool = False) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        if not shortened:
            refuse_other_length(self._model, ["max_iter"], recipe.epochs)
        refuse_early_stopping(self._model)
        refuse_unused(self._model, ["scoring"], "it is for early stopping.")

    def check_continues(self) -> None:
        """It can, by `warm_start`: categories keep their codes in all generations."""

    def begin(self, payload: bytes, places: Positions, task: FitTask, *, trust: bool) -> Any:
        if trust:
            found = _skops.load(payload)
        else:
            found, facts = _skops.load_checked(payload)
            check_classes(facts.outputs, len(places))
            task.check_fits(facts.inputs)
        model = self._fresh(task)
        if type(found).__name__ != type(model).__name__:
            raise FileError(
                f"The deployed model is a {type(found).__name__}, from which no "
                f"{type(model).__name__} can go on. Start anew with `fit`."
            )
        settings = model.get_params()
        vars(model).update({k: v for k, v in vars(found).items() if k not in settings})
        rng = np.random.RandomState(task.seed)
        model._random_seed = rng.randint(2**32 - 1, dtype="u8")
        model._feature_subsample_rng = np.random.default_rng(rng.randint(2**32 - 1, dtype="u8"))
        if len(places) < len(task.classes):
            raw = two_raw_columns(model._raw_predict(task.inputs))
            _widen(model, places, first_scores(task, places, raw))
        return model.set_params(learning_rate=model.learning_rate * task.recipe.rate)

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        return open_model(state["model"], task, trust=trust)

    def fit(self, task: FitTask, watch: EpochRecorder, begun: Any) -> Cut:
        model = self._fresh(task) if begun is None else begun
        raw: Any = None
        earlier = 0
        if begun is not None:
            *_, raw = model._staged_raw_predict(task.validation)
            earlier = len(model._predictors) - len(watch.curve)
        if earlier:
            # Trees of an earlier round know other bins than this round's: scikit-learn would have
            # them score by bins all the same.
            scores = model._raw_predict(task.inputs)
            model._raw_predict = lambda _inputs, n_threads=None: scores

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
            if len(model._predictors) > earlier + len(watch.curve):
                ended()

        if task.categorical:
            _with_categories(model, task.categorical)
        # There is no way to be told of an iteration's end, but each begins by asking the loss.
        losses = model._get_loss
        model._get_loss = lambda **given: _Listening(losses(**given), begins)
        model.set_params(
            max_iter=earlier + task.recipe.epochs,
            early_stopping=False,
            warm_start=begun is not None,
        ).fit(task.inputs, task.labels, **sample_weights(task))
        ended()
        model = _settled(model).set_params(warm_start=False)

        def cut(epoch: int) -> bytes:
            prefix = copy.copy(model)
            prefix._predictors = model._predictors[: earlier + epoch + 1]
            return _skops.dump(prefix)

        return cut


def _with_categories(model: Any, columns: tuple[int, ...]) -> None:
    """Have a histogram model take these columns for categories that are coded already.

    Scikit-learn would code them again by an encoder of its own, which no file can hold safely, and
    move them to the front.
    """
    from sklearn.utils.validation import validate_data

    def preprocess(inputs: Any, *, reset: bool) -> Any:
        found = validate_data(
            model, inputs, reset=reset, dtype=[np.float64], ensure_all_finite=False
        )
        if not reset:
            return found
        flags = np.zeros(found.shape[1], dtype=bool)
        flags[list(columns)] = True
        known: list[Any] = [None] * len(flags)
        for place in columns:
            values = found[:, place]
            known[place] = np.unique(values[~np.isnan(values)])
            if len(known[place]) > model.max_bins or (known[place] >= CODES).any():
                raise ValueError(
                    f"column {place} has more than {model.max_bins} categories, which is what "
                    "`max_bins` allows. Group the rare ones, or use LightGBM or XGBoost."
                )
        model.is_categorical_, model._preprocessor = None, None
        model._is_categorical_remapped = flags
        return found, known

    model._preprocess_X = preprocess


class _Listening:
    """A loss that records when its gradients are asked for."""

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
    for name in ("_in_fit", "_raw_predict", "_fitted_with_sw", "_preprocess_X"):
        vars(found).pop(name, None)
    return found


def _widen(model: Any, places: Positions, scores: Floats) -> None:
    """Give a histogram model trees of one leaf for classes that it does not know."""
    from sklearn.ensemble._hist_gradient_boosting.common import (
        PREDICTOR_RECORD_DTYPE,
        X_BITSET_INNER_DTYPE,
    )
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    if len(places) == 2:
        places = places[1:]  # the first of two classes has no trees
    nodes, sets = np.zeros(1, PREDICTOR_RECORD_DTYPE), np.zeros((0, 8), X_BITSET_INNER_DTYPE)
    nodes["is_leaf"] = 1
    leaf = TreePredictor(nodes, sets, sets)
    base = scores[None].astype(model._baseline_prediction.dtype)
    base[:, places] = model._baseline_prediction
    model._baseline_prediction = base
    slots = dict(zip(places.tolist(), range(len(places)), strict=True))
    model._predictors = [
        [trees[slots[place]] if place in slots else leaf for place in range(len(scores))]
        for trees in model._predictors
    ]
    model.n_trees_per_iteration_ = len(scores)


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
