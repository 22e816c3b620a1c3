"""Checks on the scores of an ensemble's members, and on what they should have been."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dynsnap import _check
from dynsnap._types import AnyArray, Floats, MemberScores
from dynsnap.errors import InputError

Truth = npt.NDArray[Any]  # (inputs,), class positions; or (inputs, classes), true vectors


def check_members(**arrays: MemberScores) -> tuple[AnyArray, ...]:
    """The arrays, if they are finite scores of the same members, inputs and classes."""
    found = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in found.items():
        if array.ndim != 3 or 0 in array.shape:
            raise InputError(
                f"`{name}` must have the shape (members, inputs, classes), none of them 0, "
                f"got {array.shape}. A single learner is one member: `scores[None]`."
            )
    counts = {name: len(array) for name, array in found.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"`{name}` has {count}" for name, count in counts.items())
        raise InputError(
            "The theorems pair each member with its next generation, so both ensembles need as "
            f"many members, but {listed}."
        )
    if len({array.shape for array in found.values()}) > 1:
        listed = ", ".join(f"`{name}` has {array.shape[1:]}" for name, array in found.items())
        raise InputError(
            f"Members must score the same inputs and classes, but of these {listed}. "
            "Line them up by input id and class name first."
        )
    _check.finite(**found)
    return tuple(found.values())


def target(truth: Truth, *, like: AnyArray) -> Floats:
    """What each member should have said: one-hot rows of class positions, or true vectors."""
    _, inputs, classes = like.shape
    found = np.asarray(truth)
    if found.ndim == 2:
        if found.shape != (inputs, classes):
            raise InputError(
                f"True vectors must have the shape ({inputs}, {classes}) of one member's scores, "
                f"got {found.shape}."
            )
        _check.finite(truth=found)
        return found.astype(np.float64)
    positions = _check.truth(found, inputs=inputs, classes=classes)
    return np.eye(classes)[positions]


def shares(weights: AnyArray | None, *, members: int) -> Floats:
    """What each member counts for; together 1."""
    if weights is None:
        return np.full(members, 1 / members)
    relative = _check.weights(weights, of="members", size=members)
    return np.asarray(relative / relative.sum())
