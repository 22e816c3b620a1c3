"""Rows that no generation trains on, so that members of all generations can be compared on them."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from dynsnap._renamed import renamed_arguments
from dynsnap._types import AnyArray, Flags, Floats, Labels, Positions
from dynsnap.errors import DataError, PlanError

# Their evaluation set. Fingerprints of data and stored rounds hold this name, so it stays.
SELECTION_SET = "untouched"


def check_selection_holdout(share: float) -> None:
    """Raise unless a share of rows can be held out."""
    if not (isinstance(share, Real) and 0 <= share < 1):
        raise PlanError(f"`selection_holdout` must be at least 0 and below 1, got {share}.")


def selection_rows(inputs: Any, share: float) -> Flags:
    """Which rows are held out: about this share of them, by their content.

    A row's own content decides, so it is on the same side in every generation that it is part of,
    whatever comes before or after it, and equal rows are on the same side.

    Example:
        >>> int(selection_rows(np.arange(1000.0).reshape(1000, 1), 0.1).sum())
        99
    """
    check_selection_holdout(share)
    if not share:
        return np.zeros(len(inputs), dtype=bool)
    bar = int(share * 2**32)
    drawn = (hashlib.blake2b(content, digest_size=4).digest() for content in _contents(inputs))
    return np.fromiter((int.from_bytes(one) < bar for one in drawn), dtype=bool, count=len(inputs))


def _contents(inputs: Any) -> Iterator[bytes]:
    """What each row holds."""
    if not isinstance(inputs, np.ndarray):
        return iter(inputs.contents())
    texts = inputs.dtype.kind in "OU"
    # A number is the same number in any type, and so is a zero with a sign.
    return (
        str(row).encode() if texts else (row.astype(np.float32) + np.float32(0)).tobytes()
        for row in inputs
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool:
    """Labelled inputs in a fixed order.

    Attributes:
        name: What to call it in messages.
        inputs: One per row: images (rows, height, width, channels) uint8, features (rows, columns),
            or texts as an object array of str; or a `Frame`, whose columns have names.
        labels: Positions in `classes`.
        classes: Class names.
        ids: A name for each row, unique.
        slices: Further columns, text per row, for breakdowns.
        weights: How much each row counts, in training and in validation; None where all count 1.
        groups: What each row belongs to (a patient, a session): no split cuts a group. None where
            every row is on its own.
        times: When each row happened, as datetime64 in UTC; None where that is not known.

    Example:
        >>> Pool(name="two", inputs=np.eye(2), labels=np.array([0, 1]), classes=("cat", "dog"),
        ...      ids=np.array(["a", "b"])).count("dog")
        1
    """

    name: str
    inputs: Any  # an array, or what takes rows as an array does
    labels: Labels
    classes: tuple[str, ...]
    ids: AnyArray
    slices: Mapping[str, AnyArray] = field(default_factory=dict)
    weights: Floats | None = None
    groups: AnyArray | None = None
    times: AnyArray | None = None

    def __post_init__(self) -> None:
        if self.times is not None and len(self.times) != len(self.labels):
            raise DataError(
                f"{self.name}: there are {len(self.times)} times for {len(self.labels)} rows."
            )
        if not len(self.inputs) == len(self.labels) == len(self.ids):
            raise DataError(
                f"{self.name}: inputs, labels and ids must be of one length, but there are "
                f"{len(self.inputs)}, {len(self.labels)} and {len(self.ids)}."
            )
        for column, values in self.slices.items():
            if len(values) != len(self.labels):
                raise DataError(
                    f"{self.name}: slice {column!r} has {len(values)} values for "
                    f"{len(self.labels)} rows."
                )
        for column, found in (("weights", self.weights), ("groups", self.groups)):
            if found is not None and found.shape != self.labels.shape:
                raise DataError(
                    f"{self.name}: `{column}` has the shape {found.shape} for {len(self.labels)} "
                    "rows."
                )
        if self.weights is not None and not (np.isfinite(self.weights) & (self.weights > 0)).all():
            raise DataError(
                f"{self.name}: `weights` must be finite and above 0. Leave rows without weight out."
            )
        if not np.issubdtype(self.labels.dtype, np.integer):
            raise DataError(
                f"{self.name}: labels must be positions in `classes`, but are {self.labels.dtype}. "
                "`from_arrays` takes class names too."
            )
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            raise DataError(
                f"{self.name}: labels must be positions in the {len(self.classes)} classes, "
                f"but run from {self.labels.min()} to {self.labels.max()}."
            )
        if (twice := _repeated(self.classes)) is not None:
            raise DataError(f"{self.name}: class {twice!r} is named twice.")
        if (twice := _repeated(self.ids.tolist())) is not None:
            raise DataError(f"{self.name}: ids must be unique, but {twice!r} occurs twice.")

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<Pool {self.name}: {len(self)} rows, {len(self.classes)} classes>"

    def count(self, name: str) -> int:
        """How many rows one class has."""
        return int(np.sum(self.labels == self.classes.index(name)))

    @property
    def counts(self) -> Positions:
        """How many rows each class has."""
        return np.bincount(self.labels, minlength=len(self.classes))

    def take(self, rows: Positions, *, name: str | None = None) -> "Pool":
        """The pool that holds these rows, in this order."""
        return Pool(
            name=name or self.name,
            inputs=self.inputs[rows],
            labels=self.labels[rows],
            classes=self.classes,
            ids=self.ids[rows],
            slices={column: values[rows] for column, values in self.slices.items()},
            weights=None if self.weights is None else self.weights[rows],
            groups=None if self.groups is None else self.groups[rows],
            times=None if self.times is None else self.times[rows],
        )

    def check_same_classes(self, other: "Pool") -> None:
        """Raise unless labels mean the same in both pools."""
        if self.classes != other.classes:
            raise DataError(
                f"{self.name} and {other.name} must have the same classes in the same order, but "
                f"have {_some(self.classes)} and {_some(other.classes)}."
            )

    def join(self, other: "Pool") -> "Pool":
        """The pool that holds these rows, then those of the other, with the slices of both."""
        self.check_same_classes(other)
        if self.inputs.shape[1:] != other.inputs.shape[1:]:
            raise DataError(
                f"{self.name} and {other.name} must have inputs of one shape, but have "
                f"{self.inputs.shape[1:]} and {other.inputs.shape[1:]}."
            )
        return Pool(
            name=self.name,
            inputs=joined(self.inputs, other.inputs),
            labels=np.concatenate([self.labels, other.labels]),
            classes=self.classes,
            ids=np.concatenate([self.ids, other.ids]),
            slices={
                column: np.concatenate([values, other.slices[column]])
                for column, values in self.slices.items()
                if column in other.slices
            },
            weights=self._joined_weights(other),
            groups=self._joined_groups(other),
            times=None
            if self.times is None or other.times is None
            else np.concatenate([self.times, other.times]),
        )

    def _joined_weights(self, other: "Pool") -> Floats | None:
        if self.weights is None and other.weights is None:
            return None
        parts = [np.ones(len(one)) if one.weights is None else one.weights for one in (self, other)]
        return np.concatenate(parts)

    def _joined_groups(self, other: "Pool") -> AnyArray | None:
        if (self.groups is None) != (other.groups is None):
            raise DataError(
                f"{self.name} and {other.name} must both have `groups`, or neither of them."
            )
        if self.groups is None or other.groups is None:
            return None
        return np.concatenate([self.groups, other.groups])

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content: inputs, labels, class names, and weights and groups if any."""
        digest = hashlib.sha256(repr((self.classes, self.inputs.shape)).encode())
        digest.update(np.ascontiguousarray(self.labels, dtype="<i8").tobytes())
        if not isinstance(self.inputs, np.ndarray):
            digest.update(repr(self.inputs.type).encode())
            for content in self.inputs.contents():
                digest.update(len(content).to_bytes(8) + content)
        elif self.inputs.dtype == object:
            for text in self.inputs:
                digest.update(text.encode() + b"\x00")
        else:
            digest.update(str(self.inputs.dtype).encode())
            digest.update(np.ascontiguousarray(self.inputs).tobytes())
        # Only where there are any: pools without them keep the fingerprints that they had.
        if self.weights is not None:
            digest.update(b"weights" + np.ascontiguousarray(self.weights, dtype="<f8").tobytes())
        if self.groups is not None:
            digest.update(b"groups" + "\x00".join(map(str, self.groups.tolist())).encode())
        return digest.hexdigest()[:32]


@renamed_arguments(untouched="selection_holdout")
@dataclass(frozen=True, eq=False, kw_only=True)
class Stream:
    """Growing data D1 ⊆ D2 ⊆ ... with fixed sets to evaluate on: what a trainer is given.

    By time, D_i are the rows of a window, which may slide, and each retrain is compared on rows of
    its own: those of the period that follows. Trainers need not know: every round scores all of
    "test".

    Attributes:
        pool: Everything that any generation may learn from.
        generations: For each D_i its rows in `pool`, sorted, each a part of the next.
        validation: For each D_i, how many rows of each class a round sets aside to validate on;
            every round draws them anew from D_i.
        evaluation: Fixed held-out sets by name: "test" always, "late" where classes are
            new in a later generation.
        late: Names of the classes that the first generation does not learn. It may hold rows of
            them if it validates on all of those.
        selection_holdout: For each D_i, the rows of the evaluation set "untouched" that have
            arrived by then: no round of any generation trains or validates on them. Empty where
            there is no such set.
        test_rows: By time: for each D_i, the rows of "test" that happened after all of D_i and
            before the next. Empty where every generation is tested on all of "test".
        notes: What was left out when the data was cut, a sentence each.
    """

    pool: Pool
    generations: tuple[Positions, ...]
    validation: tuple[Positions, ...]
    evaluation: Mapping[str, Pool]
    late: tuple[str, ...] = ()
    selection_holdout: tuple[Positions, ...] = ()
    test_rows: tuple[Positions, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_nested(
            self.generations, rows=len(self.pool), name=self.pool.name, nested=not self.by_time
        )
        classes = self.pool.classes
        if unknown := set(self.late) - set(classes):
            raise DataError(
                f"{self.pool.name}: `late` names {sorted(unknown)}, which are not classes."
            )
        if "test" not in self.evaluation:
            raise DataError(f'{self.pool.name}: `evaluation` must hold a set named "test".')
        for name, held in self.evaluation.items():
            self.pool.check_same_classes(held)
            if not len(held):
                raise DataError(f"{self.pool.name}: `{name}` has no rows to evaluate on.")
        if len(self.validation) != len(self.generations):
            raise DataError(
                f"{self.pool.name}: there are {len(self.generations)} generations, but validation "
                f"counts for {len(self.validation)}."
            )
        if SELECTION_SET in self.evaluation or self.selection_holdout:
            aside = self.evaluation.get(SELECTION_SET, ())
            name = f"{self.pool.name}, selection holdout"
            check_nested(
                self.selection_holdout, rows=len(aside), name=name, nested=not self.by_time
            )
        if self.by_time:
            name, tested = f"{self.pool.name}, test rows", len(self.evaluation["test"])
            check_nested(self.test_rows, rows=tested, name=name, nested=False)
            if len(self.test_rows) != len(self.generations):
                raise DataError(f"{name}: there must be some for each generation.")
        for number, (rows, counts) in enumerate(
            zip(self.generations, self.validation, strict=True), start=1
        ):
            self._check_validation(number, rows, counts)

    @property
    def by_time(self) -> bool:
        """Whether each generation is tested on the period that follows it."""
        return bool(self.test_rows)

    def _check_validation(self, number: int, rows: Positions, counts: Positions) -> None:
        classes = self.pool.classes
        where = f"{self.pool.name}, generation {number}"
        if counts.shape != (len(classes),) or (counts < 0).any():
            raise DataError(
                f"{where}: validation counts must be one for each of {len(classes)} classes and "
                f"not negative, but are {counts}."
            )
        if not counts.any():
            raise DataError(f"{where}: nothing is set aside to validate on.")
        have = np.bincount(self.pool.labels[rows], minlength=len(classes))
        for name, wants, has in zip(classes, counts, have, strict=True):
            # A new class may be validated on before it is learned; any other must leave some.
            if wants > has or (wants and wants == has and name not in self.late):
                raise DataError(
                    f"{where}: class {name!r} has {has} rows, too few to set {wants} aside for "
                    "validation and train on the rest. Bring more, or validate on fewer."
                )
        if counts.sum() == len(rows):
            raise DataError(f"{where}: all {len(rows)} rows go to validation, none to training.")

    def learned(self, generation: int) -> Flags:
        """Which classes a learner of this generation, counted from 1, has seen in training.

        Example:
            >>> from dynsnap.data import digits_stream
            >>> [int(digits_stream().learned(generation).sum()) for generation in (1, 3)]
            [9, 10]
        """
        rows, counts = self.generations[generation - 1], self.validation[generation - 1]
        have = np.bincount(self.pool.labels[rows], minlength=len(self.pool.classes))
        return np.asarray(have > counts)

    def new_classes(self, generation: int) -> Flags:
        """Which classes a learner of this generation is the first to see in training.

        Example:
            >>> from dynsnap.data import digits_stream
            >>> [int(digits_stream().new_classes(generation).sum()) for generation in (1, 2, 3)]
            [9, 0, 1]
        """
        before = self.learned(generation - 1) if generation > 1 else False
        return np.asarray(self.learned(generation) & ~np.asarray(before))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content of the pool, the cuts and the evaluation sets."""
        digest = hashlib.sha256(self.pool.fingerprint.encode())
        for rows in (*self.generations, *self.validation, *self.selection_holdout, *self.test_rows):
            digest.update(np.ascontiguousarray(rows, dtype="<i8").tobytes() + b"|")
        for name, pool in sorted(self.evaluation.items()):
            digest.update(f"{name}:{pool.fingerprint}".encode())
        return digest.hexdigest()[:32]


def check_nested(
    generations: Sequence[Positions], *, rows: int, name: str = "data", nested: bool = True
) -> None:
    """Raise unless these are sorted rows of a pool of so many, each part of the next, none empty.

    Windows by time need not be `nested`.

    Example:
        >>> check_nested([np.array([0, 2]), np.array([0, 1, 2])], rows=3)
    """
    if not generations:
        raise DataError(f"{name}: there must be at least one generation.")
    before = np.zeros(rows, dtype=bool)
    for number, chosen in enumerate(generations, start=1):
        where = f"{name}, generation {number}"
        if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
            raise DataError(f"{where} must be an array of row numbers, but is {chosen.dtype}.")
        if not len(chosen):
            raise DataError(f"{where} is empty. Bring data for it, or start later.")
        if (np.diff(chosen) <= 0).any():
            raise DataError(f"{where} must list its rows in ascending order, each once.")
        if chosen[0] < 0 or chosen[-1] >= rows:
            raise DataError(
                f"{where} names rows {chosen[0]} to {chosen[-1]}, but the pool has {rows}, "
                "counted from 0."
            )
        now = np.zeros(rows, dtype=bool)
        now[chosen] = True
        if nested and (lost := before & ~now).any():
            raise DataError(
                f"{where} lacks {lost.sum()} rows that generation {number - 1} has (the first is "
                f"row {lost.argmax()}). Each must hold all of the one before."
            )
        before = now


def joined(first: Any, second: Any) -> Any:
    """The inputs of one pool, then those of another."""
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    return first.join(second)


def rank_in_class(labels: Labels) -> Positions:
    """For each row, how many earlier rows have the same label.

    Example:
        >>> rank_in_class(np.array([1, 0, 1, 1, 0]))
        array([0, 0, 1, 2, 1])
    """
    order = np.argsort(labels, kind="stable")
    starts = np.cumsum(np.bincount(labels)) - np.bincount(labels)
    rank = np.empty(len(labels), dtype=np.intp)
    rank[order] = np.arange(len(labels)) - starts[labels[order]]
    return rank


def _repeated(names: Sequence[object]) -> object | None:
    """The first name that occurs twice, or None."""
    if len(set(names)) == len(names):
        return None
    return next(name for name, count in Counter(names).items() if count > 1)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return f"{shown}, ... ({len(names)} in all)" if len(names) > 5 else shown
