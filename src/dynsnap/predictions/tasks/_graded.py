"""Answers that were graded: right or wrong, or by a score, once or several times for each input."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray, Flags, Floats
from dynsnap.errors import InputError, PlanError
from dynsnap.predictions._arrow import bare, is_list
from dynsnap.predictions._ids import as_id_column, id_keys
from dynsnap.predictions._schema import ColumnLayout, ColumnNames
from dynsnap.predictions._sources import TableBatches
from dynsnap.predictions._text import shown
from dynsnap.predictions._vocabulary import Batches, Vocabulary
from dynsnap.predictions.tasks._binary import check_threshold
from dynsnap.predictions.tasks._task import (
    GAINED,
    KINDS,
    LOST,
    AnswerTask,
    Change,
    ReadRows,
    RowStatistics,
    laid_out,
    no_labels,
    numbers,
    parts,
    plain,
)

_MOST_ANSWERS = 1_000  # to one input


@dataclass(frozen=True, kw_only=True)
class Graded(AnswerTask):
    """A grade for each answer, from 0 (wrong) to 1 (right), and no labels at all.

    An input may have several answers, on rows of their own or in a list. Then everything is an
    expectation over one answer of each generation, drawn at random: with grades a and b, min(a, b)
    is kept, what a is above b is lost, what b is above a is gained. Two answers of the *old*
    generation to one input give the noise floor: what would flip if nothing had changed.

    Attributes:
        threshold: From which grade an answer is right; None to take grades as they are.

    Example:
        >>> task = Graded()
        >>> old, new = np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])
        >>> task.pair(old, new, None).cases.tolist()  # kept, gained, lost, never
        [[0.5, 0.5, 0.0, 0.0, 0.0]]
        >>> task.within(old).cases.tolist()  # by chance, half of two answers differ either way
        [[0.0, 0.5, 0.5, 0.0, 0.0]]
    """

    name: ClassVar[str] = "graded"
    role: ClassVar[str] = "correct"
    graded: ClassVar[bool] = True
    without: ClassVar[frozenset[str]] = frozenset({"neutral_churn"})

    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None:
            check_threshold(self.threshold)
            if self.threshold == 0:
                raise PlanError(
                    "With a threshold of 0 every graded answer is right, and none can be lost. "
                    "Give the lowest grade of a right answer (--threshold)."
                )

    def interpret(self, schema: pa.Schema, columns: ColumnNames) -> ColumnLayout:
        """The column of grades."""
        return laid_out(
            schema,
            columns,
            self,
            (columns.correct,),
            role="correct",
            truth=False,
            ignored=(columns.label, columns.truth, columns.score),
        )

    def vocabulary(self, source: Batches, layout: ColumnLayout) -> Vocabulary:
        """How many answers an input has at most, and whether every grade is 0 or 1."""
        assert layout.label is not None
        most, whole, before = 1, True, 0
        for batch in source.batches([layout.label]):
            grades, sizes = self._grades(batch.column(0), layout.label, before)
            most = max(most, int(sizes.max(initial=0)))
            whole = whole and bool(((grades == 0) | (grades == 1)).all())
            before += batch.num_rows
        if most > _MOST_ANSWERS:
            raise InputError(
                f"An input has {most:,} answers in {shown(layout.label)}, more than "
                f"{_MOST_ANSWERS:,}. Are the ids those of inputs? Name them with --id-column."
            )
        task = replace(self, whole=whole and most == 1, repeated=most > 1)
        return Vocabulary(classes=(), scored=0, slices={}, has_truth=False, task=task, width=most)

    def read(
        self, batch: pa.RecordBatch, layout: ColumnLayout, vocabulary: Vocabulary, before: int
    ) -> ReadRows:
        """Grades as (rows, answers), NaN where there are fewer."""
        assert layout.label is not None
        grades, sizes = self._grades(batch.column(layout.label), layout.label, before)
        values = np.full((len(sizes), vocabulary.width), np.nan)
        values[np.arange(vocabulary.width) < sizes[:, None]] = grades
        return ReadRows(values, None, no_labels(len(sizes)))

    def _grades(self, column: pa.Array, name: str, before: int) -> tuple[Floats, AnyArray]:
        """All grades one after another, and how many each row has."""
        column = plain(column)
        sizes = np.ones(len(column), np.intp)
        flat = column
        if is_list(column.type):
            sizes = np.asarray(pc.list_value_length(column).fill_null(0), np.intp)
            flat = column.flatten()
            if (sizes == 0).any():
                row = before + int(np.argmax(sizes == 0))
                raise InputError(
                    f"{shown(name)} has no grade in row {row} (counted from 0). Drop such rows."
                )
        grades = numbers(flat, name=name, task=self, before=before)
        outside = (grades < 0) | (grades > 1)
        if outside.any():
            raise InputError(
                f"The column {shown(name)} must hold grades from 0 (wrong) to 1 (right), but holds "
                f"{grades[int(np.argmax(outside))]:.4g}. Divide by the highest grade first."
            )
        if self.threshold is not None:
            grades = (grades >= self.threshold).astype(np.float64)
        return grades, sizes

    def pair(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> RowStatistics:
        """The mean over every answer of one beside every answer of the other."""
        cases = np.zeros((len(old), 5))
        for rows in parts(len(old), old.shape[1] * new.shape[1]):
            one, other = old[rows][:, :, None], new[rows][:, None, :]
            known = ~(np.isnan(one) | np.isnan(other))
            cases[rows] = _means(one, other, known)
        return RowStatistics(cases, np.zeros((len(old), 0)))

    def within(self, values: AnyArray) -> RowStatistics:
        """The mean over every two answers; nothing of an input that has one."""
        cases = np.zeros((len(values), 5))
        apart = ~np.eye(values.shape[1], dtype=bool)
        for rows in parts(len(values), values.shape[1] ** 2):
            one, other = values[rows][:, :, None], values[rows][:, None, :]
            cases[rows] = _means(one, other, ~(np.isnan(one) | np.isnan(other)) & apart)
        return RowStatistics(cases, np.zeros((len(values), 0)))

    def alone(self, values: AnyArray, truth: AnyArray | None) -> Floats:
        """The mean grade."""
        return np.asarray(np.nanmean(values, axis=1)[:, None])

    def agree(self, old: AnyArray, new: AnyArray) -> Flags:
        """The same mean grade."""
        apart = np.nanmean(old, axis=1) - np.nanmean(new, axis=1)
        return np.asarray(np.abs(apart) <= 1e-12)

    def changed(self, old: AnyArray, new: AnyArray, truth: AnyArray | None) -> Change:
        """Where the mean grade fell, and where it rose."""
        up = np.nanmean(new, axis=1) - np.nanmean(old, axis=1)
        rows = np.flatnonzero(~self.agree(old, new))
        kinds = np.where(up[rows] < 0, KINDS.index(LOST), KINDS.index(GAINED)).astype(np.int32)
        return Change(rows, kinds, np.abs(up[rows]))

    def texts(self, values: AnyArray, classes: Sequence[str]) -> list[str]:
        """The mean grade; of one answer that is right or wrong, the word."""
        found = np.nanmean(values, axis=1).tolist()
        if self.whole:
            return ["right" if each else "wrong" for each in found]
        return [f"{each:.4g}" for each in found]

    @property
    def meaning(self) -> str:
        """What agrees and what is right."""
        said = "Answers were graded before."
        if self.threshold is not None:
            said += f" One is right whose grade is at least {self.threshold:g}."
        if self.repeated:
            said += (
                " Inputs have several answers: every share is an expectation over one answer of "
                "each generation, and intervals come from resampling inputs."
            )
        elif not self.whole:
            said += " What a grade fell by is lost, what it rose by is gained."
        return said


def _means(one: AnyArray, other: AnyArray, known: Flags) -> Floats:
    """Kept, gained, lost, never and nothing, of each row, over the pairs that are known."""
    count = known.sum(axis=(1, 2))

    def mean(values: AnyArray) -> Floats:
        total = np.where(known, values, 0.0).sum(axis=(1, 2))
        return np.asarray(np.divide(total, count, out=np.zeros(len(total)), where=count > 0))

    both = [
        np.minimum(one, other),
        np.maximum(other - one, 0),
        np.maximum(one - other, 0),
        1 - np.maximum(one, other),
    ]
    return np.stack([*map(mean, both), np.zeros(len(count))], axis=1)


def grouped(source: Batches, layout: ColumnLayout) -> Batches:
    """A row for each id, with all its answers in a list, where ids come more than once.

    Weights and slices are those of the first row of an id. What has each id once stays as it is,
    and is read a batch at a time; else ids and grades are held in memory.
    """
    assert layout.label is not None
    keys = [id_keys(as_id_column(batch.column(0))) for batch in source.batches([layout.id])]
    every = np.concatenate(keys) if keys else np.zeros(0, np.uint64)
    if (every[1:] > every[:-1]).all() or len(np.unique(every)) == len(every):
        return source
    if is_list(bare(source.schema.field(layout.label).type)):
        raise InputError(
            f"{shown(layout.id)} has some ids twice, and {shown(layout.label)} holds lists. Write "
            "all answers to an input into one list, or each into a row of its own."
        )
    names = [layout.id, layout.label, *([layout.weight] if layout.weight else []), *layout.others]
    batches = [
        pa.RecordBatch.from_arrays(
            [plain(column) for column in batch.columns], names=list(batch.schema.names)
        )
        for batch in source.batches(names)
    ]
    table = pa.Table.from_batches(batches).combine_chunks()
    order = np.argsort(every, kind="stable")
    starts = np.flatnonzero(np.r_[True, every[order][1:] != every[order][:-1]])
    firsts = order[starts]
    place = np.argsort(firsts)  # ids in the order in which they first come
    ends = np.r_[starts[1:], len(order)]
    sizes = (ends - starts)[place]
    answers = np.concatenate([order[starts[i] : ends[i]] for i in place.tolist()])
    grades = table.column(layout.label).combine_chunks()
    values = grades.take(pa.array(answers))
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    offsets = pa.array(np.r_[0, np.cumsum(sizes)], pa.int64())
    lists = pa.LargeListArray.from_arrays(offsets, values)
    rest = table.take(pa.array(firsts[place]))
    made = rest.set_column(rest.schema.get_field_index(layout.label), layout.label, lists)
    return TableBatches(made, source.verification)
