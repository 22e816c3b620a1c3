"""A class or a slice measured on its own, for metrics whose sums are not kept for every group."""

import dataclasses
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from dynsnap._types import Flags
from dynsnap.comparison._compare import compare_blocks
from dynsnap.comparison._count import AlignedBlocks
from dynsnap.comparison._results import Comparison, GroupKey, GroupResult
from dynsnap.comparison._settings import Settings
from dynsnap.predictions import AlignmentReport, Predictions


def measure_apart(
    compared: Sequence[Comparison],
    blocks: AlignedBlocks,
    parts: Collection[GroupKey],
    settings: Settings,
) -> list[Comparison]:
    """Comparisons of two generations in which some groups have every metric.

    A comparison keeps sums of most metrics for every group, but calibration and label frequencies
    for all inputs only. Here the groups that are asked for are counted again as if their inputs
    were all there are: one more pass over the blocks for each.

    Args:
        compared: What `compare_blocks` found, one for each level.
        blocks: What it was found on.
        parts: The groups, by their `GroupResult.key`.
        settings: As for `compare_blocks`.
    """
    alone = dataclasses.replace(settings, families={})
    found: dict[GroupKey, list[Comparison]] = {}
    for group in compared[0].pairs[0].groups:
        if group.key in parts and group.inputs:
            found[group.key] = compare_blocks(_GroupBlocks(blocks, group), alone)
    return [
        _with_groups(whole, {part: levelled[place] for part, levelled in found.items()})
        for place, whole in enumerate(compared)
    ]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _GroupBlocks:
    """The inputs of one group, block by block."""

    blocks: AlignedBlocks
    group: GroupResult

    @property
    def classes(self) -> tuple[str, ...]:
        return self.blocks.classes

    @property
    def report(self) -> AlignmentReport:
        return dataclasses.replace(self.blocks.report, shared=self.group.inputs)

    def __iter__(self) -> Iterator[tuple[Predictions, ...]]:
        for block in self.blocks:
            inside = self._inside(block)
            if inside.any():
                yield tuple(each.take(np.flatnonzero(inside)) for each in block)

    def _inside(self, block: Sequence[Predictions]) -> Flags:
        one = block[0]
        if self.group.kind == "class" and one.task is not None:
            label = self.classes.index(self.group.name)
            sets = [each.values for each in block[:2]] + [one.truth]
            held = [(each == label).any(axis=1) for each in sets if each is not None]
            inside = np.logical_or.reduce(held)
            # As in the whole comparison, labels are measured where the truth is known.
            return np.asarray(inside if one.labelled is None else inside & one.labelled)
        if self.group.kind == "class":
            assert one.truth is not None
            return np.asarray(one.truth == self.classes.index(self.group.name))
        column = one.slices[self.group.column]
        return np.asarray(column.codes == column.values.index(self.group.name))


def _with_groups(whole: Comparison, apart: dict[GroupKey, Comparison]) -> Comparison:
    (pair,) = whole.pairs
    groups = []
    for group in pair.groups:
        alone = apart.get(group.key)
        if alone is not None:
            more = {**alone.generations[-1].metrics, **alone.pairs[0].metrics}
            # What the whole comparison has measured of the group stays as it is.
            group = dataclasses.replace(group, metrics={**more, **group.metrics})
        groups.append(group)
    return dataclasses.replace(whole, pairs=(dataclasses.replace(pair, groups=tuple(groups)),))
