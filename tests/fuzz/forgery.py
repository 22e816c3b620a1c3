"""Forged learners: one value of a stored learner changed at a time, whatever its format.

A document is a stored learner taken apart into leaves: arrays, numbers and texts, each with a name.
Forging changes a leaf, or removes it, and puts the rest together as it was, checksums included.
"""

import io
import json
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

# --- how a value is changed -------------------------------------------------------------------

LARGE = 2**31 - 1


@dataclass(frozen=True)
class Change:
    """A way to change a value; `at` chooses where in an array."""

    name: str
    array: Callable[[Any, int], Any]
    scalar: Callable[[Any], Any]


def _put(values: Any, at: int, value: Any) -> Any:
    if not len(values):
        return [value]
    changed = list(values)
    changed[at % len(changed)] = value
    return changed


def _number(change: Callable[[float], float]) -> Callable[[Any], Any]:
    def scalar(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return -1
        return change(value)

    return scalar


CHANGES = (
    Change("negative", lambda v, at: _put(v, at, -7), _number(lambda v: -abs(v) - 1)),
    Change("minus one", lambda v, at: _put(v, at, -1), lambda v: -1),
    Change("large", lambda v, at: _put(v, at, LARGE), lambda v: LARGE),
    Change("a bit large", lambda v, at: _put(v, at, len(v)), _number(lambda v: v + 1)),
    Change("zero", lambda v, at: _put(v, at, 0), lambda v: 0),
    Change("cycle", lambda v, at: [0 if x != -1 else x for x in v], _number(lambda v: v - 1)),
    Change("own place", lambda v, at: list(range(len(v))), lambda v: 1),
    Change("turned round", lambda v, at: list(v)[::-1], lambda v: [v]),
    Change("cut short", lambda v, at: list(v)[: len(v) // 2], lambda v: ""),
    Change("one less", lambda v, at: list(v)[:-1], lambda v: None),
    Change("one more", lambda v, at: [*v, *list(v)[-1:]], lambda v: 10**12),
    Change("empty", lambda v, at: [], lambda v: {}),
    Change("not a number", lambda v, at: _put(v, at, float("nan")), lambda v: float("nan")),
    Change("infinite", lambda v, at: _put(v, at, float("inf")), lambda v: float("inf")),
    Change("of another type", lambda v, at: np.asarray(v, dtype=object), lambda v: str(v) + "x"),
    Change("missing", lambda v, at: None, lambda v: None),
)
STRUCTURAL = {"cut short", "one less", "one more", "empty", "of another type", "missing"}
SHORTER = {"cut short", "one less", "empty"}
MISSING = object()


# --- XGBoost's UBJSON -------------------------------------------------------------------------

_KINDS = {b"U": "u1", b"i": "i1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}


class Ubjson:
    """A document of nested tables and lists."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def leaves(self) -> list[tuple[Any, ...]]:
        """The places of all values; of many trees, those of the first and the last."""
        return list(_places(_decode(self._payload, 0)[0]))

    def find(self, name: str) -> int:
        """The number of the first leaf of this name."""
        return next(at for at, place in enumerate(self.leaves()) if name in place)

    def is_array(self, place: int) -> bool:
        """Whether the leaf of this number is an array, and not what it is made of."""
        leaves = self.leaves()
        return isinstance(self.value(leaves[place % len(leaves)]), np.ndarray)

    def value(self, place: tuple[Any, ...]) -> Any:
        """What is at a place."""
        found, _ = _decode(self._payload, 0)
        for key in place:
            found = found[key]
        return found

    def forged(self, place: tuple[Any, ...], change: Change, at: int) -> bytes:
        root, _ = _decode(self._payload, 0)
        holder = root
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = _changed(holder[place[-1]], change, at)
        if holder[place[-1]] is MISSING:
            del holder[place[-1]]
        return _encode(root)


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*place, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield place
        for number in sorted({0, len(value) - 1}):
            yield from _places(value[number], (*place, number))
    else:
        yield place


def _changed(value: Any, change: Change, at: int) -> Any:
    if change.name == "missing":
        return MISSING
    if isinstance(value, np.ndarray):
        found = change.array(value.tolist(), at)
        if isinstance(found, np.ndarray):  # of another type
            return np.asarray(value, ">f4" if value.dtype.kind in "iu" else ">i4")
        kind = value.dtype if all(_fits(one, value.dtype) for one in found) else np.dtype(">f4")
        return np.array(found, dtype=kind)
    if isinstance(value, list):
        found = change.array(value, at)
        return [str(one) for one in found] if isinstance(found, np.ndarray) else found
    if isinstance(value, str):
        number = value.strip("[]")
        try:
            return str(
                change.scalar(float(number) if set(number) - set("0123456789") else int(number))
            )
        except ValueError:
            return str(change.scalar(value))
    return change.scalar(value)


def _fits(value: Any, kind: np.dtype[Any]) -> bool:
    if kind.kind == "f":
        return True
    return value == value and np.iinfo(kind).min <= value <= np.iinfo(kind).max


def _decode(content: bytes, at: int) -> tuple[Any, int]:
    marker = content[at : at + 1]
    at += 1
    if marker in _KINDS:
        kind = np.dtype(_KINDS[marker])
        return np.frombuffer(content, kind, 1, at)[0].item(), at + kind.itemsize
    if marker == b"S":
        size = struct.unpack_from(">q", content, at + 1)[0]
        return content[at + 9 : at + 9 + size].decode(), at + 9 + size
    if marker == b"{":
        table = {}
        while content[at : at + 1] != b"}":
            key, at = _decode(b"S" + content[at : at + 200], 0)[0], at
            at += 9 + len(key)
            table[key], at = _decode(content, at)
        return table, at + 1
    typed = content[at : at + 1] == b"$"
    kind = np.dtype(_KINDS[content[at + 1 : at + 2]]) if typed else None
    at += 2 if typed else 0
    count = struct.unpack_from(">q", content, at + 2)[0]
    at += 10
    if kind is not None:
        return np.frombuffer(content, kind, count, at), at + count * kind.itemsize
    items = []
    for _ in range(count):
        item, at = _decode(content, at)
        items.append(item)
    return items, at


def _encode(value: Any) -> bytes:
    if isinstance(value, dict):
        inner = b"".join(_encode(key)[1:] + _encode(one) for key, one in value.items())
        return b"{" + inner + b"}"
    if isinstance(value, str):
        return b"SL" + struct.pack(">q", len(value.encode())) + value.encode()
    if isinstance(value, np.ndarray):
        marker = next(name for name, kind in _KINDS.items() if np.dtype(kind) == value.dtype)
        return b"[$" + marker + b"#L" + struct.pack(">q", len(value)) + value.tobytes()
    if isinstance(value, list):
        return b"[#L" + struct.pack(">q", len(value)) + b"".join(map(_encode, value))
    if isinstance(value, float):
        return b"d" + struct.pack(">f", value)
    if value is None:
        return b"Z"
    for marker, most in ((b"i", 2**7), (b"I", 2**15), (b"l", 2**31), (b"L", 2**63)):
        if -most <= value < most:
            return marker + int(value).to_bytes(
                np.dtype(_KINDS[marker]).itemsize, "big", signed=True
            )
    return b"L" + (2**62).to_bytes(8, "big")


# --- LightGBM's text --------------------------------------------------------------------------


class Text:
    """A document of lines, of which each tree has some; the sizes of trees are kept right."""

    def __init__(self, payload: bytes) -> None:
        self._lines = payload.decode().split("\n")
        self._end = self._lines.index("end of trees")

    def leaves(self) -> list[int]:
        return [at for at, line in enumerate(self._lines[: self._end]) if "=" in line]

    def find(self, name: str) -> int:
        named = (self._lines[line].startswith(f"{name}=") for line in self.leaves())
        return next(at for at, right in enumerate(named) if right)

    def is_array(self, place: int) -> bool:
        leaves = self.leaves()
        return " " in self._lines[leaves[place % len(leaves)]]

    def forged(self, place: int, change: Change, at: int) -> bytes:
        lines = list(self._lines)
        name, _, value = lines[place].partition("=")
        if change.name == "missing":
            del lines[place]
        else:
            found = change.array([_token(one) for one in value.split(" ")], at)
            tokens = [f"{one}x" for one in found] if isinstance(found, np.ndarray) else found
            lines[place] = f"{name}={' '.join(map(str, tokens))}"
        if name != "tree_sizes":
            _resize(lines)
        return "\n".join(lines).encode()


def _token(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text


def _resize(lines: list[str]) -> None:
    begins = [at for at, line in enumerate(lines) if line.startswith("Tree=")]
    end = lines.index("end of trees")
    sizes = [
        sum(len(line) + 1 for line in lines[begin:stop])
        for begin, stop in zip(begins, [*begins[1:], end], strict=True)
    ]
    where = next((at for at, line in enumerate(lines) if line.startswith("tree_sizes=")), None)
    if where is not None:
        lines[where] = f"tree_sizes={' '.join(map(str, sizes))}"


# --- skops' archives --------------------------------------------------------------------------


class Archive:
    """A document of a schema in JSON and arrays beside it."""

    def __init__(self, payload: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            self._files = {name: archive.read(name) for name in archive.namelist()}
        self._schema = json.loads(self._files["schema.json"])

    def leaves(self) -> list[tuple[Any, ...]]:
        """Arrays and their fields by file, and nodes of the schema by their paths."""
        found: list[tuple[Any, ...]] = []
        for name, content in self._files.items():
            if name.endswith(".npy"):
                fields = np.load(io.BytesIO(content)).dtype.names
                found += [("array", name, field) for field in fields or ("",)]
        seen: set[Any] = set()
        found += [("node", *path) for path in _nodes(self._schema, seen)]
        return found

    def find(self, name: str) -> int:
        """An array of this name, an array's field, or a setting."""
        leaves = self.leaves()
        for at, place in enumerate(leaves):
            if place[0] == "array" and place[2] == name:
                return at
            if place[0] == "node" and place[-1] == name:
                node = self._schema
                for key in place[1:]:
                    node = node[key]
                return leaves.index(("array", node["file"], "")) if "file" in node else at
        raise KeyError(name)

    def is_array(self, place: int) -> bool:
        leaves = self.leaves()
        return bool(leaves[place % len(leaves)][0] == "array")

    def forged(self, place: tuple[Any, ...], change: Change, at: int) -> bytes:
        files, schema = dict(self._files), json.loads(self._files["schema.json"])
        if place[0] == "array":
            _, name, field = place
            files[name] = _forged_array(files[name], field, change, at)
            if change.name == "missing" and not field:
                del files[name]
        else:
            holder = schema
            for key in place[1:-1]:
                holder = holder[key]
            _forge_node(holder, place[-1], change)
        files["schema.json"] = json.dumps(schema).encode()
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return content.getvalue()


def _nodes(node: Any, seen: set[Any], path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(node, list):
        for place, inner in enumerate(node):
            yield from _nodes(inner, seen, (*path, place))
    elif isinstance(node, dict):
        if "__loader__" in node and path:
            if node["__loader__"] == "TypeNode" or node.get("__id__") in seen:
                return
            # Plain values that are equal share a number, but each of them is a setting.
            if node["__loader__"] != "JsonNode":
                seen.add(node.get("__id__"))
            yield path
        for key, inner in node.items():
            if key != "key_types":
                yield from _nodes(inner, seen, (*path, key))


def _forge_node(holder: Any, key: Any, change: Change) -> None:
    node = holder[key]
    if change.name == "missing":
        del holder[key]
        return
    node = json.loads(json.dumps(node))
    node["__id__"] = 10**9 + len(json.dumps(node))  # nobody else's
    if node["__loader__"] == "JsonNode":
        found = change.scalar(json.loads(node["content"]))
        node["content"] = json.dumps(found)
    elif node["__loader__"] in ("ListNode", "TupleNode"):
        found = change.array(node["content"], 0)
        node["content"] = [one for one in found if isinstance(one, dict)]
    elif node["__loader__"] == "NdArrayNode":
        node["type"], node["content"] = "json", []
        node["shape"] = {
            "__loader__": "TupleNode",
            "__class__": "tuple",
            "__module__": "builtins",
            "content": [],
        }
    else:
        strange = {
            "negative": ("os", "system"),
            "large": ("builtins", "eval"),
            "zero": ("sklearn.gaussian_process.kernels", "RBF"),
            "cycle": ("sklearn.tree._classes", "DecisionTreeClassifier"),
        }
        module, name = strange.get(change.name, ("numpy", "ndarray"))
        node["__module__"], node["__class__"] = module, name
    holder[key] = node


def _forged_array(content: bytes, field: str, change: Change, at: int) -> bytes:
    array = np.load(io.BytesIO(content))
    if change.name == "of another type":
        array = (
            array.astype("f2") if array.dtype.names is None else array[list(array.dtype.names[:-1])]
        )
    elif field and change.name not in STRUCTURAL:
        array = array.copy()
        array[field] = _numbers(change.array(array[field].tolist(), at), array[field].dtype)
    elif change.name in STRUCTURAL:
        keep = {"cut short": len(array) // 2 if array.ndim else 0, "one less": -1, "empty": 0}
        if not array.ndim:
            array = np.zeros(2, array.dtype)
        elif change.name == "one more":
            array = np.concatenate([array, array[-1:]])
        else:
            array = array[: keep.get(change.name, 0)]
    else:
        flat = change.array(array.ravel().tolist(), at)
        shape = array.shape if len(flat) == array.size else (len(flat),)
        array = _numbers(flat, array.dtype).reshape(shape)
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _numbers(values: Any, kind: np.dtype[Any]) -> Any:
    if kind.kind in "iu":
        span = np.iinfo(kind)
        values = [span.max if value != value or value > span.max else value for value in values]
        values = [value % (int(span.max) + 1) if value < span.min else value for value in values]
    return np.array(values).astype(kind)


DOCUMENTS = {"xgboost": Ubjson, "lightgbm": Text, "sklearn": Archive}
