"""Reads the pickles that old data sets come in, without ever running anything they ask for.

A pickle is a program. This unpickler admits containers, bytes, text, numbers and numpy arrays, and
nothing else; and even for arrays it calls no code of numpy: what a pickle states about an array is
written down, checked, and read from its bytes. Before it runs, its instructions are looked through:
a few bytes of them could take gigabytes, or go on for ever.
"""

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dynsnap._types import AnyArray

_KIND = re.compile(r"[biu][1248]")
_TUPLES = ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3")
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE")
_GETS = ("GET", "BINGET", "LONG_BINGET")
_LONGS = ("INT", "LONG", "LONG1", "LONG4")
_INSTRUCTIONS = frozenset(
    [
        "APPEND",
        "APPENDS",
        "BINBYTES",
        "BINBYTES8",
        "BINFLOAT",
        "BININT",
        "BININT1",
        "BININT2",
        "BINSTRING",
        "BINUNICODE",
        "BINUNICODE8",
        "BUILD",
        "BYTEARRAY8",
        "DICT",
        "EMPTY_DICT",
        "EMPTY_LIST",
        "EMPTY_TUPLE",
        "FLOAT",
        "FRAME",
        "GLOBAL",
        "LIST",
        "MARK",
        "NEWFALSE",
        "NEWTRUE",
        "NONE",
        "PROTO",
        "REDUCE",
        "SETITEM",
        "SETITEMS",
        "SHORT_BINBYTES",
        "SHORT_BINSTRING",
        "SHORT_BINUNICODE",
        "STACK_GLOBAL",
        "STOP",
        "STRING",
        "UNICODE",
    ]
).union(_TUPLES, _PUTS, _GETS, _LONGS)


def plain_dict(content: bytes) -> dict[str, Any]:
    """The dictionary in a pickle, with text keys and numpy arrays.

    Raises pickle.UnpicklingError, with the reason, for whatever is not exactly that.

    Example:
        >>> plain_dict(pickle.dumps({b"labels": [3, 1], b"data": np.arange(2)}))
        {'labels': [3, 1], 'data': array([0, 1])}
    """
    try:
        _check_instructions(content)
        # Python 2 wrote text as bytes; "bytes" leaves them so, whatever they hold.
        found = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except pickle.UnpicklingError:
        raise
    except Exception as error:  # a damaged pickle can fail in any way it likes
        reason = f"it is not a whole pickle ({type(error).__name__})"
        raise pickle.UnpicklingError(reason) from error
    if not isinstance(found, dict):
        raise pickle.UnpicklingError("it does not hold a dictionary")
    return {
        _text(key): value.array() if isinstance(value, _Array) else value
        for key, value in found.items()
    }


def _check_instructions(content: bytes) -> None:
    """Raise unless the instructions are those that plain data is written with.

    Memory for remembered values is taken by the highest number of one, so numbers may not run
    ahead. A tuple may not be used twice: of tuples of tuples, each twice in the next, a few bytes
    name more than can ever be counted, as it is where one is the key of a dictionary.
    """
    tuples: set[int] = set()
    remembered, last = 0, ""
    for number, (name, argument) in enumerate(_instructions(content)):
        if name not in _INSTRUCTIONS:
            raise pickle.UnpicklingError(f"it holds the instruction {name}, which no data needs")
        if name in _PUTS:
            place = remembered if name == "MEMOIZE" else int(argument)
            if place > number:
                raise pickle.UnpicklingError("it remembers more than it has")
            remembered += 1
            (tuples.add if last in _TUPLES else tuples.discard)(place)
        elif name in _GETS and int(argument) in tuples:
            raise pickle.UnpicklingError("it uses a tuple twice")
        elif name in _LONGS and not -(2**63) <= argument < 2**63:
            raise pickle.UnpicklingError("it holds a number that is too large")
        elif name not in ("PROTO", "FRAME"):  # which leave all as it was
            last = name


def _instructions(content: bytes) -> Iterator[tuple[str, Any]]:
    try:
        for instruction, argument, _ in pickletools.genops(content):
            yield instruction.name, argument
    except ValueError as error:
        raise pickle.UnpicklingError(f"it is truncated, not a whole pickle ({error})") from error


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> Any:
        try:
            return _ADMITTED[module.replace("numpy.core", "numpy._core"), name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}, and nothing but numpy arrays may be asked for"
            ) from None


class _Admitted:
    """A callable that a pickle may name. It keeps nothing, and nothing can be set on it."""

    __slots__ = ("_make",)
    _make: Callable[..., Any]

    def __init__(self, make: Callable[..., Any]) -> None:
        object.__setattr__(self, "_make", make)

    def __call__(self, *arguments: Any) -> Any:
        return self._make(*arguments)

    def __setattr__(self, name: str, value: Any) -> None:
        raise pickle.UnpicklingError("it changes what it may only call")

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it changes what it may only call")


class _Kind:
    """What a pickle states about a dtype."""

    def __init__(self, name: Any, *flags: Any) -> None:
        self.name, self.order = _text(name), "<"

    def __setstate__(self, state: Any) -> None:
        self.order = ">" if _text(state[1]) == ">" else "<"

    def dtype(self) -> "np.dtype[Any]":
        if not _KIND.fullmatch(self.name):
            raise pickle.UnpicklingError(f"it holds an array of {self.name!r}, not whole numbers")
        return np.dtype(self.order + self.name)


class _Array:
    """What a pickle states about an array."""

    def __init__(self, *arguments: Any) -> None:
        self.shape: tuple[int, ...] = ()
        self.kind, self.fortran, self.raw = _Kind("u1"), False, b""

    def __setstate__(self, state: Any) -> None:
        _version, self.shape, self.kind, self.fortran, self.raw = state

    def array(self) -> AnyArray:
        try:
            dtype = self.kind.dtype()
            if math.prod(self.shape) * dtype.itemsize != len(self.raw):
                raise pickle.UnpicklingError("it holds an array with too few or too many bytes")
            flat: AnyArray = np.frombuffer(self.raw, dtype)
            return flat.reshape(self.shape, order="F" if self.fortran else "C")
        except (TypeError, ValueError, AttributeError) as error:
            raise pickle.UnpicklingError("it holds an array that makes no sense") from error


def _from_buffer(raw: Any, kind: Any, shape: Any, order: Any) -> _Array:
    made = _Array()
    made.__setstate__((1, shape, kind, order == "F", raw))
    return made


def _encode(text: Any, encoding: Any) -> bytes:
    # How Python 3 writes bytes in the old protocols.
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("it encodes something odd")
    return text.encode("latin-1")


def _nothing(*arguments: Any) -> bytes:
    # And how it writes empty ones; any argument could ask for as much memory as it likes.
    if arguments:
        raise pickle.UnpicklingError("it makes bytes of something odd")
    return b""


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise pickle.UnpicklingError(f"it has {type(value).__name__} where text should be")
    return value


_ADMITTED = {
    ("numpy._core.multiarray", "_reconstruct"): _Admitted(_Array),
    ("numpy._core.numeric", "_frombuffer"): _Admitted(_from_buffer),
    ("numpy", "ndarray"): _Admitted(_Array),
    ("numpy", "dtype"): _Admitted(_Kind),
    ("_codecs", "encode"): _Admitted(_encode),
    ("__builtin__", "bytes"): _Admitted(_nothing),
}
