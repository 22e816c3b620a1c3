"""Values from a skops archive, whose files are bounded: plain ones, arrays, known classes."""

import functools
import io
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from dynsnap import _untrusted
from dynsnap._types import AnyArray
from dynsnap.boost._structure import invalid, shown, unchecked
from dynsnap.boost.rebuilt._facts import MOST_WORK
from dynsnap.boost.rebuilt._trees import generator, random_state

_SCHEMA = "schema.json"
# Bytes that a table, a list and one more value take in memory, by the sign in JSON, and how many
# times as many as in the archive there may be.
_TAKEN, _MORE = {b"{": 240, b"[": 64, b",": 40}, 8
_FIRST = 10  # bytes before the text of an array's header, the last two of them its length
# Trees of one size have the same header, and it takes longer to read than their nodes.
_header = functools.lru_cache(maxsize=4096)(_untrusted.array_header)


class SkopsArchive:
    """A skops archive in memory."""

    def __init__(self, content: bytes) -> None:
        self._most = _untrusted.allowance(len(content))
        self._arrays: set[str] = set()
        self._archive = _untrusted.Archive(io.BytesIO(content), len(content), deflated=True)
        total = sum(entry.file_size for entry in self._archive.entries.values())
        if total > self._most:
            raise invalid(
                f"its {_untrusted.megabytes(len(content))} would take "
                f"{_untrusted.megabytes(total)} in memory"
            )

    def schema(self) -> Any:
        """The description of the object that the archive holds."""
        content = self._read(_SCHEMA)
        # Two characters can be a table or a list, which takes many more bytes in memory.
        taken = sum(size * content.count(sign) for sign, size in _TAKEN.items())
        if taken > _MORE * self._most:
            raise invalid(f"its description would take {_untrusted.megabytes(taken)} in memory")
        return _untrusted.parse_json(content, most=self._most)

    def array(self, name: Any) -> AnyArray:
        """An array of numbers or texts, each of which has a file of its own."""
        if name in self._arrays:  # few files could stand for very many arrays
            raise invalid(f"its file {shown(name)} stands for two arrays")
        found = array(self._read(name))
        self._arrays.add(name)
        return found

    def _read(self, name: Any) -> bytes:
        entry = self._archive.entries.get(name) if isinstance(name, str) else None
        if entry is None:
            raise invalid(f"it has no file {shown(name)}")
        with self._archive.open(entry.filename) as file:
            # So many and no more are unpacked; beyond them lies the end, where the sum is checked.
            content = file.read(entry.file_size)
            if len(content) != entry.file_size or file.read(1):
                raise invalid(f"its file {shown(name)} does not have the size that it states")
        return content


def array(content: bytes) -> AnyArray:
    """An array in numpy's format, if the bytes are as many as its shape needs.

    Example:
        >>> file = io.BytesIO()
        >>> np.save(file, np.arange(3))
        >>> array(file.getvalue())
        array([0, 1, 2])
    """
    header = _header(content[: _FIRST + int.from_bytes(content[8:_FIRST], "little")], len(content))
    values = np.frombuffer(content, header.dtype, header.count, header.start)
    return _untrusted.in_shape(values.copy(), header)


# Makes a part of scikit-learn of what the archive states about it.
Make: TypeAlias = Callable[[Any], Any]

_PROTOCOLS = (2,)
_DEEPEST = 60
_KEYS: Mapping[str, Callable[[str], Any]] = {
    "builtins.str": str,
    "builtins.int": int,
    "builtins.float": float,
    "numpy.int64": np.int64,
}
_SCALARS: Mapping[str, type[np.generic]] = {
    f"numpy.{kind.__name__}": kind
    for kind in (
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float32, np.float64, np.bool_, np.str_),
    )
}
_TYPES: Mapping[str, type] = {
    **{f"builtins.{kind.__name__}": kind for kind in (str, int, float, bool)},
    **_SCALARS,
}


class Reader:
    """Reads the nodes of one archive.

    Args:
        archive: Where the arrays are.
        parts: What makes the parts of scikit-learn, by their full names.
        functions: Functions that a setting may name.
        refused: The error for a name that is not among them.
    """

    def __init__(
        self,
        archive: SkopsArchive,
        parts: Mapping[str, Make],
        functions: Mapping[str, Any],
        refused: Callable[[str], Exception],
    ) -> None:
        self._archive = archive
        self._parts = parts
        self._functions = functions
        self._refused = refused
        self._made: dict[Any, Any] = {}
        self._depth = 0
        self._readers: Mapping[str, Callable[[dict[str, Any]], Any]] = {
            "JsonNode": _read_scalar,
            "DictNode": self._read_dict,
            "ListNode": self._read_list,
            "TupleNode": self._read_tuple,
            "SetNode": self._read_set,
            "NdArrayNode": self._read_array,
            "SliceNode": _read_slice,
            "DTypeNode": self._read_dtype,
            "TypeNode": self._read_type,
            "FunctionNode": self._read_function,
            "ObjectNode": self._read_part,
            "TreeNode": self._read_reduced,
            "LossNode": self._read_reduced,
            "RandomStateNode": self._read_random_state,
            "RandomGeneratorNode": self._read_generator,
        }

    def root(self) -> Any:
        """The object that the archive holds."""
        schema = self._archive.schema()
        if not isinstance(schema, dict) or schema.get("protocol") not in _PROTOCOLS:
            raise unchecked("an archive of another version of skops")
        return self._read(schema)

    def _read(self, node: Any) -> Any:
        if not isinstance(node, dict):
            raise invalid("a part of its description is not a table")
        own = node.get("__id__")
        if own is not None and not isinstance(own, int):
            raise invalid("an object has no number")
        if own in self._made:
            return self._made[own]
        loader = node.get("__loader__")
        read = self._readers.get(loader) if isinstance(loader, str) else None
        if read is None:
            raise unchecked(f"{shown(_name(node))} ({shown(loader)})")
        if self._depth > _DEEPEST:
            raise invalid(f"its parts are nested more than {_DEEPEST} deep")
        self._depth += 1
        made = read(node)
        self._depth -= 1
        # As in skops: objects with one number are one object. A part is made after those that it
        # holds, so that none can hold itself.
        if own:
            self._made[own] = made
        return made

    def _items(self, node: dict[str, Any], kind: str) -> list[Any]:
        content = node.get("content")
        if _name(node) != kind or not isinstance(content, list):
            raise (
                self._refused(_name(node)) if _name(node) != kind else invalid("a list is missing")
            )
        return [self._read(item) for item in content]

    def _read_list(self, node: dict[str, Any]) -> list[Any]:
        return self._items(node, "builtins.list")

    def _read_tuple(self, node: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._items(node, "builtins.tuple"))

    def _read_set(self, node: dict[str, Any]) -> set[Any]:
        items = self._items(node, "builtins.set")
        if not all(isinstance(item, str | int | float) for item in items):
            raise invalid("a set holds more than texts and numbers")
        return set(items)

    def _read_dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        name, content, types = _name(node), node.get("content"), node.get("key_types")
        if name not in ("builtins.dict", "sklearn.utils._bunch.Bunch"):
            raise self._refused(name)
        types = types.get("content") if isinstance(types, dict) else None
        if not isinstance(content, dict) or not isinstance(types, list):
            raise invalid("a table is missing")
        if len(types) != len(content):
            raise invalid(f"a table has {len(types)} types of {len(content)} names")
        found = {}
        for kind, (key, value) in zip(types, content.items(), strict=True):
            make = _KEYS.get(_name(kind))
            if make is None:
                raise unchecked(f"a table by {shown(_name(kind))}")
            found[make(key)] = self._read(value)
        make_bunch = self._parts.get(name)
        return make_bunch(found) if make_bunch is not None else found

    def _read_array(self, node: dict[str, Any]) -> Any:
        name = _name(node)
        if node.get("type") == "json" and name == "numpy.ndarray":
            return self._read_objects(node)
        found = self._archive.array(node.get("file"))
        if name == "numpy.ndarray":
            return found
        kind = _SCALARS.get(name)
        if kind is None or found.ndim or found.dtype.type is not kind:
            raise invalid(f"a {shown(name)} is not one")
        return found[()]

    def _read_objects(self, node: dict[str, Any]) -> Any:
        """An array of objects, which lie as lists in lists."""
        shape = self._read(node.get("shape"))
        content = node.get("content")
        # Lists may be shared, so that deep ones could stand for very many objects.
        if not isinstance(shape, tuple) or len(shape) > 2 or not isinstance(content, list):
            raise invalid("an array of objects has no shape, or more than two sides")
        items = [self._read(item) for item in content]
        for size in shape[:0:-1]:
            if not isinstance(size, int) or len(items) * size > MOST_WORK:
                raise invalid(f"an array of objects has the shape {shown(shape)}")
            if not all(isinstance(item, list) and len(item) == size for item in items):
                raise invalid(f"an array of objects does not have the shape {shown(shape)}")
            items = [inner for item in items for inner in item]
        if not shape or shape[0] != len(content):
            raise invalid(f"an array of objects does not have the shape {shown(shape)}")
        found = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            found[place] = item
        return found.reshape(shape)

    def _read_type(self, node: dict[str, Any]) -> type:
        found = _TYPES.get(_name(node))
        if found is None:
            raise self._refused(_name(node))
        return found

    def _read_dtype(self, node: dict[str, Any]) -> np.dtype[Any]:
        """A type of numbers, as an empty array has it."""
        found = self._read(node.get("content"))
        if _name(node) != "numpy.dtype" or not isinstance(found, np.ndarray):
            raise self._refused(_name(node))
        dtype: np.dtype[Any] = found.dtype
        return dtype

    def _read_function(self, node: dict[str, Any]) -> Any:
        found = self._functions.get(_name(node))
        if found is None:
            raise self._refused(_name(node))
        return found

    def _read_part(self, node: dict[str, Any]) -> Any:
        make = self._parts.get(_name(node))
        if make is None:
            raise self._refused(_name(node))
        return make(self._read(node["content"]) if "content" in node else {})

    def _read_reduced(self, node: dict[str, Any]) -> Any:
        make = self._parts.get(_name(node))
        reduced = node.get("__reduce__")
        if make is None or not isinstance(reduced, dict):
            raise self._refused(_name(node))
        return make((self._read(reduced.get("args")), self._read(node.get("content"))))

    def _read_random_state(self, node: dict[str, Any]) -> np.random.RandomState:
        if _name(node) != "numpy.random.mtrand.RandomState":
            raise self._refused(_name(node))
        return random_state(self._read(node.get("content")))

    def _read_generator(self, node: dict[str, Any]) -> np.random.Generator:
        content = node.get("content")
        if _name(node) != "numpy.random._generator.Generator" or not isinstance(content, dict):
            raise self._refused(_name(node))
        return generator(
            self._read(content.get("bit_generator")), self._read(content.get("seed_seq"))
        )


def _read_scalar(node: dict[str, Any]) -> Any:
    content = node.get("content")
    found = json.loads(content) if isinstance(content, str) else []
    if not (found is None or isinstance(found, bool | int | float | str)):
        raise invalid("a number or text is neither")
    return found


def _read_slice(node: dict[str, Any]) -> slice:
    content = node.get("content")
    if _name(node) != "builtins.slice" or not isinstance(content, dict):
        raise invalid("a range is none")
    ends = [content.get(name) for name in ("start", "stop", "step")]
    if not all(end is None or type(end) in (int, str) for end in ends):
        raise invalid("a range has ends that are neither numbers nor names")
    return slice(*ends)


def _name(node: Any) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}" if isinstance(node, dict) else ""
