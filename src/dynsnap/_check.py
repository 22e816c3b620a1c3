"""Checks on what callers hand in: one property each, in the caller's own words."""

import math
import re
from collections.abc import Sequence
from numbers import Real

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.errors import InputError, PlanError, one_line

SUM_TOLERANCE = 0.01  # how far the sum of a row of probabilities may be from one: 3 × 0.33 passes
SUM_LIMIT = SUM_TOLERANCE + 1e-6  # float sums of such values end up on either side

_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")


def comparable(**arrays: AnyArray) -> None:
    """Raise unless the arrays cover the same inputs, and at least one."""
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"`{name}` has {size}" for name, size in sizes.items())
        raise InputError(
            f"Arrays must cover the same inputs in the same order, but {found}. "
            "Line them up by input id first, with `dynsnap.predictions.align`."
        )
    if 0 in sizes.values():
        raise InputError("There is nothing to compare: the arrays are empty.")


def labels(**arrays: AnyArray) -> tuple[AnyArray, ...]:
    """The arrays, if each holds one label per input, of the same inputs."""
    found = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in found.items():
        if array.ndim != 1:
            raise InputError(
                f"`{name}` must hold one label per input, but its shape is {array.shape}. "
                "Take `scores.argmax(axis=1)` first if these are scores."
            )
        if array.size and array.dtype.kind not in "iubUSO":
            raise InputError(
                f"`{name}` must hold class positions or class names, but its type is {array.dtype}."
            )
    comparable(**found)
    if len({array.dtype.kind in "iub" for array in found.values()}) > 1:
        kinds = ", ".join(f"`{name}` is {array.dtype}" for name, array in found.items())
        raise InputError(f"Labels must be all positions or all names, but {kinds}.")
    return tuple(found.values())


def scores(**arrays: AnyArray) -> tuple[AnyArray, ...]:
    """The arrays, if they are finite rows of scores for the same inputs and classes."""
    found = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in found.items():
        if array.ndim != 2:
            raise InputError(
                f"`{name}` must have the shape (inputs, classes), got {array.shape}. "
                "A single number per input is a row of one: `scores[:, None]`."
            )
    comparable(**found)
    widths = {name: array.shape[1] for name, array in found.items()}
    if len(set(widths.values())) > 1 or 0 in widths.values():
        listed = ", ".join(f"`{name}` has {width}" for name, width in widths.items())
        raise InputError(
            f"Scores must have the same classes, and at least one, but {listed}. "
            "Widen them to all classes first, with `dynsnap.predictions.align`."
        )
    finite(**found)
    return tuple(found.values())


def probabilities(**arrays: AnyArray) -> tuple[AnyArray, ...]:
    """The arrays, if they are scores whose rows are not negative and sum to one."""
    found = scores(**arrays)
    for name, rows in zip(arrays, found, strict=True):
        if rows.min() < 0:
            row = int(np.argmax(rows.min(axis=1) < 0))
            raise InputError(
                f"`{name}` has a negative score in row {row}: {rows[row].min()}. "
                "Turn raw outputs into probabilities first, with a softmax."
            )
        sums = rows.sum(axis=1, dtype=np.float64)
        off = np.abs(sums - 1) > SUM_LIMIT
        if off.any():
            row = int(np.argmax(off))
            raise InputError(
                f"Each row of `{name}` must sum to 1, but row {row} sums to {sums[row]:.6g}. "
                "Turn raw outputs into probabilities first, with a softmax."
            )
    return found


def finite(**arrays: AnyArray) -> None:
    """Raise if an array holds anything but finite numbers."""
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise InputError(f"`{name}` must hold numbers, but its type is {array.dtype}.")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise InputError(
                f"`{name}` holds {array[where]} at {where}: every value must be a finite number. "
                "Leave out inputs that the model could not score."
            )


def truth(array: AnyArray, *, inputs: int, classes: int) -> AnyArray:
    """The array, if it holds a position among the classes for each input."""
    positions = np.asarray(array)
    if positions.shape != (inputs,) or positions.dtype.kind not in "iu":
        raise InputError(
            f"`truth` must hold one class position (a whole number) for each of {inputs} inputs, "
            f"but it is an array of {positions.dtype} of shape {positions.shape}."
        )
    outside = (positions < 0) | (positions >= classes)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"`truth` must lie between 0 and {classes - 1}, the classes of the scores, "
            f"but row {row} holds {positions[row]}."
        )
    return positions


def weights(array: AnyArray, *, of: str, size: int) -> Floats:
    """The weights relative to the largest, if there is a sound one for each input (or member)."""
    found = np.asarray(array)
    if found.shape != (size,):
        raise InputError(
            f"`weights` must hold one number for each of {size} {of}, got shape {found.shape}."
        )
    finite(weights=found)
    largest = float(found.max())
    if found.min() < 0 or largest == 0:
        raise InputError("`weights` must not be negative, and at least one must be above 0.")
    return np.asarray(found / largest, dtype=np.float64)  # a sum of huge weights would overflow


def margin(value: float) -> None:
    """Raise unless a class may be granted this margin."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value <= 1:
        raise PlanError(f"`margin` must be between 0 and 1, got {value!r}.")


def cost_ratio(value: float, *, name: str = "cost_ratio") -> None:
    """Raise unless a lost answer may cost so many missed gains; below 1, losses would pay."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 1 <= value < math.inf:
        raise PlanError(
            f"`{name}` must be a number from 1, what a lost answer costs in missed gains, "
            f"got {value!r}."
        )


def unambiguous(classes: Sequence[str], *, what: str) -> None:
    """Raise if a whole number could be the name of one class and the position of another.

    Example:
        >>> unambiguous(["0", "1", "other"], what="truth")  # 1 is the class "1" either way
    """
    for place, name in enumerate(classes):
        # As text, not as a number: names may have thousands of digits.
        if _WHOLE.fullmatch(name) and name.split(".")[0].lstrip("+0") != str(place).lstrip("0"):
            raise InputError(
                f"`{what}` holds whole numbers, but class {one_line(name[:60])!r} is at position "
                f"{place}: are they names or positions? Say so with positions=False or "
                "positions=True (in NPZ, an array `positions`), or give names as text."
            )
