"""Rows for one round, and streams from generations that someone else has cut."""

from collections.abc import Sequence

import numpy as np

from dynsnap._renamed import renamed_arguments
from dynsnap._types import AnyArray, Flags, Labels, Positions
from dynsnap.data._pool import (
    SELECTION_SET,
    Pool,
    Stream,
    check_nested,
    rank_in_class,
    selection_rows,
)
from dynsnap.errors import DataError, InputError, PlanError


def split(stream: Stream, generation: int, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Rows to train on and rows to validate on, drawn anew from D_i with fixed class counts.

    Both are sorted rows of `stream.pool`; `generation` counts from 1. Where the pool has groups,
    whole groups are drawn that come near these counts: see `draw_groups`.

    Example:
        >>> pool = Pool(name="made", inputs=np.zeros((6, 1)), labels=np.array([0, 0, 0, 1, 1, 1]),
        ...             classes=("cat", "dog"), ids=np.arange(6))
        >>> stream = from_generations(pool, [np.arange(6)], test=pool, validation=0.34)
        >>> train, validation = split(stream, 1, np.random.default_rng(0))
        >>> pool.labels[validation]
        array([0, 1])
    """
    if not 1 <= generation <= len(stream.generations):
        raise InputError(
            f"`generation` must be between 1 and {len(stream.generations)}, got {generation}."
        )
    rows, counts = stream.generations[generation - 1], stream.validation[generation - 1]
    labels = stream.pool.labels[rows]
    if stream.pool.groups is not None:
        drawn = draw_groups(labels, stream.pool.groups[rows], counts, rng)
        return rows[~drawn], rows[drawn]
    order = rng.permutation(len(rows))
    drawn = np.empty(len(rows), dtype=bool)
    drawn[order] = rank_in_class(labels[order]) < counts[labels[order]]
    return rows[~drawn], rows[drawn]


def draw_groups(
    labels: Labels, groups: AnyArray, counts: Positions, rng: np.random.Generator
) -> Flags:
    """Whole groups whose rows come near so many of each class, in random order.

    A group is drawn if it brings the rows drawn nearer to the counts, and leaves rows of every
    class that it holds. At least one is drawn, and at least one is left.

    Args:
        labels: The class of each row, as a place among the classes.
        groups: What each row belongs to.
        counts: How many rows of each class are wanted.
        rng: Decides on the order.

    Returns:
        Which rows were drawn.

    Example:
        >>> groups = np.array(["a", "a", "b", "b", "c", "c"])
        >>> draw_groups(np.array([0, 1, 0, 1, 0, 1]), groups, np.array([1, 1]),
        ...             np.random.default_rng(1))
        array([ True,  True, False, False, False, False])
    """
    names, place = np.unique(groups, return_inverse=True)
    held = np.zeros((len(names), len(counts)), dtype=np.int64)
    np.add.at(held, (place, labels), 1)
    total = held.sum(axis=0)
    # A class that is validated on alone may be drawn whole; of any other some must be left.
    least = (total > 0) & (counts < total)
    lacking, left = counts.astype(np.int64), total.copy()
    drawn = np.zeros(len(names), dtype=bool)
    order = rng.permutation(len(names))
    able = [group for group in order.tolist() if (left - held[group] >= least).all()]
    for group in able:
        rows = held[group]
        nearer = (lacking**2).sum() > ((lacking - rows) ** 2).sum()
        if nearer and (left - rows >= least).all():
            drawn[group] = True
            lacking, left = lacking - rows, left - rows
    if not drawn.any() and able and len(names) > 1:
        drawn[min(able, key=lambda group: int(held[group].sum()))] = True
    if not drawn.any() or drawn.all():
        raise DataError(
            f"No group can be set aside to validate on: there are {len(names)} groups, and each "
            "holds the only rows of a class. Bring more groups of each class, or leave `groups` "
            "out."
        )
    return np.asarray(drawn[place])


@renamed_arguments(untouched="selection_holdout")
def from_generations(
    pool: Pool,
    generations: Sequence[AnyArray],
    *,
    test: Pool,
    validation: float = 0.1,
    late_in_test: bool = False,
    selection_holdout: float = 0.0,
) -> Stream:
    """A stream from generations that were cut elsewhere: each an array of rows, or a mask.

    Every round validates on the share `validation` of each class of its generation, at least one
    row. Classes that the first generation lacks are new: they form the evaluation set "late", and
    are part of "test" only if `late_in_test`. About the share `selection_holdout` of the rows,
    chosen by their content, is taken out of all generations and forms the set "untouched".

    Example:
        >>> pool = Pool(name="made", inputs=np.zeros((8, 1)), labels=np.arange(8) % 2,
        ...             classes=("cat", "dog"), ids=np.arange(8))
        >>> stream = from_generations(pool, [np.arange(4), np.arange(8)], test=pool)
        >>> stream.validation[1]
        array([1, 1])
    """
    if not 0 < validation < 1:
        raise PlanError(f"`validation` must be above 0 and below 1, got {validation}.")
    cuts = tuple(
        np.flatnonzero(rows) if rows.dtype == bool and len(rows) == len(pool) else np.sort(rows)
        for rows in map(np.asarray, generations)
    )
    check_nested(cuts, rows=len(pool), name=pool.name)
    aside = selection_rows(pool.inputs, selection_holdout)
    place = np.cumsum(aside) - 1  # of a row, among those that are held out
    arrived = tuple(place[rows[aside[rows]]] for rows in cuts) if selection_holdout else ()
    cuts = tuple(rows[~aside[rows]] for rows in cuts)
    check_nested(cuts, rows=len(pool), name=pool.name)
    counts = []
    for number, rows in enumerate(cuts, start=1):
        have = np.bincount(pool.labels[rows], minlength=len(pool.classes))
        if (alone := np.flatnonzero(have == 1)).size:
            raise DataError(
                f"{pool.name}, generation {number}: class {pool.classes[alone[0]]!r} has 1 row, "
                "too few to train and validate on. Bring more, or leave it out for now."
            )
        counts.append(np.where(have, np.clip(np.rint(validation * have), 1, have - 1), 0))
    late = np.bincount(pool.labels[cuts[0]], minlength=len(pool.classes)) == 0
    late &= np.bincount(pool.labels[cuts[-1]], minlength=len(pool.classes)) > 0
    evaluation = {"test": test}
    if late.any() and test.classes == pool.classes:
        arrives = late[test.labels]
        if not late_in_test:
            evaluation["test"] = test.take(np.flatnonzero(~arrives))
        if arrives.any():
            evaluation["late"] = test.take(
                np.flatnonzero(arrives), name=f"{test.name} (new classes)"
            )
    if selection_holdout:
        held = pool.take(np.flatnonzero(aside), name=f"{pool.name} (selection holdout)")
        evaluation[SELECTION_SET] = held
    return Stream(
        pool=pool,
        generations=cuts,
        validation=tuple(count.astype(np.intp) for count in counts),
        evaluation=evaluation,
        late=tuple(np.array(pool.classes)[late].tolist()),
        selection_holdout=arrived,
    )


@renamed_arguments(untouched="selection_holdout")
def from_arrivals(
    pool: Pool,
    arrivals: AnyArray,
    *,
    test: Pool,
    validation: float = 0.1,
    late_in_test: bool = False,
    selection_holdout: float = 0.0,
) -> Stream:
    """A stream from the moment that each row arrived (a week, a date): one generation per moment.

    Generation i holds every row of the i first moments, in their sorted order. See
    `from_generations` for the rest.

    Example:
        >>> pool = Pool(name="made", inputs=np.zeros((8, 1)), labels=np.arange(8) % 2,
        ...             classes=("cat", "dog"), ids=np.arange(8))
        >>> weeks = np.array(["w1", "w1", "w1", "w1", "w2", "w2", "w3", "w3"])
        >>> [len(rows) for rows in from_arrivals(pool, weeks, test=pool).generations]
        [4, 6, 8]
    """
    arrivals = np.asarray(arrivals)
    if arrivals.shape != (len(pool),):
        raise DataError(
            f"`arrivals` must be one moment for each of the {len(pool)} rows of {pool.name}, but "
            f"has the shape {arrivals.shape}."
        )
    moments, arrived = np.unique(arrivals, return_inverse=True)
    return from_generations(
        pool,
        [np.flatnonzero(arrived <= moment) for moment in range(len(moments))],
        test=test,
        validation=validation,
        late_in_test=late_in_test,
        selection_holdout=selection_holdout,
    )
