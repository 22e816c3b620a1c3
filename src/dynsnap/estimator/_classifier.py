"""A classifier as scikit-learn knows them, whose right answers stay right through retraining."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dynsnap._types import AnyArray
from dynsnap.data import Frame
from dynsnap.estimator import _file, _inputs
from dynsnap.estimator._configured import (
    ConfiguredEnsemble,
    check_can_train,
    data_so_far,
    facts_so_far,
    successor,
)
from dynsnap.estimator._rows import RowFacts
from dynsnap.estimator._session import Session
from dynsnap.estimator._settings import OF_METHODS
from dynsnap.estimator._student import student
from dynsnap.estimator._training import train


class DynSnapClassifier(ClassifierMixin, ConfiguredEnsemble):  # type: ignore[misc]
    """An ensemble by one of the paper's six methods, or a single network, around any classifier.

    Args:
        model: A function or class that builds a torch module, or a scikit-learn, XGBoost or
            LightGBM classifier that is set up but not fitted; or what `trainer` takes.
        method: "dynsnap-cyc", "dynsnap-step", "snapshot", "extbagging", "mcdropout", "singlebase",
            or one that carries members over when it is retrained: "rolling" (DynSnap-cyc) or
            "rolling-bagging" (ExtBagging, with the best three epochs of each training); or
            "single", one network that is retrained from the deployed one (torch modules only).
        members: Learners in the ensemble, the paper's m; or "auto", to train rounds until another
            one is not worth it. singlebase has one. Where `members`, `snapshots` or `epochs` are
            not given, `preset` decides.
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
            members of all generations on. A row's content decides, so none ever trains on it. So
            does a single network that is interpolated.
        retraining: For "single" and its kind: settings of `dynsnap.ensemble.Retraining` by name, as
            in `{"distill_weight": 0.8, "epochs_share": 0.5}`.
        average: Decay of averaged weights (EMA), such as 0.998; None for the method's own, which is
            none in all but "single-ema". For torch modules, as `smoothing`.
        smoothing: Label smoothing, such as 0.1; None for the method's own.
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
        warmup: Epochs at the beginning of a round in which the learning rate grows linearly; for
            torch modules.
        class_weight: How much the rows of each class count in training: "balanced", or a weight
            for each class by its label, as in `{"cat": 5}`. Weights of rows are multiplied by it.
        selection_metric: What snapshots of a round are chosen and pruned by, on its validation
            rows: "accuracy", "balanced_accuracy", "log_loss", "f1" (the mean over classes), the
            name of a scorer of scikit-learn, or a scorer. Weights of rows count in it.
        random_state: A seed for all randomness, or None for another one in each fit.
        keep_data: Whether to hold on to the training data in memory, which `retrain` needs.
        monitor: Receives the progress of every epoch, and may stop the training; see
            `dynsnap.ensemble.Monitor`.
        preset: What `members`, `snapshots` and `epochs` are where they are not given: "paper"
            (20, 10, 200) or "quick" (6, 3, 30).
        n_jobs: Rounds that are trained at once, each in a process of its own on one core; -1 for
            as many as there are cores. The members are the same, bit by bit.
        verbose: 1 for a progress bar on standard error (a line for every round where that is no
            terminal), 2 for a line for every epoch.
        callbacks: Functions that are called with an `EpochEnd` after every epoch, and stop the
            training where they return True; or objects with any of the methods `on_fit_begin` and
            `on_fit_end` (called with the estimator), `on_epoch_end` and `stopping`.
        checkpoint: A folder for rounds. `fit` and `retrain` go on there after a kill or Ctrl-C,
            with the same bits on a CPU; a fit that was finished is taken from it.

    Attributes:
        classes_: Class labels; the columns of `predict_proba`.
        estimators_: Each member as a classifier of its own.
        history_: Every epoch that was trained, as a frame.
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

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> "DynSnapClassifier":
        """Train the first generation.

        Args:
            X: Features (rows, columns), images (rows, height, width, channels), or a list of texts
                if the model is for text; a frame; for torch modules also a dict of arrays, a
                `Dataset` or a `DataLoader`. See docs/inputs.md.
            y: Class labels, numbers or texts; None for those of a `Dataset`.
            sample_weight: How much each row counts, in training and in validation. A row of weight
                0 is left out.
            groups: What each row belongs to, such as a patient: all rows of a group are trained
                on, or none of them, wherever a round sets rows aside.
        """
        self._allow_nan = self._chosen_backend().allows_nan(self.model)
        self._lost = ()
        inputs = self._features(X, reset=True, training=True)
        labels = _inputs.targets(_inputs.labelled(inputs, y), len(inputs))
        facts = RowFacts.of(len(labels), sample_weight=sample_weight, groups=groups)
        return self._learn(inputs, labels, facts, before=None)

    def retrain(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        earlier: tuple[Any, ...] | None = None,
        teacher: Any = None,
    ) -> "DynSnapClassifier":
        """A new estimator: the next generation, trained on all data so far and this.

        This one stays as it is, so the two can be compared. Classes may be new.

        Args:
            X: Further inputs.
            y: Their labels.
            sample_weight: How much each of them counts; earlier rows keep their weights.
            groups: What each of them belongs to; needed where earlier rows have groups.
            earlier: All data so far, as (X, y), (X, y, sample_weight) or
                (X, y, sample_weight, groups): needed where this estimator does not hold it, after
                `load` or with `keep_data=False`.
            teacher: For "single" and "single-distill": what scores are learned in place of this
                estimator's. A fitted classifier, such as an ensemble; or predictions with scores,
                or a file of them, whose ids are the numbers of the rows, from 0: all data so far,
                then `X`, without rows of weight 0. Classes that it does not know are learned from
                labels alone.
        """
        check_can_train(self, "retrain")
        before = data_so_far(self, earlier, "retrain(X, y, earlier=(X_before, y_before))")
        more = _inputs.checked(self, X, y)
        inputs = _inputs.joined(before[0], more[0], "X")
        labels = _inputs.joined(before[1], more[1], "y")
        facts = facts_so_far(self, earlier).joined(
            RowFacts.of(len(more[1]), sample_weight=sample_weight, groups=groups),
            rows=(len(before[1]), len(more[1])),
        )
        return successor(self)._learn(inputs, labels, facts, before=self, teacher=teacher)

    def distill(
        self,
        *,
        weight: float = 0.5,
        temperature: float = 4.0,
        epochs: int | None = None,
        previous: "DynSnapClassifier | None" = None,
        share: float = 0.3,
        data: tuple[Any, ...] | None = None,
    ) -> "DynSnapClassifier":
        """A new estimator: one network that was trained to predict what this ensemble predicts.

        It predicts, saves and loads as any other, at the cost of one network. For the next
        generation, retrain the ensemble and distil that. Torch modules only.

        Args:
            weight: What the ensemble counts for; the labels have the rest.
            temperature: How soft scores are made before they are compared.
            epochs: Epochs of its training; `epochs` of this estimator by default.
            previous: A second teacher, of the generation before: its ensemble, or what that was
                distilled to. It has no say on rows of classes that it never saw.
            share: What the second teacher counts for.
            data: All data so far, as (X, y), with weights and groups as in `retrain`: needed where
                this estimator does not hold it, after `load` or with `keep_data=False`.
        """
        check_can_train(self, "distil")
        if previous is not None:
            check_is_fitted(previous)
        inputs, labels = data_so_far(self, data, "distill(data=(X, y))")
        facts = facts_so_far(self, data)
        with Session(self, "distill") as session:
            made = student(
                self,
                inputs,
                labels,
                facts,
                weight=weight,
                temperature=temperature,
                epochs=epochs,
                previous=previous,
                share=share,
                session=session,
            )
        fresh = successor(self)
        usual = self._usual()
        unused = {name: usual[name] for name in OF_METHODS}
        fresh.set_params(method="singlebase", members=1, snapshots=1, retraining=None, **unused)
        kept = (inputs, labels) if self.keep_data else None
        return fresh._become(made, self.classes_, data=kept, facts=facts)

    def _learn(
        self,
        inputs: Any,
        labels: AnyArray,
        facts: RowFacts,
        *,
        before: "DynSnapClassifier | None",
        teacher: Any = None,
    ) -> "DynSnapClassifier":
        if (unused := facts.without_weight) is not None:
            # As if they were not there: a fit without them has the same bits.
            rows = np.flatnonzero(~unused)
            inputs, labels, facts = inputs[rows], labels[rows], facts.of_rows(rows)
        if isinstance(inputs, Frame):
            self._columns = inputs.type  # with the categories that are new in this generation
        with Session(self, "fit" if before is None else "retrain") as session:
            made, classes = train(
                self, inputs, labels, facts, before=before, teacher=teacher, session=session
            )
        kept = (inputs, labels) if self.keep_data else None
        self._become(made, classes, data=kept, facts=facts)
        session.watch.fitted()
        return self

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
