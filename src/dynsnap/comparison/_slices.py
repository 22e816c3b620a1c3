"""Slices that come from a table of their own, matched by id."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from dynsnap.comparison._count import AlignedBlocks
from dynsnap.errors import InputError
from dynsnap.predictions import AlignmentReport, ColumnNames, Predictions, Slice, Table
from dynsnap.predictions._align import refuse_disjoint_ids
from dynsnap.predictions._arrow import is_plain
from dynsnap.predictions._ids import as_id_column, check_ids, one_id_column, places_in
from dynsnap.predictions._labels import MISSING, as_coded_slice, encoded, slice_values
from dynsnap.predictions._predictions import changed
from dynsnap.predictions._reading import reading
from dynsnap.predictions._schema import INDEX, refuse_absent
from dynsnap.predictions._stream_file import open_input
from dynsnap.predictions._text import listed
from dynsnap.predictions._vocabulary import slices_in


@dataclass(frozen=True, slots=True, eq=False)
class WithSlices:
    """Aligned generations, with the slices of a table beside their own.

    Attributes:
        blocks: The generations.
        ids: The ids of the table.
        columns: Its slices, a value for each of the ids.
    """

    blocks: AlignedBlocks
    ids: pa.Array
    columns: Mapping[str, Slice]
    ignored: tuple[str, ...] = field(default=())

    @classmethod
    def read(
        cls, blocks: AlignedBlocks, source: Table | str | Path, columns: ColumnNames
    ) -> "WithSlices":
        """Read a table with a column of ids; every other column with few values is a slice."""
        with ExitStack() as until:
            found = open_input(source, columns, until, name="`slices`")
            with reading(found.place):
                table = found.table
                refuse_absent(table.schema, columns.id, role="id")
                aside = {columns.id, columns.truth, columns.label, columns.scores, columns.weight}
                others = [
                    each.name
                    for each in table.schema
                    if each.name not in aside
                    and not each.name.startswith((INDEX, columns.score_prefix))
                    and is_plain(each.type)
                ]
                values, ignored = slices_in(table, others)
                if not values:
                    raise InputError(
                        f"There is no slice in it: the columns are {listed(table.schema.names)}. A "
                        "slice has at most 50 values."
                    )
                batches = list(table.batches([columns.id, *values]))
                ids = one_id_column([as_id_column(batch.column(0)) for batch in batches])
                check_ids(ids)
                made = {
                    name: _joined(batches, place, name, known)
                    for place, (name, known) in enumerate(values.items(), 1)
                }
        return cls(blocks, ids, made, tuple(ignored))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.blocks.classes

    @property
    def report(self) -> AlignmentReport:
        """How the generations were lined up. The table belongs to none, and serves all alike."""
        report = self.blocks.report
        every = dict.fromkeys(self.columns, report.names)
        return replace(report, slices_of={**report.slices_of, **every})

    def __iter__(self) -> Iterator[tuple[Predictions, ...]]:
        met, first = False, None
        for block in self.blocks:
            first = block[0].id_column if first is None else first
            places = places_in(block[0].id_column, self.ids)
            met = met or bool((places >= 0).any())
            own = {name: _taken(column, places) for name, column in self.columns.items()}
            yield tuple(changed(each, slices={**each.slices, **own}) for each in block)
        if not met and first is not None:
            refuse_disjoint_ids(("the predictions", "`slices`"), [first, self.ids])


def _joined(batches: list[pa.RecordBatch], place: int, name: str, known: tuple[str, ...]) -> Slice:
    # An input that the table lacks has no value, so there is always room for none.
    values = slice_values(known, gaps=True)
    parts = [as_coded_slice(*encoded(batch.column(place)), values, name=name) for batch in batches]
    return Slice(values, np.concatenate([part.codes for part in parts]))


def _taken(column: Slice, places: np.ndarray) -> Slice:
    none = column.values.index(MISSING)
    return Slice(column.values, np.where(places < 0, none, column.codes[places]).astype(np.int32))
