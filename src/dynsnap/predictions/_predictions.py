"""What one trained learner said about a set of inputs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dynsnap._types import AnyArray, Flags, Floats, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.predictions._ids import as_id_column, check_ids
from dynsnap.predictions._labels import Slice, as_positions, as_slice, refuse_missing
from dynsnap.predictions._text import check_class_names
from dynsnap.predictions._validate import as_scores, as_weights, highest_class, read_only

if TYPE_CHECKING:
    from dynsnap.predictions.tasks import AnswerTask


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Predictions:
    """Ids, class names, and scores or labels; truth, slices and weights where they are known.

    What exists is valid, and its arrays cannot be written to. Ids are whole numbers or text, each
    once. A row of scores is finite, not negative and sums to one within 0.01. Labels and truth are
    handed in as class names (text) or as whole numbers, and kept as positions in `classes`. Labels
    that are not given are the class with the highest score; ties go to the lowest class.

    Whole numbers are positions in `classes` with `positions=True`, and names with
    `positions=False`: 3 is the class "3". Where nothing is said they are positions, unless a class
    has the name of another one's position, as "1" in ["1", "2", "3"]: then they are refused.

    Attributes:
        id_column: The ids as an Arrow array, int64 or large_string.
        classes: Class names; every other attribute counts classes in this order.
        labels: The label of each input, as a position in `classes`.
        scores: (inputs, classes), float32 or float64, or None for labels alone.
        truth: The true class of each input, -1 where it is not known; None where none is.
        slices: Columns to break results down by, under their names.
        weights: The importance or traffic of each input, or None where all count the same.
        notes: What a reader of results should know about these predictions, a sentence each.
        task: What answers are, where they are no classes (`dynsnap.predictions.tasks`); `labels`
            are then without meaning, and `truth` has the form that the task gives it.
        values: (inputs, values): the answers of such a task.

    Example:
        >>> made = Predictions(ids=[7, 8], classes=["cat", "dog"], scores=[[0.2, 0.8], [0.5, 0.5]])
        >>> made.labels
        array([1, 0], dtype=int32)
        >>> made.names_of(made.labels).tolist()
        ['dog', 'cat']
    """

    id_column: pa.Array
    classes: tuple[str, ...]
    labels: Labels
    scores: Scores | None
    truth: Labels | None
    slices: Mapping[str, Slice]
    weights: Floats | None
    notes: tuple[str, ...]
    task: "AnswerTask | None"
    values: AnyArray | None

    def __init__(
        self,
        *,
        ids: Any,
        classes: Iterable[str],
        scores: Any = None,
        labels: Any = None,
        truth: Any = None,
        slices: Any = None,
        weights: Any = None,
        positions: bool | None = None,
    ) -> None:
        names = check_class_names(classes)
        id_column = as_id_column(ids)
        rows = len(id_column)
        if not rows:
            raise InputError("There are no predictions: `ids` is empty.")
        check_ids(id_column)
        if scores is None and labels is None:
            raise InputError("Give `scores` or `labels`: without either there are no predictions.")
        rows_of_scores = None if scores is None else as_scores(scores, rows=rows, classes=names)
        said = None
        if labels is not None:
            said = as_positions(
                labels, what="labels", rows=rows, classes=names, positions=positions
            )
            missing = rows if said is None else int((said < 0).sum())
            refuse_missing(missing, rows=rows, what="labels")
        elif rows_of_scores is not None:
            said = highest_class(rows_of_scores)
        true = None
        if truth is not None:
            true = as_positions(truth, what="truth", rows=rows, classes=names, positions=positions)
        own_slices = {} if slices is None else _slice_columns(slices, id_column)
        _fill(
            self,
            id_column=id_column,
            classes=names,
            labels=said,
            scores=rows_of_scores,
            truth=true,
            slices={
                name: as_slice(values, name=name, rows=rows) for name, values in own_slices.items()
            },
            weights=None if weights is None else as_weights(weights, rows=rows),
            notes=(),
            task=None,
            values=None,
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        id: str = "id",  # noqa: A002  the column is called so everywhere
        truth: str | None = None,
        label: str | None = None,
        scores: str | Sequence[Any] | Mapping[Any, Any] | None = None,
        weight: str | None = None,
        slices: Sequence[str] | None = None,
    ) -> "Predictions":
        """Predictions from a frame of pandas or polars, an Arrow table, or a dict of arrays.

        Values of `truth` and `label` are class names, also whole numbers: 3 is the class "3".
        What is not named here is looked for where files have it: `truth`, `label`, `score:<class>`.

        Args:
            frame: The frame; anything with `__arrow_c_stream__`.
            id: The column of ids. An index that has a name is a column of that name.
            truth: The column of true classes; it may have gaps.
            label: The column of predicted classes.
            scores: The columns of scores: their prefix, which the class name follows; a list of
                columns that are called like their classes; a mapping of classes to columns; or one
                column of lists.
            weight: The column of weights.
            slices: The columns to break results down by; all others with few values if left out.

        Example:
            >>> frame = {"customer": [7, 8], "churned": [0, 1], "p0": [0.8, 0.4], "p1": [0.2, 0.6]}
            >>> made = Predictions.from_frame(frame, id="customer", truth="churned", scores="p")
            >>> made.classes, made.labels.tolist(), made.truth.tolist()
            (('0', '1'), [0, 1], [0, 1])
        """
        from dynsnap.predictions._in_memory import from_frame

        return from_frame(
            frame, id=id, truth=truth, label=label, scores=scores, weight=weight, slices=slices
        )

    @classmethod
    def from_arrays(
        cls,
        ids: Any,
        proba: Any,
        classes: Any,
        truth: Any = None,
        *,
        labels: Any = None,
        weights: Any = None,
        slices: Any = None,
        positions: bool | None = None,
    ) -> "Predictions":
        """Predictions from arrays, as scikit-learn has them.

        Args:
            ids: An id for each input, whole numbers or text.
            proba: (inputs, classes): what `predict_proba` gives; None for labels alone.
            classes: What the columns of `proba` are: `classes_` of a classifier as it is.
            truth: The true class of each input, by name: whole numbers are names, as in `classes_`.
                Gaps (None, NaN) are inputs whose truth is not known.
            labels: The predicted classes, by name; those with the highest scores if left out.
            weights: The importance or traffic of each input.
            slices: Columns to break results down by: a mapping, or a frame (matched by its column
                `id` if it has one).
            positions: Whether whole numbers in `truth` and `labels` are positions in `classes`. If
                left out they are names, and one that is no name but a position is refused.

        Example:
            >>> made = Predictions.from_arrays([7, 8], [[0.8, 0.2], [0.4, 0.6]], [1, 2], [1, 1])
            >>> made.classes, made.labels.tolist(), made.truth.tolist()
            (('1', '2'), [0, 1], [0, 0])
        """
        from dynsnap.predictions._in_memory import from_arrays

        return from_arrays(
            ids,
            proba,
            classes,
            truth,
            labels=labels,
            weights=weights,
            slices=slices,
            positions=positions,
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        extras = [
            name for name in ("scores", "truth", "weights") if getattr(self, name) is not None
        ]
        if self.task is not None:
            held = ", ".join([*extras, *(f"slice {name!r}" for name in self.slices)])
            return f"<Predictions: {len(self):,} inputs, task {self.task.name!r}, {held}>"
        held = ", ".join(["labels", *extras, *(f"slice {name!r}" for name in self.slices)])
        return f"<Predictions: {len(self):,} inputs, {len(self.classes):,} classes, {held}>"

    @property
    def unlabelled(self) -> int:
        """How many inputs have no true class."""
        if self.task is not None and self.task.graded:
            return 0
        known = self.labelled
        return len(self) if known is None else int((~known).sum())

    @property
    def labelled(self) -> Flags | None:
        """Which inputs have a truth; None where it is not known of any."""
        if self.truth is None:
            return None
        return self.truth >= 0 if self.task is None else self.task.known(self.truth)

    @cached_property
    def ids(self) -> AnyArray:
        """The ids as numpy: int64, or an object array of text."""
        return read_only(self.id_column.to_numpy(zero_copy_only=False))

    def names_of(self, positions: Any) -> AnyArray:
        """The class names at these positions, as an object array of text."""
        named: AnyArray = np.array(self.classes, dtype=object)[np.asarray(positions)]
        return named

    def take(self, rows: Any) -> "Predictions":
        """The predictions of some inputs, each at most once: positions in any order, or a mask.

        Example:
            >>> made = Predictions(ids=["a", "b", "c"], classes=["x"], labels=[0, 0, 0])
            >>> made.take([2, 0]).ids.tolist()
            ['c', 'a']
        """
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.intp, copy=False)
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(self):
            raise InputError(f"`rows` must be positions from 0 to {len(self) - 1}.")
        return self._rows(chosen, self.id_column.take(pa.array(chosen)))

    def slice(self, start: int, stop: int) -> "Predictions":
        """The predictions of the inputs from `start` up to `stop`, without copying any.

        Example:
            >>> made = Predictions(ids=["a", "b", "c"], classes=["x"], labels=[0, 0, 0])
            >>> made.slice(1, 3).ids.tolist()
            ['b', 'c']
        """
        start, stop, _ = slice(start, stop).indices(len(self))
        rows = slice(start, max(start, stop))
        return self._rows(rows, self.id_column.slice(start, rows.stop - start))

    def _rows(self, rows: Any, id_column: pa.Array) -> "Predictions":
        return trusted(
            id_column=id_column,
            classes=self.classes,
            labels=self.labels[rows],
            scores=None if self.scores is None else self.scores[rows],
            truth=None if self.truth is None else self.truth[rows],
            slices={name: column.take(rows) for name, column in self.slices.items()},
            weights=None if self.weights is None else self.weights[rows],
            notes=self.notes,
            task=self.task,
            values=None if self.values is None else self.values[rows],
        )


def trusted(
    *,
    id_column: pa.Array,
    classes: tuple[str, ...],
    labels: Labels,
    scores: Scores | None = None,
    truth: Labels | None = None,
    slices: Mapping[str, Slice] | None = None,
    weights: Floats | None = None,
    notes: tuple[str, ...] = (),
    task: "AnswerTask | None" = None,
    values: AnyArray | None = None,
) -> Predictions:
    """Predictions from parts that were checked already: nothing is looked at again."""
    made = Predictions.__new__(Predictions)
    _fill(
        made,
        id_column=id_column,
        classes=classes,
        labels=labels,
        scores=scores,
        truth=truth,
        slices=dict(slices or {}),
        weights=weights,
        notes=notes,
        task=task,
        values=values,
    )
    return made


def _slice_columns(slices: Any, id_column: pa.Array) -> Mapping[str, Any]:
    if isinstance(slices, Mapping):
        return slices
    from dynsnap.predictions._frames import slice_columns

    return slice_columns(slices, id_column)


def changed(predictions: Predictions, **parts: Any) -> Predictions:
    """The same predictions with some parts replaced by others that were checked already."""
    kept = {name: getattr(predictions, name) for name in Predictions.__dataclass_fields__}
    return trusted(**(kept | parts))


def _fill(made: Predictions, **parts: Any) -> None:
    for name, value in parts.items():
        value = read_only(value) if isinstance(value, np.ndarray) else value
        object.__setattr__(made, name, value)
