"""Several predictions side by side: the same inputs, in one order, over one list of classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.errors import ComparisonError, InputError
from dynsnap.predictions._classes import check_rename, renamed, with_classes
from dynsnap.predictions._join import join
from dynsnap.predictions._labels import Slice
from dynsnap.predictions._predictions import Predictions, changed
from dynsnap.predictions._report import AlignmentReport
from dynsnap.predictions._text import listed, shown


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aligned:
    """Predictions of the same inputs, in one order, over the same classes.

    Truth, slices and weights are the same in every generation, whichever brought them.
    """

    generations: tuple[Predictions, ...]
    classes: tuple[str, ...]
    report: AlignmentReport


def align(
    *predictions: Predictions,
    names: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
) -> Aligned:
    """Line predictions up by id, on the ids that all of them share, in the order of the first.

    Whole-number ids and text ids are compared as text. Classes become the union of all, those of
    the first in front; scores of a class that a model does not know are zero. Truth comes from any
    generation that has it, slices and weights from the first that has them. Where nothing needs to
    be changed, nothing is copied.

    Args:
        predictions: Generations, oldest first.
        names: What to call them in reports and messages.
        rename: New names for some classes, in all generations. Two classes of one generation that
            get one name become one class, with their scores added up.

    Raises:
        ComparisonError: No id is shared, or two generations contradict each other in the truth or
            in the weight of an input.
        PlanError: `rename` names a class that no generation has.

    Example:
        >>> old = Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["cat", "dog"])
        >>> new = Predictions(ids=[3, 2, 1], classes=["dog", "eel"], labels=["eel", "dog", "eel"])
        >>> both = align(old, new, names=["old", "new"])
        >>> both.classes, both.generations[1].labels.tolist()
        (('cat', 'dog', 'eel'), [2, 1])
        >>> both.report.sentence()
        'Compared on the 2 ids that all share, of 3 in all: old lacks 1 id ("3").'
    """
    if not predictions:
        raise InputError("There is nothing to align. Hand in at least one set of predictions.")
    titles = tuple(names or (f"generation {place + 1}" for place in range(len(predictions))))
    if len(titles) != len(predictions):
        raise InputError(f"There are {len(predictions)} predictions, but {len(titles)} names.")
    known = {name for each in predictions for name in each.classes}
    check_rename(rename or {}, known, where="any generation")
    every = [renamed(each, rename or {}) for each in predictions]
    classes = tuple(dict.fromkeys(name for each in every for name in each.classes))

    found = join([each.id_column for each in every])
    if not found.shared:
        some = [
            f"{title} has {listed(each.id_column[:3].to_pylist())}"
            for title, each in zip(titles, every, strict=True)
        ]
        raise ComparisonError(
            f"No id occurs in all of {listed(titles)}: {'; '.join(some)}. Use the same ids."
        )
    report = AlignmentReport(
        names=titles,
        rows=tuple(len(each) for each in every),
        shared=found.shared,
        missing=found.missing,
        examples=found.examples,
        same_order=found.same_order,
    )
    lined_up = [
        with_classes(each if rows is None else each.take(rows), classes)
        for each, rows in zip(every, found.rows, strict=True)
    ]
    slices: dict[str, Slice] = {}
    for each in lined_up:
        slices |= {name: column for name, column in each.slices.items() if name not in slices}
    common = {
        "id_column": lined_up[0].id_column,
        "truth": _common("truth", lined_up, titles),
        "weights": _common("weights", lined_up, titles),
        "slices": slices,
    }
    generations = tuple(changed(each, **common) for each in lined_up)
    return Aligned(generations=generations, classes=classes, report=report)


def _common(
    part: Literal["truth", "weights"], generations: Sequence[Predictions], names: Sequence[str]
) -> AnyArray | None:
    """The truth or the weights that those generations agree on which have any."""
    holders = [
        (name, each, values)
        for name, each in zip(names, generations, strict=True)
        if (values := getattr(each, part)) is not None
    ]
    if not holders:
        return None
    source, first, common = holders[0]
    for name, each, values in holders[1:]:
        if part == "truth":
            differs = common != values
        else:  # one file may have stored fewer digits than the other
            differs = ~np.isclose(common, values, rtol=1e-6, atol=0)
        if not differs.any():
            continue
        what = "truths" if part == "truth" else "weights"
        row = int(np.argmax(differs))
        both = (common[row], values[row])
        one, other = (shown(first.classes[value] if part == "truth" else value) for value in both)
        raise ComparisonError(
            f"{shown(source)} and {shown(name)} give different {what} for "
            f"{int(differs.sum()):,} of {len(each):,} shared ids, such as {one} and {other} for "
            f"the id {shown(each.id_column[row].as_py())}. Correct one of them, or leave its "
            f"{part} out."
        )
    shared: AnyArray = common
    return shared
