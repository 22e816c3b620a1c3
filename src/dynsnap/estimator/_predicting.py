"""What a fitted estimator knows and says."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dynsnap._types import Accuracies, AnyArray, Floats
from dynsnap.ensemble import Combination, combine
from dynsnap.estimator import _inputs
from dynsnap.estimator._fitted import Fitted, Member
from dynsnap.predictions import Predictions
from dynsnap.trainers import SETTINGS, Backend, ScoreMembers
from dynsnap.trainers import named as backend_named

_SCORES_AT_ONCE = 1 << 24  # numbers held while predicting, so that memory stays bounded


class FittedEnsemble:
    """The half of an estimator that comes after fitting."""

    model: Any
    combination: Combination
    classes_: AnyArray
    _allow_nan: bool
    _fitted: Fitted
    _score_members: ScoreMembers | None
    _trust: bool = False

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    @property
    def members_(self) -> tuple[Member, ...]:
        """Where each learner of the ensemble comes from."""
        return self._found().members

    @property
    def accuracies_(self) -> Accuracies:
        """Validation accuracy of each learner."""
        return self._found().accuracies

    @property
    def rounds_(self) -> int:
        """Rounds that were trained."""
        return self._found().rounds

    @property
    def cost_(self) -> float:
        """What the rounds cost, in trainings of `epochs` epochs."""
        return self._found().cost

    @property
    def generation_(self) -> int:
        """1 after `fit`, one more after each `retrain`."""
        return self._found().generation

    def _found(self) -> Fitted:
        # An AttributeError, as for any attribute that fitting has yet to set.
        if not hasattr(self, "_fitted"):
            raise AttributeError("This DynSnapClassifier is not fitted yet: call `fit` first.")
        found: Fitted = self._fitted
        return found

    # --- predicting -------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The combined scores of the members: a row per input, a column per class."""
        check_is_fitted(self)
        inputs = self._features(X, reset=False)
        made, score = self._found(), self._open()
        known = made.known(len(self.classes_))
        blocks = [
            combine(
                score(part)[made.places],
                how=self.combination,
                weights=made.accuracies,
                known=known,
            )
            for part in _parts(inputs, len(made.members) * len(self.classes_))
        ]
        return np.concatenate(blocks)

    def predict(self, X: Any) -> AnyArray:  # noqa: N803
        """The class with the highest score; ties go to the first of `classes_`."""
        rows = self.predict_proba(X)
        found: AnyArray = self.classes_[rows.argmax(axis=1)]
        return found

    def predictions(
        self,
        X: Any,  # noqa: N803
        *,
        ids: Sequence[Any] | None = None,
        truth: Any = None,
    ) -> Predictions:
        """Scores as `dynsnap.Predictions`, for `dynsnap.compare` and prediction files.

        Args:
            X: Inputs.
            ids: A unique name for each input; its number by default.
            truth: The true class of each, where it is known. Classes that this generation has not
                seen yet are counted as classes that it never predicts.
        """
        rows = self.predict_proba(X)
        # Looked up by value: a 1 in the truth is the class 1.0.
        known = {label: str(label) for label in self.classes_.tolist()}
        names, true = list(known.values()), None
        if truth is not None:
            found = _inputs.targets(truth, len(rows), name="truth").tolist()
            true = [known.get(label, str(label)) for label in found]
            unseen = sorted(set(true) - set(names))
            names += unseen
            rows = np.column_stack([rows, np.zeros((len(rows), len(unseen)))])
        return Predictions(
            ids=np.arange(len(rows)) if ids is None else ids, classes=names, scores=rows, truth=true
        )

    def _open(self) -> ScoreMembers:
        """The learners, opened once and ready to score."""
        if self._score_members is None:
            made = self._found()
            backend = backend_named(made.backend)  # `load` has compared it with the caller's
            self._score_members = made.scoring(
                len(self.classes_),
                lambda learners, classes: backend.scorer(
                    learners,
                    model=self.model,
                    classes=classes,
                    members=len(learners) * made.passes,
                    settings=self._training_settings(backend),
                    trust=self._trust,
                ),
            )
        return self._score_members

    def _features(self, inputs: Any, *, reset: bool) -> AnyArray:
        return _inputs.features(self, inputs, reset=reset, allow_nan=self._allow_nan)

    def _training_settings(self, backend: Backend) -> dict[str, Any]:
        """The settings that a backend has a use for, as far as they are given."""
        given = {name: getattr(self, name) for name in SETTINGS if name in backend.settings}
        return {name: value for name, value in given.items() if value is not None}


def _parts(inputs: AnyArray, width: int) -> list[AnyArray]:
    rows = max(1, _SCORES_AT_ONCE // width)
    return [inputs[start : start + rows] for start in range(0, len(inputs), rows)]
