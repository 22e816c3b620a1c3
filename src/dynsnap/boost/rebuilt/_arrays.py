"""Classifiers of plain arrays: linear, networks, naive Bayes, support vectors, neighbours."""

from itertools import pairwise
from typing import Any

import numpy as np

from dynsnap.boost._structure import invalid, unchecked
from dynsnap.boost.rebuilt._facts import (
    Checker,
    Facts,
    array_like,
    attribute,
    chosen,
    classes,
    number,
    numbers,
    whole,
    wrong,
)


def linear(part: Any, _checker: Checker) -> Facts:
    """A linear classifier: a row of coefficients for each class, one for both of two."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    rows = 1 if count == 2 else count
    numbers(part, "coef_", rows, features)
    intercept = attribute(part, "intercept_")
    if isinstance(intercept, np.ndarray):
        numbers(part, "intercept_", rows)
    else:
        number(part, "intercept_")
    return Facts("classifier", features, count)


def stochastic(part: Any, checker: Checker) -> Facts:
    """An `SGDClassifier`, which may be trained on: it writes to all of its arrays."""
    facts = linear(part, checker)
    shape = part.coef_.shape if facts.outputs != 2 else part.coef_.shape[1:]
    for name in ("_standard_coef", "_average_coef"):
        value = vars(part).get(name)
        if value is not None and getattr(value, "shape", None) not in (shape, part.coef_.shape):
            raise wrong(part, name)
        if value is not None:
            array_like(value, part, name, *value.shape)
    for name in ("_standard_intercept", "_average_intercept"):
        if vars(part).get(name) is not None:
            numbers(part, name, len(part.coef_))
    if "_expanded_class_weight" in vars(part):
        numbers(part, "_expanded_class_weight", facts.outputs)
    return facts


def ridge(part: Any, _checker: Checker) -> Facts:
    """A `RidgeClassifier`, which has its classes from a part of its own."""
    features = whole(part, "n_features_in_", 1)
    count = classes(attribute(part, "_label_binarizer"))
    coefficients = attribute(part, "coef_")
    if count == 2 and np.ndim(coefficients) == 1:
        numbers(part, "coef_", features)
    else:
        numbers(part, "coef_", 1 if count == 2 else count, features)
    return Facts("classifier", features, count)


def network(part: Any, _checker: Checker) -> Facts:
    """An `MLPClassifier`: the layers follow one another."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    layers, shifts = attribute(part, "coefs_"), attribute(part, "intercepts_")
    if not isinstance(layers, list) or not isinstance(shifts, list) or not layers:
        raise wrong(part, "coefs_")
    if not len(layers) == len(shifts) == whole(part, "n_layers_") - 1:
        raise wrong(part, "n_layers_")
    width: int | None = features
    widths = [features]
    for layer, shift in zip(layers, shifts, strict=True):
        width = array_like(layer, part, "coefs_", width, None).shape[1]
        array_like(shift, part, "intercepts_", width)
        widths.append(len(shift))
    outputs = 1 if count == 2 else count
    if not width == outputs == whole(part, "n_outputs_"):
        raise invalid(f"a network of {count} classes has {width} outputs")
    chosen(part, "out_activation_", ["logistic", "softmax"])
    chosen(part, "activation", ["identity", "logistic", "tanh", "relu"])
    return Facts("classifier", features, count, width=max(map(sum, pairwise(widths))))


def discriminant(part: Any, _checker: Checker) -> Facts:
    """A `QuadraticDiscriminantAnalysis`."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    numbers(part, "means_", count, features)
    numbers(part, "priors_", count)
    turns, scales = attribute(part, "rotations_"), attribute(part, "scalings_")
    for name, found in (("rotations_", turns), ("scalings_", scales)):
        if not isinstance(found, list) or len(found) != count:
            raise wrong(part, name)
    for turn, scale in zip(turns, scales, strict=True):
        rank = len(array_like(scale, part, "scalings_", None))
        array_like(turn, part, "rotations_", features, rank)
    return Facts("classifier", features, count)


def gaussian(part: Any, _checker: Checker) -> Facts:
    """A `GaussianNB`."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    numbers(part, "theta_", count, features)
    numbers(part, "var_", count, features)
    numbers(part, "class_prior_", count)
    return Facts("classifier", features, count)


def discrete(part: Any, _checker: Checker) -> Facts:
    """A naive Bayes classifier that counts."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    numbers(part, "feature_log_prob_", count, features)
    numbers(part, "class_log_prior_", count)
    return Facts("classifier", features, count)


def categorical(part: Any, _checker: Checker) -> Facts:
    """A `CategoricalNB`."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    tables = attribute(part, "feature_log_prob_")
    sizes = numbers(part, "n_categories_", features, kinds="iu")
    if not isinstance(tables, list) or len(tables) != features:
        raise wrong(part, "feature_log_prob_")
    for table, size in zip(tables, sizes.tolist(), strict=True):
        array_like(table, part, "feature_log_prob_", count, size)
    numbers(part, "class_log_prior_", count)
    return Facts("classifier", features, count)


_KERNELS = ("linear", "poly", "rbf", "sigmoid")
_HIGHEST = 1e6  # power of a distance
_METRICS = ("euclidean", "manhattan", "chebyshev", "minkowski", "cosine", "hamming", "canberra")


def support_vectors(part: Any, _checker: Checker) -> Facts:
    """An `SVC` or `NuSVC`: libsvm reads as far as the counts say."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    chosen(part, "_sparse", [False])
    chosen(part, "kernel", _KERNELS)
    vectors = numbers(part, "support_vectors_", None, features)
    rows = len(vectors)
    pairs = count * (count - 1) // 2
    each = numbers(part, "_n_support", count, kinds="i")
    if count < 2 or (each < 0).any() or each.sum(dtype=np.int64) != rows:
        raise wrong(part, "_n_support")
    shape = attribute(part, "shape_fit_")
    if not (isinstance(shape, tuple) and len(shape) == 2 and shape[1] == features):
        raise wrong(part, "shape_fit_")
    support = numbers(part, "support_", rows, kinds="i")
    if rows and (support.min() < 0 or type(shape[0]) is not int or support.max() >= shape[0]):
        raise wrong(part, "support_")
    for name in ("_dual_coef_", "dual_coef_"):
        numbers(part, name, count - 1, rows)
    for name in ("_intercept_", "intercept_"):
        numbers(part, name, pairs)
    first, second = numbers(part, "_probA", None), numbers(part, "_probB", None)
    if len(first) != len(second) or len(first) not in (0, pairs):
        raise wrong(part, "_probA")
    doubles = ("support_vectors_", "_dual_coef_", "_intercept_", "_probA", "_probB")
    if any(vars(part)[name].dtype != np.float64 for name in doubles):
        raise invalid("numbers of support vectors are not in double precision")
    if any(vars(part)[name].dtype != np.int32 for name in ("_n_support", "support_")):
        raise invalid("counts of support vectors are not of 32 bits")
    if any(not vars(part)[name].flags.c_contiguous for name in doubles):
        raise invalid("numbers of support vectors are not in order")
    for name in ("_gamma", "coef0", "cache_size"):
        number(part, name)
    if whole(part, "degree") > 2**20:
        raise wrong(part, "degree")
    return Facts("classifier", features, count, width=features + pairs)


def neighbors(part: Any, _checker: Checker) -> Facts:
    """A `KNeighborsClassifier`, whose search tree is grown anew: the rows say what it is."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    rows = numbers(part, "_fit_X", None, features)
    if rows.dtype not in (np.float32, np.float64) or not np.isfinite(rows).all():
        raise wrong(part, "_fit_X")
    labels = numbers(part, "_y", len(rows), kinds="i")
    if labels.dtype != np.intp or not len(rows) or labels.min() < 0 or labels.max() >= count:
        raise wrong(part, "_y")
    if whole(part, "n_samples_fit_") != len(rows):
        raise wrong(part, "n_samples_fit_")
    if whole(part, "n_neighbors", 1) > len(rows):
        raise wrong(part, "n_neighbors")
    chosen(part, "weights", ["uniform", "distance"])
    chosen(part, "outputs_2d_", [False])
    chosen(part, "metric_params", [None])
    metric = chosen(part, "effective_metric_", _METRICS)
    chosen(part, "metric", [*_METRICS, "l1", "l2", "cityblock", "infinity", "p"])
    _check_power(part, metric)
    way = chosen(part, "_fit_method", ["brute", "kd_tree", "ball_tree"])
    part._tree = None if way == "brute" else _search_tree(part, way, rows, metric)
    # Distances and places of the neighbours.
    return Facts("classifier", features, count, width=2 * part.n_neighbors + count)


def _check_power(part: Any, metric: str) -> None:
    params = attribute(part, "effective_metric_params_")
    if not isinstance(params, dict) or params.get("w") is not None:
        raise unchecked("a metric with parameters")
    if set(params) - {"w"} != ({"p"} if metric == "minkowski" else set()):
        raise wrong(part, "effective_metric_params_")
    for value in (attribute(part, "p"), params.get("p", 2)):
        if not isinstance(value, int | float) or not 1 <= value <= _HIGHEST:
            raise wrong(part, "p")


def _search_tree(part: Any, way: str, rows: Any, metric: str) -> Any:
    from sklearn.neighbors import BallTree, KDTree

    size = whole(part, "leaf_size", 1)
    if size >= 2**31:
        raise wrong(part, "leaf_size")
    kind = KDTree if way == "kd_tree" else BallTree
    return kind(rows, size, metric=metric, **part.effective_metric_params_)
