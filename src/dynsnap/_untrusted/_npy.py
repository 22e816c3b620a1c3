"""One array in numpy's own format: its header, and its values.

Numpy's readers warn of headers that Python 2 wrote. To silence them is to change the filters of
warnings, which all threads share, so headers are read here. They are Python literals: whatever
numpy writes is known, and nothing else is parsed (`_literal`).
"""

import math
import re
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap._untrusted._literal import parse_literal

MAGIC = b"\x93NUMPY"
HEADER = 12_000  # bytes that are enough for any header
_LONGEST = 10_000  # characters of one, as in numpy itself
_SIZES = {(1, 0): 2, (2, 0): 4, (3, 0): 4}  # bytes that hold its length, by version
_DIMENSIONS, _MOST = 32, 2**59  # of any array; zeros among its sizes do not make the others small
_AT_ONCE = 1 << 20

# How numpy names a type without fields. It would parse others, "2f4" or "f4,f4", as Python.
_TYPE = re.compile(r"[<>|=]?[a-zA-Z?][0-9]{0,18}(\[[0-9]{0,9}[a-zA-Zμ]{1,9}\])?")


class PickledError(ValueError):
    """An array holds Python objects, which only a pickle can bring back."""


@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """What an array's first bytes say.

    Attributes:
        start: Where its values begin.
    """

    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"
    fortran: bool
    start: int

    @property
    def count(self) -> int:
        """How many values it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """What its values take in memory."""
        return self.count * self.dtype.itemsize


def array_header(start: bytes, size: int) -> ArrayHeader:
    """The header of an array in numpy's format, if its values fit into what is there.

    Args:
        start: The first bytes; `HEADER` of them are enough for any header.
        size: Bytes of the header and the values together.

    Raises:
        ValueError: It is damaged, claims more values than there are, or holds objects.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> np.save(file, np.zeros((2, 3), np.float32))
        >>> array_header(file.getvalue(), len(file.getvalue()))
        ArrayHeader(shape=(2, 3), dtype=dtype('float32'), fortran=False, start=128)
    """
    try:
        header = _parsed(start)
    except Exception as error:  # a literal, and a description of a type, can be wrong in many ways
        raise ValueError(f"its header cannot be read: {error}") from error
    if header.dtype.hasobject:
        raise PickledError("it holds objects, not numbers or text")
    if min(header.shape, default=0) < 0 or header.start + header.nbytes > size:
        raise ValueError(
            f"it claims to hold {header.dtype.str} of the shape {header.shape}, which is not in it"
        )
    return header


def _parsed(start: bytes) -> ArrayHeader:
    if not start.startswith(MAGIC) or len(start) < len(MAGIC) + 2:
        raise ValueError("it does not begin as an array does")
    at = len(MAGIC) + 2
    version = (start[at - 2], start[at - 1])
    if version not in _SIZES:
        raise ValueError(f"it is of the version {version}")
    begin = at + _SIZES[version]
    length = int.from_bytes(start[at:begin], "little")
    content = start[begin : begin + length]
    if length > _LONGEST or len(content) < length:
        raise ValueError(f"it has {len(content)} of {length} characters")
    text = content.decode("utf-8" if version == (3, 0) else "latin-1")
    found = parse_literal(text)
    if not isinstance(found, dict) or found.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("it does not name a type, a shape and an order")
    shape, fortran = found["shape"], found["fortran_order"]
    if not isinstance(shape, tuple) or not all(type(one) is int for one in shape):
        raise ValueError(f"its shape is {shape!r}")
    if len(shape) > _DIMENSIONS or math.prod(max(1, abs(one)) for one in shape) > _MOST:
        raise ValueError("its shape is larger than numpy's can be")
    if type(fortran) is not bool:
        raise ValueError(f"its order is {fortran!r}")
    _check_type(found["descr"])
    dtype = np.lib.format.descr_to_dtype(found["descr"])
    if dtype.subdtype is not None:
        raise ValueError("its values are arrays themselves")
    return ArrayHeader(shape, dtype, fortran, begin + length)


def _check_type(descr: Any) -> None:
    """Raise unless a type is named as numpy names it, with fields or without."""
    if isinstance(descr, str):
        if _TYPE.fullmatch(descr) is None:
            raise ValueError(f"its type is {descr[:100]!r}")
    elif isinstance(descr, list):
        for field in descr:
            if not isinstance(field, tuple) or len(field) not in (2, 3):
                raise ValueError("its type has a field without a name or a type")
            _check_type(field[1])
    elif isinstance(descr, tuple) and len(descr) == 2:  # a type, and the shape of each value
        _check_type(descr[0])
    else:
        raise ValueError("its type is not named as numpy names types")


def read_values(file: IO[bytes], header: ArrayHeader) -> AnyArray:
    """The values of an array, from a file that stands at its first byte."""
    if len(file.read(header.start)) < header.start:
        raise ValueError("it is cut short")
    values = np.empty(header.count, header.dtype)
    if values.nbytes:
        rest = values.view(np.uint8).data
        while len(rest):
            content = file.read(min(len(rest), _AT_ONCE))
            if not content:
                raise ValueError("it is cut short")
            rest[: len(content)] = content
            rest = rest[len(content) :]
    return in_shape(values, header)


def in_shape(values: AnyArray, header: ArrayHeader) -> AnyArray:
    """Values, one behind the other, in the shape that their header says."""
    # Fortran's order is the other way round.
    if header.fortran:
        return values.reshape(header.shape[::-1]).T
    return values.reshape(header.shape)
