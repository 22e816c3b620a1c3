"""Sets of labels: several of each input, or the first places of a ranking."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray, Flags, Floats, Labels
from dynsnap.errors import InputError, PlanError
from dynsnap.predictions._arrow import is_list, is_text
from dynsnap.predictions._labels import encoded, positions_in
from dynsnap.predictions._schema import ColumnLayout, ColumnNames
from dynsnap.predictions._text import (
    check_class_names,
    doubts,
    natural_order,
    positions_of,
    refuse_too_many,
    shown,
)
from dynsnap.predictions._vocabulary import Batches, Vocabulary
from dynsnap.predictions.tasks._binary import check_threshold
from dynsnap.predictions.tasks._regression import answers_in
from dynsnap.predictions.tasks._task import (
    AnswerTask,
    Change,
    LabelStatistics,
    ReadRows,
    RowStatistics,
    cases_of,
    cases_without_truth,
    change_of,
    filled,
    has_value,
    laid_out,
    no_labels,
    numbers,
    parts,
    plain,
)

_MOST_LABELS = 1_000  # of one input
_EMPTY = -1  # a place of a set that holds nothing
_UNKNOWN = -2  # the first place of a true set that is not known


@dataclass(frozen=True, kw_only=True)
class _Sets(AnswerTask):
    """Answers that are sets of labels, as lists or as text with a separator.

    Attributes:
        separator: What stands between labels where a column holds text. Text that begins with
            "[" is read as a JSON list.
    """

    separator: str = "|"

    def __post_init__(self) -> None:
        if not isinstance(self.separator, str) or not self.separator:
            raise PlanError(f"`separator` must be some text, such as '|', got {self.separator!r}.")

    # --- reading ---------------------------------------------------------------------------

    def vocabulary(self, source: Batches, layout: ColumnLayout) -> Vocabulary:
        """The labels that occur, and how many an input has at most."""
        known, gaps = filled(source, layout.truth)
        names: set[str] = set()
        widths = {"label": 1, "truth": 1}
        notes: list[str] = []
        for column in ("label", "truth"):
            name = getattr(layout, column)
            if name is None or (column == "truth" and not known):
                continue
            own: set[str] = set()
            rows = 0
            for batch in source.batches([name]):
                sets = self._sets(batch.column(0), name, first=column == "label")
                own.update(encoded(sets.flatten())[0])
                names |= own
                if self.per_label:
                    refuse_too_many(len(names), where=f"the column {shown(name)}")
                sizes = pc.list_value_length(sets).fill_null(0)
                widths[column] = max(widths[column], *np.asarray(sizes).tolist(), 1)
                rows += len(sets)
            if self.per_label or widths[column] == 1:  # rankings may have items of their own
                notes += doubts(name, own, rows=rows)
        classes = natural_order(names)
        if layout.score_columns:
            scored = layout.classes or ()
            classes = (*scored, *(each for each in classes if each not in scored))
            widths["label"] = self._most_scored(source, layout)
        for column, width in widths.items():
            if width > _MOST_LABELS:
                raise InputError(
                    f"An input has {width:,} labels in {shown(getattr(layout, column))}, more than "
                    f"{_MOST_LABELS:,}. Cut rankings to their first places (--task ranking --k 10)."
                )
        if not classes:
            raise InputError("No input has a label. Write one into some row at least.")
        return Vocabulary(
            classes=check_class_names(classes),
            scored=0,
            slices={},
            has_truth=known,
            truth_gaps=gaps,
            notes=tuple(notes),
            task=self,
            width=max(1, widths["label"]),
            truth_width=widths["truth"],
        )

    def read(
        self, batch: pa.RecordBatch, layout: ColumnLayout, vocabulary: Vocabulary, before: int
    ) -> ReadRows:
        """Sets as (rows, labels): positions among the classes, ascending, -1 where nothing is.

        A truth that is not known begins with -2: it is not the empty set.
        """
        places = positions_of(vocabulary.classes)
        values = self._values(batch, layout, vocabulary, before)
        truth = None
        if vocabulary.has_truth and layout.truth is not None:
            width = vocabulary.truth_width
            truth = self._packed(batch, layout.truth, places, width, first=False)
            truth[~has_value(plain(batch.column(layout.truth))), 0] = _UNKNOWN
        return ReadRows(values, truth, no_labels(batch.num_rows))

    def _values(
        self, batch: pa.RecordBatch, layout: ColumnLayout, vocabulary: Vocabulary, before: int
    ) -> Labels:
        """The answers of a batch, before which so many rows came."""
        assert layout.label is not None
        places = positions_of(vocabulary.classes)
        return self._packed(batch, layout.label, places, vocabulary.width, first=True)

    def _most_scored(self, source: Batches, layout: ColumnLayout) -> int:
        """The most labels of an input, where columns of scores choose them."""
        return 1

    def _packed(
        self, batch: pa.RecordBatch, name: str, places: dict[str, int], width: int, *, first: bool
    ) -> Labels:
        sets = self._sets(batch.column(name), name, first=first)
        sizes = np.asarray(pc.list_value_length(sets).fill_null(0), np.intp)
        labels = positions_in(*encoded(sets.flatten()), places, what=name)
        return _packed(np.repeat(np.arange(len(sets)), sizes), labels, sizes, width)

    def _sets(self, column: pa.Array, name: str, *, first: bool) -> pa.Array:
        """A column as lists of text without empty ones; `first` for answers, not truths."""
        column = plain(column)
        if is_text(column.type):
            column = self._parted(column)
        elif not is_list(column.type):
            if first:
                raise InputError(
                    f"The task {self.name} needs lists of labels in the column {shown(name)}, or "
                    f"text with {shown(self.separator)} between them, but it is of the type "
                    f"{column.type}. With one label per input, leave --task out."
                )
            ones = np.asarray(column.is_valid()).astype(np.int64)
            offsets = pa.array(np.r_[0, np.cumsum(ones)], pa.int64())
            column = pa.LargeListArray.from_arrays(offsets, column.drop_null())
        return self._cut(column) if first else column

    def _cut(self, sets: pa.Array) -> pa.Array:
        return sets

    def _parted(self, column: pa.Array) -> pa.Array:
        lists = []
        for text in column.to_pylist():
            text = "" if text is None else text.decode() if isinstance(text, bytes) else text
            if text.startswith("["):
                try:
                    found = json.loads(text)
                except (ValueError, RecursionError):
                    found = text.split(self.separator)
                if not isinstance(found, list):
                    found = [found]
                lists.append([str(each) for each in found if each not in (None, "")])
            else:
                lists.append([each.strip() for each in text.split(self.separator) if each.strip()])
        return pa.array(lists, pa.large_list(pa.large_string()))

    # --- two generations -------------------------------------------------------------------

    @abstractmethod
    def _right(self, values: AnyArray, truth: AnyArray) -> Flags:
        """Which answers are right."""

    def pair_columns(self, *, truth: bool) -> tuple[str, ...]:
        """Whether the sets are the same, and how much they have in common."""
        return ("consistency", "churn", "jaccard_consistency")

    def pair(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> RowStatistics:
        """The same set or not, and Jaccard's index."""
        agree = self.agree(old, new)
        columns = np.stack([agree, ~agree, jaccard(old, new)], axis=1).astype(float)
        if truth is None:
            return RowStatistics(cases_without_truth(agree), columns)
        cases = cases_of(self._right(old, truth), self._right(new, truth), agree)
        return RowStatistics(cases, columns)

    def alone(self, values: AnyArray, truth: AnyArray | None) -> Floats:
        """Whether the set is right."""
        if truth is None:
            return np.zeros((len(values), 0))
        return self._right(values, truth).astype(float)[:, None]

    def agree(self, old: AnyArray, new: AnyArray) -> Flags:
        """The same set."""
        width = max(old.shape[1], new.shape[1])
        return np.asarray((_wide(old, width) == _wide(new, width)).all(axis=1))

    def changed(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> Change:
        """By the share of labels that are not in both."""
        size = 1 - jaccard(old, new)
        if truth is None:
            return change_of(None, None, self.agree(old, new), size)
        before, now = self._right(old, truth), self._right(new, truth)
        return change_of(before, now, self.agree(old, new), size)

    def texts(self, values: AnyArray, classes: Sequence[str]) -> list[str]:
        """The labels with the separator between them."""
        return [
            self.separator.join(classes[place] for place in row if place >= 0) or "(none)"
            for row in np.asarray(values).tolist()
        ]

    def moved(self, values: AnyArray, target: Labels) -> AnyArray:
        """Under other places, each label once."""
        found = _each_once(np.append(target, _EMPTY)[np.maximum(values, _EMPTY)].astype(np.int32))
        found[~self.known(values), 0] = _UNKNOWN
        return found

    def known(self, truth: AnyArray) -> Flags:
        """All but those that are marked."""
        return np.asarray(truth[:, 0] != _UNKNOWN)

    def truth_differs(self, one: AnyArray, other: AnyArray) -> Flags:
        """Other sets, where both are known."""
        return ~_Sets.agree(self, one, other) & self.known(one) & self.known(other)


@dataclass(frozen=True, kw_only=True)
class MultiLabel(_Sets):
    """Several labels of each input: lists, text, or a score for each label and a threshold.

    Two answers agree, and one is right, if the sets are the same (exact match). What sets have in
    common is Jaccard's index. Of each label, the inputs count that have it in the truth or in
    either generation.

    Attributes:
        threshold: With columns of scores (`score:<label>`): from which score a label is given.

    Example:
        >>> task = MultiLabel()
        >>> old, new = np.array([[0, 1]]), np.array([[0, -1]])  # {cat, dog} became {cat}
        >>> task.agree(old, new).tolist(), jaccard(old, new).tolist()
        ([False], [0.5])
    """

    name: ClassVar[str] = "multilabel"
    per_label: ClassVar[bool] = True

    threshold: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_threshold(self.threshold)

    def interpret(self, schema: pa.Schema, columns: ColumnNames) -> ColumnLayout:
        """A column of sets, or a column of scores for each label."""
        answer = answers_in(columns)
        return laid_out(schema, columns, self, (*answer, "labels"), role="label", scores=True)

    def _values(
        self, batch: pa.RecordBatch, layout: ColumnLayout, vocabulary: Vocabulary, before: int
    ) -> Labels:
        if not layout.score_columns:
            return super()._values(batch, layout, vocabulary, before)
        chosen = self._chosen(batch, layout, before)
        rows, labels = np.nonzero(chosen)
        return _packed(rows, labels.astype(np.int32), chosen.sum(axis=1), vocabulary.width)

    def _most_scored(self, source: Batches, layout: ColumnLayout) -> int:
        return max(
            (
                int(self._chosen(batch, layout, 0).sum(axis=1).max(initial=1))
                for batch in source.batches(layout.score_columns)
            ),
            default=1,
        )

    def _chosen(self, batch: pa.RecordBatch, layout: ColumnLayout, before: int) -> Flags:
        """Which labels have a score of at least the threshold, (rows, labels)."""
        chosen = []
        for name in layout.score_columns:
            score = numbers(batch.column(name), name=name, task=self, before=before)
            outside = (score < 0) | (score > 1)
            if outside.any():
                raise InputError(
                    f"The column {shown(name)} must hold scores from 0 to 1, but holds "
                    f"{score[int(np.argmax(outside))]:.4g}. If they are logits, apply a sigmoid "
                    "first."
                )
            chosen.append(score >= self.threshold)
        return np.stack(chosen, axis=1)

    def generation_columns(self, *, truth: bool) -> tuple[str, ...]:
        """Exact match, and what the set has in common with the truth."""
        return ("accuracy", "jaccard_accuracy") if truth else ()

    def alone(self, values: AnyArray, truth: AnyArray | None) -> Floats:
        """Exact match, and what the set has in common with the truth."""
        right = super().alone(values, truth)
        return right if truth is None else np.c_[right, jaccard(values, truth)]

    def _right(self, values: AnyArray, truth: AnyArray) -> Flags:
        return self.agree(values, truth)

    def of_labels(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> LabelStatistics:
        """The sets restricted to each label that any of them has."""
        sets = [old, new] if truth is None else [old, new, truth]
        union = _each_once(np.concatenate(sets, axis=1))
        rows, place = np.nonzero(union >= 0)
        labels = union[rows, place]
        held = []
        for each in sets:
            has = np.zeros(len(rows), bool)
            for column in range(each.shape[1]):
                has |= each[rows, column] == labels
            held.append(has)
        agree = held[0] == held[1]
        cases = np.where(agree, 0, 1)
        if truth is not None:
            before, now = (has == held[2] for has in held[:2])
            # Of one label, both wrong is wrong alike.
            cases = np.where(before, np.where(now, 0, 2), np.where(now, 1, 3))
        columns = np.stack([agree, ~agree, agree], axis=1).astype(float)
        return LabelStatistics(rows, labels, cases.astype(np.int32), columns)

    @property
    def meaning(self) -> str:
        """What agrees and what is right."""
        return (
            "Sets of labels agree, and are right, if they are the same. Of each label, the inputs "
            "count that have it in the truth or in either generation."
        )


@dataclass(frozen=True, kw_only=True)
class Ranking(_Sets):
    """Lists of items, best first, of which the first k count as a set.

    Two answers agree if the same items are among the first k. One is right if a true item is among
    them (a hit); the truth is one item or several.

    Attributes:
        k: How many places count.
    """

    name: ClassVar[str] = "ranking"

    k: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.k, int) or isinstance(self.k, bool) or not 1 <= self.k <= 1000:
            raise PlanError(f"`k` must be a whole number from 1 to 1,000, got {self.k!r}.")

    def interpret(self, schema: pa.Schema, columns: ColumnNames) -> ColumnLayout:
        """The columns of rankings and of true items."""
        answer = answers_in(columns)
        return laid_out(schema, columns, self, (*answer, "ranking"), role="label")

    def _cut(self, sets: pa.Array) -> pa.Array:
        return pc.list_slice(sets.cast(pa.large_list(sets.type.value_type)), 0, self.k)

    def _right(self, values: AnyArray, truth: AnyArray) -> Flags:
        return common(values, truth) > 0

    @property
    def meaning(self) -> str:
        """What agrees and what is right."""
        return (
            f"Rankings agree if the same items are in their first {self.k} places; one is right "
            "if a true item is among these."
        )


def jaccard(one: AnyArray, other: AnyArray) -> Floats:
    """The share of labels that two sets have in common, of all that either has; 1 of no labels."""
    both = common(one, other)
    either = (one >= 0).sum(axis=1) + (other >= 0).sum(axis=1) - both
    return np.asarray(np.divide(both, either, out=np.ones(len(both)), where=either > 0))


def common(one: AnyArray, other: AnyArray) -> AnyArray:
    """How many labels two sets have in common."""
    found = np.zeros(len(one), np.intp)
    for rows in parts(len(one), one.shape[1] * other.shape[1]):
        same = one[rows][:, :, None] == other[rows][:, None, :]
        found[rows] = (same & (one[rows] >= 0)[:, :, None]).sum(axis=(1, 2))
    return found


def _packed(rows: AnyArray, labels: Labels, sizes: AnyArray, width: int) -> Labels:
    """Labels, row after row, as (rows, width), ascending and each once."""
    values = np.full((len(sizes), max(1, width)), _EMPTY, np.int32)
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(labels)) - starts[rows]
    values[rows, place] = labels
    return _each_once(values)


def _each_once(values: Labels) -> Labels:
    """Sets in ascending order with what is empty last, and without repetitions."""
    last = np.iinfo(np.int32).max
    ordered = np.sort(np.where(values < 0, last, values), axis=1)
    again = np.zeros(ordered.shape, bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    if (again & (ordered < last)).any():
        ordered = np.sort(np.where(again, last, ordered), axis=1)
    return np.asarray(np.where(ordered == last, _EMPTY, ordered), np.int32)


def _wide(values: AnyArray, width: int) -> AnyArray:
    if values.shape[1] == width:
        return values
    more = np.full((len(values), width - values.shape[1]), _EMPTY, values.dtype)
    return np.concatenate([values, more], axis=1)
