"""A classifier as scikit-learn knows them, whose right answers stay right through retraining."""

import os
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dynsnap._types import AnyArray
from dynsnap.ensemble import Combination
from dynsnap.estimator import _file, _inputs
from dynsnap.estimator._backends import TORCH_SETTINGS, allows_nan
from dynsnap.estimator._fitted import Fitted
from dynsnap.estimator._predicting import FittedEnsemble
from dynsnap.estimator._student import student
from dynsnap.estimator._succession import check_can_train, data_so_far, successor
from dynsnap.estimator._training import train


class DynSnapClassifier(FittedEnsemble, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An ensemble by one of the paper's six methods, around any classifier.

    Args:
        model: A function or class that builds a torch module, or a scikit-learn, XGBoost or
            LightGBM classifier that is set up but not fitted.
        method: "dynsnap-cyc", "dynsnap-step", "snapshot", "extbagging", "mcdropout", "singlebase",
            or one that carries members over when it is retrained: "rolling" (DynSnap-cyc) or
            "rolling-bagging" (ExtBagging, with the best three epochs of each training).
        members: Learners in the ensemble, the paper's m; or "auto", to train rounds until another
            one is not worth it.
        snapshots: Learners saved by one round of training; the paper's N. singlebase and
            extbagging save one.
        epochs: Epochs of one training (boosting iterations for boosted trees); the paper's T.
        combination: "average", "weighted_average", "majority" or "weighted_majority".
        beta: How far below its round's best a member may fall, from 0 to 1, or "mean".
        validation: Share of each class that a round sets aside to validate on, drawn anew by
            every round.
        dropout: Share of units that mcdropout drops.
        tolerance: With "auto" members: the share of inputs that another round must be expected to
            settle, 0.005 by default. It is judged by rows that are set aside for it, a share
            `validation` of each class and at most 1,000, so these are not trained on.
        most_rounds: With "auto" members: the most rounds; 20 by default.
        carry: Share of the members that a rolling ensemble carries over into the next generation.
        lag: How far a carried member's accuracy may be below that of the new ones.
        untouched: Share of the rows that a rolling ensemble never trains on, to judge members of
            all generations by. A row's content decides, so it stays untouched in all of them.
        batch_size: For torch modules, as everything down to `precision`.
        learning_rate: Base rate, which the method's schedule multiplies.
        optimizer: Called with parameters and a rate, as torch.optim.SGD is; Adam by default.
        loss: Called with outputs and labels; cross-entropy by default.
        augment: Alters a whole batch of inputs; nothing by default.
        prepare: How inputs become tensors; "auto" goes by the inputs.
        device: "auto", "cpu", "cuda" or "mps".
        precision: "auto", "float32" or "bfloat16".
        random_state: A seed for all randomness, or None for another one in each fit.
        keep_data: Whether to hold on to the training data in memory, which `retrain` needs.
        monitor: Is told about every epoch, and may stop the training.

    Attributes:
        classes_: Class labels; the columns of `predict_proba`.
        members_: Where each learner of the ensemble comes from.
        accuracies_: Validation accuracy of each.
        rounds_: Rounds that were trained.
        cost_: What they cost, in trainings of `epochs` epochs; the paper's κ.
        generation_: 1 after `fit`, one more after each `retrain`.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LogisticRegression(max_iter=500)
        >>> ensemble = DynSnapClassifier(model, method="extbagging", members=3, random_state=0)
        >>> ensemble.fit(X, y).predict(X[:2])
        array([0, 0])
    """

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
        carry: float = 0.75,
        lag: float = 0.05,
        untouched: float = 0.1,
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
        self.carry = carry
        self.lag = lag
        self.untouched = untouched
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

    # --- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> "DynSnapClassifier":  # noqa: N803
        """Train the first generation.

        Args:
            X: Features (rows, columns), images (rows, height, width, channels), or a list of texts
                if the model is for text.
            y: Class labels, numbers or texts.
        """
        self._allow_nan = allows_nan(self.model)
        self._lost: tuple[str, ...] = ()
        inputs = self._features(X, reset=True)
        return self._learn(inputs, _inputs.targets(y, len(inputs)), before=None)

    def retrain(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        earlier: tuple[Any, Any] | None = None,
    ) -> "DynSnapClassifier":
        """A new estimator: the next generation, trained on all data so far and this.

        This one stays as it is, so the two can be compared. Classes may be new.

        Args:
            X: Further inputs.
            y: Their labels.
            earlier: All data so far, as (X, y): needed where this estimator does not hold it,
                after `load` or with `keep_data=False`.
        """
        check_can_train(self, "retrain")
        before = data_so_far(self, earlier, "retrain(X, y, earlier=(X_before, y_before))")
        more = _inputs.checked(self, X, y)
        inputs = _inputs.joined(before[0], more[0], "X")
        labels = _inputs.joined(before[1], more[1], "y")
        return successor(self)._learn(inputs, labels, before=self)

    def distill(
        self,
        *,
        weight: float = 0.5,
        temperature: float = 4.0,
        epochs: int | None = None,
        previous: "DynSnapClassifier | None" = None,
        share: float = 0.3,
        data: tuple[Any, Any] | None = None,
    ) -> "DynSnapClassifier":
        """A new estimator: one network that was taught to say what this ensemble says.

        It predicts, saves and loads as any other, at the cost of one network. For the next
        generation, retrain the ensemble and distil that. Torch modules only.

        Args:
            weight: What the ensemble counts for; the labels have the rest.
            temperature: How soft scores are made before they are compared.
            epochs: Epochs of its training; `epochs` of this estimator by default.
            previous: A second teacher, of the generation before: its ensemble, or what that was
                distilled to. It has no say on rows of classes that it never saw.
            share: What the second teacher counts for.
            data: All data so far, as (X, y): needed where this estimator does not hold it, after
                `load` or with `keep_data=False`.
        """
        check_can_train(self, "distil")
        if previous is not None:
            check_is_fitted(previous)
        inputs, labels = data_so_far(self, data, "distill(data=(X, y))")
        made = student(
            self,
            inputs,
            labels,
            weight=weight,
            temperature=temperature,
            epochs=epochs,
            previous=previous,
            share=share,
        )
        fresh = successor(self)
        fresh.set_params(method="singlebase", members=1, snapshots=1)
        kept = (inputs, labels) if self.keep_data else None
        return fresh._become(made, self.classes_, data=kept)

    def _learn(
        self, inputs: AnyArray, labels: AnyArray, *, before: "DynSnapClassifier | None"
    ) -> "DynSnapClassifier":
        made, classes = train(self, inputs, labels, before=before)
        return self._become(made, classes, data=(inputs, labels) if self.keep_data else None)

    def _become(
        self, made: Fitted, classes: AnyArray, *, data: tuple[AnyArray, AnyArray] | None
    ) -> "DynSnapClassifier":
        self.classes_ = classes
        self._fitted = made
        self._data = data
        self._score_members = None
        self._open()  # now, because predicting must leave an estimator as it was
        return self

    # --- keeping ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ensemble to one file: a plain zip with the learners and a manifest in JSON.

        The training data is not in it, nor is the code of a torch module.
        """
        check_is_fitted(self)
        _file.write(Path(path), self)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, model: Any = None, **settings: Any
    ) -> "DynSnapClassifier":
        """Read an ensemble from a file. Nothing in it is unpickled or executed.

        Args:
            path: The file.
            model: What the ensemble was made with. A torch module's factory is needed to predict;
                any other model only to `retrain`.
            settings: Parameters to set anew, such as `device`, and those that no file can hold,
                such as an `optimizer` of your own.
        """
        return _file.read(Path(path), cls, model, settings)

    def __getstate__(self) -> dict[str, Any]:
        # Modules and boosters that were opened to predict are opened again where they are needed.
        state: dict[str, Any] = super().__getstate__()
        return state | {"_score_members": None} if "_score_members" in state else state

    # --- helpers ----------------------------------------------------------------------------

    def _features(self, inputs: Any, *, reset: bool) -> AnyArray:
        return _inputs.features(self, inputs, reset=reset, allow_nan=self._allow_nan)

    def _torch_settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in TORCH_SETTINGS}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = allows_nan(self.model)
        return tags
