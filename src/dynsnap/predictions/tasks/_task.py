"""What every task has in common: how rows are read, and what two answers to one input are.

A task reduces each row to numbers (`values`), and two rows to a few statistics: in which of the
five cases the input is, and some further numbers whose means are metrics. Everything above, from
sums over intervals to pages, knows no more of a task than that.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray, Flags, Floats, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.predictions._arrow import is_number, is_text, unpacked
from dynsnap.predictions._declared import check_columns
from dynsnap.predictions._schema import ColumnLayout, ColumnNames, check_presence, slice_columns
from dynsnap.predictions._text import listed, shown
from dynsnap.predictions._vocabulary import Batches, Vocabulary

ROWS_AT_ONCE = 1 << 20  # numbers that are compared with each other at a time
LOST, GAINED, CHANGED = "lost", "gained", "changed"
# Of `Change.kinds`, by their codes.
KINDS = (LOST, GAINED, CHANGED)


class RowStatistics(NamedTuple):
    """What some inputs are like in two generations.

    Attributes:
        cases: (inputs, cases): how much of each input is in each case, as `metrics` orders them;
            one case alone where an answer is right or wrong.
        columns: (inputs, columns): the numbers of `Task.pair_columns`.
    """

    cases: Floats
    columns: Floats


class LabelStatistics(NamedTuple):
    """The same for each input and each label that matters to it.

    Attributes:
        rows: The inputs.
        labels: The labels, as positions among the classes.
        cases: The case of each.
        columns: (entries, columns).
    """

    rows: AnyArray
    labels: Labels
    cases: Labels
    columns: Floats


class Change(NamedTuple):
    """Inputs whose answer changed in a way that counts.

    Attributes:
        rows: The inputs.
        kinds: For each, its place in `KINDS`.
        size: For each, how much it changed.
    """

    rows: AnyArray
    kinds: Labels
    size: Floats


class ReadRows(NamedTuple):
    """What a batch of rows holds."""

    values: AnyArray | None
    truth: AnyArray | None
    labels: Labels
    scores: Scores | None = None


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """A kind of answer: how it is read.

    One that is read into classes is compared as classes are; any other is an `AnswerTask`.

    Attributes:
        whole: Whether each input is in exactly one case, so that shares are shares of inputs.
        repeated: Whether inputs have several answers.
    """

    name: ClassVar[str]
    role: ClassVar[str] = "label"  # what `ColumnNames` calls the column of answers
    per_label: ClassVar[bool] = False
    # Whether answers are graded already, so that no column of truth is needed.
    graded: ClassVar[bool] = False
    # Metrics of the cases that mean nothing here.
    without: ClassVar[frozenset[str]] = frozenset()

    whole: bool = True
    repeated: bool = False

    # --- reading ---------------------------------------------------------------------------

    @abstractmethod
    def interpret(self, schema: pa.Schema, columns: ColumnNames) -> ColumnLayout:
        """Find out which column of a file is what."""

    @abstractmethod
    def vocabulary(self, source: Batches, layout: ColumnLayout) -> Vocabulary:
        """What must be known of a whole file before any batch is read; slices are added later."""

    @abstractmethod
    def read(
        self, batch: pa.RecordBatch, layout: ColumnLayout, vocabulary: Vocabulary, before: int
    ) -> ReadRows:
        """The rows of a batch, before which so many came."""

    @property
    @abstractmethod
    def meaning(self) -> str:
        """What agrees and what is right, in a sentence."""


class AnswerTask(Task):
    """What it means that two answers agree, or that one is right, where they are not classes."""

    # --- two generations --------------------------------------------------------------------

    def pair_columns(self, *, truth: bool) -> tuple[str, ...]:
        """The metrics of a pair that are the mean of one number per input."""
        return ()

    def generation_columns(self, *, truth: bool) -> tuple[str, ...]:
        """The metrics of a generation that are the mean of one number per input."""
        return ("accuracy",) if truth else ()

    @abstractmethod
    def pair(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> RowStatistics:
        """What the inputs are like in two generations."""

    @abstractmethod
    def alone(self, values: AnyArray, truth: AnyArray | None) -> Floats:
        """The numbers of `generation_columns`, (inputs, columns)."""

    def within(self, values: AnyArray) -> RowStatistics:
        """What two answers of one generation to an input are like; one answer is like itself."""
        return self.pair(values, values, None)

    def of_labels(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> LabelStatistics:
        """What each label is like; none where answers are not made of labels (`per_label`)."""
        columns = len(self.pair_columns(truth=truth is not None))
        nothing = np.zeros(0, np.int32)
        return LabelStatistics(nothing.astype(np.intp), nothing, nothing, np.zeros((0, columns)))

    @abstractmethod
    def agree(self, old: AnyArray, new: AnyArray) -> Flags:
        """Which inputs have answers that agree."""

    @abstractmethod
    def changed(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> Change:
        """The inputs that were lost or gained; without truth, those that do not agree."""

    def flipped(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> Change:
        """The same where some truths may be unknown: those inputs count if they do not agree."""
        known = None if truth is None else self.known(truth)
        if truth is None or known is None or known.all():
            return self.changed(old, new, truth)
        found = []
        for chosen, true in ((known, truth[known]), (~known, None)):
            part = self.changed(old[chosen], new[chosen], true)
            found.append(part._replace(rows=np.flatnonzero(chosen)[part.rows]))
        rows, kinds, size = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.argsort(rows, kind="stable")
        return Change(rows[order], kinds[order], size[order])

    # --- words ------------------------------------------------------------------------------

    @abstractmethod
    def texts(self, values: AnyArray, classes: Sequence[str]) -> list[str]:
        """Some answers, or truths, for a table."""

    def moved(self, values: AnyArray, target: Labels) -> AnyArray:
        """The same answers where every class has another place."""
        return values

    def truth_texts(self, truth: AnyArray, classes: Sequence[str]) -> list[str | None]:
        """Some truths for a table, None for those that are not known."""
        texts = self.texts(truth, classes)
        return [
            text if known else None
            for text, known in zip(texts, self.known(truth).tolist(), strict=True)
        ]

    def known(self, truth: AnyArray) -> Flags:
        """Which truths are known; in rows of numbers, those that are not are NaN."""
        return np.asarray(~np.isnan(truth).reshape(len(truth), -1).any(axis=1))

    def truth_differs(self, one: AnyArray, other: AnyArray) -> Flags:
        """For which inputs two truths are known and not the same."""
        same = np.isclose(one, other, rtol=1e-6, atol=0).reshape(len(one), -1).all(1)
        return np.asarray(~same & self.known(one) & self.known(other))


def laid_out(
    schema: pa.Schema,
    columns: ColumnNames,
    task: Task,
    answer: Sequence[str],
    *,
    role: str,
    truth: bool = True,
    scores: bool = False,
    ignored: Sequence[str] = (),
) -> ColumnLayout:
    """Which column of a file is what, for a task whose answers are in one column.

    Args:
        schema: The columns.
        columns: What they are called.
        task: The task.
        answer: What the column of answers may be called, the first that is there counts.
        role: What names it in `columns`.
        truth: Whether there may be a column of truths.
        scores: Whether columns of scores serve as well.
        ignored: Columns that are no slices.
    """
    names = schema.names
    check_columns(len(names))
    check_presence(schema, columns)
    found = next((name for name in answer if name in names), None)
    prefix = columns.score_prefix
    scored = tuple(name for name in names if scores and name.startswith(prefix) and name != prefix)
    if found is None and not scored:
        more = f", nor columns that start with {shown(prefix)}" if scores else ""
        raise InputError(
            f"The task {task.name} needs a column {' or '.join(map(shown, answer))}{more}; the "
            f"columns are {listed(names, most=12)}. Name another with `--{role}-column NAME` (in "
            f"Python: `ColumnNames({role}=NAME)`), or choose another task (--task)."
        )
    scored = () if found is not None else scored
    true = columns.truth if truth and columns.truth in names else None
    weight = columns.weight if columns.weight in names else None
    if weight is not None and not is_number(schema.field(weight).type):
        raise InputError(
            f"The column {shown(weight)} must be numbers, but is of the type "
            f"{schema.field(weight).type}."
        )
    taken = {columns.id, found, true, weight, *scored, *ignored}
    others, unusable = slice_columns(schema, taken)
    return ColumnLayout(
        id=columns.id,
        truth=true,
        label=found,
        weight=weight,
        score_columns=scored,
        score_list=None,
        classes=tuple(name.removeprefix(prefix) for name in scored) or None,
        others=others,
        unusable=unusable,
        task=task,
    )


def numbers(column: pa.Array, *, name: str, task: Task, before: int, gaps: bool = False) -> Floats:
    """A column of numbers, every one finite; with `gaps`, some may be missing, and are NaN."""
    column = plain(column)
    missing = ~has_value(column) if gaps else np.zeros(len(column), bool)
    kind = column.type
    if is_text(kind):
        column = _parsed(column, name=name, task=task)
    elif not (is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise InputError(
            f"The task {task.name} needs numbers in the column {shown(name)}, but it is of the "
            f"type {kind}. Write numbers, or choose another task (--task)."
        )
    found = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    bad = ~np.isfinite(found) & ~missing
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"The column {shown(name)} must hold a finite number in each row, but row "
            f"{before + row} (counted from 0) has {found[row]}. Drop or repair such rows."
        )
    return found


def _parsed(column: pa.Array, *, name: str, task: Task) -> pa.Array:
    """Numbers that are written as text, as in CSV; true and false are 1 and 0."""
    texts = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    lower = pc.utf8_lower(texts)
    for word, number in (("true", "1"), ("false", "0"), ("", None)):
        texts = pc.if_else(pc.equal(lower, word), pa.scalar(number, pa.large_string()), texts)
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        bad = next(text for text in texts.to_pylist() if text is not None and not _number(text))
        raise InputError(
            f"The task {task.name} needs numbers in the column {shown(name)}, but it holds "
            f"{shown(bad)}. Write numbers, or choose another task (--task)."
        ) from None


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def plain(column: pa.Array) -> pa.Array:
    """The same values without a dictionary."""
    found = unpacked(column)
    return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found


def filled(source: Batches, column: str | None) -> tuple[bool, bool]:
    """Whether any row has a value in a column, and whether any has none; empty text is none."""
    some = gaps = False
    for batch in source.batches([column]) if column is not None else ():
        has = has_value(plain(batch.column(0)))
        some, gaps = some or bool(has.any()), gaps or not has.all()
        if some and gaps:
            break
    return some, some and gaps


def has_value(column: pa.Array) -> Flags:
    """Which rows have a value: NaN and empty text are none, an empty list is one."""
    has = np.array(column.is_valid(), bool)
    if is_text(column.type):
        has &= np.asarray(pc.greater(pc.binary_length(column).fill_null(0), 0))
    if pa.types.is_floating(column.type):
        has &= ~np.asarray(pc.is_nan(column).fill_null(False))
    return has


def parts(rows: int, numbers_each: int) -> Iterator[slice]:
    """The rows in parts, so that what is computed of each stays small."""
    step = max(1, ROWS_AT_ONCE // max(1, numbers_each))
    return (slice(first, first + step) for first in range(0, rows, step))


def cases_of(right_old: Flags, right_new: Flags, agree: Flags) -> Floats:
    """The case of each input as a row with a single 1: kept, gained, lost, wrong alike or not.

    Example:
        >>> yes, no = np.array([True]), np.array([False])
        >>> cases_of(yes, no, no).tolist()
        [[0.0, 0.0, 1.0, 0.0, 0.0]]
    """
    wrong = np.where(agree, 3, 4)
    code = np.where(right_old, np.where(right_new, 0, 2), np.where(right_new, 1, wrong))
    return np.asarray(np.eye(5)[code])


def cases_without_truth(agree: Flags) -> Floats:
    """The same where the truth is not known: agrees, or does not."""
    return np.asarray(np.eye(2)[np.where(agree, 0, 1)])


def change_of(
    right_old: Flags | None, right_new: Flags | None, agree: Flags, size: Floats
) -> Change:
    """The inputs lost and gained; without truth, those that do not agree."""
    if right_old is None or right_new is None:
        rows = np.flatnonzero(~agree)
        kinds = np.full(len(rows), KINDS.index(CHANGED), np.int32)
    else:
        rows = np.flatnonzero(right_old != right_new)
        kinds = np.where(right_old[rows], KINDS.index(LOST), KINDS.index(GAINED)).astype(np.int32)
    return Change(rows, kinds, size[rows])


def no_labels(rows: int) -> Labels:
    """The labels of answers that are no classes."""
    return np.zeros(rows, np.int32)
