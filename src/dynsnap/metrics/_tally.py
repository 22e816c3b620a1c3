"""One pass over all generations, and everything that their metrics are made of."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from dynsnap._types import AnyArray, Floats, Labels
from dynsnap.errors import InputError
from dynsnap.metrics._classification import Confusion
from dynsnap.metrics._flows import Flows
from dynsnap.metrics._kernel import Blocks, NumpyKernel, cases_of, hashes_of
from dynsnap.metrics._ranking import RankTally
from dynsnap.metrics._tally_layout import (
    BINS,
    CASES,
    CASES_WITHOUT_TRUTH,
    Chunk,
    GenerationSums,
    Grouping,
    PairSums,
    TallyLayout,
    padded,
)
from dynsnap.predictions import Predictions
from dynsnap.predictions._ids import id_keys

_COMPILED_FROM = 2_000_000  # scores; below, compiling takes longer than it saves
_CHUNK = 1 << 16  # rows


class Kernel(Protocol):
    """Adds a chunk of rows to the sums of one pair and, where given, of its generations."""

    def __call__(
        self,
        chunk: Chunk,
        pair: tuple[int, int],
        sums: PairSums,
        old: GenerationSums | None,
        new: GenerationSums | None,
    ) -> AnyArray: ...


class Tally:
    """The sums behind every metric of some generations.

    Attributes:
        layout: What is kept.
        rows: How many rows were counted so far.
        generations: Sums of each generation.
        pairs: Sums of each pair, in the order of the layout.
        flows: Of each pair, where the changed labels went.
        counts: Of each pair, how many rows are in each case of each group: (groups, cases), the
            groupings one after the other. Without weights the sums say it already: None.
        ambiguous: (blocks,) weight of the rows that not all generations label alike.
        keys: (rows,) the keys of the ids while each row is its own block; empty afterwards.
        heaviest: (groups,) the largest weight of a row in each group, the groupings one after the
            other. Without weights it is 1: None.
        counting: (groups,) how many rows of each group have a weight above 0, likewise; None
            without weights, where all do.
        squares: (groups,) the sum of the squared weights of each group, likewise.
        ranks: What AUROC and average precision are made of; None where they are not asked for.
    """

    def __init__(self, layout: TallyLayout, *, compiled: bool | None = None) -> None:
        self.layout = layout
        self.rows = 0
        self.generations = [self._generation(g) for g in range(len(layout.scored))]
        self.pairs = [self._pair(pair) for pair in layout.pairs]
        self.flows = [Flows(classes=layout.classes) for _ in layout.pairs]
        groups = sum(grouping.groups for grouping in layout.groupings)
        shape = (groups, len(layout.cases))
        self.counts = [np.zeros(shape, np.int64) for _ in layout.pairs] if layout.weighted else None
        self.ambiguous = np.zeros(layout.blocks)
        self.keys = np.zeros(layout.rows if layout.exact else 0, np.uint64)
        self.heaviest = np.zeros(groups) if layout.weighted else None
        self.counting = np.zeros(groups, np.int64) if layout.weighted else None
        self.squares = np.zeros(groups) if layout.weighted else None
        self.ranks = (
            RankTally(
                layout.rows,
                layout.classes,
                layout.label_blocks,
                layout.exact and layout.label_blocks == layout.blocks,
                layout.scored,
            )
            if layout.ranking and layout.truth and any(layout.scored)
            else None
        )
        self._jobs = _jobs(layout)
        scores = layout.rows * sum(layout.classes if scored else 1 for scored in layout.scored)
        self._kernel = _kernel(
            layout, compiled=scores >= _COMPILED_FROM if compiled is None else compiled
        )

    def add(
        self, generations: Sequence[Predictions], *, start: int, places: AnyArray | None = None
    ) -> None:
        """Count some rows of all generations.

        Args:
            generations: The rows.
            start: How many rows came before them, where they are consecutive.
            places: Where they stand among all rows, where they are not. The compiled kernel takes
                none while each row is its own block.
        """
        layout = self.layout
        total = len(generations[0])
        if start + total > layout.rows:
            raise InputError(f"The tally is for {layout.rows} rows, but there are more.")
        keys = id_keys(generations[0].id_column)
        if layout.exact:
            self.keys[slice(start, start + total) if places is None else places] = keys
        for first in range(0, total, _CHUNK):
            stop = min(first + _CHUNK, total)
            chunk = _chunk(layout, generations, keys, first, stop, start=start, places=places)
            for pair, place, old, new in self._jobs:
                sums = self._pair(pair) if place is None else self.pairs[place]
                moves = self._kernel(
                    chunk,
                    pair,
                    sums,
                    self.generations[pair[0]] if old else None,
                    self.generations[pair[1]] if new else None,
                )
                if place is not None:
                    self.flows[place].add(moves)
            self._count_ambiguous(chunk)
            self._count_cases(chunk)
            self._weigh(chunk)
        one = generations[0]
        if self.ranks is not None and one.truth is not None:
            scores = zip(generations, layout.scored, strict=True)
            self.ranks.add(
                start,
                keys,
                one.truth,
                one.weights if layout.weighted else None,
                [each.scores if scored else None for each, scored in scores],
                places,
            )
        self.rows += total

    def merge(self, other: "Tally") -> None:
        """Add what another tally of the same layout counted on other rows."""
        for mine, theirs in zip(self._arrays(), other._arrays(), strict=True):
            mine += theirs
        if self.heaviest is not None and other.heaviest is not None:
            np.maximum(self.heaviest, other.heaviest, out=self.heaviest)
        for flows, more in zip(self.flows, other.flows, strict=True):
            flows.merge(more)
        if self.ranks is not None and other.ranks is not None:
            self.ranks.merge(other.ranks)
        self.rows += other.rows

    def group_sums(self, pair: int, grouping: Grouping) -> Floats:
        """The sums of a pair by group, as (groups, blocks, cases + columns)."""
        cells = self.pairs[pair].cells
        part = cells[grouping.first : grouping.first + grouping.groups * grouping.blocks]
        return part.reshape(grouping.groups, grouping.blocks, cells.shape[1])

    def pair_sums(self, pair: int) -> Floats:
        """The sums of a pair over all rows, as (blocks, cases + columns)."""
        # The first grouping is all rows together, or the true classes in as many blocks.
        return np.asarray(self.group_sums(pair, self.layout.groupings[0]).sum(axis=0))

    def case_counts(self, pair: int, grouping: Grouping) -> AnyArray:
        """How many rows of each group are in each case, as (groups, cases)."""
        if self.counts is None:
            cases = len(self.layout.cases)
            summed = self.group_sums(pair, grouping)[..., :cases].sum(axis=1)
            return np.asarray(summed, np.int64)
        return self.counts[pair][self._groups(grouping)]

    @property
    def order(self) -> AnyArray | None:
        """The rows that are their own blocks in the order of their ids; None for other blocks."""
        return np.argsort(self.keys, kind="stable") if self.layout.exact else None

    def folded(self, sums: Floats, blocks: int) -> Floats:
        """Sums by block, (blocks, ...), in fewer blocks: as many as label frequencies have."""
        layout, count = self.layout, len(sums)
        if blocks == count:
            return sums
        own = layout.exact and count == layout.blocks
        hashed = hashes_of(self.keys) if own else np.arange(count)
        coarse = np.zeros((blocks, *sums.shape[1:]))
        np.add.at(coarse, hashed & (blocks - 1), sums)
        return coarse

    def confusion(self, generation: int) -> Confusion | None:
        """Sums by class of a generation, (blocks, classes); None without truth.

        The cases of the true classes say what is right in either generation of a pair.
        """
        layout = self.layout
        if not layout.truth:
            return None
        place, side = next(
            (place, pair.index(generation))
            for place, pair in enumerate(layout.pairs)
            if generation in pair
        )
        (grouping,) = (each for each in layout.groupings if each.name == "truth")
        cases = self.group_sums(place, grouping)[..., : len(layout.cases)]
        right = cases[..., 0] + cases[..., 2 - side]  # kept, and lost of the old or gained
        blocks = min(grouping.blocks, layout.label_blocks)
        return Confusion(
            *(
                self.folded(each, blocks)
                for each in (cases.sum(axis=-1).T, self.generations[generation].labels, right.T)
            )
        )

    def heaviest_of(self, grouping: Grouping) -> Floats:
        """The largest weight of a row in each group, (groups,)."""
        if self.heaviest is None:
            return np.ones(grouping.groups)
        return self.heaviest[self._groups(grouping)]

    def counting_of(self, grouping: Grouping) -> AnyArray | None:
        """How many rows of each group have a weight above 0, (groups,); None without weights."""
        return None if self.counting is None else self.counting[self._groups(grouping)]

    def squares_of(self, grouping: Grouping) -> Floats | None:
        """The sum of the squared weights of each group, (groups,); None without weights."""
        return None if self.squares is None else self.squares[self._groups(grouping)]

    def _generation(self, generation: int) -> GenerationSums:
        layout = self.layout
        columns = padded(1 + len(layout.generation_columns(generation)))
        return GenerationSums(
            means=np.zeros((layout.blocks, columns)),
            gaps=np.zeros((layout.blocks, 1 + BINS)),
            labels=np.zeros((layout.label_blocks, layout.classes)),
        )

    def _pair(self, pair: tuple[int, int]) -> PairSums:
        layout = self.layout
        width = len(layout.cases) + padded(len(layout.pair_columns(pair)))
        return PairSums(np.zeros((layout.cell_count, width)))

    def _count_ambiguous(self, chunk: Chunk) -> None:
        first, *others = chunk.labels[: self.layout.regular]
        if len(others) > 1:  # of two generations, the pair itself states it
            differs = np.logical_or.reduce([first != labels for labels in others])
            weights = differs if chunk.weights is None else differs * chunk.weights
            blocks = Blocks.of(self.layout, chunk)
            self.ambiguous += np.bincount(blocks.own, weights, minlength=len(self.ambiguous))

    def _count_cases(self, chunk: Chunk) -> None:
        if self.counts is None:
            return
        width = len(self.layout.cases)
        for (old, new), counts in zip(self.layout.pairs, self.counts, strict=True):
            cases = cases_of(chunk.labels[old], chunk.labels[new], chunk.truth)
            for grouping, codes in zip(self.layout.groupings, chunk.codes, strict=True):
                cells = codes.astype(np.int64) * width + cases
                found = np.bincount(cells, minlength=grouping.groups * width)
                counts[self._groups(grouping)] += found.reshape(-1, width)

    def _weigh(self, chunk: Chunk) -> None:
        weights = chunk.weights
        if weights is None:
            return
        assert self.heaviest is not None and self.counting is not None and self.squares is not None
        some, squared = weights > 0, weights**2
        for grouping, codes in zip(self.layout.groupings, chunk.codes, strict=True):
            own, groups = self._groups(grouping), grouping.groups
            np.maximum.at(self.heaviest[own], codes, weights)
            self.counting[own] += np.bincount(codes[some], minlength=groups)
            self.squares[own] += np.bincount(codes, squared, minlength=groups)

    def _groups(self, grouping: Grouping) -> slice:
        """Where the groups of a grouping are among those of all, one after the other."""
        before = self.layout.groupings[: self.layout.groupings.index(grouping)]
        first = sum(each.groups for each in before)
        return slice(first, first + grouping.groups)

    def _arrays(self) -> list[AnyArray]:
        arrays: list[AnyArray] = [self.ambiguous, self.keys, *(self.counts or [])]
        arrays += [sums.cells for sums in self.pairs]
        if self.counting is not None and self.squares is not None:
            arrays += [self.counting, self.squares]
        for sums in self.generations:
            arrays += [sums.means, sums.gaps, sums.labels]
        return arrays


def _kernel(layout: TallyLayout, *, compiled: bool) -> Kernel:
    if not compiled:
        return NumpyKernel(layout)
    from dynsnap.metrics._kernel_compiled import CompiledKernel

    return CompiledKernel(layout)


def _jobs(layout: TallyLayout) -> list[tuple[tuple[int, int], int | None, bool, bool]]:
    """What to count: a pair, its place (None for one that is not asked for), and which of its two
    generations to count on the way, so that each is counted once."""
    left = set(range(len(layout.scored)))
    jobs: list[tuple[tuple[int, int], int | None, bool, bool]] = []
    for place, pair in enumerate(layout.pairs):
        # A pair is only looked at with its scores if both have them.
        old, new = (g in left and layout.scored[g] == layout.both_scored(pair) for g in pair)
        left -= {g for g, own in zip(pair, (old, new), strict=True) if own}
        jobs.append((pair, place, old, new))
    jobs += [((g, g), None, True, False) for g in sorted(left)]
    return jobs


def _chunk(
    layout: TallyLayout,
    generations: Sequence[Predictions],
    keys: AnyArray,
    first: int,
    stop: int,
    *,
    start: int,
    places: AnyArray | None = None,
) -> Chunk:
    rows = slice(first, stop)
    one = generations[0]
    truth = one.truth[rows] if layout.truth and one.truth is not None else None
    codes: list[Labels] = []
    for grouping in layout.groupings:
        if grouping.name == "truth" and truth is not None:
            codes.append(truth)
        elif grouping.name == "all":
            codes.append(np.zeros(stop - first, np.int32))
        else:
            codes.append(one.slices[grouping.name.removeprefix("slice:")].codes[rows])
    return Chunk(
        start=start + first,
        keys=keys[rows],
        labels=tuple(each.labels[rows] for each in generations),
        scores=tuple(
            each.scores[rows] if scored and each.scores is not None else None
            for each, scored in zip(generations, layout.scored, strict=True)
        ),
        truth=truth,
        weights=one.weights[rows] if layout.weighted and one.weights is not None else None,
        codes=codes[0][None] if len(codes) == 1 else np.stack(codes),
        places=None if places is None else places[rows],
    )


def without_truth(labelled: Tally, unlabelled: Tally) -> Tally:
    """All rows counted as if no truth were known: what metrics of labels and scores are made of.

    Args:
        labelled: The rows with a true class.
        unlabelled: The others, in a layout that is the same but for the truth.

    Returns:
        A tally in the layout of the second. Its flows are those of the second alone.
    """
    layout, known = unlabelled.layout, labelled.layout
    made = Tally(layout, compiled=False)
    made.merge(unlabelled)
    made.rows += labelled.rows
    made.ambiguous += labelled.ambiguous
    made.keys += labelled.keys
    for mine, theirs in zip(made.generations, labelled.generations, strict=True):
        mine.means[:, 0] += theirs.means[:, 0]
        mine.labels += theirs.labels
    own = {grouping.name: grouping for grouping in known.groupings}
    for grouping in layout.groupings:
        group = own.get(grouping.name, known.groupings[0])  # all: the sum over the true classes
        rows = made._groups(grouping)
        first, cells = grouping.first, grouping.groups * grouping.blocks
        for place in range(len(layout.pairs)):
            whole = grouping.name == "all"
            sums = labelled.pair_sums(place) if whole else labelled.group_sums(place, group)
            sums = sums.reshape(cells, -1)
            target = made.pairs[place].cells[first : first + cells]
            target[:, :_PLAIN] += _by_label(sums[:, : len(CASES)])
            columns = len(layout.pair_columns(layout.pairs[place]))
            target[:, _PLAIN : _PLAIN + columns] += sums[:, len(CASES) : len(CASES) + columns]
            if made.counts is not None:
                found = _by_label(labelled.case_counts(place, group))
                made.counts[place][rows] += found.sum(axis=0, keepdims=True) if whole else found
        if made.heaviest is None or made.counting is None or made.squares is None:
            continue
        for into, part, join in (
            (made.heaviest, labelled.heaviest_of(group), np.maximum),
            (made.counting, labelled.counting_of(group), np.add),
            (made.squares, labelled.squares_of(group), np.add),
        ):
            assert part is not None
            more = join.reduce(part, keepdims=True) if grouping.name == "all" else part
            into[rows] = join(into[rows], more)
    return made


_PLAIN = len(CASES_WITHOUT_TRUTH)


def _by_label(cases: AnyArray) -> AnyArray:
    """Sums by case, (..., cases), as sums of what kept its label and what changed it."""
    kept = [place for place, name in enumerate(CASES) if name in ("kept", "wrong_same")]
    moved = [place for place in range(len(CASES)) if place not in kept]
    return np.stack([cases[..., kept].sum(axis=-1), cases[..., moved].sum(axis=-1)], axis=-1)
