"""What rows come with beside inputs and labels: weights and groups, and what goes by classes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from dynsnap._types import AnyArray, Flags, Floats, Labels, Scores
from dynsnap.data import Pool
from dynsnap.ensemble import SELECTION_METRICS, named_code
from dynsnap.errors import InputError, PlanError, did_you_mean


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RowFacts:
    """What is known of rows beside their inputs and labels.

    Attributes:
        weights: How much each counts; None where all count 1.
        groups: What each belongs to, as text; None where every row is on its own.
    """

    weights: Floats | None = None
    groups: AnyArray | None = None

    @classmethod
    def of(cls, rows: int, *, sample_weight: Any = None, groups: Any = None) -> "RowFacts":
        """Weights and groups of so many rows, checked."""
        weights = None
        if sample_weight is not None:
            try:
                weights = _check_sample_weight(
                    sample_weight, np.empty(rows), dtype=np.float64, ensure_non_negative=True
                )
            except ValueError as error:
                raise InputError(str(error)) from error
            if not weights.any():
                raise InputError("`sample_weight` is 0 for every row: nothing is left to train on.")
        found = None
        if groups is not None:
            try:
                found = column_or_1d(groups)
                check_consistent_length(found, np.empty(rows))
            except ValueError as error:
                raise InputError(f"`groups` must have one value for each row: {error}") from error
            # As text, so that a group is the same group in all generations, whatever its type.
            found = np.array([_group_name(value) for value in found.tolist()], dtype=object)
            if len(set(found.tolist())) < 2:
                raise InputError(
                    "`groups` has one group only, so nothing can be set aside to validate on. "
                    "Bring rows of more groups, or leave `groups` out."
                )
        return cls(weights=weights, groups=found)

    def joined(self, later: "RowFacts", *, rows: tuple[int, int]) -> "RowFacts":
        """The facts of these rows, then of later ones; how many rows each has."""
        if (self.groups is None) != (later.groups is None):
            lacking = "earlier" if self.groups is None else "new"
            raise InputError(
                f"`groups` is missing for the {lacking} rows. Pass it for all rows, or for none."
            )
        groups = None
        if self.groups is not None and later.groups is not None:
            groups = np.concatenate([self.groups, later.groups])
        weights = None
        if self.weights is not None or later.weights is not None:
            parts = zip((self.weights, later.weights), rows, strict=True)
            weights = np.concatenate([np.ones(n) if own is None else own for own, n in parts])
        return RowFacts(weights=weights, groups=groups)

    @property
    def without_weight(self) -> Flags | None:
        """Which rows count nothing; None where all count."""
        if self.weights is None or (self.weights > 0).all():
            return None
        return np.asarray(self.weights == 0)

    def of_rows(self, rows: Any) -> "RowFacts":
        """The facts of some rows."""
        return RowFacts(
            weights=None if self.weights is None else self.weights[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    def noted_in(self, pool: Pool) -> Pool:
        """A pool of these rows, with these facts; rows that all count 1 have no weights there."""
        plain = self.weights is None or (self.weights == 1).all()
        return replace(pool, weights=None if plain else self.weights, groups=self.groups)


def _group_name(value: Any) -> str:
    """A group as text: 1.0 is the group 1, which pandas makes of it beside a gap."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)


def by_class(estimator: Any, classes: AnyArray, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings for a trainer, those that name classes by the names that classes have there."""
    found = dict(settings)
    if found.get("class_weight") is not None:
        found["class_weight"] = _class_weight(estimator.class_weight, classes)
    if "selection_metric" in found:
        found["selection_metric"] = _selection_metric(estimator, classes)
    return found


def _class_weight(given: Any, classes: AnyArray) -> Any:
    if not isinstance(given, dict):
        return given
    # A 1 stands for the class 1.0, and so does its name: files hold names only.
    labels = {label: str(label) for label in classes.tolist()}
    names = {**{name: name for name in labels.values()}, **labels}
    return {names.get(key, str(key)): weight for key, weight in given.items()}


def _selection_metric(estimator: Any, classes: AnyArray) -> Any:
    given = estimator.selection_metric
    if isinstance(given, str) and given in SELECTION_METRICS:
        return given
    return ScorerMetric(given, classes)


class ScorerMetric:
    """A scorer of scikit-learn, by its name or as it is, as a selection metric.

    Args:
        scorer: Called with an estimator, inputs and labels, as those of `make_scorer` are.
        classes: The labels of the classes.
    """

    def __init__(self, scorer: Any, classes: AnyArray) -> None:
        from sklearn.metrics import get_scorer, get_scorer_names
        from sklearn.metrics._scorer import _BaseScorer

        if isinstance(scorer, str):
            names = {*SELECTION_METRICS, *get_scorer_names()}
            if scorer not in names:
                raise PlanError(
                    f"There is no selection metric {scorer!r}. {did_you_mean(scorer, names)}"
                )
            scorer = get_scorer(scorer)
        home = str(getattr(scorer, "__module__", ""))
        if not callable(scorer) or isinstance(scorer, type):
            raise PlanError(
                f"`selection_metric` must be one of {', '.join(SELECTION_METRICS)}, the name of a "
                f"scorer of scikit-learn, or a scorer, got {scorer!r}."
            )
        if home.startswith("sklearn.metrics.") and not isinstance(scorer, _BaseScorer):
            raise PlanError(
                f"`selection_metric={scorer.__name__}` is a metric of labels, and a scorer is "
                f"needed: pass make_scorer({scorer.__name__})."
            )
        self._scorer = scorer
        self._weighs = isinstance(scorer, _BaseScorer)
        self._classes = classes

    def __call__(
        self, truth: Labels, scores: Scores, /, *, weights: Floats | None, inputs: AnyArray
    ) -> float:
        seen = Scored(self._classes, np.asarray(scores, np.float64))
        labels = self._classes[truth]
        if weights is not None and self._weighs:
            return float(self._scorer(seen, inputs, labels, sample_weight=weights))
        return float(self._scorer(seen, inputs, labels))

    def __repr__(self) -> str:
        return f"scorer {named_code(self._scorer)}"


class Scored:
    """A classifier that was asked already: it answers for the rows that it was made for."""

    _estimator_type = "classifier"

    def __init__(self, classes: AnyArray, scores: Scores) -> None:
        self.classes_ = classes
        self._scores: Scores = scores / scores.sum(axis=1, keepdims=True)

    def __sklearn_tags__(self) -> Any:
        from sklearn.dummy import DummyClassifier

        return DummyClassifier().__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Scores:  # noqa: N803
        """The scores."""
        return self._scores

    def predict(self, X: Any) -> AnyArray:  # noqa: N803
        """The class with the highest score."""
        found: AnyArray = self.classes_[self._scores.argmax(axis=1)]
        return found
