"""Scikit-learn: snapshots where a classifier learns in steps, one learner per round elsewhere."""

import copy
import inspect
import io
import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Floats, Positions, Scores
from dynsnap.boost import _skops
from dynsnap.boost._learner import (
    Cut,
    EpochRecorder,
    FitTask,
    Loaded,
    State,
    first_scores,
    rates,
    seed,
    two_raw_columns,
)
from dynsnap.boost._settings import (
    check_categories,
    encodes,
    numbered_class_weights,
    refuse_other_length,
    refuse_unused,
    refuse_warm_start,
)
from dynsnap.boost._structure import invalid
from dynsnap.boost.rebuilt import array
from dynsnap.data import Frame, columns_in_words
from dynsnap.ensemble import Recipe
from dynsnap.errors import FileError, InputError, PlanError

_AT_ONCE = 2**26  # numbers that a prediction may hold beside its inputs
_CODES = 255  # that histogram boosting has for categories: they are bytes
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
        self.by_name = True

    def check_frame(self, frame: Frame | None) -> None:
        """Raise InputError for columns that no step of the model turns into numbers."""
        words = [] if frame is None else frame.named("category", "text")
        if words and not encodes(self._model):
            raise InputError(
                f"{type(self._model).__name__} takes numbers, and {columns_in_words(words)} "
                "hold categories or texts. Put an encoder before it: a Pipeline with a "
                "ColumnTransformer, as the model or around the ensemble."
            )

    @property
    def version(self) -> str:
        import sklearn

        return str(sklearn.__version__)

    def check(self, recipe: Recipe, *, shortened: bool = False) -> None:
        """Raise PlanError if several snapshots are asked of a classifier that has one."""
        if recipe.snapshots > 1:
            raise PlanError(
                f"{type(self._model).__name__} gives one learner per round, but the recipe asks "
                f"for {recipe.snapshots} snapshots. Use `snapshots=1` (method extbagging), or one "
                f"of XGBClassifier, LGBMClassifier, {MANY}."
            )

    def check_continues(self) -> None:
        """Raise PlanError: of these classifiers, only some boosted trees can."""
        raise PlanError(
            f"{type(self._model).__name__} always starts afresh. XGBClassifier, LGBMClassifier and "
            "HistGradientBoostingClassifier can go on from the deployed trees: use one of them, "
            "or `single-distill`, which learns from the deployed model's scores."
        )

    def check_weights(self) -> None:
        """Raise PlanError where `fit` takes no weights of rows."""
        if weights_keyword(self._model) is None:
            raise PlanError(
                f"{type(self._model).__name__} learns from labels alone: its `fit` takes no "
                "`sample_weight`. Use another classifier, or leave weights of rows and of classes "
                "out."
            )

    def check_copies(self) -> None:
        """Raise PlanError where `fit` itself takes no weights of rows."""
        # A step of a pipeline before the last one would count every copy as a whole row.
        if weights_keyword(self._model) != "sample_weight":
            raise PlanError(
                f"{type(self._model).__name__} learns from labels alone: its `fit` takes no "
                "`sample_weight`. Use another classifier, or the method singlebase."
            )

    def begin(self, payload: bytes, places: Positions, task: FitTask, *, trust: bool) -> Any:
        return self.check_continues()

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        return open_model(state["learner"], task, trust=trust), state["learner"]

    def fit(self, task: FitTask, watch: EpochRecorder, begun: Any) -> Cut:
        # It is done after the first epoch, and cannot stop before: there is nothing in between.
        if begun is None:
            model = self._fitted(task)
            learner = _skops.dump(model)
        else:
            model, learner = begun
        scores = model.predict_proba(by_name(task.validation))
        while len(watch.curve) < task.recipe.epochs:
            watch.show(scores)
            watch.rest(lambda: {"learner": learner})
        return lambda _epoch: learner

    def _fitted(self, task: FitTask) -> Any:
        from sklearn import config_context

        keyword = weights_keyword(self._model)
        if task.weights is None or keyword is None:
            return self._fresh(task).fit(by_name(task.inputs), task.labels)
        # A pipeline takes the weights of its last step by their name, unless its user has
        # switched routing on for the whole process.
        with config_context(enable_metadata_routing=False):
            given = {keyword: task.weights}
            return self._fresh(task).fit(by_name(task.inputs), task.labels, **given)

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
        _forget_requests(model)
        return model.set_params(**fixed, **numbered_class_weights(model, task.classes))


class SteppedLearner(ScikitLearner):
    """A classifier that learns by `partial_fit`, one pass over the data per epoch."""

    kind = "sklearn"

    def check(self, recipe: Recipe, *, shortened: bool = False) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        if not shortened:
            refuse_other_length(self._model, ["max_iter"], recipe.epochs)
        refuse_early_stopping(self._model)
        if hasattr(self._model, "learning_rate_init"):  # a network
            reason = "the recipe's schedule drives the rate."
            refuse_unused(self._model, ["learning_rate", "power_t"], reason)
            refuse_unused(self._model, ["max_fun"], "it is for the solver lbfgs.")

    def check_weights(self) -> None:
        """Raise PlanError where `partial_fit` takes no weights of rows."""
        if "sample_weight" not in inspect.signature(self._model.partial_fit).parameters:
            raise PlanError(
                f"`partial_fit` of {type(self._model).__name__} takes no `sample_weight` in this "
                "version of scikit-learn. Upgrade it, or use another classifier."
            )

    def check_copies(self) -> None:
        """Raise PlanError: a pass over the data is a pass over each row once."""
        raise PlanError(
            f"{type(self._model).__name__} learns from labels alone here: its passes over the data "
            "take every row once. Use boosted trees, or a torch module."
        )

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        kept = {int(name): part for name, part in state.items() if name != "model"}
        return open_model(state["model"], task, trust=trust), kept

    def fit(self, task: FitTask, watch: EpochRecorder, begun: Any) -> Cut:
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
            model.partial_fit(by_name(task.inputs), task.labels, classes=classes, **_weights(task))
            wanted = watch.show(model.predict_proba(by_name(task.validation))).tolist()
            kept = {
                at: kept[at] if at in kept else copy.deepcopy(model)
                for at in wanted
                if at in kept or at == epoch
            }
            watch.rest(partial(_state, model, kept))
        return lambda at: _stored(kept[at])


def _forget_requests(model: Any) -> None:
    """Take back what a classifier and its parts ask of scikit-learn's routing of metadata.

    A round hands weights over by name, and a request refers to its owner: skops cannot store that.
    """
    for part in (model, *model.get_params(deep=True).values()):
        if "_metadata_request" in getattr(part, "__dict__", ()):
            del part._metadata_request


def weights_keyword(model: Any) -> str | None:
    """How `fit` of a classifier takes weights of rows: by itself, or for a pipeline's last step."""
    steps = getattr(model, "steps", None)
    if steps:
        inner = weights_keyword(steps[-1][1])
        return None if inner is None else f"{steps[-1][0]}__{inner}"
    named = "sample_weight" in inspect.signature(model.fit).parameters
    return "sample_weight" if named else None


def _weights(task: FitTask) -> dict[str, Any]:
    """The weights of rows as `fit` takes them; not all classifiers know them."""
    return {} if task.weights is None else {"sample_weight": task.weights}


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


def read(payload: bytes, columns: int, *, trust: bool) -> tuple[Any, int | None]:
    """A stored classifier, and how many features it takes, where that is known."""
    model, facts = _read(payload, columns, trust=trust)
    return model, None if facts is None else facts.inputs


def _read(payload: bytes, columns: int, *, trust: bool) -> tuple[Any, Any]:
    if trust:
        return _skops.load(payload), None
    model, facts = _skops.load_checked(payload)
    _check_classes(facts.outputs, columns)
    return model, facts


def load(payload: bytes, columns: int, *, trust: bool) -> Loaded:
    """A stored classifier, ready to score."""
    model, facts = _read(payload, columns, trust=trust)
    width = rows = None
    if facts is not None:
        width, rows = facts.inputs, max(1, _AT_ONCE // max(facts.width, columns))

    as_trained = _in_bytes if _is_histogram(model) else by_name

    def predict(inputs: Any) -> Scores:
        if rows is None or len(inputs) <= rows:
            return predict_part(inputs)
        starts = range(0, len(inputs), rows)
        return np.concatenate([predict_part(inputs[start : start + rows]) for start in starts])

    def predict_part(given: Any) -> Scores:
        inputs = as_trained(given)
        if not isinstance(inputs, np.ndarray):  # a frame of pandas, which a step may write to
            return np.asarray(model.predict_proba(inputs.copy()))
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


def by_name(inputs: Any) -> Any:
    """Inputs as scikit-learn's own steps take them: a frame of pandas, or an array as it is."""
    return inputs.pandas if isinstance(inputs, Frame) else inputs


def _is_histogram(model: Any) -> bool:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return isinstance(model, HistGradientBoostingClassifier)


def _in_bytes(inputs: Any) -> AnyArray:
    """The codes of a frame, where no category has one that does not fit into a byte."""
    if not isinstance(inputs, Frame):
        return np.asarray(inputs)
    found, columns = inputs.codes, list(inputs.categorical)
    beyond = found[:, columns] >= _CODES
    if beyond.any():
        found = found.copy()
        found[:, columns] = np.where(beyond, np.nan, found[:, columns])
    return found


def _check_classes(found: int | None, expected: int) -> None:
    if found != expected:
        raise invalid(f"it knows {found} classes, but {expected} are expected")


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
        ).fit(task.inputs, task.labels, monitor=monitor, **_weights(task))
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
            _check_classes(facts.outputs, len(places))
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
        ).fit(task.inputs, task.labels, **_weights(task))
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
            if len(known[place]) > model.max_bins or (known[place] >= _CODES).any():
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
