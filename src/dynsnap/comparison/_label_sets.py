"""Whether generations and truth speak of the same classes at all."""

from collections.abc import Sequence

import numpy as np

from dynsnap._types import Flags
from dynsnap.comparison._count import AlignedBlocks, Counted
from dynsnap.errors import ComparisonError
from dynsnap.predictions._text import listed, shown

_FEW = 20  # so few inputs may be labelled wrongly, or otherwise, by chance


def refuse_strange_labels(counted: Counted, blocks: AlignedBlocks) -> None:
    """Raise where a generation never names a class of the truth, or of the first generation.

    Fine labels beside a coarse truth, or predictions of another data set whose ids look alike,
    would give numbers: nothing was right before, so nothing is lost, and a gate would pass. Sets
    with one class only are let through: a model may not know the one class that is looked at.

    Args:
        counted: What was counted.
        blocks: The same generations, for a second look at the scores.
    """
    tally = counted.tally
    named = [each.labels.sum(axis=0) > 0 for each in tally.generations]
    true = None
    if tally.layout.truth:
        grouping = next(each for each in tally.layout.groupings if each.name == "truth")
        true = tally.case_counts(0, grouping).sum(axis=1) > 0
    other = named[0] if true is None else true
    if tally.layout.rows < _FEW or other.sum() < 2 or all((each & other).any() for each in named):
        return
    for block in blocks:  # classes that are never the likeliest are known all the same
        for known, each in zip(named, block, strict=True):
            if each.scores is not None:
                known |= (each.scores > 0).any(axis=0)
    whose = f"labels of {shown(counted.report.names[0])}" if true is None else "true classes"
    for name, known in zip(counted.report.names, named, strict=True):
        if known.sum() > 1 and not (known & other).any():
            raise ComparisonError(
                f"No label of {shown(name)} is among the {whose}: it has "
                f"{_some(counted.classes, known)}, they are {_some(counted.classes, other)}. "
                "Compare predictions over the same classes (is one fine and the other coarse, or "
                "of another data set?), or rename some."
            )


def _some(classes: Sequence[str], chosen: Flags) -> str:
    return listed((classes[place] for place in np.flatnonzero(chosen).tolist()), most=3)
