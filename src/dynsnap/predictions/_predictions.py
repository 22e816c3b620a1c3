"""What one trained learner said about a set of inputs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from dynsnap._types import AnyArray, Floats, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.predictions._ids import as_id_column, check_ids
from dynsnap.predictions._labels import Slice, as_positions, as_slice, refuse_missing
from dynsnap.predictions._text import check_class_names
from dynsnap.predictions._validate import as_scores, as_weights, highest_class, read_only


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
        truth: The true class of each input, or None where it is not known.
        slices: Columns to break results down by, under their names.
        weights: The importance or traffic of each input, or None where all count the same.
        notes: What a reader of results should know about these predictions, a sentence each.

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

    def __init__(
        self,
        *,
        ids: Any,
        classes: Iterable[str],
        scores: Any = None,
        labels: Any = None,
        truth: Any = None,
        slices: Mapping[str, Any] | None = None,
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
            if true is not None:
                refuse_missing(int((true < 0).sum()), rows=rows, what="truth")
        _fill(
            self,
            id_column=id_column,
            classes=names,
            labels=said,
            scores=rows_of_scores,
            truth=true,
            slices={
                name: as_slice(values, name=name, rows=rows)
                for name, values in (slices or {}).items()
            },
            weights=None if weights is None else as_weights(weights, rows=rows),
            notes=(),
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        extras = [
            name for name in ("scores", "truth", "weights") if getattr(self, name) is not None
        ]
        held = ", ".join(["labels", *extras, *(f"slice {name!r}" for name in self.slices)])
        return f"<Predictions: {len(self):,} inputs, {len(self.classes):,} classes, {held}>"

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
    )
    return made


def changed(predictions: Predictions, **parts: Any) -> Predictions:
    """The same predictions with some parts replaced by others that were checked already."""
    kept = {name: getattr(predictions, name) for name in Predictions.__dataclass_fields__}
    return trusted(**(kept | parts))


def _fill(made: Predictions, **parts: Any) -> None:
    for name, value in parts.items():
        value = read_only(value) if isinstance(value, np.ndarray) else value
        object.__setattr__(made, name, value)
