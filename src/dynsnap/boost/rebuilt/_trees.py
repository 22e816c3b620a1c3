"""Decision trees, forests and boosted trees: scikit-learn follows their indices without looking."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.boost._structure import invalid, reachable, shown, unchecked
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

_CODES = 255  # of categories: they are bytes
_LOSSES = ("HalfBinomialLoss", "HalfMultinomialLoss", "ExponentialLoss")
_LINKS = ("Interval", "LogitLink", "HalfLogitLink", "MultinomialLogit", "IdentityLink", "LogLink")
_KERNELS = ("CyHalfBinomialLoss", "CyHalfMultinomialLoss", "CyExponentialLoss")
_OF_SGD = ("ModifiedHuber", "Hinge", "SquaredHinge")


def makers() -> Mapping[str, Callable[[Any], Any]]:
    """What makes each of them."""
    from sklearn._loss import _loss as kernels
    from sklearn._loss import loss as losses
    from sklearn.linear_model import _sgd_fast

    def loss(name: str) -> Callable[[Any], Any]:
        return lambda state: _make(getattr(losses, name), state)

    def kernel(module: Any, name: str) -> Callable[[Any], Any]:
        return lambda state: getattr(module, name)(*_margin(name, state[0]))

    return {
        **{f"sklearn._loss.loss.{name}": loss(name) for name in _LOSSES},
        # Before scikit-learn 1.7 the compiled module had no more than its own name.
        **{
            f"{module}.{name}": kernel(kernels, name)
            for name in _KERNELS
            for module in ("sklearn._loss._loss", "_loss")
        },
        **{f"sklearn.linear_model._sgd_fast.{name}": kernel(_sgd_fast, name) for name in _OF_SGD},
        # They come with their loss.
        **{f"sklearn._loss.link.{name}": lambda _state: None for name in _LINKS},
    }


def _make(kind: Any, state: Any) -> Any:
    if not isinstance(state, dict):
        raise invalid("a loss is not complete")
    several, count = kind.__name__ == "HalfMultinomialLoss", state.get("n_classes")
    if several and (type(count) is not int or not 3 <= count < 2**20):
        raise invalid(f"a loss has {shown(count)} classes")
    made = kind(n_classes=count) if several else kind()
    for name in ("approx_hessian", "constant_hessian"):
        if not isinstance(state.get(name), bool):
            raise invalid(f"`{name}` of a loss is neither true nor false")
        setattr(made, name, state[name])
    if any(state.get(name) is not None for name in ("xp", "device", "y_true_int")):
        raise unchecked("a loss for another device")
    return made


def _margin(name: str, args: Any) -> tuple[float, ...]:
    if name not in ("Hinge", "SquaredHinge"):
        return ()
    if not isinstance(args, tuple) or len(args) != 1 or not isinstance(args[0], float):
        raise invalid("a loss has no margin")
    return args


_WORDS = 624  # of the state of the Mersenne twister


def random_state(state: Any) -> np.random.RandomState:
    """A generator of numpy's older kind."""
    try:
        name, inner = state["bit_generator"], state["state"]
        key, place = inner["key"], inner["pos"]
        sound = (
            isinstance(key, np.ndarray)
            and (key.shape, key.dtype) == ((_WORDS,), np.uint32)
            and type(place) is int
            and 0 <= place <= _WORDS
            and state["has_gauss"] in (0, 1)
            and isinstance(state["gauss"], float)
            and set(state) == {"bit_generator", "state", "has_gauss", "gauss"}
        )
    except (TypeError, KeyError) as error:
        raise invalid("a random state is not complete") from error
    if name != "MT19937" or not sound:
        raise invalid("a random state is not what it should be")
    found = np.random.RandomState()
    found.set_state(state)
    return found


def generator(state: Any, seeds: Any) -> np.random.Generator:
    """A generator of numpy's newer kind."""
    try:
        name, inner = state["bit_generator"], state["state"]
        sound = (
            all(_bits(inner[part], 128) for part in ("state", "inc"))
            and state["has_uint32"] in (0, 1)
            and _bits(state["uinteger"], 32)
            and set(state) == {"bit_generator", "state", "has_uint32", "uinteger"}
            and set(seeds) == {"entropy", "spawn_key", "pool_size", "n_children_spawned"}
            and seeds["pool_size"] == 4
            and _bits(seeds["n_children_spawned"], 32)
            and isinstance(seeds["spawn_key"], tuple)
            and all(_bits(key, 32) for key in seeds["spawn_key"])
        )
    except (TypeError, KeyError) as error:
        raise invalid("a random generator is not complete") from error
    if name != "PCG64":
        raise unchecked("a random generator that is not PCG64")
    entropy = seeds["entropy"]
    words = entropy if isinstance(entropy, list | tuple) else [entropy]
    if not sound or not all(_bits(word, 256) for word in words):
        raise invalid("a random generator is not what it should be")
    found = np.random.PCG64(np.random.SeedSequence(**seeds))
    found.state = state
    return np.random.Generator(found)


def _bits(value: Any, most: int) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and value >= 0 and int(value).bit_length() <= most


def make_tree(state: Any) -> Any:
    """A `Tree`, which trusts what it is made of."""
    from sklearn.tree._tree import NODE_DTYPE, Tree

    args, content = state
    if not isinstance(args, tuple) or len(args) != 3 or not isinstance(content, dict):
        raise invalid("a tree is not complete")
    features, values_each, outputs = args
    if type(features) is not int or not 1 <= features < 2**31 or outputs != 1:
        raise invalid(f"a tree has {shown(features)} features and {shown(outputs)} outputs")
    if set(content) != {"max_depth", "node_count", "nodes", "values"}:
        raise unchecked("a tree of another version of scikit-learn")
    nodes, values = content["nodes"], content["values"]
    shape = getattr(values_each, "shape", None)
    if type(values_each) is not np.ndarray or values_each.dtype != np.intp or shape != (1,):
        raise invalid("a tree does not say how many values its leaves have")
    if type(nodes) is not np.ndarray or nodes.dtype != NODE_DTYPE or nodes.ndim != 1:
        raise invalid("the nodes of a tree are not those of this version of scikit-learn")
    array_like(values, "tree", "values", len(nodes), 1, int(values_each[0]))
    if values.dtype != np.float64 or not values.flags.c_contiguous or not values.shape[2]:
        raise invalid("the values of a tree are not what they should be")
    if content["node_count"] != len(nodes) or type(content["max_depth"]) is not int:
        raise invalid(f"a tree of {len(nodes)} nodes states {shown(content['node_count'])}")
    leaf = nodes["left_child"] == -1
    _check_nodes(nodes["left_child"], nodes["right_child"], leaf, nodes["feature"], features)
    made = Tree(features, values_each, 1)
    made.__setstate__({**content, "max_depth": min(max(content["max_depth"], 0), len(nodes))})
    return made


def _check_nodes(
    left: AnyArray, right: AnyArray, leaf: AnyArray, feature: AnyArray, features: int
) -> None:
    """Raise FileError unless the nodes are one tree, and split features that there are."""
    if not len(left):
        raise invalid("a tree has no nodes")
    inner = ~leaf
    for child in (left[inner], right[inner]):
        if len(child) and (child.min() < 0 or child.max() >= len(left)):
            raise invalid("a child lies outside its tree")
    split = feature[inner]
    if len(split) and (split.min() < 0 or split.max() >= features):
        raise invalid(f"a node splits a feature that is not one of {features}")
    seen = reachable(
        np.where(leaf, -1, left).astype(np.int64), right.astype(np.int64), np.zeros(1, np.intp)
    )
    if not seen.all():
        raise invalid("a node is not in its tree")


def tree(part: Any, _checker: Checker) -> Facts:
    """A decision tree of any kind."""
    from sklearn.tree._tree import Tree

    features, made = whole(part, "n_features_in_", 1), attribute(part, "tree_")
    if type(made) is not Tree or made.n_features != features or whole(part, "n_outputs_") != 1:
        raise invalid("a tree does not have the features or outputs that it states")
    if "classes_" not in vars(part):
        if made.max_n_classes != 1:
            raise invalid("a tree of numbers has several for each leaf")
        return Facts("regressor", features, 1)
    count = classes(part)
    if not count == whole(part, "n_classes_") == made.max_n_classes:
        raise invalid(f"a tree of {count} classes has {made.max_n_classes} values for each leaf")
    return Facts("classifier", features, count)


def forest(part: Any, checker: Checker) -> Facts:
    """A forest of any kind."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    if whole(part, "n_classes_") != count or whole(part, "n_outputs_") != 1:
        raise invalid("a forest does not have the classes or outputs that it states")
    trees = attribute(part, "estimators_")
    work = checker.all(trees, "classifier", inputs=features, outputs=count)
    if any("tree_" not in vars(one) for one in trees):
        raise invalid("a forest holds something else than trees")
    return Facts("classifier", features, count, work)


def gradient_boosting(part: Any, checker: Checker) -> Facts:
    """A `GradientBoostingClassifier`, which writes as many columns as it has trees beside."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    columns = _columns(part, count)
    stages = attribute(part, "estimators_")
    if type(stages) is not np.ndarray or stages.ndim != 2 or stages.shape[1] != columns:
        raise wrong(part, "estimators_")
    if whole(part, "n_classes_") != count:
        raise wrong(part, "n_classes_")
    trees = stages.ravel().tolist()
    work = checker.all(trees, "regressor", inputs=features, outputs=1)
    if any("tree_" not in vars(one) for one in trees):
        raise wrong(part, "estimators_")
    number(part, "learning_rate")
    first = attribute(part, "init_")
    if type(first) is not str:
        work += checker.all([first], "classifier", inputs=features, outputs=count)
    elif first != "zero":
        raise wrong(part, "init_")
    return Facts("classifier", features, count, work)


def histogram_boosting(part: Any, checker: Checker) -> Facts:
    """A `HistGradientBoostingClassifier`."""
    features, count = whole(part, "n_features_in_", 1), classes(part)
    columns = _columns(part, count)
    for name in ("_preprocessor", "is_categorical_", "_scorer"):
        if vars(part).get(name) is not None:
            raise unchecked(f"a {type(part).__name__} with {name}")
    numbers(part, "_baseline_prediction", 1, columns)
    mapper = attribute(part, "_bin_mapper")
    if type(mapper).__name__ != "_BinMapper":
        raise wrong(part, "_bin_mapper")
    categorical = numbers(mapper, "is_categorical_", features, kinds="ub") != 0
    flags = vars(part).get("_is_categorical_remapped")
    if (
        flags is not None
        and (array_like(flags, part, "flags", features, kinds="b") != categorical).any()
    ):
        raise wrong(part, "_is_categorical_remapped")
    thresholds = attribute(mapper, "bin_thresholds_")
    if not isinstance(thresholds, list) or len(thresholds) != features:
        raise wrong(mapper, "bin_thresholds_")
    for one, coded in zip(thresholds, categorical.tolist(), strict=True):
        array_like(one, mapper, "bin_thresholds_", None)
        # Codes are bits of a set of 256, which scikit-learn writes without looking.
        if coded and not ((one >= 0) & (one < _CODES) & (one == np.floor(one))).all():
            raise wrong(mapper, "bin_thresholds_")
    for name in ("missing_values_bin_idx_", "n_bins_non_missing_"):
        if name == "missing_values_bin_idx_":
            whole(mapper, name)
        else:
            numbers(mapper, name, features, kinds="iu")
    stages = attribute(part, "_predictors")
    if not isinstance(stages, list) or not stages:
        raise wrong(part, "_predictors")
    work = 0
    for stage in stages:
        if not isinstance(stage, list) or len(stage) != columns:
            raise wrong(part, "_predictors")
        work += checker.all(stage, "part", inputs=None, outputs=None)
        for one in stage:
            inner = one.nodes[one.nodes["is_leaf"] == 0]
            split = inner["feature_idx"]
            if len(split) and split.max() >= features:
                raise invalid(f"a node splits a feature that is not one of {features}")
            # Whether a node's set of categories is there is looked up by its feature.
            if not categorical[split[inner["is_categorical"] == 1]].all():
                raise invalid("a node splits a feature by categories that has none")
    return Facts("classifier", features, count, work)


def predictor(part: Any, _checker: Checker) -> Facts:
    """A tree of histogram boosting."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = attribute(part, "nodes")
    if type(nodes) is not np.ndarray or nodes.dtype != PREDICTOR_RECORD_DTYPE or nodes.ndim != 1:
        raise invalid("the nodes of a tree are not those of this version of scikit-learn")
    by_category = nodes["is_categorical"] != 0
    if nodes["is_leaf"].max(initial=0) > 1 or nodes["is_categorical"].max(initial=0) > 1:
        raise invalid("a node is neither a leaf nor an inner one")
    last = nodes["bitset_idx"][by_category].max(initial=0)
    for name in ("binned_left_cat_bitsets", "raw_left_cat_bitsets"):
        sets = numbers(part, name, None, 8, kinds="u")
        if sets.dtype != np.uint32 or (by_category.any() and last >= len(sets)):
            raise invalid("a node has categories that are not there")
    leaf = nodes["is_leaf"] == 1
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    _check_nodes(left, right, leaf, nodes["feature_idx"], 2**31)
    return Facts("part", None, None)


def _columns(part: Any, count: int) -> int:
    """How many trees there are in each iteration, by its loss and by what it states."""
    columns = 1 if count == 2 else count
    loss = attribute(part, "_loss")
    names = ("HalfBinomialLoss", "ExponentialLoss") if columns == 1 else ("HalfMultinomialLoss",)
    if type(loss).__name__ not in names or loss.n_classes != max(count, 2):
        raise wrong(part, "_loss")
    if whole(part, "n_trees_per_iteration_") != columns:
        raise wrong(part, "n_trees_per_iteration_")
    return columns


def dummy(part: Any, _checker: Checker) -> Facts:
    """A `DummyClassifier`, with which gradient boosting begins."""
    chosen(part, "_strategy", ["prior"])
    chosen(part, "strategy", ["prior"])
    count = classes(part)
    numbers(part, "class_prior_", count)
    if whole(part, "n_classes_") != count or whole(part, "n_outputs_") != 1:
        raise wrong(part, "n_classes_")
    return Facts("classifier", None, count)
