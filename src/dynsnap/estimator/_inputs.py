"""What callers hand to the estimator, checked and in the form that trainers take."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from dynsnap._types import AnyArray, Labels
from dynsnap.data import Pool
from dynsnap.errors import InputError


def texts(inputs: Any) -> AnyArray | None:
    """The inputs as an object array of text, or None where they are anything else."""
    if isinstance(inputs, str):
        raise InputError("`X` must be a list of texts, got a single text.")
    listed = isinstance(inputs, list | tuple) and inputs and isinstance(inputs[0], str)
    if not listed and getattr(inputs, "ndim", 0) != 1:
        return None
    found = np.asarray(inputs, dtype=object)
    if not len(found) or not isinstance(found[0], str):
        return None
    for row, text in enumerate(found):
        if not isinstance(text, str):
            raise InputError(f"`X` must hold texts only, but row {row} is {type(text).__name__}.")
    return found


def features(estimator: Any, inputs: Any, *, reset: bool, allow_nan: bool) -> AnyArray:
    """Inputs as an array, in the shape that the estimator was fitted with unless `reset`."""
    finite: bool | str = "allow-nan" if allow_nan else True
    if (found := texts(inputs)) is not None:
        shape: tuple[int, ...] | None = None
    elif (inputs.ndim if hasattr(inputs, "ndim") else np.asarray(inputs).ndim) > 2:
        try:
            found = check_array(inputs, allow_nd=True, dtype="numeric", ensure_all_finite=finite)
        except ValueError as error:
            raise InputError(str(error)) from error
        shape = found.shape[1:]
    else:
        # Scikit-learn's own check, with its messages, and its record of the columns.
        try:
            found = validate_data(estimator, inputs, reset=reset, ensure_all_finite=finite)
        except ValueError as error:
            raise InputError(str(error)) from error
        shape = found.shape[1:]
    if reset:
        estimator._shape = shape
    elif shape != estimator._shape:
        raise InputError(
            f"`X` must be what the estimator was fitted with, {_named(estimator._shape)}, "
            f"got {_named(shape)}."
        )
    return np.asarray(found)


def targets(labels: Any, rows: int, *, name: str = "y") -> AnyArray:
    """Class labels, one per input, as a flat array."""
    if labels is None:
        raise InputError("A classifier requires y to be passed, but the target y is None.")
    found = column_or_1d(labels, warn=True)
    if len(found) != rows:
        raise InputError(
            f"`X` and `{name}` must be of one length, but have {rows} and {len(found)}."
        )
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise InputError(f"Input {name} contains NaN or infinity: every row needs a class.")
    if found.dtype == object and any(label is None or label != label for label in found):
        raise InputError(f"Input {name} contains NaN or None: every row needs a class.")
    check_classification_targets(found)
    return np.asarray(found)


def checked(estimator: Any, inputs: Any, labels: Any) -> tuple[AnyArray, AnyArray]:
    """Inputs of the kind that an estimator was fitted with, and their class labels."""
    found: AnyArray = estimator._features(inputs, reset=False)
    return found, targets(labels, len(found))


def joined(earlier: AnyArray, later: AnyArray, name: str) -> AnyArray:
    """Rows of two generations under each other, unless they are of two kinds."""
    kinds = [_kind(part) for part in (earlier, later)]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"`{name}` must be of one kind in all generations, but is {kinds[1]} after {kinds[0]}."
        )
    if earlier.dtype != later.dtype and kinds[0] == "numbers":
        # Where nothing is lost the type stays: a 1.0 among classes 1 and 2 is a 1, and bytes of an
        # image are bytes.
        with np.errstate(invalid="ignore"):
            same = later.astype(earlier.dtype)
        later = same if np.array_equal(same, later) else later
    return np.concatenate([earlier, later])


def encoded(labels: AnyArray, *, validation: float) -> tuple[AnyArray, Labels]:
    """The classes in order, and each label as a position among them."""
    classes, positions = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            "A classifier needs at least two classes, but y has one class only: "
            f"{classes.tolist()[0]!r}."
        )
    if len({str(name) for name in classes}) < len(classes):
        raise InputError("Two classes in y are written alike. Give them names that differ as text.")
    counts = np.bincount(positions)
    if counts.min() < 2:
        alone = classes.tolist()[counts.argmin()]
        raise InputError(
            f"Class {alone!r} has 1 row, too few to train and to validate on. Bring more rows of "
            f"it, or leave it out for now. Every round validates on {validation:.0%} of each class."
        )
    return classes, positions


def pooled(inputs: AnyArray, labels: Labels, classes: AnyArray) -> Pool:
    """Rows as a pool, for trainers."""
    return Pool(
        name="X",
        inputs=inputs,
        labels=labels,
        classes=tuple(str(name) for name in classes),
        ids=np.arange(len(inputs)),
    )


def _kind(array: AnyArray) -> str:
    text = array.dtype.kind == "U" or any(isinstance(value, str) for value in array.flat[:1])
    return "texts" if text else "numbers"


def _named(shape: tuple[int, ...] | None) -> str:
    return "texts" if shape is None else f"rows of the shape {shape}"
