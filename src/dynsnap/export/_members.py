"""Boosted trees and scikit-learn classifiers as ONNX models, by onnxmltools and skl2onnx."""

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynsnap.boost import LibraryModel
from dynsnap.errors import PlanError
from dynsnap.export._graph import OPSET

_DEEPEST = 20  # classifiers within classifiers
SCORES = "probabilities"  # the output of all these converters that has them


def convert(found: LibraryModel, number: int, *, dtype: Any, features: int) -> Any:
    """A learner as an ONNX model with the outputs `label` and `probabilities`.

    Args:
        found: The learner.
        number: Which member it is, for messages.
        dtype: Of the inputs, float32 or float64.
        features: How many there are.

    Raises:
        PlanError: There is no converter for it, or for a part of it.
    """
    converters = {"xgboost": _xgboost, "lightgbm": _lightgbm, "sklearn": _sklearn}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return converters[found.kind](found.model, dtype, features)
        except PlanError:
            raise
        except Exception as error:  # converters raise whatever they like
            raise PlanError(
                f"Member {number} cannot be exported to ONNX: {_part(found.model, error)} "
                f"({found.kind}) has no counterpart there. The converter reports: "
                f"{_first_line(error)}. Use another model, or serve the ensemble with `predict`."
            ) from error


def dtypes(kind: str) -> Sequence[Any]:
    """The types of inputs to try, the closest to what the learner is given first."""
    return (np.float32,) if kind == "xgboost" else (np.float64, np.float32)


def _xgboost(booster: Any, dtype: Any, features: int) -> Any:
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType

    if any(kind == "c" for kind in booster.feature_types or ()):
        raise PlanError(
            "XGBoost's splits on categories have no counterpart in ONNX's trees. Encode the "
            "categories as numbers before the ensemble, or serve it with `predict`."
        )
    booster = booster.copy()
    booster.feature_names = None  # the converter wants f0, f1, ...
    inputs = [("inputs", FloatTensorType([None, features]))]
    return onnxmltools.convert_xgboost(booster, initial_types=inputs, target_opset=15)


def _lightgbm(booster: Any, dtype: Any, features: int) -> Any:
    import lightgbm
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType

    text = booster.model_to_string()
    exact = _lightgbm_thresholds(text)
    if dtype == np.float32:
        text = re.sub(r"(?m)^threshold=(.*)$", _rounded_down, text)
        text = re.sub(r"(?m)^tree_sizes=.*\n", "", text)  # in bytes, which are others by now
    inputs = [("inputs", FloatTensorType([None, features]))]
    made = onnxmltools.convert_lightgbm(
        lightgbm.Booster(model_str=text), initial_types=inputs, target_opset=15, zipmap=False
    )
    if dtype == np.float64:
        _compare_in_double(made, exact)
    return made


def _lightgbm_thresholds(text: str) -> set[tuple[int, float]]:
    """Each feature, by its number, with the numbers that it is compared with."""
    lines = dict.fromkeys(("split_feature", "threshold"), "")
    found: set[tuple[int, float]] = set()
    for line in text.splitlines():
        name, _, values = line.partition("=")
        if name in lines:
            lines[name] = values
        if name == "threshold":  # follows on the features
            places = map(int, lines["split_feature"].split())
            found |= set(zip(places, map(float, values.split()), strict=True))
    return found


def _compare_in_double(model: Any, exact: set[tuple[int, float]]) -> None:
    """Give ONNX's trees their thresholds in double precision, which converters round.

    Raises:
        PlanError: Two thresholds of a feature are the same in single precision.
    """
    from onnx import helper, numpy_helper

    known = {(place, np.float32(value).item()): value for place, value in exact}
    if len(known) != len(exact):
        raise PlanError("Two splits of a tree are too close to tell apart in single precision.")
    for node in model.graph.node:
        facts = {one.name: one for one in node.attribute}
        if "nodes_values" not in facts:
            continue
        places, values = facts["nodes_featureids"].ints, facts["nodes_values"].floats
        inner = [mode != b"LEAF" for mode in facts["nodes_modes"].strings]
        tensors = {
            "nodes_values": [
                known[place, value] if at else 0.0
                for at, place, value in zip(inner, places, values, strict=True)
            ]
        }
        for name in ("class_weights", "base_values", "nodes_hitrates"):
            if name in facts:
                tensors[name] = list(facts[name].floats)
        kept = [one for one in node.attribute if one.name not in tensors]
        del node.attribute[:]
        node.attribute.extend(kept)
        for name, numbers in tensors.items():
            tensor = numpy_helper.from_array(np.array(numbers, np.float64), name)
            node.attribute.append(helper.make_attribute(f"{name}_as_tensor", tensor))


def _rounded_down(line: re.Match[str]) -> str:
    values = np.array(line[1].split(), float)
    return "threshold=" + " ".join(repr(float(value)) for value in round_down(values))


def round_down(values: Any) -> Any:
    """The largest numbers of single precision that are not above the given ones.

    For a number x of single precision, x <= t is the same as x <= t rounded down: so trees that
    compare in double precision can compare in single.

    Example:
        >>> round_down(np.array([0.1, 0.5])) <= np.array([0.1, 0.5])
        array([ True,  True])
    """
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    below = np.nextafter(single, np.float32(-np.inf))
    return np.where(single.astype(float) > values, below, single).astype(float)


def _sklearn(model: Any, dtype: Any, features: int) -> Any:
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = list(_trees(model))
    histograms = [tree for tree in trees if hasattr(tree, "nodes")]
    if dtype == np.float32:
        for tree in trees:
            values = tree.nodes["num_threshold"] if hasattr(tree, "nodes") else tree.threshold
            values[:] = round_down(values)
    double = dtype == np.float64 and not histograms
    kind = DoubleTensorType if double else FloatTensorType
    made = convert_sklearn(
        model,
        initial_types=[("inputs", kind([None, features]))],
        options={id(model): {"zipmap": False}},
        target_opset=OPSET,
        custom_conversion_functions={HistGradientBoostingClassifier: _histogram},
    )
    _send_missing(made, [tree for tree in trees if not hasattr(tree, "nodes")])
    if histograms and dtype == np.float64:
        if len(histograms) < len(trees) or not hasattr(model, "_predictors"):
            raise PlanError("Only a histogram model that stands alone compares in double.")
        parts = [tree.nodes[~tree.nodes["is_leaf"].astype(bool)] for tree in histograms]
        exact = {
            (int(one["feature_idx"]), float(one["num_threshold"])) for part in parts for one in part
        }
        _compare_in_double(made, exact)
    return made


def _trees(part: Any, depth: int = 0) -> Iterator[Any]:
    """All trees in a classifier, in their order."""
    if hasattr(part, "tree_"):
        yield part.tree_
    elif hasattr(part, "_predictors"):  # of histogram gradient boosting
        for trees in part._predictors:
            yield from trees
    elif isinstance(part, list | tuple | np.ndarray):
        for one in part.flat if isinstance(part, np.ndarray) else part:
            if hasattr(one, "__dict__") or isinstance(one, list | tuple):
                yield from _trees(one, depth + 1)
    elif hasattr(part, "get_params") and depth < _DEEPEST:
        for one in vars(part).values():
            if hasattr(one, "get_params") or isinstance(one, list | np.ndarray):
                yield from _trees(one, depth + 1)


def _send_missing(model: Any, trees: Sequence[Any]) -> None:
    """Send missing values where scikit-learn's forests do: skl2onnx leaves that out."""
    for node in model.graph.node:
        facts = {one.name: one.ints for one in node.attribute}
        tracks = facts.get("nodes_missing_value_tracks_true", ())
        if len(tracks) != sum(tree.node_count for tree in trees) or not len(tracks):
            continue
        places = zip(facts["nodes_treeids"], facts["nodes_nodeids"], strict=True)
        tracks[:] = [int(trees[tree].missing_go_to_left[place]) for tree, place in places]


def _histogram(scope: Any, operator: Any, container: Any) -> None:
    from skl2onnx._parse import sklearn_operator_name_map  # noqa: F401 (fills the registry)
    from skl2onnx.common._registration import get_converter

    alias = "SklearnHistGradientBoostingClassifier"
    get_converter(alias)(scope, operator, _WholeNumbers(container))


class _WholeNumbers:
    """skl2onnx's container, for a converter that hands in truth values where ONNX wants numbers."""

    def __init__(self, container: Any) -> None:
        self._container = container

    def __getattr__(self, name: str) -> Any:
        return getattr(self._container, name)

    def add_node(self, *given: Any, **attributes: Any) -> Any:
        plain = {
            name: [int(one) if isinstance(one, bool | np.bool_) else one for one in value]
            if isinstance(value, list)
            else value
            for name, value in attributes.items()
        }
        return self._container.add_node(*given, **plain)


def _part(model: Any, error: Exception) -> str:
    """The class that a converter has failed on: a step of a pipeline, or the whole."""
    found = re.search(r"<class '[\w.]*?(\w+)'>", str(error))
    return found[1] if found else type(model).__name__


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().partition("\n")[0].rstrip(".")[:200]
