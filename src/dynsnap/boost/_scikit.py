"""Scikit-learn: snapshots where a classifier learns in steps, one learner per round elsewhere."""

import copy
import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Positions, Scores
from dynsnap.boost import _skops
from dynsnap.boost._learner import (
    Cut,
    EpochRecorder,
    FitTask,
    Loaded,
    State,
    rates,
    seed,
)
from dynsnap.boost._settings import (
    encodes,
    numbered_class_weights,
    refuse_other_length,
    refuse_unused,
    refuse_warm_start,
)
from dynsnap.boost._structure import invalid
from dynsnap.data import Frame, columns_in_words
from dynsnap.ensemble import Recipe
from dynsnap.errors import InputError, PlanError

_AT_ONCE = 2**26  # numbers that a prediction may hold beside its inputs
CODES = 255  # that histogram boosting has for categories: they are bytes
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
            model.partial_fit(
                by_name(task.inputs), task.labels, classes=classes, **sample_weights(task)
            )
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


def sample_weights(task: FitTask) -> dict[str, Any]:
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
    check_classes(facts.outputs, len(task.classes))
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
    check_classes(facts.outputs, columns)
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
    beyond = found[:, columns] >= CODES
    if beyond.any():
        found = found.copy()
        found[:, columns] = np.where(beyond, np.nan, found[:, columns])
    return found


def check_classes(found: int | None, expected: int) -> None:
    if found != expected:
        raise invalid(f"it knows {found} classes, but {expected} are expected")
