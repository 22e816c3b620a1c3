"""Steps for the columns of a frame: choosing them by name, encoding categories, filling gaps."""

from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.boost._structure import invalid, unchecked
from dynsnap.boost.rebuilt._facts import (
    Checker,
    Facts,
    array_like,
    attribute,
    chosen,
    number,
    whole,
    wrong,
)

_MOST_COLUMNS = 2**20
_LEFT_OUT, _KEPT = "drop", "passthrough"


def column_transformer(part: Any, checker: Checker) -> Facts:
    """A `ColumnTransformer`: each step takes columns that there are, and as many as it says."""
    check_output(part)
    features = whole(part, "n_features_in_", 1)
    if features > _MOST_COLUMNS:
        raise wrong(part, "n_features_in_")
    chosen(part, "transformer_weights", [None])
    chosen(part, "sparse_output_", [True, False])
    names = vars(part).get("feature_names_in_")
    if names is not None:
        _words(names, part, "feature_names_in_", features)
    steps, places = (
        attribute(part, "transformers_"),
        attribute(part, "_transformer_to_input_indices"),
    )
    if not isinstance(steps, list) or not steps or not isinstance(places, dict):
        raise wrong(part, "transformers_")
    outputs, work, width = 0, 0, 0
    for step in steps:
        if not isinstance(step, tuple) or len(step) != 3 or not isinstance(step[0], str):
            raise wrong(part, "transformers_")
        name, inner, columns = step
        _check_choice(columns, part, names)
        taken = places.get(name)
        if not isinstance(taken, list) or not all(
            type(place) is int and 0 <= place < features for place in taken
        ):
            raise wrong(part, "_transformer_to_input_indices")
        if isinstance(inner, str):
            if inner not in (_LEFT_OUT, _KEPT):
                raise wrong(part, "transformers_")
            outputs += len(taken) if inner == _KEPT else 0
            continue
        if not taken:  # a step without columns is never asked, and was never fitted
            continue
        facts = checker.facts(inner)
        if facts.role != "transformer":
            raise wrong(part, "transformers_")
        if facts.inputs not in (None, len(taken)):
            raise invalid(
                f"a step of a ColumnTransformer takes {facts.inputs} columns instead of "
                f"{len(taken)}"
            )
        outputs += len(taken) if facts.outputs is None else facts.outputs
        work += facts.work
        width = max(width, len(taken) + facts.width)
    # What all of them give is there twice: in parts, and side by side.
    return Facts("transformer", features, outputs, work + 1, width + 2 * outputs)


def _check_choice(columns: Any, part: Any, names: Any) -> None:
    """Raise FileError unless columns are chosen by their names, by numbers, or by flags."""
    if isinstance(columns, slice):
        return
    listed = columns.tolist() if isinstance(columns, np.ndarray) and columns.ndim == 1 else columns
    items = listed if isinstance(listed, list) else [listed]
    if not all(isinstance(item, str | int) for item in items) or len(items) > _MOST_COLUMNS:
        raise wrong(part, "transformers_")
    if names is None and any(isinstance(item, str) for item in items):
        raise wrong(part, "transformers_")


def unchanged(part: Any, _checker: Checker) -> Facts:
    """A `FunctionTransformer` without a function, as which columns are passed on."""
    check_output(part)
    for name in ("func", "inverse_func", "kw_args", "inv_kw_args"):
        chosen(part, name, [None])
    chosen(part, "validate", [False])
    chosen(part, "feature_names_out", [None, "one-to-one"])
    features = whole(part, "n_features_in_", 0)
    return Facts("transformer", features, features, width=features)


def one_hot(part: Any, _checker: Checker) -> Facts:
    """A `OneHotEncoder`, whose codes become indices of a sparse matrix that nothing checks."""
    features, categories = _categories(part)
    chosen(part, "handle_unknown", ["error", "ignore", "infrequent_if_exist", "warn"])
    chosen(part, "sparse_output", [True, False])
    _check_dtype(part)
    counts = attribute(part, "_n_features_outs")
    dropped = attribute(part, "_drop_idx_after_grouping")
    if not isinstance(counts, list) or len(counts) != features:
        raise wrong(part, "_n_features_outs")
    if dropped is not None:
        array_like(dropped, part, "_drop_idx_after_grouping", features, kinds="iuO")
    grouped = _groups(part, categories)
    for place, (count, groups) in enumerate(zip(counts, grouped, strict=True)):
        gone = None if dropped is None else dropped[place]
        if gone is not None and (
            not isinstance(gone, int | np.integer)
            or isinstance(gone, bool)
            or not 0 <= gone < groups
        ):
            raise wrong(part, "_drop_idx_after_grouping")
        if not _is_whole(count) or count != groups - (gone is not None):
            raise invalid(f"an encoder gives {count} columns for {groups} categories")
    total = sum(map(int, counts))
    return Facts("transformer", features, total, width=2 * features + total)


def ordinal(part: Any, _checker: Checker) -> Facts:
    """An `OrdinalEncoder`."""
    features, categories = _categories(part)
    chosen(part, "handle_unknown", ["error", "use_encoded_value"])
    _check_dtype(part)
    if attribute(part, "unknown_value") is not None:
        _number_or_nan(part, "unknown_value")
    _number_or_nan(part, "encoded_missing_value")
    gaps = attribute(part, "_missing_indices")
    if not isinstance(gaps, dict) or not all(
        _is_whole(column) and 0 <= column < features and _is_whole(place)
        for column, place in gaps.items()
    ):
        raise wrong(part, "_missing_indices")
    _groups(part, categories)
    return Facts("transformer", features, features, width=3 * features)


def imputer(part: Any, checker: Checker) -> Facts:
    """A `SimpleImputer`."""
    check_output(part)
    features = whole(part, "n_features_in_", 1)
    chosen(part, "strategy", ["mean", "median", "most_frequent", "constant"])
    chosen(part, "keep_empty_features", [True, False])
    values = attribute(part, "statistics_")
    array_like(values, part, "statistics_", features, kinds="biufO")
    if values.dtype == object:
        _plain_values(values, part, "statistics_")
    for name in ("_fit_dtype", "_fill_dtype"):
        kind = vars(part).get(name)
        if kind is not None and (not isinstance(kind, np.dtype) or kind.kind not in "biufO"):
            raise wrong(part, name)
    gap = attribute(part, "missing_values")
    if not (gap is None or isinstance(gap, int | float | str)):
        raise wrong(part, "missing_values")
    empty = sum(value is None or value != value for value in values.tolist())
    kept = features if part.keep_empty_features else features - empty
    seen = vars(part).get("indicator_")
    if seen is None:
        return Facts("transformer", features, kept, width=3 * features)
    facts = checker.facts(seen)
    if type(seen).__name__ != "MissingIndicator" or facts.inputs != features:
        raise wrong(part, "indicator_")
    return Facts(
        "transformer", features, kept + (facts.outputs or 0), 2, 3 * features + facts.width
    )


def missing_indicator(part: Any, _checker: Checker) -> Facts:
    """A `MissingIndicator`, which takes some of the columns."""
    check_output(part)
    features = whole(part, "n_features_in_", 1)
    chosen(part, "features", ["missing-only", "all"])
    chosen(part, "sparse", ["auto", False])
    if whole(part, "_n_features") != features:
        raise wrong(part, "_n_features")
    found = array_like(attribute(part, "features_"), part, "features_", None, kinds="iu")
    if len(found) and (found.min() < 0 or found.max() >= features):
        raise wrong(part, "features_")
    if len(found) > features:
        raise wrong(part, "features_")
    return Facts("transformer", features, len(found), width=features)


def _categories(part: Any) -> tuple[int, list[AnyArray]]:
    """How many columns an encoder takes, and the categories of each."""
    check_output(part)
    features = whole(part, "n_features_in_", 1)
    found = attribute(part, "categories_")
    if not isinstance(found, list) or len(found) != features:
        raise wrong(part, "categories_")
    for one in found:
        array_like(one, part, "categories_", None, kinds="biufUO")
        if not len(one):
            raise wrong(part, "categories_")
        if one.dtype == object:
            _plain_values(one, part, "categories_")
        elif one.dtype.kind in "iufb":
            # They are searched by halves, so that in another order a code would be too large.
            there = one[~np.isnan(one)] if one.dtype.kind == "f" else one
            gaps = len(one) - len(there)
            if gaps > 1 or (gaps and not np.isnan(one[-1])) or (there[1:] <= there[:-1]).any():
                raise invalid("the categories of an encoder are not in order")
        elif len(set(one.tolist())) < len(one):
            raise invalid("a category of an encoder is there twice")
    return features, found


def _groups(part: Any, categories: list[AnyArray]) -> list[int]:
    """How many codes each column has, after rare categories were put together."""
    if not chosen(part, "_infrequent_enabled", [True, False]):
        return [len(one) for one in categories]
    rare = attribute(part, "_infrequent_indices")
    maps = attribute(part, "_default_to_infrequent_mappings")
    for name, found in (("_infrequent_indices", rare), ("_default_to_infrequent_mappings", maps)):
        if not isinstance(found, list) or len(found) != len(categories):
            raise wrong(part, name)
    counts = []
    for names, few, mapping in zip(categories, rare, maps, strict=True):
        if (few is None) != (mapping is None):
            raise wrong(part, "_infrequent_indices")
        if mapping is None:
            counts.append(len(names))
            continue
        array_like(few, part, "_infrequent_indices", None, kinds="iu")
        # NaN, which comes last, may stay out of the groups.
        size = len(mapping) if isinstance(mapping, np.ndarray) else 0
        array_like(mapping, part, "_default_to_infrequent_mappings", size, kinds="iu")
        if size != len(names) or not len(few) or few.min() < 0 or few.max() >= size:
            raise wrong(part, "_infrequent_indices")
        if mapping.min() < 0 or mapping.max() >= size:
            raise wrong(part, "_default_to_infrequent_mappings")
        counts.append(int(mapping.max()) + 1)
    return counts


def _plain_values(values: AnyArray, part: Any, name: str) -> None:
    """Raise FileError unless objects are texts, numbers or gaps, each once where they are names."""
    plain = values.tolist()
    if not all(value is None or isinstance(value, str | int | float) for value in plain):
        raise wrong(part, name)
    if name == "categories_" and len({repr(value) for value in plain}) < len(plain):
        raise invalid("a category of an encoder is there twice")


def _words(values: Any, part: Any, name: str, count: int) -> None:
    array_like(values, part, name, count, kinds="UO")
    if not all(isinstance(value, str) for value in values.tolist()):
        raise wrong(part, name)


def _number_or_nan(part: Any, name: str) -> None:
    value = attribute(part, name)
    if not (isinstance(value, float) and value != value):
        number(part, name)


def _check_dtype(part: Any) -> None:
    kind = attribute(part, "dtype")
    kinds = (np.float32, np.float64, np.int32, np.int64, np.uint8, float, int)
    if not any(kind is one for one in kinds):
        raise unchecked(f"a {type(part).__name__} of another type of number")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_output(part: Any) -> None:
    """Scikit-learn would import the library of data frames that is named here."""
    config = vars(part).get("_sklearn_output_config")
    if config is not None and config != {"transform": "default"}:
        raise unchecked("a step that gives data frames")
