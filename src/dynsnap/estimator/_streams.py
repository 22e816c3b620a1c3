"""The rows of one generation: which are trained on, which are set aside, as trainers take them."""

import dataclasses
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Flags, Labels, Positions
from dynsnap.data import SELECTION_SET, Pool, Stream, draw_groups, selection_rows
from dynsnap.errors import InputError, PlanError

_MOST_ASIDE = 1000  # rows: beyond, more of them would settle little and be missed in training


def rows_aside(labels: Labels, share: float, groups: AnyArray | None) -> Positions:
    """Rows that no round trains on, so that their scores show what another is worth."""
    if groups is not None:
        have = np.bincount(labels)
        counts = np.maximum(np.rint(min(share, _MOST_ASIDE / len(labels)) * have), 1)
        return np.flatnonzero(
            draw_groups(labels, groups, counts.astype(np.intp), np.random.default_rng(0))
        )
    # At least two rows of every class are left, to train and to validate on.
    every = max(round(1 / share), -(-len(labels) // _MOST_ASIDE), 3)
    rows = [np.flatnonzero(labels == label)[every - 1 :: every] for label in np.unique(labels)]
    found = np.sort(np.concatenate(rows))
    if not len(found):
        raise PlanError(
            f'"auto" members are decided on by every {every}th row of each class, and no class '
            "has so many: give a number of members."
        )
    return found


def rows_held_out(inputs: Any, labels: Labels, share: float, method: str) -> Positions:
    """Rows that no generation trains on, so that members of all of them can be compared."""
    if share == 0:
        raise PlanError(
            f"{method} compares networks of two generations on rows that none is trained on: set "
            "`selection_holdout` above 0, such as 0.1."
        )
    found = np.flatnonzero(selection_rows(inputs, share))
    left = np.bincount(np.delete(labels, found), minlength=int(labels.max()) + 1)
    if not len(found) or left.min() < 2:
        raise InputError(
            f"{method} holds {share:.0%} of the rows out to compare networks of all generations "
            f"on, and {len(inputs)} rows are too few for that: {len(found)} would be "
            f"held out, and {left.min()} left of one class. Bring more rows, or change "
            "`selection_holdout`."
        )
    return found


def stream_of(pool: Pool, validation: float, generation: int, aside: Positions | None) -> Stream:
    """The data of one generation as a stream, for trainers."""
    # A trainer always scores a test set. It is unused unless rows are held out for it.
    rows, seen = np.arange(len(pool)), np.arange(1)
    if aside is not None:
        rows, seen = np.delete(rows, aside), aside
    have = np.bincount(pool.labels[rows], minlength=len(pool.classes))
    counts = np.clip(np.rint(validation * have), 1, have - 1).astype(np.intp)
    return Stream(
        pool=pool,
        # Only the last is trained here; those before it were trained by the estimators before.
        generations=(rows,) * generation,
        validation=(counts,) * generation,
        evaluation={"test": pool.take(seen)},
    )


def after_the_first(stream: Stream, known: Flags, *, held_out: bool) -> Stream:
    """The stream of a retrain: the generation before had rows of the classes that it knows."""
    *_, rows = stream.generations
    last = len(stream.generations) - 1
    counts = np.where(
        np.bincount(stream.pool.labels[rows[known[rows]]], minlength=len(stream.pool.classes)),
        stream.validation[-1],
        0,
    )
    changed = dataclasses.replace(
        stream,
        generations=(rows[known[rows]],) * last + (rows,),
        validation=(counts,) * last + (stream.validation[-1],),
    )
    if not held_out:
        return changed
    seen = stream.evaluation["test"]
    return dataclasses.replace(
        changed,
        evaluation={"test": seen, SELECTION_SET: seen},
        selection_holdout=(np.arange(len(seen)),) * (last + 1),
    )
