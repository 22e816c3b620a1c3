"""What callers hand to the estimator, checked and in the form that trainers take."""

import re
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from dynsnap._types import AnyArray, Labels
from dynsnap.data import (
    Column,
    DatasetRows,
    Frame,
    NamedArrays,
    Pool,
    as_frame,
    columns_in_words,
    is_dataset,
    is_frame,
    is_numeric,
    labels_of,
    read_dataset,
)
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


def features(
    estimator: Any, inputs: Any, *, reset: bool, allow_nan: bool, training: bool = False
) -> Any:
    """Inputs as an array or a `Frame`, of the kind that the estimator was fitted with.

    Args:
        estimator: The estimator, which remembers the kind.
        inputs: What the caller gave.
        reset: Whether this is the first fit, which decides the kind.
        allow_nan: Whether numbers may be missing.
        training: Whether they are trained on.
    """
    finite: bool | str = "allow-nan" if allow_nan else True
    # A sparse matrix may be a mapping too; scikit-learn's check refuses it in its own words.
    named = isinstance(inputs, Mapping | NamedArrays) and not hasattr(inputs, "tocsr")
    if is_dataset(inputs) or named:
        return _as_given(estimator, inputs, reset=reset, training=training)
    framed = _framed(estimator, inputs, reset=reset)
    if reset:
        estimator._columns = None if framed is None else framed.type
    if framed is not None:
        return _remembered(estimator, framed, inputs, reset=reset)
    if (found := texts(inputs)) is not None:
        shape: tuple[int, ...] | None = None
    elif (inputs.ndim if hasattr(inputs, "ndim") else np.asarray(inputs).ndim) > 2:
        try:
            found = check_array(inputs, allow_nd=True, dtype="numeric", ensure_all_finite=finite)
        except ValueError as error:
            raise _refused(inputs, error) from error
        shape = found.shape[1:]
    else:
        # Scikit-learn's own check, with its record of the columns.
        try:
            found = validate_data(estimator, inputs, reset=reset, ensure_all_finite=finite)
        except ValueError as error:
            raise _refused(inputs, error) from error
        shape = found.shape[1:]
    if reset:
        estimator._shape = shape
    elif shape != estimator._shape:
        raise InputError(
            f"`X` must be what the estimator was fitted with, {_named(estimator._shape)}, "
            f"got {_named(shape)}."
        )
    return np.asarray(found)


def _as_given(estimator: Any, inputs: Any, *, reset: bool, training: bool) -> Any:
    """A dict of arrays, or rows of a `Dataset`, which torch modules take as they are."""
    if not estimator._chosen_backend().items:
        what = "dict" if isinstance(inputs, Mapping) else type(inputs).__name__
        raise InputError(
            f"`X` is a {what}, which torch modules take. {type(estimator.model).__name__} takes "
            "arrays and frames: bring one of these."
        )
    found: Any = inputs
    if isinstance(inputs, Mapping):
        found = NamedArrays(inputs)
    elif is_dataset(inputs):
        found = read_dataset(inputs, batch_size=estimator.batch_size if training else None)
    if reset:
        estimator._shape, estimator._columns = (), None
    elif estimator._shape != ():
        raise InputError(
            f"`X` must be what the estimator was fitted with, {_named(estimator._shape)}, got a "
            f"{type(inputs).__name__}."
        )
    return found


def labelled(inputs: Any, labels: Any) -> Any:
    """Class labels as they were given; None stands for those of a `Dataset`."""
    if labels is None and isinstance(inputs, DatasetRows):
        return labels_of(inputs)
    return labels


def _framed(estimator: Any, inputs: Any, *, reset: bool) -> Frame | None:
    """Inputs as a frame; None where they are an array, or are as good as one."""
    if is_frame(inputs) and not inputs.shape[1]:
        raise InputError("`X` is a frame without columns.")
    if not reset:
        if estimator._columns is None:
            _check_numbers(inputs)
            return None
        if not is_frame(inputs):
            if not hasattr(estimator, "feature_names_in_"):
                return _of_array(inputs, len(estimator._columns)).conformed(estimator._columns)
            raise InputError(
                "The estimator was fitted on a frame, whose columns are known by their names, and "
                f"`X` is a {type(inputs).__name__} now. Bring a frame with "
                f"{columns_in_words([one.name for one in estimator._columns])}."
            )
        return as_frame(inputs).conformed(estimator._columns)
    if not is_frame(inputs):
        shape: Any = getattr(inputs, "shape", ())
        if len(shape) != 2:
            return None
        backend = estimator._chosen_backend()
        names = _numbered(shape[1])
        found = backend.categorical(estimator.model, names) if backend.frames else ()
        # LightGBM and XGBoost take whole numbers for categories as they are.
        if not found or not type(estimator.model).__module__.startswith("sklearn."):
            return None
        return _of_array(inputs, len(names)).with_categories([names[place] for place in found])
    backend = estimator._chosen_backend()
    if is_numeric(inputs) and not (backend.frames and backend.looks_at_names(estimator.model)):
        return None
    frame = as_frame(inputs)
    words = frame.named("category", "text")
    if words and not backend.frames:
        raise InputError(
            f"{columns_in_words(words, starts=True)} of `X` hold categories or texts, and "
            "the model takes numbers. Put an encoder before the ensemble, in a Pipeline."
        )
    if not backend.frames:
        return None
    given = backend.categorical(estimator.model, list(frame.columns))
    frame = frame.with_categories([list(frame.columns)[place] for place in given])
    named = backend.looks_at_names(estimator.model)
    return frame if named or frame.named("category", "text") else None


def _check_numbers(inputs: Any) -> None:
    """Raise InputError, which names them, where columns of a frame do not hold numbers."""
    if not is_frame(inputs) or is_numeric(inputs):
        return
    if words := as_frame(inputs).named("category", "text"):
        raise InputError(
            f"{columns_in_words(words, starts=True)} of `X` held numbers when the model was "
            "fitted, and categories or texts now. Bring what it was fitted with, or start anew "
            "with `fit`."
        )


def _numbered(columns: int) -> list[str]:
    """Names for the columns of an array, as scikit-learn has them."""
    return [f"x{place}" for place in range(columns)]


def _of_array(inputs: Any, columns: int) -> Frame:
    try:
        values = check_array(inputs, dtype="numeric", ensure_all_finite="allow-nan")
    except ValueError as error:
        raise _refused(inputs, error) from error
    if values.shape[1] != columns:
        raise InputError(f"`X` has {values.shape[1]} features, but {columns} are expected.")
    names = enumerate(_numbered(columns))
    return Frame({name: Column("number", values[:, place]) for place, name in names})


def _remembered(estimator: Any, frame: Frame, inputs: Any, *, reset: bool) -> Frame:
    """A frame that fits the estimator, which notes its columns in the first fit."""
    for name in frame.named("number"):
        values = frame.columns[name].values
        if values.dtype.kind == "f" and np.isinf(values).any():
            raise InputError(f"Column {name!r} of `X` has values that are infinite.")
    if not len(frame):
        raise InputError("`X` has no rows.")
    if reset:
        estimator._shape = frame.shape[1:]
        estimator.n_features_in_ = frame.shape[1]
        if is_frame(inputs):
            estimator.feature_names_in_ = np.array(list(frame.columns), dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    return frame


def _refused(inputs: Any, error: ValueError) -> InputError:
    """What scikit-learn's check found wrong, on one line and without the values."""
    if "contains NaN" in str(error):
        where = f" in {columns_in_words(as_frame(inputs).missing)}" if is_frame(inputs) else ""
        return InputError(
            f"Input X contains NaN{where}, and the model takes no missing values. Put an imputer "
            "before the ensemble, in a Pipeline, or leave those rows out."
        )
    plain = re.sub(r"array=.*\]\.", "", str(error), flags=re.DOTALL)
    return InputError(" ".join(plain.split()))


def targets(labels: Any, rows: int, *, name: str = "y") -> AnyArray:
    """Class labels, one per input, as a flat array."""
    if labels is None:
        raise InputError("A classifier requires y to be passed, but the target y is None.")
    found = _plain(column_or_1d, _not_nullable(labels, name), warn=True)
    if len(found) != rows:
        raise InputError(
            f"`X` and `{name}` must be of one length, but have {rows} and {len(found)}."
        )
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise InputError(f"Input {name} contains NaN or infinity: every row needs a class.")
    if found.dtype == object and any(map(_missing, found)):
        raise InputError(f"Input {name} contains NaN or None: every row needs a class.")
    if found.dtype == object:
        texts = [isinstance(label, str) for label in found]
        if any(texts) and not all(texts):  # they have no order, which classes need
            other = found[texts.index(False)]
            raise InputError(
                f"Labels in {name} must all be text, or none, but {other!r} is "
                f"{type(other).__name__} and {found[texts.index(True)]!r} is text. Convert them "
                "with str()."
            )
    if found.dtype.kind in "SO":
        _refuse_objects(found, name)
    _plain(check_classification_targets, found)
    return np.asarray(found)


def _not_nullable(labels: Any, name: str) -> Any:
    """Labels of pandas' nullable types as plain ones: scikit-learn makes floats of Int64."""
    one_column = getattr(labels, "ndim", 1) == 2 and hasattr(labels, "iloc")
    kind = getattr(labels.iloc[:, 0] if one_column else labels, "dtype", None)
    if kind is None or not hasattr(kind, "numpy_dtype") or kind.kind not in "iub":
        return labels
    if count := int(np.asarray(labels.isna()).sum()):
        raise InputError(
            f"Input {name} contains NaN (missing values) in {count:,} of {len(labels):,} rows: "
            "every row needs a class. Drop those rows."
        )
    return labels.to_numpy(dtype=kind.numpy_dtype)


def _missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas' NA, which is neither
        return True


def _plain(check: Callable[..., Any], labels: Any, **how: Any) -> Any:
    """What a check of scikit-learn gives, or what it found wrong on one line."""
    try:
        return check(labels, **how)
    except ValueError as error:  # the lines after the first show values
        raise InputError(str(error).partition("\n")[0]) from error


def _refuse_objects(labels: AnyArray, name: str) -> None:
    """Raise for labels that scikit-learn takes for those of a regression, or not at all."""
    first = labels.flat[0] if labels.size else ""
    if isinstance(first, str):
        return
    for kind, plain in ((bool | np.bool_, "bool"), (Integral, "int"), (Real, "float")):
        if all(isinstance(label, kind) for label in labels):
            raise InputError(
                f"Unknown label type: {name} holds numbers in an array of objects. Convert it to "
                f"plain ones, with astype({plain})."
            )
    known = isinstance(first, bytes)
    raise InputError(
        f"Unknown label type: {name} holds {'bytes' if known else type(first).__name__}, and "
        f"classes are text or numbers. Convert it to text, with {'decode' if known else 'str'}()."
    )


def checked(estimator: Any, inputs: Any, labels: Any) -> tuple[Any, AnyArray]:
    """Inputs of the kind that an estimator was fitted with, and their class labels."""
    found = estimator._features(inputs, reset=False, training=True)
    known = targets(labelled(found, labels), len(found))
    kinds = {dtype.kind for dtype in (estimator.classes_.dtype, known.dtype)}
    if "b" in kinds and kinds & {*"iuf"}:  # True == 1: two classes would silently be one
        raise InputError(
            "`y` must be booleans in all generations, or numbers in all, but is "
            f"{known.dtype} after {estimator.classes_.dtype}. Convert it first, with astype."
        )
    return found, known


def joined(earlier: Any, later: Any, name: str) -> Any:
    """Rows of two generations under each other, unless they are of two kinds."""
    if not isinstance(earlier, np.ndarray):
        return earlier.join(later)
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


def pooled(inputs: Any, labels: Labels, classes: AnyArray) -> Pool:
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
    if shape == ():
        return "a dict of arrays or a Dataset"
    return "texts" if shape is None else f"rows of the shape {shape}"
