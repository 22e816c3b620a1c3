"""One generation of an estimator: from checked inputs to an ensemble."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from dynsnap._types import Accuracies, AnyArray, Labels, MemberScores, Positions
from dynsnap.data import Stream, selection_rows
from dynsnap.ensemble import (
    METHOD_KINDS,
    Method,
    Rolling,
    RoundsInMemory,
    Size,
    grow_rounds,
    members,
    method,
)
from dynsnap.errors import InputError, Interrupted, PlanError
from dynsnap.estimator._configured import ConfiguredEnsemble
from dynsnap.estimator._fitted import Fitted, fitted
from dynsnap.estimator._inputs import encoded, pooled
from dynsnap.estimator._rolling import check_can_be_carried, roll
from dynsnap.estimator._settings import check_settings

_MOST_ASIDE = 1000  # rows: beyond, more of them would settle little and be missed in training


@contextlib.contextmanager
def nothing_kept(call: str) -> Iterator[None]:
    """Say what becomes of a training that is stopped: rounds of an estimator are stored nowhere."""
    try:
        yield
    except Interrupted as error:
        raise Interrupted(
            f"{error} `{call}` stores no rounds, so calling it again starts over."
        ) from error


def train(
    estimator: ConfiguredEnsemble,
    inputs: AnyArray,
    labels: AnyArray,
    *,
    before: ConfiguredEnsemble | None,
) -> tuple[Fitted, AnyArray]:
    """The ensemble that an estimator's settings make of this data, and its classes."""
    if not 0 < estimator.validation < 1:
        raise PlanError(f"`validation` must be above 0 and below 1, got {estimator.validation}.")
    plan = _method(estimator)
    backend = estimator._chosen_backend()
    check_settings(backend, estimator.get_params(deep=False), estimator._usual())
    classes, positions = encoded(labels, validation=estimator.validation)
    aside = None
    if plan.rolling is not None:
        if before is not None:
            share = estimator.selection_holdout
            check_can_be_carried(before, backend=backend.name, selection_holdout=share)
        aside = _held_out(inputs, positions, estimator.selection_holdout)
    elif plan.plan.automatic:
        aside = _aside(positions, estimator.validation)
    generation = 1 if before is None else before.generation_ + 1
    stream = _stream(inputs, positions, classes, estimator.validation, generation, aside)
    seed, rounds = _seed(estimator.random_state), RoundsInMemory()
    trains = backend.trainer(
        stream,
        model=estimator.model,
        settings=estimator._training_settings(backend),
        monitor=estimator.monitor,
    )
    judged = None if plan.rolling is None or aside is None else positions[aside]

    def train_new(size: Size) -> tuple[Fitted, MemberScores]:
        method = dataclasses.replace(
            plan, plan=dataclasses.replace(plan.plan, size=size), rolling=None
        )
        found = grow_rounds(
            method.plan,
            trains,
            recipe=method.recipe,
            generation=generation,
            seed=seed,
            store=rounds,
        )
        kept = members(method.plan, found)
        if judged is not None:
            kept = dataclasses.replace(kept, accuracy=_accuracy(kept.scores["test"], judged))
        made = fitted(
            method,
            found,
            kept,
            backend=backend.name,
            epochs=estimator.epochs,
            seed=seed,
            generation=generation,
        )
        if plan.rolling is not None:
            made = dataclasses.replace(made, selection_holdout=estimator.selection_holdout)
        return made, kept.scores["test"]

    size = plan.plan.size
    if plan.rolling is None or before is None or size == "auto":
        return train_new(size)[0], classes
    assert aside is not None
    made = roll(
        plan.rolling,
        size,
        before,
        inputs=inputs[aside],
        truth=positions[aside],
        classes=classes,
        train_new=train_new,
    )
    return made, classes


def _accuracy(scores: MemberScores, truth: Labels) -> Accuracies:
    found: Accuracies = np.mean(scores.argmax(axis=2) == truth, axis=1)
    return found


def _method(estimator: ConfiguredEnsemble) -> Method:
    # One snapshot is all that these take of a round, and all that most classifiers have.
    one = METHOD_KINDS.find(estimator.method).best_only
    plan = method(
        estimator.method,
        epochs=estimator.epochs,
        members=estimator.members,  # type: ignore[arg-type]  # checked there
        snapshots=1 if one else estimator.snapshots,
        dropout=estimator.dropout,
        beta=estimator.beta,  # type: ignore[arg-type]  # checked there
        rolling=Rolling(
            carry_over=estimator.carry_over, max_accuracy_gap=estimator.max_accuracy_gap
        ),
        tolerance=estimator.tolerance,
        most_rounds=estimator.most_rounds,
    )
    return dataclasses.replace(plan, combinations=(estimator.combination,))


def _aside(labels: Labels, share: float) -> Positions:
    """Rows that no round trains on, so that what rounds say of them tells what another is worth."""
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


def _held_out(inputs: AnyArray, labels: Labels, share: float) -> Positions:
    """Rows that no generation trains on, so that members of all of them can be compared."""
    found = np.flatnonzero(selection_rows(inputs, share))
    left = np.bincount(np.delete(labels, found), minlength=int(labels.max()) + 1)
    if not len(found) or left.min() < 2:
        raise InputError(
            f"A rolling ensemble holds {share:.0%} of the rows out to compare members of all "
            f"generations on, and {len(inputs)} rows are too few for that: {len(found)} would be "
            f"held out, and {left.min()} left of one class. Bring more rows, or change "
            "`selection_holdout`."
        )
    return found


def _stream(
    inputs: AnyArray,
    labels: Labels,
    classes: AnyArray,
    validation: float,
    generation: int,
    aside: Positions | None,
) -> Stream:
    """The data of one generation as a stream, for trainers."""
    pool = pooled(inputs, labels, classes)
    # A trainer always scores a test set. Nobody looks at it, unless rows are set aside for it.
    rows, seen = np.arange(len(inputs)), np.arange(1)
    if aside is not None:
        rows, seen = np.delete(rows, aside), aside
    have = np.bincount(labels[rows], minlength=len(classes))
    counts = np.clip(np.rint(validation * have), 1, have - 1).astype(np.intp)
    return Stream(
        pool=pool,
        # Only the last is trained here; those before it were trained by the estimators before.
        generations=(rows,) * generation,
        validation=(counts,) * generation,
        evaluation={"test": pool.take(seen)},
    )


def _seed(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
