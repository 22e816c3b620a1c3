"""How much rows count in training: their own weights, and those of their classes."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np

from dynsnap._types import Floats, Positions
from dynsnap.data._pool import Pool
from dynsnap.errors import PlanError, did_you_mean

ClassWeight: TypeAlias = Mapping[str, float] | Literal["balanced"] | None


def check_class_weight(class_weight: ClassWeight, classes: tuple[str, ...]) -> None:
    """Raise PlanError unless weights of classes are "balanced", or numbers for these classes.

    As in scikit-learn, they may be for some of the classes, or for more than there are, but not
    both: that is a name which is written otherwise.

    Example:
        >>> check_class_weight({"cat": 2.0}, ("cat", "dog"))
    """
    if class_weight is None or class_weight == "balanced":
        return
    if not isinstance(class_weight, Mapping):
        raise PlanError(
            '`class_weight` must be "balanced", or a weight for each class by its name, got '
            f"{class_weight!r}."
        )
    for name, weight in class_weight.items():
        number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if not number or not 0 < weight < float("inf"):
            raise PlanError(
                f"`class_weight` must be a number above 0 for each class, got {weight!r} for "
                f"{name!r}."
            )
    strange = [name for name in class_weight if name not in classes]
    lacking = [name for name in classes if name not in class_weight]
    if strange and lacking:
        raise PlanError(
            f"`class_weight` names {strange[0]!r}, which is no class, and has no weight for "
            f"{lacking[0]!r}. {did_you_mean(str(strange[0]), classes)}"
        )


def described_class_weight(class_weight: ClassWeight) -> str:
    """Weights of classes as text, the same in whatever order they were given."""
    if isinstance(class_weight, str):
        return class_weight
    return str(sorted((str(name), float(value)) for name, value in (class_weight or {}).items()))


def training_weights(
    pool: Pool, rows: Positions, class_weight: ClassWeight = None
) -> Floats | None:
    """How much each of these rows counts in training; None where all count 1.

    "balanced" gives every class that these rows hold the same weight in all, and leaves the sum
    of all weights as it is.

    Example:
        >>> pool = Pool(name="three", inputs=np.eye(3), labels=np.array([0, 0, 1]),
        ...             classes=("cat", "dog"), ids=np.arange(3))
        >>> training_weights(pool, np.arange(3), "balanced")
        array([0.75, 0.75, 1.5 ])
    """
    own = None if pool.weights is None else pool.weights[rows]
    if not class_weight:
        return own
    labels = pool.labels[rows]
    if isinstance(class_weight, str):
        counts = np.bincount(labels, own, len(pool.classes))
        present = counts > 0
        factors = np.ones(len(pool.classes))
        factors[present] = counts.sum() / (present.sum() * counts[present])
    else:
        factors = np.array([float(class_weight.get(name, 1.0)) for name in pool.classes])
    found: Floats = factors[labels] if own is None else factors[labels] * own
    return found
