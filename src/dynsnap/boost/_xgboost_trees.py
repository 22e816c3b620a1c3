"""The trees of an XGBoost model: most of the file, so all of them are looked at together."""

import re
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Positions
from dynsnap.boost import _ubjson
from dynsnap.boost._structure import invalid, unchecked

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


class Trees:
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
            raise invalid(f"tree {number} has {size} nodes, but says {nodes}")
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


def read(content: bytes, at: int) -> tuple[Trees, int]:
    """All trees, and where they end."""
    begins = b"[#L"
    if not content.startswith(begins, at):
        raise invalid("there are no trees")
    at += len(begins) + _COUNT
    count = int.from_bytes(content[at - _COUNT : at], "big")
    trees = Trees(content)
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
