"""Numbers: predictions agree, and are right, within a tolerance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from dynsnap._types import AnyArray, Flags, Floats
from dynsnap.errors import InputError, PlanError
from dynsnap.predictions._schema import ColumnLayout, ColumnNames
from dynsnap.predictions._text import shown
from dynsnap.predictions._vocabulary import Batches, Vocabulary
from dynsnap.predictions.tasks._task import (
    AnswerTask,
    Change,
    ReadRows,
    RowStatistics,
    cases_of,
    cases_without_truth,
    change_of,
    filled,
    laid_out,
    no_labels,
    numbers,
)

_MOST = 1e100  # squares of larger numbers, summed up, are infinite


@dataclass(frozen=True, kw_only=True)
class Regression(AnswerTask):
    """Numbers, in the column of labels (or `prediction`), and the true numbers, where known.

    Attributes:
        tolerance: Two predictions agree if they differ by at most so much.
        truth_tolerance: A prediction is right if it is off by at most so much; the same if None.

    Raises:
        PlanError: A tolerance is negative or no number.

    Example:
        >>> task = Regression(tolerance=0.5)
        >>> old, new = np.array([[1.0], [2.0]]), np.array([[1.2], [4.0]])
        >>> task.agree(old, new).tolist()
        [True, False]
        >>> task.pair(old, new, np.array([1.0, 2.0])).cases.argmax(axis=1).tolist()  # kept, lost
        [0, 2]
    """

    name: ClassVar[str] = "regression"

    tolerance: float
    truth_tolerance: float | None = None

    def __post_init__(self) -> None:
        for name in ("tolerance", "truth_tolerance"):
            value = getattr(self, name)
            if name == "truth_tolerance" and value is None:
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 <= value < math.inf:
                raise PlanError(
                    f"`{name}` must be a number of at least 0, in the unit of the predictions, got "
                    f"{value!r}."
                )

    @property
    def near_enough(self) -> float:
        """How far off a prediction may be that is right."""
        return self.tolerance if self.truth_tolerance is None else self.truth_tolerance

    def interpret(self, schema: pa.Schema, columns: ColumnNames) -> ColumnLayout:
        """The columns of predictions and true numbers."""
        return laid_out(schema, columns, self, answers_in(columns), role="label")

    def vocabulary(self, source: Batches, layout: ColumnLayout) -> Vocabulary:
        """There are no names; only whether there is a truth must be known."""
        known, gaps = filled(source, layout.truth)
        return Vocabulary(
            classes=(), scored=0, slices={}, has_truth=known, truth_gaps=gaps, task=self
        )

    def read(
        self, batch: pa.RecordBatch, layout: ColumnLayout, vocabulary: Vocabulary, before: int
    ) -> ReadRows:
        """Predictions as (rows, 1), true numbers as (rows,), NaN where they are not known."""
        assert layout.label is not None
        found = self._numbers(batch, layout.label, before)
        truth = None
        if vocabulary.has_truth and layout.truth is not None:
            truth = self._numbers(batch, layout.truth, before, gaps=True)
        return ReadRows(found[:, None], truth, no_labels(len(found)))

    def _numbers(
        self, batch: pa.RecordBatch, column: str, before: int, *, gaps: bool = False
    ) -> Floats:
        found = numbers(batch.column(column), name=column, task=self, before=before, gaps=gaps)
        most = np.abs(found[~np.isnan(found)]).max(initial=0.0)
        if most > _MOST:
            raise InputError(
                f"The column {shown(column)} holds {most:.3g}; numbers beyond "
                f"{_MOST:g} cannot be added up. Drop such rows, or use another unit."
            )
        return found

    def pair_columns(self, *, truth: bool) -> tuple[str, ...]:
        """Whether they agree, how far they are apart, and how much nearer the truth the new is."""
        plain = ("consistency", "churn", "mean_absolute_change")
        return (*plain, "mean_absolute_error_change") if truth else plain

    def generation_columns(self, *, truth: bool) -> tuple[str, ...]:
        """Right within the tolerance, and how far off."""
        return ("accuracy", "mean_absolute_error") if truth else ()

    def pair(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> RowStatistics:
        """Right before and now, and the distance."""
        apart = np.abs(new[:, 0] - old[:, 0])
        agree = apart <= self.tolerance
        columns = [agree, ~agree, apart]
        if truth is None:
            return RowStatistics(cases_without_truth(agree), np.stack(columns, 1).astype(float))
        before, now = (np.abs(each[:, 0] - truth) for each in (old, new))
        columns.append(now - before)
        cases = cases_of(before <= self.near_enough, now <= self.near_enough, agree)
        return RowStatistics(cases, np.stack(columns, 1).astype(float))

    def alone(self, values: AnyArray, truth: AnyArray | None) -> Floats:
        """Right within the tolerance, and how far off."""
        if truth is None:
            return np.zeros((len(values), 0))
        off = np.abs(values[:, 0] - truth)
        return np.stack([off <= self.near_enough, off], 1).astype(float)

    def agree(self, old: AnyArray, new: AnyArray) -> Flags:
        """Within the tolerance of each other."""
        return np.asarray(np.abs(new[:, 0] - old[:, 0]) <= self.tolerance)

    def changed(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> Change:
        """By how far the prediction moved."""
        size = np.abs(new[:, 0] - old[:, 0])
        if truth is None:
            return change_of(None, None, self.agree(old, new), size)
        before, now = (np.abs(each[:, 0] - truth) <= self.near_enough for each in (old, new))
        return change_of(before, now, self.agree(old, new), size)

    def texts(self, values: AnyArray, classes: Sequence[str]) -> list[str]:
        """With six digits."""
        return [f"{value:.6g}" for value in np.asarray(values).reshape(-1).tolist()]

    @property
    def meaning(self) -> str:
        """What agrees and what is right."""
        return (
            f"Predictions agree that differ by at most {self.tolerance:g}; one is right that is "
            f"off by at most {self.near_enough:g}."
        )


def answers_in(columns: ColumnNames) -> tuple[str, ...]:
    """What a column of answers that are no classes may be called."""
    return (columns.label,) if "label" in columns.renamed else (columns.label, "prediction")
