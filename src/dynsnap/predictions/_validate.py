"""Checks on the numbers of predictions, in one pass however many rows there are."""

import math
from typing import Any

import numpy as np

from dynsnap._check import SUM_LIMIT, SUM_TOLERANCE
from dynsnap._types import AnyArray, Floats, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.predictions._ids import COMPILED_FROM
from dynsnap.predictions._text import shown

# Weights are added up, squared and multiplied with scores; within these limits nothing overflows
# and nothing becomes a denormal, however many rows there are.
LEAST_WEIGHT, MOST_WEIGHT = 1e-50, 1e50


def as_scores(values: Any, *, rows: int, classes: tuple[str, ...]) -> Scores:
    """Scores as a C-contiguous float32 or float64 array of (inputs, classes), checked."""
    scores = as_float_rows(values)
    if scores.shape != (rows, len(classes)):
        raise InputError(
            f"`scores` must be (inputs, classes) = ({rows}, {len(classes)}), "
            f"but has the shape {scores.shape}."
        )
    check_scores(scores, classes=classes)
    return scores


def as_float_rows(values: Any) -> Scores:
    """Numbers as float32 where they are float16 or float32, else float64; rows contiguous."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        raise InputError(
            "`scores` must be numbers in (inputs, classes) with rows of one length."
        ) from None
    small = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return np.ascontiguousarray(array, dtype=np.float32 if small else np.float64)


def check_scores(scores: Scores, *, classes: tuple[str, ...], before: int = 0) -> None:
    """Raise unless every row is a distribution: finite, not negative, summing to one.

    Args:
        before: How many rows came before these, so that a message can name the row.
    """
    bad = _first_bad_row(scores)
    if bad < 0:
        return
    row = scores[bad]
    bad += before
    for what, columns in (("NaN or missing", np.isnan(row)), ("infinite", np.isinf(row))):
        if columns.any():
            name = shown(classes[int(np.argmax(columns))])
            raise InputError(
                f"Scores must be finite, but the score of class {name} in row {bad} (counted "
                f"from 0) is {what}. Drop or repair such rows."
            )
    total = float(row.sum(dtype=np.float64))
    if (row < 0).any():
        column = int(np.argmin(row))
        raise InputError(
            f"Scores must not be negative, but the score of class {shown(classes[column])} in row "
            f"{bad} (counted from 0) is {row[column]:.4g}. If they are logits, apply softmax first."
        )
    raise InputError(
        f"The scores of an input must sum to one (within {SUM_TOLERANCE}), but those of row {bad} "
        f"(counted from 0) sum to {total:.4g}. If they are logits, apply softmax first; "
        "if a class is left out, add its column."
    )


def highest_class(scores: Scores) -> Labels:
    """The class with the highest score of each row; ties go to the lowest class.

    Example:
        >>> highest_class(np.array([[0.2, 0.4, 0.4]]))
        array([1], dtype=int32)
    """
    labels = np.empty(len(scores), np.int32)
    if len(scores) >= COMPILED_FROM:
        from dynsnap.predictions import _kernels

        _kernels.highest(read_only(scores), labels)
    else:
        labels[:] = np.argmax(scores, axis=1)
    return labels


def as_weights(values: Any, *, rows: int) -> Floats:
    """Weights as float64, one per input, none negative, not all zero."""
    try:
        weights = np.array(values, dtype=np.float64, order="C")  # a copy, see `as_positions`
    except (TypeError, ValueError):
        raise InputError("`weights` must be numbers, one per input.") from None
    check_length("weights", weights, rows=rows)
    check_weights(weights)
    check_some_weight(bool(weights.any()))
    return weights


def check_weights(weights: Floats, *, before: int = 0) -> None:
    """Raise unless every weight is 0 or a positive number of usual size; `before` as for scores.

    Sums of larger ones are infinite, and every share of an infinite sum is 0: nothing would seem
    to be lost. Products of smaller ones are 0.
    """
    good = (weights == 0) | ((weights >= LEAST_WEIGHT) & (weights <= MOST_WEIGHT))  # NaN: false
    if good.all():
        return
    row = int(np.argmin(good))
    weight = float(weights[row])
    advice = "Drop or repair such rows."
    if 0 < weight < math.inf:
        advice = "Divide all weights by their mean, and write 0 for an input that does not count."
    raise InputError(
        f"A weight must be 0 or a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}, but that of "
        f"row {before + row} (counted from 0) is {weight:.4g}. {advice}"
    )


def check_some_weight(some: bool) -> None:
    """Raise unless some weight is above zero."""
    if not some:
        raise InputError("All weights are zero. At least one input must count.")


def check_length(what: str, array: AnyArray, *, rows: int) -> None:
    """Raise unless there is one value per input."""
    if array.shape != (rows,):
        found = f"{len(array):,} values" if array.ndim == 1 else f"the shape {array.shape}"
        raise InputError(
            f"`{what}` must have one value for each of the {rows:,} ids, but has {found}."
        )


def read_only(array: AnyArray) -> AnyArray:
    """A view that cannot be written to; the caller's own array stays as it is."""
    view = array.view()
    view.flags.writeable = False
    return view


def _first_bad_row(scores: Scores) -> int:
    if len(scores) >= COMPILED_FROM:
        from dynsnap.predictions import _kernels

        return int(_kernels.first_bad_row(read_only(scores), SUM_LIMIT))
    with np.errstate(invalid="ignore", over="ignore"):
        total = scores.sum(axis=1, dtype=np.float64)
        good = (scores.min(axis=1) >= 0) & (np.abs(total - 1) <= SUM_LIMIT)
    return -1 if good.all() else int(np.argmin(good))
