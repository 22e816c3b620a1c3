"""A pair of generations on parts of the inputs: classes, slices, majority and minority classes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison._count import Counted
from dynsnap.comparison._readings import (
    effective_inputs,
    estimates,
    exact_of,
    mcnemar,
    transitions,
    wholes_of,
)
from dynsnap.comparison._results import GroupKind, GroupResult
from dynsnap.comparison.intervals import BayesianBootstrap, PairStatistic
from dynsnap.metrics import majority_classes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Parts:
    """The inputs in parts of one kind.

    Attributes:
        names: What each is called.
        sums: Of each, (parts, blocks, columns).
        cases: How many inputs of each are of each case, (parts, cases).
        heaviest: The largest weight of an input of each, (parts,).
        counting: How many inputs of each have a weight above 0, (parts,); None where all count.
        squares: The sum of the squared weights of each, (parts,); None without weights.
        classes: The classes that make up each, for those that are made of several.
    """

    kind: GroupKind
    column: str
    names: Sequence[str]
    sums: Floats
    cases: AnyArray
    heaviest: Floats
    counting: AnyArray | None
    squares: Floats | None
    classes: Sequence[tuple[str, ...]] = ()


def group_results(
    counted: Counted, bootstrap: BayesianBootstrap, place: int, *, minority_share: float
) -> Iterator[GroupResult]:
    """What a pair is like on each part of the inputs that has any.

    Args:
        counted: The sums.
        bootstrap: How intervals are made.
        place: Which pair.
        minority_share: Majority classes cover this share of the inputs.
    """
    for parts in _all_parts(counted, place, minority_share):
        yield from _results(parts, counted, bootstrap, place)


def _all_parts(counted: Counted, place: int, minority_share: float) -> Iterator[_Parts]:
    tally = counted.tally
    for grouping in tally.layout.groupings:
        if grouping.name == "all":
            continue
        by_class = grouping.name == "truth"
        column = grouping.name.removeprefix("slice:")
        parts = _Parts(
            kind="class" if by_class else "slice",
            column=column,
            names=counted.classes if by_class else counted.slices[column],
            sums=tally.group_sums(place, grouping),
            cases=tally.case_counts(place, grouping),
            heaviest=tally.heaviest_of(grouping),
            counting=tally.counting_of(grouping),
            squares=tally.squares_of(grouping),
        )
        yield parts
        if by_class:
            yield from _by_frequency(parts, minority_share)


def _by_frequency(classes: _Parts, minority_share: float) -> Iterator[_Parts]:
    """Majority classes, which cover that share of the inputs, most frequent first, and the rest."""
    sums, cases, heaviest = classes.sums, classes.cases, classes.heaviest
    counting, squares = classes.counting, classes.squares
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
            heaviest=np.stack([heaviest[part].max() for part in parts.values()]),
            counting=None
            if counting is None
            else np.stack([counting[part].sum() for part in parts.values()]),
            squares=None
            if squares is None
            else np.stack([squares[part].sum() for part in parts.values()]),
            classes=[tuple(classes.names[c] for c in part.tolist()) for part in parts.values()],
        )


def _results(
    parts: _Parts, counted: Counted, bootstrap: BayesianBootstrap, place: int
) -> Iterator[GroupResult]:
    tally, layout = counted.tally, counted.tally.layout
    columns = layout.pair_columns(layout.pairs[place])
    exact = exact_of(columns, weighted=layout.weighted)
    statistic = PairStatistic(columns, layout.truth, new_accuracy=True, exact=exact)
    sums, cases = parts.sums[..., : len(layout.cases) + len(columns)], parts.cases
    present = np.flatnonzero(cases.sum(axis=1))
    step = bootstrap.groups_at_once(sums.shape[-1])
    for first in range(0, len(present), step):
        some = present[first : first + step]
        sampled = bootstrap.sampled(
            statistic,
            sums[some],
            heaviest=parts.heaviest[some],
            inputs=cases[some].sum(axis=1),
            order=tally.order,
        )
        wholes = wholes_of(sampled.values, cases[some], weighted=layout.weighted)
        found = estimates(bootstrap, sampled, wholes)
        weights = sums[some][..., : cases.shape[1]].sum(axis=(1, 2)).tolist()
        for group, metrics, weight in zip(some.tolist(), found, weights, strict=True):
            yield GroupResult(
                kind=parts.kind,
                column=parts.column,
                name=parts.names[group],
                inputs=int(cases[group].sum()),
                weight=weight,
                counting=None if parts.counting is None else int(parts.counting[group]),
                effective=None
                if parts.squares is None
                else effective_inputs(weight, float(parts.squares[group])),
                metrics=metrics,
                changed=mcnemar(cases[group]),
                classes=parts.classes[group] if parts.classes else (),
                transitions=transitions(cases[group]),
            )
