"""What a tally keeps, decided before the first row: which sums, for which groups, in which blocks.

Rows fall into blocks by a hash of their id, and every sum is kept per block. Weighing the blocks at
random then gives bootstrap intervals without a second look at the rows, whatever their order is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dynsnap._types import AnyArray, Floats, Labels, Scores
from dynsnap.errors import InputError

BINS = 15  # of the expected calibration error
BLOCKS = 1024  # up to here, each row is its own block
MANY = 1_000_000  # rows; beyond, there are fewer blocks, which stay in the processor's cache
BLOCKS_OF_MANY = 256
FEWEST = 32  # blocks of a grouping with very many groups
ROOM = 2_000_000  # numbers that the sums of all groups may take, about 16 MB

# The cases of an input, old to new, with truth and without.
CASES = ("kept", "gained", "lost", "wrong_same", "wrong_other")
CASES_WITHOUT_TRUTH = ("same", "other")
LOSSES = ("log_loss", "brier")  # of scores beside the truth


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to part the rows: all together, by true class, by a slice.

    Attributes:
        name: "all" (together), "truth", or a slice's column after "slice:".
        groups: How many parts there are.
        blocks: How many blocks each part has.
        first: Where its cells begin; they are ordered by group, then by block.
    """

    name: str
    groups: int
    blocks: int
    first: int


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some consecutive rows of all generations.

    Attributes:
        start: How many rows came before.
        keys: The key of every row's id, see `predictions._id_keys`.
        codes: For each grouping, the group of every row.
        places: Where every row stands among all, if they are not consecutive.
    """

    start: int
    keys: AnyArray
    labels: tuple[Labels, ...]
    scores: tuple[Scores | None, ...]
    truth: Labels | None
    weights: Floats | None
    codes: Labels
    places: AnyArray | None = None

    def __len__(self) -> int:
        return len(self.labels[0])


@dataclass(frozen=True, kw_only=True)
class TallyLayout:
    """The shape of a tally.

    Attributes:
        rows: Rows in all, over every chunk and every worker.
        classes: How many classes there are.
        scored: For each generation, whether it has scores.
        truth: Whether the true classes are known.
        weighted: Whether rows have weights.
        slices: How many values each slice column has.
        top_k: The k of top-k metrics.
        pairs: Which generations are compared with which, old before new.
        regular: How many generations, from the first on, count for metrics of all at once; the
            rest (a twin of one of them) do not. None for all.
        classification: Whether log loss and the Brier score are counted.
        ranking: Whether AUROC and average precision are.
        precision: For each generation, the rounding error of its scores next to 1, which log loss
            takes for 0; that of double precision if left out.
    """

    rows: int
    classes: int
    scored: tuple[bool, ...]
    truth: bool
    weighted: bool = False
    slices: Mapping[str, int] = field(default_factory=dict)
    top_k: tuple[int, ...] = (2,)
    pairs: tuple[tuple[int, int], ...] = ((0, 1),)
    regular: int | None = None
    classification: bool = False
    ranking: bool = False
    precision: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise InputError("There is nothing to compare: no input is shared.")
        if any(not 1 <= k <= self.classes for k in self.top_k):
            raise InputError(
                f"`top_k` must lie between 1 and the {self.classes} classes, got {self.top_k}."
            )

    @property
    def exact(self) -> bool:
        """Whether each row is its own block."""
        return self.rows <= BLOCKS

    @property
    def exact_shares(self) -> bool:
        """Whether shares are so many inputs of all, which their intervals then know."""
        return not self.weighted

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return min(self.rows, BLOCKS) if self.rows <= MANY else BLOCKS_OF_MANY

    @property
    def cases(self) -> tuple[str, ...]:
        """The names of the cases that labels fall into."""
        return CASES if self.truth else CASES_WITHOUT_TRUTH

    def both_scored(self, pair: tuple[int, int]) -> bool:
        """Whether both generations of a pair have scores."""
        return self.scored[pair[0]] and self.scored[pair[1]]

    def pair_columns(self, pair: tuple[int, int]) -> tuple[str, ...]:
        """The metrics of a pair that are the mean of one number per row."""
        return pair_names(self.top_k, truth=self.truth) if self.both_scored(pair) else ()

    def generation_columns(self, generation: int) -> tuple[str, ...]:
        """The metrics of a generation that are the mean of one number per row."""
        if not self.truth:
            return ()
        if not self.scored[generation]:
            return ("accuracy",)
        losses = LOSSES if self.classification else ()
        return ("accuracy", *generation_names(self.top_k), *losses)

    def most_loss(self, generation: int) -> dict[str, float]:
        """The largest loss that one input can have, by metric."""
        least = self.precision[generation] if self.precision else float(np.finfo(np.float64).eps)
        return {"log_loss": -math.log(least), "brier": 1.0 if self.classes == 2 else 2.0}

    @cached_property
    def groupings(self) -> tuple[Grouping, ...]:
        """All groupings; "all" only where the true classes cannot stand in for it."""
        width = len(CASES) + padded(len(pair_names(self.top_k, truth=True)))
        wanted = {f"slice:{name}": values for name, values in self.slices.items()}
        if self.truth:
            wanted = {"truth": self.classes, **wanted}
        found = {
            name: (groups, self._blocks(groups * width * len(self.pairs)))
            for name, groups in wanted.items()
        }
        if found.get("truth", (0, 0))[1] < self.blocks:
            found = {"all": (1, self.blocks), **found}
        made: list[Grouping] = []
        first = 0
        for name, (groups, blocks) in found.items():
            made.append(Grouping(name, groups, blocks, first))
            first += groups * blocks
        return tuple(made)

    @cached_property
    def label_blocks(self) -> int:
        """How many blocks the label frequencies are kept in: fewer for very many classes."""
        return self._blocks(2 * self.classes * len(self.scored))

    @cached_property
    def cell_count(self) -> int:
        """How many cells the groups of all groupings have together."""
        return sum(grouping.groups * grouping.blocks for grouping in self.groupings)

    @cached_property
    def cells(self) -> AnyArray:
        """Of each grouping: its first cell and its number of blocks."""
        return np.array([(grouping.first, grouping.blocks) for grouping in self.groupings])

    def _blocks(self, each: int) -> int:
        """How many blocks fit if each one takes so many numbers: a power of two, or all."""
        most = max(FEWEST, ROOM // each)
        return self.blocks if most >= self.blocks else 1 << (most.bit_length() - 1)


@dataclass(slots=True, eq=False)
class GenerationSums:
    """What is kept of one generation.

    Attributes:
        means: (blocks, 1 + columns): the weight, the columns, and what pads them.
        gaps: (blocks, 1 + bins): right less confidence, by bin of confidence; the first is empty.
        labels: (label blocks, classes): how much weight each label got.
    """

    means: Floats
    gaps: Floats
    labels: Floats


@dataclass(slots=True, eq=False)
class PairSums:
    """What is kept of a pair.

    Attributes:
        cells: (cells, cases + columns): one row for each group and block.
    """

    cells: Floats


def padded(columns: int) -> int:
    """Room for so many columns: the compiled kernel takes them four at a time."""
    return -(-columns // 4) * 4


def pair_names(top_k: Sequence[int], *, truth: bool) -> tuple[str, ...]:
    """What the scores of two generations give for each row, in the order of the columns.

    Example:
        >>> pair_names((2,), truth=True)[-2:]
        ('top_2_consistency', 'correct_distance')
    """
    plain = ("pearson", "cosine", "minkowski", "prediction_difference", "jensen_shannon")
    tops = tuple(f"top_{k}_consistency" for k in top_k)
    return plain + tops + (("correct_distance",) if truth else ())


def generation_names(top_k: Sequence[int]) -> tuple[str, ...]:
    """What the scores of one generation and the truth give for each row.

    Example:
        >>> generation_names((2, 5))
        ('correctness', 'top_2_accuracy', 'top_5_accuracy')
    """
    return ("correctness", *(f"top_{k}_accuracy" for k in top_k))
