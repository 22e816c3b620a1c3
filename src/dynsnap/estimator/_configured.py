"""An estimator with its settings and what it has become, and what it hands on to the next."""

import inspect
from typing import Any, Self, TypeVar

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from dynsnap._renamed import renamed_arguments, with_new_names
from dynsnap._types import AnyArray
from dynsnap.data import FrameType, is_dataset, read_dataset
from dynsnap.ensemble import Combination
from dynsnap.errors import InputError, PlanError, did_you_mean
from dynsnap.estimator import _inputs
from dynsnap.estimator._fitted import Fitted, FittedEnsemble
from dynsnap.estimator._rows import RowFacts
from dynsnap.trainers import Backend, for_model

PRESETS = {
    "paper": {"members": 20, "snapshots": 10, "epochs": 200},
    "quick": {"members": 6, "snapshots": 3, "epochs": 30},
}
OLD_NAMES = {"carry": "carry_over", "lag": "max_accuracy_gap", "untouched": "selection_holdout"}


class ConfiguredEnsemble(FittedEnsemble, BaseEstimator):  # type: ignore[misc]
    """An estimator that can be set up, and become an ensemble: `DynSnapClassifier` trains it.

    Its parameters are explained there.
    """

    _data: tuple[Any, AnyArray] | None
    _facts: RowFacts
    _lost: tuple[str, ...]
    _shape: tuple[int, ...] | None
    _columns: FrameType | None
    _described: dict[str, Any] | None = None  # one of dynsnap's own models, as a study names it

    @renamed_arguments(**OLD_NAMES)
    def __init__(
        self,
        model: Any,
        *,
        method: str = "dynsnap-cyc",
        members: int | str | None = None,
        snapshots: int | None = None,
        epochs: int | None = None,
        combination: Combination = "average",
        beta: float | str = "mean",
        validation: float = 0.1,
        dropout: float = 0.1,
        tolerance: float | None = None,
        most_rounds: int | None = None,
        carry_over: float = 0.75,
        max_accuracy_gap: float = 0.05,
        selection_holdout: float = 0.1,
        retraining: Any = None,
        average: float | None = None,
        smoothing: float | None = None,
        trainer: str | None = None,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        optimizer: Any = None,
        loss: Any = None,
        augment: Any = None,
        prepare: Any = "auto",
        device: str = "auto",
        precision: str = "auto",
        warmup: int = 0,
        class_weight: Any = None,
        selection_metric: Any = "accuracy",
        random_state: Any = None,
        keep_data: bool = True,
        monitor: Any = None,
        preset: str = "paper",
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
        checkpoint: Any = None,
    ) -> None:
        self.model = model
        self.method = method
        self.members = members
        self.snapshots = snapshots
        self.epochs = epochs
        self.combination = combination
        self.beta = beta
        self.validation = validation
        self.dropout = dropout
        self.tolerance = tolerance
        self.most_rounds = most_rounds
        self.carry_over = carry_over
        self.max_accuracy_gap = max_accuracy_gap
        self.selection_holdout = selection_holdout
        self.retraining = retraining
        self.average = average
        self.smoothing = smoothing
        self.trainer = trainer
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.loss = loss
        self.augment = augment
        self.prepare = prepare
        self.device = device
        self.precision = precision
        self.warmup = warmup
        self.class_weight = class_weight
        self.selection_metric = selection_metric
        self.random_state = random_state
        self.keep_data = keep_data
        self.monitor = monitor
        self.preset = preset
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn does; those with old names too."""
        params = with_new_names(params, OLD_NAMES, type(self).__name__)
        found: Self = super().set_params(**params)
        return found

    def _size(self, name: str) -> Any:
        """`members`, `snapshots` or `epochs`: as given, else as the preset has it."""
        if self.preset not in PRESETS:
            raise PlanError(
                f"There is no preset {self.preset!r}. {did_you_mean(str(self.preset), PRESETS)}"
            )
        given = getattr(self, name)
        return PRESETS[self.preset][name] if given is None else given

    def _become(
        self,
        made: Fitted,
        classes: AnyArray,
        *,
        data: tuple[Any, AnyArray] | None,
        facts: RowFacts | None = None,
        trust: bool = True,  # of what was trained here
    ) -> Self:
        self._facts = facts or RowFacts()
        self.classes_ = classes
        self._trust = trust
        self._fitted = made
        self._learned_model = self.model  # also after `set_params`: what opens the learners
        self._data = data
        self._score_members = None
        self._open()  # now, because predicting must leave an estimator as it was
        return self

    @classmethod
    def _usual(cls) -> dict[str, Any]:
        """What parameters are unless they are set."""
        parameters = inspect.signature(cls).parameters.values()
        return {parameter.name: parameter.default for parameter in parameters}

    def __getstate__(self) -> dict[str, Any]:
        # Modules and boosters that were opened to predict are opened again where they are needed.
        state: dict[str, Any] = super().__getstate__()
        return state | {"_score_members": None} if "_score_members" in state else state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            tags.input_tags.allow_nan = self._chosen_backend().allows_nan(self.model)
        except PlanError:  # a model that cannot be trained has tags all the same
            tags.input_tags.allow_nan = False
        return tags

    def _chosen_backend(self) -> Backend:
        """What trains the model: the `trainer` that was named, or the one that takes it."""
        return for_model(self.model, self.trainer)


Estimator = TypeVar("Estimator", bound=ConfiguredEnsemble)


# What fitting has noted about inputs, and loading about settings.
_NOTED = ("n_features_in_", "feature_names_in_", "_shape", "_columns", "_allow_nan", "_lost")


def successor(estimator: Estimator) -> Estimator:
    """An estimator for the same inputs with the same settings, yet to be fitted."""
    fresh: Estimator = clone(estimator)
    for name in _NOTED:
        if hasattr(estimator, name):
            setattr(fresh, name, getattr(estimator, name))
    return fresh


def check_can_train(estimator: ConfiguredEnsemble, what: str) -> None:
    """Raise unless an estimator is fitted, and has all that it was trained with."""
    check_is_fitted(estimator)
    if estimator._lost:
        names = ", ".join(f"`{name}`" for name in estimator._lost)
        raise InputError(
            f"To {what} a loaded estimator, pass {names} to `load` again: a file cannot hold "
            "what it was trained with."
        )


def facts_so_far(estimator: ConfiguredEnsemble, given: tuple[Any, ...] | None) -> RowFacts:
    """Weights and groups of all rows so far: what was given, or what an estimator holds."""
    if given is None:
        return estimator._facts
    weights, groups = (*given[2:], None, None)[:2]
    labels = given[1]
    if labels is None and is_dataset(given[0]):  # whose items have them
        labels = read_dataset(given[0], batch_size=estimator.batch_size)
    return RowFacts.of(len(labels), sample_weight=weights, groups=groups)


def data_so_far(
    estimator: ConfiguredEnsemble, given: tuple[Any, ...] | None, how: str
) -> tuple[Any, AnyArray]:
    """All data so far: what was given, or what an estimator holds."""
    if given is not None:
        return _inputs.checked(estimator, *given[:2])
    if estimator._data is None:
        raise InputError(
            "This estimator does not hold the data that it was trained on: pass all of it as "
            f"`{how}`."
        )
    return estimator._data
