"""A pair of generations on parts of the inputs: classes, slices, majority and minority classes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison._bootstrap import Bootstrap, Formula, Metrics
from dynsnap.comparison._count import Counted
from dynsnap.comparison._readings import estimates, mcnemar, transitions
from dynsnap.comparison._results import GroupKind, GroupResult
from dynsnap.metrics import majority_classes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Parts:
    """The inputs in parts of one kind.

    Attributes:
        names: What each is called.
        sums: Of each, (parts, blocks, columns).
        cases: How many inputs of each are of each case, (parts, cases).
        classes: The classes that make up each, for those that are made of several.
    """

    kind: GroupKind
    column: str
    names: Sequence[str]
    sums: Floats
    cases: AnyArray
    classes: Sequence[tuple[str, ...]] = ()


def group_results(
    counted: Counted, bootstrap: Bootstrap, place: int, *, formula: Formula, minority_share: float
) -> Iterator[GroupResult]:
    """What a pair is like on each part of the inputs that has any.

    Args:
        counted: The sums.
        bootstrap: How intervals are made.
        place: Which pair.
        formula: The metrics of that pair, from sums.
        minority_share: Majority classes cover this share of the inputs.
    """
    for parts in _all_parts(counted, place, minority_share):
        yield from _results(parts, bootstrap, partial(_with_new_accuracy, formula=formula))


def _all_parts(counted: Counted, place: int, minority_share: float) -> Iterator[_Parts]:
    tally = counted.tally
    for grouping in tally.layout.groupings:
        sums, cases = tally.group_sums(place, grouping), tally.case_counts(place, grouping)
        if grouping.name == "truth":
            names = counted.classes
            yield _Parts(kind="class", column="truth", names=names, sums=sums, cases=cases)
            yield from _by_frequency(names, sums, cases, minority_share)
        elif grouping.name != "all":
            column = grouping.name.removeprefix("slice:")
            names = counted.slices[column]
            yield _Parts(kind="slice", column=column, names=names, sums=sums, cases=cases)


def _by_frequency(
    classes: Sequence[str], sums: Floats, cases: AnyArray, minority_share: float
) -> Iterator[_Parts]:
    """Majority classes, which cover that share of the inputs, most frequent first, and the rest."""
    inputs = cases.sum(axis=1)
    majority = majority_classes(inputs, share=minority_share)
    parts = {
        "majority": np.flatnonzero(majority),
        "minority": np.flatnonzero(~majority & (inputs > 0)),
    }
    if len(parts["minority"]):
        yield _Parts(
            kind="frequency",
            column="frequency",
            names=tuple(parts),
            sums=np.stack([sums[part].sum(axis=0) for part in parts.values()]),
            cases=np.stack([cases[part].sum(axis=0) for part in parts.values()]),
            classes=[tuple(classes[c] for c in part.tolist()) for part in parts.values()],
        )


def _results(parts: _Parts, bootstrap: Bootstrap, formula: Formula) -> Iterator[GroupResult]:
    sums, cases = parts.sums, parts.cases
    present = np.flatnonzero(cases.sum(axis=1))
    step = bootstrap.groups_at_once(sums.shape[-1])
    for first in range(0, len(present), step):
        some = present[first : first + step]
        found = estimates(bootstrap, bootstrap.sampled(formula, sums[some]), cases[some])
        weights = sums[some][..., : cases.shape[1]].sum(axis=(1, 2)).tolist()
        for group, metrics, weight in zip(some.tolist(), found, weights, strict=True):
            yield GroupResult(
                kind=parts.kind,
                column=parts.column,
                name=parts.names[group],
                inputs=int(cases[group].sum()),
                weight=weight,
                metrics=metrics,
                changed=mcnemar(cases[group]),
                classes=parts.classes[group] if parts.classes else (),
                transitions=transitions(cases[group]),
            )


def _with_new_accuracy(sums: Floats, formula: Formula) -> Metrics:
    """The metrics of a pair, and the accuracy of its newer generation: what kept and gained are."""
    found = dict(formula(sums))
    if "kept" in found:
        found["accuracy"] = found["kept"] + found["gained"]
    return found
