"""Growing data: which rows each generation may learn from, and what is held out of all of them."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from dynsnap import seeds
from dynsnap._renamed import renamed_arguments
from dynsnap._types import AnyArray, Flags, Floats, Positions
from dynsnap.data._pool import SELECTION_SET, Pool, Stream, check_selection_holdout, rank_in_class
from dynsnap.data._time import TimeGrowth, grow_by_time
from dynsnap.errors import DataError, PlanError, did_you_mean
from dynsnap.metrics import majority_classes

TRAINING_ROWS = "training rows"


def training_rows(stream: Stream) -> AnyArray:
    """How many rows of each class a round of each generation learns from: (generations, classes).

    Example:
        >>> from dynsnap.data import digits_stream
        >>> training_rows(digits_stream())[:, 5:8].tolist()
        [[18, 0, 6], [22, 0, 7], [22, 29, 7]]
    """
    labels, classes = stream.pool.labels, len(stream.pool.classes)
    held = [np.bincount(labels[rows], minlength=classes) for rows in stream.generations]
    return np.stack(held) - np.stack(stream.validation)


def with_training_rows(stream: Stream) -> Stream:
    """The stream with a slice that separates inputs of majority and of minority classes.

    Held-out sets are often balanced where the training rows are not, so only the slice "training
    rows" can tell. It goes by the rows of the last generation, see `metrics.majority_classes`;
    where classes are equally frequent there is none.
    """
    rows = training_rows(stream)[-1]
    majority = majority_classes(rows)
    if majority[rows > 0].all():
        return stream
    names = np.where(majority, "majority", "minority")
    return dataclasses.replace(
        stream,
        evaluation={name: _sliced(pool, names) for name, pool in stream.evaluation.items()},
    )


def _sliced(pool: Pool, names: AnyArray) -> Pool:
    # A column of that name that the data brings is the user's own.
    return dataclasses.replace(pool, slices={TRAINING_ROWS: names[pool.labels], **pool.slices})


LateValidation: TypeAlias = Literal["never", "arrival", "always"]

_MOST = 1000  # generations: each of them is compared with each


@renamed_arguments(untouched="selection_holdout", holdout="test_size")
@dataclass(frozen=True, kw_only=True)
class GrowthPlan:
    """How a pool is cut into generations D1 ⊆ D2 ⊆ ..., by the paper's protocol.

    Generation i learns from the first `fractions[i]` of the rows that `shares` leaves of each
    class, in file order, once the class has arrived, and from the validation rows. Held-out rows
    (an official test set, or a seeded hold-out) are cut class by class into validation rows, which
    every generation holds and every round draws anew, and the fixed test set.

    Attributes:
        fractions: For each generation, the share of its rows that a class has brought by then.
        fractions_of: For some classes, fractions of their own: a class that brings little for long,
            and then much at once, changes the shares of all classes.
        shares: For some classes, the share of their rows that is used at all; 1 for the others.
            A class with the share 0 is left out of everything.
        late: For some classes, the generation (from 1) that they arrive in; 1 for the others.
        validation: Share of each class of the held-out rows that is validated on, the first in
            file order; the rest is the test set.
        selection_holdout: Share of the validation rows of each class, the first in file order, that
            no round trains or validates on, so that members of any generation can be compared on
            them. They form the evaluation set "untouched".
        late_validation: Whether rounds validate on new classes: "never", from their "arrival"
            on, or "always" (their validation rows are then never trained on before).
        late_in_test: Whether the test set holds the new classes. Either way the set "late" holds
            all of their held-out rows that are not validated on.
        test_size: Share of each class to hold out where there is no official test set.
        seed: Draws that hold-out.

    Example:
        >>> GrowthPlan(fractions=(0.5, 1), late={"frog": 2}).generations
        2
    """

    fractions: tuple[float, ...] = (0.8, 1.0, 1.0)
    fractions_of: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    validation: float = 0.5
    selection_holdout: float = 0.0
    late_validation: LateValidation = "never"
    late_in_test: bool = False
    test_size: float = 0.4
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.fractions, list):  # as TOML and JSON have it
            object.__setattr__(self, "fractions", tuple(self.fractions))
        _check_fractions("`fractions`", self.fractions)
        for word in ("fractions_of", "shares", "late"):
            if not isinstance(getattr(self, word), Mapping):
                raise PlanError(
                    f"`{word}` must give a value for each of some class names, got "
                    f"{getattr(self, word)!r}."
                )
        for name, own in self.fractions_of.items():
            _check_fractions(f"`fractions_of` class {name!r}", own)
            if len(own) != self.generations:
                raise PlanError(
                    f"`fractions_of` class {name!r} must hold one for each of the "
                    f"{self.generations} generations, got {len(own)}."
                )
        for name, share in self.shares.items():
            if not (isinstance(share, Real) and 0 <= share <= 1):
                raise PlanError(f"The share of class {name!r} must be in [0, 1], got {share}.")
        for name, arrival in self.late.items():
            if arrival not in range(2, self.generations + 1):
                raise PlanError(
                    f"New class {name!r} must arrive after the first and by the last of "
                    f"{self.generations} generations, got {arrival}."
                )
            if self.shares.get(name) == 0:
                raise PlanError(f"New class {name!r} has the share 0, so it would never arrive.")
        for word in ("validation", "test_size"):
            if not (isinstance(getattr(self, word), Real) and 0 < getattr(self, word) < 1):
                raise PlanError(f"`{word}` must be above 0 and below 1, got {getattr(self, word)}.")
        check_selection_holdout(self.selection_holdout)
        if self.late_validation not in ("never", "arrival", "always"):
            raise PlanError(
                '`late_validation` must be "never", "arrival" or "always", '
                f"got {self.late_validation!r}."
            )

    @property
    def generations(self) -> int:
        """How many generations there are."""
        return len(self.fractions)


def _check_fractions(where: str, fractions: Any) -> None:
    # A list, as TOML and JSON have it, will do.
    if not isinstance(fractions, tuple | list) or not fractions:
        raise PlanError(f"{where} must be a list with one for each generation, got {fractions!r}.")
    if len(fractions) > _MOST:
        raise PlanError(f"{where} must name at most {_MOST:,} generations, got {len(fractions):,}.")
    for fraction in fractions:
        if not (isinstance(fraction, int | float) and 0 < fraction <= 1):
            raise PlanError(f"{where} must be above 0 and at most 1, got {fraction}.")
    if list(fractions) != sorted(fractions):
        raise PlanError(
            f"{where} must not fall, got {tuple(fractions)}: each generation holds all of the one "
            "before."
        )


def grow(train: Pool, plan: GrowthPlan | TimeGrowth, *, test: Pool | None = None) -> Stream:
    """Cut a pool into the generations of a plan, with fixed sets to evaluate on.

    Without an official `test` pool, a hold-out stratified by class takes its place. By time, every
    generation is tested on the rows that follow it instead.

    Example:
        >>> pool = Pool(name="made", inputs=np.zeros((40, 2)), labels=np.arange(40) % 2,
        ...             classes=("cat", "dog"), ids=np.arange(40))
        >>> stream = grow(pool, GrowthPlan(fractions=(0.5, 1), late={"dog": 2}))
        >>> [len(rows) for rows in stream.generations]
        [10, 28]
    """
    if isinstance(plan, TimeGrowth):
        if test is not None:
            raise PlanError("By time, later rows are the test set: leave the test set out.")
        return grow_by_time(train, plan)
    for name in (*plan.fractions_of, *plan.shares, *plan.late):
        if name not in train.classes:
            raise PlanError(
                f"The growth plan names class {name!r}, which {train.name} does not have. "
                f"{_where_it_is(name, train)}"
            )
    if test is None:
        train, test = _hold_out(train, plan)
    train.check_same_classes(test)
    share = np.array([plan.shares.get(name, 1.0) for name in train.classes])
    arrival = np.array([plan.late.get(name, 1) for name in train.classes])
    held = _cut_held_out(test, plan, left_out=share == 0)
    pool = train.join(test.take(held.validation))
    aside = test.take(held.selection_holdout, name=f"{test.name} (selection holdout)")
    # The held-out rows that are validated on follow the training rows.
    validated = np.arange(len(train), len(pool))
    labels, rank, sizes = train.labels, rank_in_class(train.labels), train.counts
    generations, counts, arrived = [], [], []
    brought = np.array([plan.fractions_of.get(name, plan.fractions) for name in train.classes])
    for number, fraction in enumerate(brought.T, start=1):
        here = arrival <= number
        quota = np.where(here, np.rint(fraction * share * sizes), 0)
        _check_quota(train, number, quota, expected=here & (share > 0))
        seen = here | (plan.late_validation == "always")
        extra = validated[seen[pool.labels[validated]]]
        generations.append(np.concatenate([np.flatnonzero(rank < quota[labels]), extra]))
        counts.append(np.bincount(pool.labels[extra], minlength=len(pool.classes)))
        arrived.append(np.flatnonzero(seen[aside.labels]))
    evaluation = {"test": test.take(held.test, name=f"{test.name} (test half)")}
    if plan.late:
        evaluation["late"] = test.take(held.late, name=f"{test.name} (new classes)")
    if plan.selection_holdout:
        evaluation[SELECTION_SET] = aside
    stream = Stream(
        pool=pool,
        generations=tuple(generations),
        validation=tuple(counts),
        evaluation=evaluation,
        late=tuple(name for name in train.classes if name in plan.late),
        selection_holdout=tuple(arrived) if plan.selection_holdout else (),
    )
    return with_training_rows(stream)


def _where_it_is(name: str, train: Pool) -> str:
    for column, values in train.slices.items():
        if (inside := values == name).any():
            within = [train.classes[label] for label in np.unique(train.labels[inside])]
            return (
                f"It is a value of the slice {column!r}; name its classes instead: "
                f"{', '.join(within[:5])}{', ...' if len(within) > 5 else '.'}"
            )
    return did_you_mean(name, train.classes)


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Rows of the held-out pool, by what they are for."""

    validation: Positions
    test: Positions
    late: Positions
    selection_holdout: Positions


def _cut_held_out(test: Pool, plan: GrowthPlan, *, left_out: Flags) -> _HeldOut:
    late = np.array([name in plan.late for name in test.classes])
    validates = ~left_out & (~late | (plan.late_validation != "never"))
    sizes = test.counts
    quota = np.where(validates, np.rint(plan.validation * sizes), 0)
    for name, wants, size, checked in zip(test.classes, quota, sizes, validates, strict=True):
        if checked and not 0 < wants < size:
            raise DataError(
                f"{test.name}: class {name!r} has {size} held-out rows, too few to validate on "
                f"{plan.validation:.3g} of them and test on the rest. Bring or hold out more."
            )
    aside = np.rint(plan.selection_holdout * quota)
    if plan.selection_holdout and ((aside == 0) | (aside == quota))[validates].any():
        name = test.classes[int(np.argmax(((aside == 0) | (aside == quota)) & validates))]
        raise DataError(
            f"{test.name}: class {name!r} has too few validation rows to hold "
            f"{plan.selection_holdout:.3g} of them out for selection and validate on the rest. "
            "Hold out more."
        )
    rank = rank_in_class(test.labels)
    first, fixed = rank < quota[test.labels], rank < aside[test.labels]
    tested = ~left_out & (~late | plan.late_in_test)
    return _HeldOut(
        validation=np.flatnonzero(first & ~fixed),
        selection_holdout=np.flatnonzero(fixed),
        test=np.flatnonzero(~first & tested[test.labels]),
        late=np.flatnonzero(~first & (late & ~left_out)[test.labels]),
    )


def _hold_out(pool: Pool, plan: GrowthPlan) -> tuple[Pool, Pool]:
    """Set a share of each class aside, drawn at random; both parts stay in file order."""
    order = seeds.generator(plan.seed, "holdout").permutation(len(pool))
    rank = np.empty(len(pool), dtype=np.intp)
    rank[order] = rank_in_class(pool.labels[order])
    held = rank < np.rint(plan.test_size * pool.counts)[pool.labels]
    return (
        pool.take(np.flatnonzero(~held)),
        pool.take(np.flatnonzero(held), name=f"{pool.name} (held out)"),
    )


def _check_quota(train: Pool, number: int, quota: Floats, *, expected: Flags) -> None:
    for name, rows, size, due in zip(train.classes, quota, train.counts, expected, strict=True):
        if due and not rows:
            raise DataError(
                f"{train.name}, generation {number}: class {name!r} gets none of its {size} rows "
                "to train on. Bring more, or raise its share."
            )
    if not quota.any():
        raise PlanError(
            f"{train.name}, generation {number} is empty: all of its classes are new later."
        )
