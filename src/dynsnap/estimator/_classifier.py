"""A classifier as scikit-learn knows them, whose right answers stay right through retraining."""

import os
from pathlib import Path
from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dynsnap._types import AnyArray
from dynsnap.estimator import _file, _inputs
from dynsnap.estimator._configured import ConfiguredEnsemble
from dynsnap.estimator._settings import OF_METHODS
from dynsnap.estimator._student import student
from dynsnap.estimator._succession import check_can_train, data_so_far, successor
from dynsnap.estimator._training import nothing_kept, train


class DynSnapClassifier(ClassifierMixin, ConfiguredEnsemble):  # type: ignore[misc]
    """An ensemble by one of the paper's six methods, around any classifier.

    Args:
        model: A function or class that builds a torch module, or a scikit-learn, XGBoost or
            LightGBM classifier that is set up but not fitted; or what `trainer` takes.
        method: "dynsnap-cyc", "dynsnap-step", "snapshot", "extbagging", "mcdropout", "singlebase",
            or one that carries members over when it is retrained: "rolling" (DynSnap-cyc) or
            "rolling-bagging" (ExtBagging, with the best three epochs of each training).
        members: Learners in the ensemble, the paper's m; or "auto", to train rounds until another
            one is not worth it. singlebase has one.
        snapshots: Learners saved by one round of training; the paper's N. singlebase,
            extbagging and mcdropout save one, snapshot as many as there are members.
        epochs: Epochs of one training (boosting iterations for boosted trees); the paper's T.
        combination: "average", "weighted_average", "majority" or "weighted_majority".
        beta: How far below its round's best a member may fall, from 0 to 1, or "mean"; for both
            dynsnaps and rolling.
        validation: Share of each class that a round sets aside to validate on, drawn anew by
            every round.
        dropout: Share of units that mcdropout drops.
        tolerance: With "auto" members: the share of inputs that another round must be expected to
            settle, 0.005 by default. It is judged by rows that are set aside for it, a share
            `validation` of each class and at most 1,000, so these are not trained on.
        most_rounds: With "auto" members: the most rounds; 20 by default.
        carry_over: Share of the members that a rolling ensemble carries over into the next
            generation.
        max_accuracy_gap: How far a carried member's accuracy may be below that of the new ones.
        selection_holdout: Share of the rows that a rolling ensemble never trains on, to compare
            members of all generations on. A row's content decides, so none ever trains on it.
        trainer: The name of an installed or registered trainer, for a model that is neither a torch
            module nor a classifier: see docs/extending.md. By default the model decides.
        batch_size: For torch modules, as everything down to `precision`; other models have
            parameters of their own, and refuse these.
        learning_rate: Base rate, which the method's schedule multiplies.
        optimizer: Called with parameters and a rate, as torch.optim.SGD is; Adam by default.
        loss: Called with outputs and labels; cross-entropy by default.
        augment: Alters a whole batch of inputs; nothing by default.
        prepare: How inputs become tensors: "pixels" (bytes of images), "images" (other numbers of
            images), "words", "standardised" or "features" (numbers as they are); "auto" goes by
            the inputs.
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

    # --- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> "DynSnapClassifier":  # noqa: N803
        """Train the first generation.

        Args:
            X: Features (rows, columns), images (rows, height, width, channels), or a list of texts
                if the model is for text. Images that are no bytes may have their channels first.
            y: Class labels, numbers or texts.
        """
        self._allow_nan = self._chosen_backend().allows_nan(self.model)
        self._lost = ()
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
        with nothing_kept("distill"):
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
        usual = self._usual()
        unused = {name: usual[name] for name in OF_METHODS}
        fresh.set_params(method="singlebase", members=1, snapshots=1, **unused)
        kept = (inputs, labels) if self.keep_data else None
        return fresh._become(made, self.classes_, data=kept)

    def _learn(
        self, inputs: AnyArray, labels: AnyArray, *, before: "DynSnapClassifier | None"
    ) -> "DynSnapClassifier":
        with nothing_kept("fit" if before is None else "retrain"):
            made, classes = train(self, inputs, labels, before=before)
        return self._become(made, classes, data=(inputs, labels) if self.keep_data else None)

    # --- keeping ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the ensemble to one file: a plain zip with the learners and a manifest in JSON.

        The training data is not in it, nor is the code of a torch module.

        Returns:
            The SHA-256 of the file, which `load` can insist on.
        """
        check_is_fitted(self)
        return _file.write(Path(path), self)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        model: Any = None,
        trainer: str | None = None,
        sha256: str | None = None,
        trust: bool = False,
        **settings: Any,
    ) -> "DynSnapClassifier":
        """Read an ensemble from a file. Nothing in it is unpickled or executed.

        Args:
            path: The file.
            model: What the ensemble was made with. A torch module's factory is needed to predict;
                any other model only to `retrain`.
            trainer: The trainer that the ensemble was made with, where it is not part of dynsnap. A
                file never chooses what is imported, so it is loaded only if you name it.
            sha256: The digest that the file must have, as `save` gave it. Any other file is refused
                before anything in it is read.
            trust: Whether to open members of kinds that cannot be checked before their library
                reads them. Say so only of a file whose maker you trust.
            settings: Parameters to set anew, such as `device`, and those that no file can hold,
                such as an `optimizer` of your own.
        """
        return _file.read(
            Path(path), cls, model, settings, trainer=trainer, sha256=sha256, trust=trust
        )
