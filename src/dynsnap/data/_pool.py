"""A pool of labelled inputs, and a stream of generations cut from one."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dynsnap._types import AnyArray, Labels, Positions
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
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            raise DataError(
                f"{self.name}: labels must be positions in the {len(self.classes)} classes, "
                f"but run from {self.labels.min()} to {self.labels.max()}."
            )

    def __len__(self) -> int:
        return len(self.labels)

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Stream:
    """Growing data D1 ⊆ D2 ⊆ ... with fixed sets to evaluate on: what a trainer is given.

    Attributes:
        pool: Everything that any generation may learn from.
        generations: For each D_i its rows in `pool`, sorted, each a part of the next.
        validation: For each D_i, how many rows of each class a round sets aside to validate on;
            every round draws them anew from D_i.
        evaluation: Fixed held-out sets by name: "test" always, "late" where classes arrive late.
        late: Names of the classes that are missing from the first generation.
    """

    pool: Pool
    generations: tuple[Positions, ...]
    validation: tuple[Positions, ...]
    evaluation: Mapping[str, Pool]
    late: tuple[str, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content of the pool, the cuts and the evaluation sets."""
        digest = hashlib.sha256(self.pool.fingerprint.encode())
        for rows in (*self.generations, *self.validation):
            digest.update(np.ascontiguousarray(rows, dtype="<i8").tobytes() + b"|")
        for name, pool in sorted(self.evaluation.items()):
            digest.update(f"{name}:{pool.fingerprint}".encode())
        return digest.hexdigest()[:32]
