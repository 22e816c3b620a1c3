"""Linear models, networks, discriminants and naive Bayes: arrays that must fit each other."""

from itertools import pairwise
from typing import Any

import numpy as np

from dynsnap.boost._structure import invalid
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
