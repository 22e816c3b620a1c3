"""Reads the pickles that old data sets come in, without ever running anything they ask for.

A pickle is a program. This unpickler admits containers, bytes, text, numbers and numpy arrays, and
nothing else; and even for arrays it calls no code of numpy: what a pickle says of an array is
written down, checked, and read from its bytes.
"""

import io
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dynsnap._types import AnyArray

_KIND = re.compile(r"[biu][1248]")


def plain_dict(content: bytes) -> dict[str, Any]:
    """The dictionary in a pickle, with text keys and numpy arrays.

    Raises pickle.UnpicklingError, with the reason, for whatever is not exactly that.

    Example:
        >>> plain_dict(pickle.dumps({b"labels": [3, 1], b"data": np.arange(2)}))
        {'labels': [3, 1], 'data': array([0, 1])}
    """
    try:
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
    """What a pickle says of a dtype."""

    def __init__(self, name: Any, *flags: Any) -> None:
        self.name, self.order = _text(name), "<"

    def __setstate__(self, state: Any) -> None:
        self.order = ">" if _text(state[1]) == ">" else "<"

    def dtype(self) -> "np.dtype[Any]":
        if not _KIND.fullmatch(self.name):
            raise pickle.UnpicklingError(f"it holds an array of {self.name!r}, not whole numbers")
        return np.dtype(self.order + self.name)


class _Array:
    """What a pickle says of an array."""

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
