"""One pass over two generations, compiled: for inputs by the million. Import this late.

`_kernel` does the same with numpy; tests hold the two together.
"""

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.metrics._kernel_compile import TILE
from dynsnap.metrics._kernel_pass import Sums, TileScratch, TileSide, count
from dynsnap.metrics._tally_layout import Chunk, GenerationSums, PairSums, TallyLayout


class CompiledKernel:
    """Counts chunks of rows as machine code."""

    def __init__(self, layout: TallyLayout) -> None:
        self.layout = layout
        self.top_k = np.array(layout.top_k, np.int64)

    def __call__(
        self,
        chunk: Chunk,
        pair: tuple[int, int],
        sums: PairSums,
        old: GenerationSums | None,
        new: GenerationSums | None,
    ) -> AnyArray:
        """Add a chunk to the sums; hand back the packed flows of the rows that changed."""
        layout = self.layout
        empty = np.empty((len(chunk), 0), np.float32)
        scores = [chunk.scores[g] if layout.both_scored(pair) else empty for g in pair]
        kind = np.result_type(*scores)
        width = 0 if not layout.both_scored(pair) else layout.classes
        owned = tuple(_own(each) for each in (old, new))
        moves = np.empty(len(chunk) + 1, np.int64)
        found = count(
            tuple(_frozen(np.asarray(rows, kind)) for rows in scores),
            tuple(_frozen(chunk.labels[g]) for g in pair),
            _frozen(np.empty(0, np.int32) if chunk.truth is None else chunk.truth),
            _frozen(np.empty(0) if chunk.weights is None else chunk.weights),
            _frozen(chunk.codes),
            layout.cells,
            _frozen(chunk.keys),
            chunk.start,
            layout.exact,
            layout.blocks,
            layout.label_blocks,
            self.top_k,
            layout.classes,
            tuple(_side(kind, width, ranks=max((2, *layout.top_k))) for _ in pair),
            _room(),
            np.zeros((sums.cells.shape[1] - len(layout.cases), TILE)),
            sums.cells,
            owned,
            tuple(_columns(each.means.shape[1]) for each in owned),
            moves,
        )
        return moves[:found]


def _frozen(array: AnyArray) -> AnyArray:
    """A view that cannot be written to: the compiler sees one type, not two."""
    view = array.view()
    view.flags.writeable = False
    return view


def _own(sums: GenerationSums | None) -> Sums:
    if sums is None:  # another pair counts this generation
        return Sums(np.empty((0, 1)), np.empty((0, 1)), np.empty((0, 1)))
    return Sums(sums.means, sums.gaps, sums.labels)


def _side(kind: np.dtype[np.floating], classes: int, *, ranks: int) -> TileSide:
    return TileSide(
        labels=np.zeros(TILE, np.int32),
        tile=np.empty((classes, TILE), kind),
        sums=np.empty((3, TILE)),
        best=np.empty((ranks, TILE), kind),
        top=np.empty((ranks, TILE), np.int32),
        flat=np.empty(TILE, kind),
    )


def _columns(count: int) -> AnyArray:
    """Room for a generation's columns; the first is the weight, before weighting: 1."""
    columns = np.zeros((count, TILE))
    columns[0] = 1
    return columns


def _room() -> TileScratch:
    return TileScratch(
        true=np.full(TILE, -1, np.int32),
        weight=np.ones(TILE),
        block=np.zeros(TILE, np.int64),
        hashed=np.zeros(TILE, np.int64),
        coarse=np.zeros(TILE, np.int64),
        cell=np.zeros(TILE, np.int64),
        case=np.zeros(TILE, np.int64),
        rank=np.zeros(TILE, np.int32),
        place=np.zeros(TILE, np.int64),
        value=np.zeros(TILE),
        one=np.ones(TILE),
        sums=np.empty((3, TILE)),
    )
