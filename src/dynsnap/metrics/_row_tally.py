"""The sums behind the metrics of a task whose answers are no classes.

A task gives, for two answers to an input, how much of it is in each case, and gives some further
numbers. Here these are added up by group and block, in the same shape as those of classes, so that
values, intervals and groups follow from them in the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.metrics._kernel import Blocks
from dynsnap.metrics._tally import Tally
from dynsnap.metrics._tally_layout import (
    CASES,
    CASES_WITHOUT_TRUTH,
    Chunk,
    Grouping,
    TallyLayout,
    padded,
)
from dynsnap.predictions import Predictions
from dynsnap.predictions._ids import id_keys
from dynsnap.predictions.tasks import AnswerTask

MOST_LABELS = 1_000  # labels that are measured one by one
_CHUNK = 1 << 16  # rows
_PLAIN = len(CASES_WITHOUT_TRUTH)

# The least and the largest number of a metric that was seen, (groups,).
Reach = Mapping[str, tuple[Floats, Floats]]


@dataclass(frozen=True, kw_only=True)
class RowLayout(TallyLayout):
    """The shape of a tally of a task.

    Attributes:
        task: What answers are.
        whole: Whether each input is in exactly one case, in all generations.
        truth: Whether it is known which answers are right.
    """

    task: AnswerTask
    whole: bool = True

    @property
    def exact_shares(self) -> bool:
        """Whether shares are so many inputs of all."""
        return self.whole and not self.weighted

    def pair_columns(self, pair: tuple[int, int]) -> tuple[str, ...]:
        """The metrics of a pair that are the mean of one number per row."""
        return self.task.pair_columns(truth=self.truth)

    def generation_columns(self, generation: int) -> tuple[str, ...]:
        """The metrics of a generation that are the mean of one number per row."""
        return self.task.generation_columns(truth=self.truth)

    @cached_property
    def groupings(self) -> tuple[Grouping, ...]:
        """All rows together, the labels of sets, and slices."""
        width = len(CASES) + padded(len(self.pair_columns((0, 1))))
        wanted = {"all": 1} | {f"slice:{name}": values for name, values in self.slices.items()}
        if self.task.per_label and self.classes <= MOST_LABELS:
            wanted["truth"] = self.classes
        made: list[Grouping] = []
        first = 0
        for name, groups in wanted.items():
            fewer = self._blocks(groups * width * len(self.pairs))
            blocks = self.blocks if name == "all" else fewer
            made.append(Grouping(name, groups, blocks, first))
            first += groups * blocks
        return tuple(made)

    @cached_property
    def label_blocks(self) -> int:
        """Label frequencies are not kept."""
        return 1


class RowTally(Tally):
    """The sums behind every metric of some generations of a task.

    Attributes:
        reach: Of each pair, the least and the largest value of each column in each group.
        own_reach: Of each generation, those of each column.
    """

    layout: RowLayout

    def __init__(self, layout: RowLayout) -> None:
        super().__init__(layout, compiled=False)
        groups = sum(grouping.groups for grouping in layout.groupings)
        if self.counts is not None:  # parts of inputs may be in a case
            self.counts = [np.zeros(each.shape) for each in self.counts]  # type: ignore[misc]
        self.reach = [_nothing(groups, len(layout.pair_columns(pair))) for pair in layout.pairs]
        self.own_reach = [
            _nothing(1, len(layout.generation_columns(g))) for g in range(len(layout.scored))
        ]

    def add(
        self, generations: Sequence[Predictions], *, start: int, places: AnyArray | None = None
    ) -> None:
        """Count some rows of all generations, of which `start` came before, or that are there."""
        layout, first = self.layout, generations[0]
        keys = id_keys(first.id_column)
        if layout.exact:
            self.keys[slice(start, start + len(first)) if places is None else places] = keys
        for at in range(0, len(first), _CHUNK):
            rows = slice(at, min(at + _CHUNK, len(first)))
            chunk = Chunk(
                start=start + at,
                keys=keys[rows],
                labels=(first.labels[rows],),
                scores=(),
                truth=None,
                weights=None,
                codes=first.labels[rows][None],
                places=None if places is None else places[rows],
            )
            self._add(
                Blocks.of(layout, chunk),
                [_values(each)[rows] for each in generations],
                None if first.truth is None else first.truth[rows],
                np.ones(len(chunk)) if first.weights is None else first.weights[rows],
                {name: column.codes[rows] for name, column in first.slices.items()},
            )
        self.rows += len(first)

    def merge(self, other: Tally) -> None:
        """Add what another tally of the same layout counted on other rows."""
        assert isinstance(other, RowTally)
        super().merge(other)
        mine, theirs = ([*each.reach, *each.own_reach] for each in (self, other))
        for (low, high), (lower, higher) in zip(mine, theirs, strict=True):
            np.minimum(low, lower, out=low)
            np.maximum(high, higher, out=high)

    def without_truth(self, unlabelled: "RowTally") -> "RowTally":
        """These rows and others as if no truth were known.

        Answers that are right need not agree, nor need those that agree be right, so the number of
        both is that of the columns `consistency` and `churn`.
        """
        made = RowTally(unlabelled.layout)
        made.merge(unlabelled)
        made.rows += self.rows
        made.keys += self.keys
        for mine, theirs in zip(made.generations, self.generations, strict=True):
            mine.means[:, 0] += theirs.means[:, 0]
        for place, pair in enumerate(made.layout.pairs):
            columns = made.layout.pair_columns(pair)
            assert columns[:_PLAIN] == ("consistency", "churn")
            sums = self.pairs[place].cells[:, len(CASES) :]
            into = made.pairs[place].cells
            into[:, :_PLAIN] += sums[:, :_PLAIN]
            into[:, _PLAIN : _PLAIN + len(columns)] += sums[:, : len(columns)]
            (low, high), (lower, higher) = made.reach[place], self.reach[place]
            np.minimum(low, lower[:, : len(columns)], out=low)
            np.maximum(high, higher[:, : len(columns)], out=high)
            if made.counts is not None and self.counts is not None:
                made.counts[place][:, 0] += self.counts[place].sum(axis=1)  # only their sum is read
        if made.heaviest is not None and self.heaviest is not None:
            np.maximum(made.heaviest, self.heaviest, out=made.heaviest)
        if made.counting is not None and self.counting is not None:
            made.counting += self.counting
        if made.squares is not None and self.squares is not None:
            made.squares += self.squares
        return made

    def case_counts(self, pair: int, grouping: Grouping) -> AnyArray:
        """How many rows of each group are in each case; parts of rows are rounded."""
        if self.counts is None:
            cases = len(self.layout.cases)
            return rounded(self.group_sums(pair, grouping)[..., :cases].sum(axis=1))
        return rounded(self.counts[pair][self._groups(grouping)])

    def reach_of(self, pair: int, grouping: Grouping, groups: AnyArray | None = None) -> Reach:
        """What was seen of each column of a pair, in some groups."""
        own = self._groups(grouping)
        low, high = (
            each[own] if groups is None else each[own][groups] for each in self.reach[pair]
        )
        names = self.layout.pair_columns(self.layout.pairs[pair])
        return {name: (low[:, place], high[:, place]) for place, name in enumerate(names)}

    def own_reach_of(self, generation: int) -> Reach:
        """What was seen of each column of a generation."""
        low, high = self.own_reach[generation]
        names = self.layout.generation_columns(generation)
        return {name: (low[:, place], high[:, place]) for place, name in enumerate(names)}

    def _add(
        self,
        blocks: Blocks,
        values: list[AnyArray],
        truth: AnyArray | None,
        weights: Floats,
        slices: Mapping[str, AnyArray],
    ) -> None:
        layout, task = self.layout, self.layout.task
        known = truth if layout.truth else None
        for sums, each, (low, high) in zip(self.generations, values, self.own_reach, strict=True):
            columns = task.alone(each, known) if layout.truth else np.zeros((len(weights), 0))
            np.add.at(sums.means[:, 0], blocks.own, weights)
            for place, column in enumerate(columns.T, 1):
                np.add.at(sums.means[:, place], blocks.own, weights * column)
            _widen(low, high, np.zeros(len(weights), np.intp), columns)
        for place, (old, new) in enumerate(layout.pairs):
            if old == new:
                found = task.within(values[old])
            else:
                found = task.pair(values[old], values[new], known)
            for grouping in layout.groupings:
                if grouping.name == "truth":
                    if old != new:
                        self._add_labels(
                            place, grouping, blocks, values[old], values[new], known, weights
                        )
                    continue
                codes = _codes(grouping, slices, len(weights))
                self._add_rows(place, grouping, blocks, found.cases, found.columns, codes, weights)
        self._weigh_rows(values, known, weights, slices)

    def _add_rows(
        self,
        place: int,
        grouping: Grouping,
        blocks: Blocks,
        cases: Floats,
        columns: Floats,
        codes: AnyArray,
        weights: Floats,
    ) -> None:
        count = grouping.blocks
        cells = grouping.first + codes.astype(np.int64) * count + blocks.among(count)
        each = np.concatenate([cases, columns], axis=1)
        np.add.at(self.pairs[place].cells[:, : each.shape[1]], cells, weights[:, None] * each)
        own = self._groups(grouping)
        if self.counts is not None:
            np.add.at(self.counts[place][own], codes, cases)
        low, high = self.reach[place]
        _widen(low[own], high[own], codes, columns)

    def _add_labels(
        self,
        place: int,
        grouping: Grouping,
        blocks: Blocks,
        old: AnyArray,
        new: AnyArray,
        truth: AnyArray | None,
        weights: Floats,
    ) -> None:
        found = self.layout.task.of_labels(old, new, truth)
        rows = Blocks(blocks.count, blocks.own[found.rows], blocks.hashed[found.rows])
        cases = np.eye(len(self.layout.cases))[found.cases]
        self._add_rows(
            place, grouping, rows, cases, found.columns, found.labels, weights[found.rows]
        )

    def _weigh_rows(
        self,
        values: list[AnyArray],
        truth: AnyArray | None,
        weights: Floats,
        slices: Mapping[str, AnyArray],
    ) -> None:
        if self.heaviest is None or self.counting is None or self.squares is None:
            return
        for grouping in self.layout.groupings:
            each, codes = weights, _codes(grouping, slices, len(weights))
            if grouping.name == "truth":
                every = values[: self.layout.regular]
                both = np.concatenate(every, axis=1)
                found = self.layout.task.of_labels(both, both, truth)
                each, codes = weights[found.rows], found.labels
            own, groups = self._groups(grouping), grouping.groups
            np.maximum.at(self.heaviest[own], codes, each)
            self.counting[own] += np.bincount(codes[each > 0], minlength=groups)
            self.squares[own] += np.bincount(codes, each**2, minlength=groups)


def rounded(cases: AnyArray) -> AnyArray:
    """Whole numbers near the given ones, which add up to what these add up to, in each row.

    Example:
        >>> rounded(np.array([[1.5, 0.75, 0.75]])).tolist()
        [[1, 1, 1]]
    """
    # A third of three inputs is one, also where three thirds are not quite.
    near = np.where(np.isclose(cases, np.rint(cases), rtol=0, atol=1e-6), np.rint(cases), cases)
    down = np.floor(near)
    missing = np.rint(near.sum(axis=1) - down.sum(axis=1)).astype(int)
    order = np.argsort(np.argsort(-(near - down), axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(down + (order < missing[:, None]), np.int64)


def _values(each: Predictions) -> AnyArray:
    assert each.values is not None
    return each.values


def _codes(grouping: Grouping, slices: Mapping[str, AnyArray], rows: int) -> AnyArray:
    if grouping.name.startswith("slice:"):
        return slices[grouping.name.removeprefix("slice:")]
    return np.zeros(rows, np.intp)


def _nothing(groups: int, columns: int) -> tuple[Floats, Floats]:
    return np.full((groups, columns), np.inf), np.full((groups, columns), -np.inf)


def _widen(low: Floats, high: Floats, codes: AnyArray, columns: Floats) -> None:
    if columns.shape[1]:
        np.minimum.at(low, codes, columns)
        np.maximum.at(high, codes, columns)
