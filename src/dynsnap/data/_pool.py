"""A pool of labelled inputs, and a stream of generations cut from one."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dynsnap._renamed import renamed_arguments
from dynsnap._types import AnyArray, Flags, Labels, Positions
from dynsnap.data._selection_holdout import SELECTION_SET
from dynsnap.errors import DataError


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool:
    """Labelled inputs in a fixed order.

    Attributes:
        name: What to call it in messages.
        inputs: One per row: images (rows, height, width, channels) uint8, features (rows, columns),
            or texts as an object array of str.
        labels: Positions in `classes`.
        classes: Class names.
        ids: A name for each row, unique.
        slices: Further columns, text per row, for breakdowns.

    Example:
        >>> Pool(name="two", inputs=np.eye(2), labels=np.array([0, 1]), classes=("cat", "dog"),
        ...      ids=np.array(["a", "b"])).count("dog")
        1
    """

    name: str
    inputs: AnyArray
    labels: Labels
    classes: tuple[str, ...]
    ids: AnyArray
    slices: Mapping[str, AnyArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
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
            inputs=np.concatenate([self.inputs, other.inputs]),
            labels=np.concatenate([self.labels, other.labels]),
            classes=self.classes,
            ids=np.concatenate([self.ids, other.ids]),
            slices={
                column: np.concatenate([values, other.slices[column]])
                for column, values in self.slices.items()
                if column in other.slices
            },
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content: inputs, labels, class names."""
        digest = hashlib.sha256(repr((self.classes, self.inputs.shape)).encode())
        digest.update(np.ascontiguousarray(self.labels, dtype="<i8").tobytes())
        if self.inputs.dtype == object:
            for text in self.inputs:
                digest.update(text.encode() + b"\x00")
        else:
            digest.update(str(self.inputs.dtype).encode())
            digest.update(np.ascontiguousarray(self.inputs).tobytes())
        return digest.hexdigest()[:32]


@renamed_arguments(untouched="selection_holdout")
@dataclass(frozen=True, eq=False, kw_only=True)
class Stream:
    """Growing data D1 ⊆ D2 ⊆ ... with fixed sets to evaluate on: what a trainer is given.

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
    """

    pool: Pool
    generations: tuple[Positions, ...]
    validation: tuple[Positions, ...]
    evaluation: Mapping[str, Pool]
    late: tuple[str, ...] = ()
    selection_holdout: tuple[Positions, ...] = ()

    def __post_init__(self) -> None:
        check_nested(self.generations, rows=len(self.pool), name=self.pool.name)
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
            check_nested(self.selection_holdout, rows=len(aside), name=name)
        for number, (rows, counts) in enumerate(
            zip(self.generations, self.validation, strict=True), start=1
        ):
            self._check_validation(number, rows, counts)

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

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content of the pool, the cuts and the evaluation sets."""
        digest = hashlib.sha256(self.pool.fingerprint.encode())
        for rows in (*self.generations, *self.validation, *self.selection_holdout):
            digest.update(np.ascontiguousarray(rows, dtype="<i8").tobytes() + b"|")
        for name, pool in sorted(self.evaluation.items()):
            digest.update(f"{name}:{pool.fingerprint}".encode())
        return digest.hexdigest()[:32]


def check_nested(generations: Sequence[Positions], *, rows: int, name: str = "data") -> None:
    """Raise unless these are sorted rows of a pool of so many, each part of the next, none empty.

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
        if (lost := before & ~now).any():
            raise DataError(
                f"{where} lacks {lost.sum()} rows that generation {number - 1} has (the first is "
                f"row {lost.argmax()}). Each must hold all of the one before."
            )
        before = now


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
