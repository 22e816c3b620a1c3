"""An estimator with its settings and what it has become: what training, teaching and files need."""

import inspect
from typing import Any, Self, TypeVar

from sklearn.base import BaseEstimator

from dynsnap._renamed import renamed_arguments, with_new_names
from dynsnap._types import AnyArray
from dynsnap.ensemble import Combination
from dynsnap.errors import PlanError
from dynsnap.estimator._fitted import Fitted
from dynsnap.estimator._predicting import FittedEnsemble
from dynsnap.trainers import Backend, for_model

OLD_NAMES = {"carry": "carry_over", "lag": "max_accuracy_gap", "untouched": "selection_holdout"}


class ConfiguredEnsemble(FittedEnsemble, BaseEstimator):  # type: ignore[misc]
    """An estimator that can be set up, and become an ensemble: `DynSnapClassifier` trains it.

    Its parameters are explained there.
    """

    _data: tuple[AnyArray, AnyArray] | None
    _lost: tuple[str, ...]
    _shape: tuple[int, ...] | None

    @renamed_arguments(**OLD_NAMES)
    def __init__(
        self,
        model: Any,
        *,
        method: str = "dynsnap-cyc",
        members: int | str = 20,
        snapshots: int = 10,
        epochs: int = 200,
        combination: Combination = "average",
        beta: float | str = "mean",
        validation: float = 0.1,
        dropout: float = 0.1,
        tolerance: float | None = None,
        most_rounds: int | None = None,
        carry_over: float = 0.75,
        max_accuracy_gap: float = 0.05,
        selection_holdout: float = 0.1,
        trainer: str | None = None,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        optimizer: Any = None,
        loss: Any = None,
        augment: Any = None,
        prepare: Any = "auto",
        device: str = "auto",
        precision: str = "auto",
        random_state: Any = None,
        keep_data: bool = True,
        monitor: Any = None,
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
        self.trainer = trainer
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.loss = loss
        self.augment = augment
        self.prepare = prepare
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.keep_data = keep_data
        self.monitor = monitor

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn does; those with old names too."""
        params = with_new_names(params, OLD_NAMES, type(self).__name__)
        found: Self = super().set_params(**params)
        return found

    def _become(
        self,
        made: Fitted,
        classes: AnyArray,
        *,
        data: tuple[AnyArray, AnyArray] | None,
        trust: bool = True,  # of what was trained here
    ) -> Self:
        self.classes_ = classes
        self._trust = trust
        self._fitted = made
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
