"""Whether a stored XGBoost model is sound: the library follows its indices without looking."""

import re
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Flags, Positions
from dynsnap.boost import _ubjson
from dynsnap.boost._structure import invalid, reachable, shown, unchecked
from dynsnap.boost._ubjson import counted, integers, table, text

# The arrays of a tree in the order of their names, each with its type.
_LISTS = {
    "categories": b"l",
    "categories_nodes": b"l",
    "categories_segments": b"L",
    "categories_sizes": b"L",
}
_LAST = {
    "left_children": b"l",
    "loss_changes": b"d",
    "parents": b"l",
    "right_children": b"l",
    "split_conditions": b"d",
    "split_indices": b"l",
    "split_type": b"U",
    "sum_hessian": b"d",
}
_KINDS = {"base_weights": b"d", **_LISTS, "default_left": b"U", **_LAST}


def _before(name: str) -> bytes:
    return _ubjson.name(name) + b"[$" + _KINDS[name] + b"#L"


_BEFORE = {name: _before(name) for name in _KINDS} | {
    "base_weights": b"{" + _before("base_weights"),
    "id": _ubjson.name("id"),
}
_COUNT = 8  # bytes of the number of values, which follows the name
_NO_LISTS = b"".join(_BEFORE[name] + bytes(_COUNT) for name in _LISTS)
_BYTES = {name: _ubjson.NUMBERS[kind].itemsize for name, kind in _KINDS.items()}
_LAST_NAMES = sum(len(_BEFORE[name]) + _COUNT for name in _LAST)
_LAST_BYTES = sum(_BYTES[name] for name in _LAST)  # of each node


class XGBoostTrees:
    """The nodes of all trees, one tree after another.

    Attributes:
        sizes: How many nodes each tree has.
        deleted: How many of them are not in use.
        features: How many features the trees say that there are: one number, where they agree.
        categories: Of the trees that split by categories, their lists by name.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.sizes: list[int] = []
        self.deleted: list[int] = []
        self.features: set[int] = set()
        self.categories: dict[int, dict[str, AnyArray]] = {}
        self._params: dict[bytes, tuple[int, int, int]] = {}
        # Where each tree begins, and the fields after those whose lengths differ.
        self._begin: list[int] = []
        self._default: list[int] = []
        self._left: list[int] = []

    def add(self, at: int) -> int:
        """Find the places of one more tree's fields, and say where it ends."""
        number, content = len(self.sizes), self._content
        self._begin.append(at)
        at += _FIRST
        size = int.from_bytes(content[at : at + _COUNT], "big")
        at += _COUNT + size * _BYTES["base_weights"]
        at = at + len(_NO_LISTS) if content.startswith(_NO_LISTS, at) else self._lists(at)
        self._default.append(at)
        own, at = _ubjson.scalar(content, at + _TO_NUMBER + size * _BYTES["default_left"])
        if type(own) is not int or own != number:
            raise invalid(f"tree {number} is numbered {own}")
        self._left.append(at)
        at += _LAST_NAMES + size * _LAST_BYTES
        end = content.find(b"}}", at) + 2
        param = content[at:end]
        known = self._params.get(param)
        if known is None:  # the same for all trees of one size
            known = self._params[param] = _read_param(param)
        nodes, deleted, features = known
        if not nodes == size > 0:
            raise invalid(f"tree {number} has {size} nodes, but states {nodes}")
        self.sizes.append(size)
        self.deleted.append(deleted)
        self.features.add(features)
        return end

    def _lists(self, at: int) -> int:
        lists = self.categories[len(self.sizes)] = {}
        for name in _LISTS:
            if not self._content.startswith(_BEFORE[name], at):
                raise invalid(f"a tree lacks `{name}`")
            at += len(_BEFORE[name]) + _COUNT
            count = int.from_bytes(self._content[at - _COUNT : at], "big")
            if count > len(self._content):
                raise invalid(f"`{name}` is cut short")
            lists[name] = np.frombuffer(self._content, _kind(name), count, at)
            at += lists[name].nbytes
        return at

    def places(self) -> dict[str, Positions]:
        """Where the names of the fields must be, of each tree."""
        begin, default, left = (
            np.array(found, np.int64) for found in (self._begin, self._default, self._left)
        )
        sizes = np.array(self.sizes, np.int64)
        found = {"base_weights": begin, "default_left": default}
        found["id"] = default + _TO_NUMBER - len(_BEFORE["id"]) + sizes * _BYTES["default_left"]
        for name in _LAST:
            found[name] = left
            left = left + len(_BEFORE[name]) + _COUNT + sizes * _BYTES[name]
        return found

    def check_names(self) -> None:
        """Raise FileError unless every field is where it must be, with a value for each node."""
        content = np.frombuffer(self._content, np.uint8)
        sizes = np.array(self.sizes, ">u8").view(np.uint8).reshape(-1, _COUNT)
        for name, places in self.places().items():
            before = np.frombuffer(_BEFORE[name], np.uint8)
            width = len(before) + (_COUNT if name in _KINDS else 0)
            found = content[places[:, None] + np.arange(width)]
            if (found[:, : len(before)] != before).any():
                raise invalid(f"a tree lacks `{name}`")
            if width > len(before) and (found[:, len(before) :] != sizes).any():
                raise invalid(f"`{name}` has not one value for each node")

    def arrays(self, *names: str) -> list[AnyArray]:
        """The numbers of these names, of all trees."""
        return [
            self._array(name, places) for name, places in self.places().items() if name in names
        ]

    def _array(self, name: str, places: Positions) -> AnyArray:
        begins = places + len(_BEFORE[name]) + _COUNT
        ends = begins + np.array(self.sizes) * _BYTES[name]
        parts = [
            self._content[begin:end]
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
        return np.frombuffer(b"".join(parts), _kind(name)).astype(np.int64)


_FIRST = len(_BEFORE["base_weights"])
_TO_NUMBER = len(_BEFORE["default_left"]) + _COUNT + len(_BEFORE["id"])


def _kind(name: str) -> np.dtype[Any]:
    return _ubjson.NUMBERS[_KINDS[name]]


def read_trees(content: bytes, at: int) -> tuple[XGBoostTrees, int]:
    """All trees, and where they end."""
    begins = b"[#L"
    if not content.startswith(begins, at):
        raise invalid("there are no trees")
    at += len(begins) + _COUNT
    count = int.from_bytes(content[at - _COUNT : at], "big")
    trees = XGBoostTrees(content)
    for _ in range(count):
        if at >= len(content):
            raise invalid(f"it is cut short after {len(trees.sizes)} of {count} trees")
        at = trees.add(at)
    trees.check_names()
    return trees, at


# Texts of digits, each with its length before it.
_PARAM = re.compile(
    re.escape(_ubjson.name("tree_param") + b"{")
    + b"".join(
        re.escape(_ubjson.name(name) + b"SL") + rb"(\0{7}[\x01-\x09]\d+)"
        for name in ("num_deleted", "num_feature", "num_nodes", "size_leaf_vector")
    )
    + b"}}",
    re.DOTALL,
)


def _read_param(content: bytes) -> tuple[int, int, int]:
    """How many nodes a tree has, how many of them are deleted, and how many features."""
    found = _PARAM.fullmatch(content)
    if not found or any(len(text) != _COUNT + text[_COUNT - 1] for text in found.groups()):
        raise invalid("a tree is cut short, or its parameters are not what they should be")
    deleted, features, nodes, outputs = (int(text[_COUNT:]) for text in found.groups())
    if outputs > 1:
        raise unchecked("trees with several outputs")
    return nodes, deleted, features


_NO_PARENT = 2**31 - 1
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_CATEGORY_BITS = 2**29  # XGBoost keeps a bit for every category up to a node's last: 64 MiB of them


def check(payload: bytes, columns: int) -> int:
    """Raise FileError unless XGBoost can safely load and use the model.

    Args:
        payload: The model, in XGBoost's UBJSON.
        columns: How many classes it must have.

    Returns:
        How many features it takes.
    """
    model = _ubjson.decode(payload, {"trees": read_trees})
    table(model, "the file", "learner version")
    version = model["version"]
    if not (isinstance(version, list) and all(type(part) is int for part in version)):
        raise invalid("it does not name the version of XGBoost that wrote it")
    if len(version) != 3 or not 2 <= version[0] <= 3:
        raise unchecked(f"a model of XGBoost {'.'.join(map(str, version))}")
    learner = table(
        model["learner"],
        "the learner",
        "attributes feature_names feature_types gradient_booster learner_model_param objective",
    )
    attributes = table(learner["attributes"], "the attributes")
    if not all(isinstance(value, str) for value in attributes.values()):
        raise invalid("an attribute is not a text")
    groups, features = _check_params(learner, columns)
    for name in ("feature_names", "feature_types"):
        values = learner[name]
        if not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
            raise invalid(f"`{name}` is not a list of texts")
        if len(values) not in (0, features):
            raise invalid(f"it names {len(values)} of {features} features")
    booster = table(learner["gradient_booster"], "the booster", "model name")
    if booster["name"] != "gbtree":
        raise unchecked(f"a booster of the kind {shown(booster['name'])}")
    _check_booster(booster["model"], groups, features)
    return features


def _check_params(learner: dict[str, Any], columns: int) -> tuple[int, int]:
    """How many scores a tree may add to, and how many features there are."""
    params = table(
        learner["learner_model_param"],
        "learner_model_param",
        "base_score boost_from_average num_class num_feature num_target",
    )
    classes, features = counted(params, "num_class"), counted(params, "num_feature")
    objective = learner["objective"]
    name = objective.get("name") if isinstance(objective, dict) else None
    if name == "binary:logistic":
        table(objective, "the objective", "name reg_loss_param")
        weights = table(objective["reg_loss_param"], "reg_loss_param", "scale_pos_weight")
        expected, groups = 0, 1
        text(weights, "scale_pos_weight", _NUMBER)
    elif name == "multi:softprob":
        table(objective, "the objective", "name softmax_multiclass_param")
        own = table(objective["softmax_multiclass_param"], "its parameters", "num_class")
        expected = groups = counted(own, "num_class")
    else:
        raise unchecked(f"an objective of the kind {shown(name)}")
    found = 2 if groups == 1 else groups
    if classes != expected or found != columns:
        raise invalid(f"its objective has {found} classes, but {columns} are expected")
    if features < 1 or counted(params, "num_target") != 1:
        raise invalid("its number of features or targets is wrong")
    text(params, "boost_from_average", "[01]")
    # One for all classes, as XGBoost wrote it before 3.1, or a list.
    base = text(params, "base_score", rf"{_NUMBER}|\[{_NUMBER}(?:,{_NUMBER})*\]")
    if base.startswith("[") and base.count(",") != groups - 1:
        raise invalid(f"it has {base.count(',') + 1} base scores for {groups} classes")
    return groups, features


def _check_booster(model: Any, groups: int, features: int) -> None:
    table(model, "the model", "gbtree_model_param iteration_indptr tree_info trees", "cats")
    _check_notable(model.get("cats"))
    params = table(model["gbtree_model_param"], "gbtree_model_param", "num_parallel_tree num_trees")
    trees: XGBoostTrees = model["trees"]
    count, parallel = counted(params, "num_trees"), counted(params, "num_parallel_tree")
    info = integers(model, "tree_info")
    ends = integers(model, "iteration_indptr")
    if not count == len(trees.sizes) == len(info) or not count:
        raise invalid(
            f"it has {len(trees.sizes)} trees, but states {count}, and the classes of {len(info)}"
        )
    if ((info < 0) | (info >= groups)).any():
        raise invalid("`tree_info` names a class that is not there")
    steps = np.diff(ends)
    if len(ends) < 2 or ends[0] != 0 or ends[-1] != count or (steps != parallel * groups).any():
        raise invalid("`iteration_indptr` does not fit the number of trees")
    _check_nodes(trees, features)


def _check_notable(cats: Any) -> None:
    """Names of categories come from data frames, which are never trained on."""
    if cats is None:
        return
    table(cats, "the categories", "enc feature_segments sorted_idx")
    if any(len(part) for part in cats.values() if isinstance(part, list | np.ndarray)):
        raise unchecked("the names of categories")


def _check_nodes(trees: XGBoostTrees, features: int) -> None:
    default, left, parents, right, index, kind = trees.arrays(
        "default_left", "left_children", "parents", "right_children", "split_indices", "split_type"
    )
    sizes = np.array(trees.sizes)
    starts = np.cumsum(sizes) - sizes
    begin, size = np.repeat(starts, sizes), np.repeat(sizes, sizes)
    leaf = left == -1
    if (leaf != (right == -1)).any():
        raise invalid("a node has one child")
    if (((left < 0) | (left >= size) | (right < 0) | (right >= size)) & ~leaf).any():
        raise invalid("a child lies outside its tree")
    left, right = np.where(leaf, -1, left + begin), right + begin
    used = reachable(left, right, starts)
    inner = np.flatnonzero(~leaf)
    if not used[inner].all():
        raise invalid("a node that is not in use has children")
    if (np.add.reduceat(~used, starts) != trees.deleted).any():
        raise invalid("a node is neither in its tree nor deleted")
    if trees.features != {features}:
        raise invalid("a tree has other features than its model")
    if ((index[inner] < 0) | (index[inner] >= features)).any():
        raise invalid(f"a node splits a feature that is not one of {features}")
    # A node that was pruned away still names a parent.
    orphan = parents == _NO_PARENT
    if (((parents < 0) | (parents >= size)) & ~orphan).any() or not orphan[starts].all():
        raise invalid("a parent lies outside its tree, or a root has one")
    parents += begin
    if (parents[left[inner]] != inner).any() or (parents[right[inner]] != inner).any():
        raise invalid("a node and its child do not name each other")
    if (default > 1).any() or (kind > 1).any():
        raise invalid("`default_left` or `split_type` is neither 0 nor 1")
    if kind.any() or trees.categories:
        _check_categories(trees, kind == 1, leaf, starts)


def _check_categories(trees: XGBoostTrees, split: Flags, leaf: Flags, starts: Positions) -> None:
    bits = 0
    expected = np.zeros_like(split)
    for number, lists in trees.categories.items():
        values, nodes = lists["categories"], lists["categories_nodes"]
        sizes, begins = lists["categories_sizes"], lists["categories_segments"]
        if not len(nodes) == len(sizes) == len(begins):
            raise invalid("the lists of categories have different lengths")
        # One by one before they are added up: large ones could overflow to the right sum.
        if ((sizes < 1) | (sizes > len(values))).any() or sizes.sum() != len(values):
            raise invalid("the categories are not as many as it states")
        if (begins != np.cumsum(sizes) - sizes).any() or (values < 0).any():
            raise invalid("the categories of a node are not where it states, or negative")
        if ((nodes < 0) | (nodes >= trees.sizes[number])).any() or (np.diff(nodes) <= 0).any():
            raise invalid("categories belong to no node")
        expected[nodes + starts[number]] = True
        last = np.maximum.reduceat(values, begins.astype(np.intp))
        bits += int((last.astype(np.int64) + 1).sum())
    if bits > _CATEGORY_BITS:
        raise invalid("its categories would take too much memory")
    if (expected != split).any() or (split & leaf).any():
        raise invalid("categories and the nodes that split by them do not match")
