"""A pair of generations on parts of the inputs: classes, slices, majority and minority classes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison._count import Counted, task_in
from dynsnap.comparison._readings import (
    effective_inputs,
    estimates,
    exact_of,
    joined,
    mcnemar,
    multiples,
    ordered,
    transitions,
    wholes_of,
)
from dynsnap.comparison._results import Estimate, GroupKind, GroupResult
from dynsnap.comparison.intervals import (
    BayesianBootstrap,
    ClassStatistic,
    PairStatistic,
    RankStatistic,
    Sampled,
    changes,
)
from dynsnap.metrics import majority_classes
from dynsnap.metrics._row_tally import RowLayout, RowTally
from dynsnap.metrics._tally import Tally
from dynsnap.metrics._tally_layout import Grouping, TallyLayout


def corrected(groups: Iterable[GroupResult]) -> tuple[GroupResult, ...]:
    """The groups of a pair with p-values that allow for how many of them were tested.

    Classes, slices and frequencies are one family: a report shows all of them, so the chance that
    it shows any false alarm is the chance over all of them together.
    """
    found = tuple(groups)
    tested = [group.changed for group in found if group.changed is not None and not group.whole]
    adjusted = iter(holm(tested))
    return tuple(
        group if group.changed is None or group.whole else replace(group, corrected=next(adjusted))
        for group in found
    )


def holm(values: Sequence[float]) -> list[float]:
    """P-values by Holm's method: the chance that any of those below a level is a fluke stays below.

    Example:
        >>> holm([0.01, 0.04, 0.5])
        [0.03, 0.08, 0.5]
    """
    order = sorted(range(len(values)), key=lambda place: values[place])
    corrected = [0.0] * len(values)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = highest
    return corrected


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Parts:
    """The inputs in parts of one kind.

    Attributes:
        names: What each is called.
        sums: Of each, (parts, blocks, columns).
        cases: How many inputs of each are of each case, (parts, cases).
        heaviest: The largest weight of an input of each, (parts,).
        counting: How many inputs of each have a weight above 0, (parts,); None where all count.
        floor: The sums of OLD and its twin, likewise; None unless two generations have a twin.
        squares: The sum of the squared weights of each, (parts,); None without weights.
        classes: The classes that make up each, for those that are made of several.
        grouping: What parted the inputs.
    """

    kind: GroupKind
    column: str
    names: Sequence[str]
    sums: Floats
    cases: AnyArray
    heaviest: Floats
    counting: AnyArray | None
    squares: Floats | None
    grouping: Grouping
    classes: Sequence[tuple[str, ...]] = ()
    floor: Floats | None = None


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


def pair_statistic(
    tally: Tally,
    place: int,
    grouping: Grouping,
    groups: AnyArray | None = None,
    *,
    new_accuracy: bool = False,
) -> PairStatistic:
    """The metrics of a pair as functions of sums, in all or some groups of a grouping."""
    layout = tally.layout
    columns = layout.pair_columns(layout.pairs[place])
    task = task_in(tally)
    return PairStatistic(
        columns,
        layout.truth,
        new_accuracy=new_accuracy,
        exact=exact_of(columns, weighted=not layout.exact_shares),
        without=frozenset() if task is None else task.without,
        reach=tally.reach_of(place, grouping, groups) if isinstance(tally, RowTally) else {},
    )


def counts_inputs(layout: TallyLayout) -> bool:
    """Whether every input is in one case, so that cases can be counted."""
    return not isinstance(layout, RowLayout) or layout.whole


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
            grouping=grouping,
            floor=None
            if counted.floor is None or len(counted.names) > 2
            else tally.group_sums(counted.floor, grouping),
        )
        yield parts
        if by_class and task_in(tally) is None:  # an input has several labels, and one class
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
            grouping=classes.grouping,
            classes=[tuple(classes.names[c] for c in part.tolist()) for part in parts.values()],
        )


def _results(
    parts: _Parts, counted: Counted, bootstrap: BayesianBootstrap, place: int
) -> Iterator[GroupResult]:
    tally, layout = counted.tally, counted.tally.layout
    columns = layout.pair_columns(layout.pairs[place])
    sums, cases = parts.sums[..., : len(layout.cases) + len(columns)], parts.cases
    present = np.flatnonzero(cases.sum(axis=1))
    whole = parts.kind == "slice" and len(present) == 1
    step = bootstrap.groups_at_once(sums.shape[-1])
    for first in range(0, len(present), step):
        some = present[first : first + step]
        statistic = pair_statistic(tally, place, parts.grouping, some, new_accuracy=True)
        sampled = bootstrap.sampled(
            statistic,
            sums[some],
            heaviest=parts.heaviest[some],
            inputs=cases[some].sum(axis=1),
            order=tally.order,
        )
        wholes = wholes_of(sampled.values, cases[some], weighted=not layout.exact_shares)
        found = estimates(bootstrap, sampled, wholes)
        before: list[dict[str, Estimate]] = [{} for _ in found]
        if parts.kind == "class" and (layout.classification or layout.ranking):
            before, more = _of_classes(counted, bootstrap, place, some)
            both = zip(found, more, strict=True)
            found = [ordered({**each, **further}) for each, further in both]
        relative: list[Any] = [None] * len(some)
        if parts.floor is not None and counted.floor is not None:
            relative = multiples(
                bootstrap,
                statistic,
                pair_statistic(tally, counted.floor, parts.grouping, some),
                parts.sums[some],
                parts.floor[some],
                heaviest=parts.heaviest[some],
                inputs=cases[some].sum(axis=1),
                order=tally.order,
            )
        weights = sums[some][..., : cases.shape[1]].sum(axis=(1, 2)).tolist()
        each = zip(some.tolist(), found, before, weights, relative, strict=True)
        for group, metrics, old, weight, beside in each:
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
                old_metrics=old,
                changed=mcnemar(cases[group]) if counts_inputs(layout) else None,
                classes=parts.classes[group] if parts.classes else (),
                transitions=transitions(cases[group]),
                whole=whole,
                noise_floor=None if beside is None else beside[0],
                multiples=None if beside is None else beside[1],
            )


def _of_classes(
    counted: Counted, bootstrap: BayesianBootstrap, place: int, classes: AnyArray
) -> tuple[list[dict[str, Estimate]], list[dict[str, Estimate]]]:
    """Metrics of some classes among all inputs: of the older generation, and of the newer one with
    the changes."""
    layout = counted.tally.layout
    sides = [_sampled_classes(counted, bootstrap, g, classes) for g in layout.pairs[place]]
    old, new = (sampled for sampled, _ in sides)
    found = [estimates(bootstrap, sampled, wholes) for sampled, wholes in sides]
    changed = estimates(bootstrap, changes(old, new), {}) or [{} for _ in classes]
    return found[0], [{**one, **more} for one, more in zip(found[1], changed, strict=True)]


def _sampled_classes(
    counted: Counted, bootstrap: BayesianBootstrap, generation: int, classes: AnyArray
) -> tuple[Sampled, dict[str, AnyArray]]:
    """Metrics of some classes in one generation, and of how many inputs those are a share that
    are one."""
    tally, layout = counted.tally, counted.tally.layout
    groups: dict[str, Any] = {
        "heaviest": np.full(len(classes), counted.heaviest),
        "inputs": np.full(len(classes), counted.tally.rows),
        "order": tally.order,
    }
    found, wholes = [], {}
    confusion = tally.confusion(generation)
    if layout.classification and confusion is not None:
        sums = np.stack([each.T[classes] for each in confusion], axis=-1)
        found.append(bootstrap.sampled(ClassStatistic(), sums, **groups))
        if not layout.weighted:
            truth, label, _ = np.rint(sums.sum(axis=1)).astype(np.int64).T
            wholes = {"precision": label, "recall": truth}
    if (ranks := counted.ranks(generation)) is not None:
        statistic = RankStatistic(ranks, counted.heaviest, classes)
        sums = ranks.sums.transpose(1, 0, 2)[classes]
        found.append(bootstrap.sampled(statistic, sums, **groups))
    return joined(found), wholes
