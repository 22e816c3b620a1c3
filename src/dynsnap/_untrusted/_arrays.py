"""Arrays in NPY files and NPZ archives: headers are checked first, by a parser of our own."""

import contextlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from dynsnap._types import AnyArray
from dynsnap._untrusted._limits import Archive, allowance, megabytes, regular
from dynsnap.errors import FileError, InputError, one_line

_DEEPEST = 64  # levels; a type of values may have fields, which have fields
# Text with the escapes that `repr` writes, words, numbers (Python 2 ended long ones in L), signs.
_TEXT = r"(?:\\(?:[\\'\"nrt]|x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}})|[^\\{0}\n\r])*+"
_TOKEN = re.compile(
    rf"""[ \t\n\r\f]*+(?:
        '(?P<single>{_TEXT.format("'")})'
      | "(?P<double>{_TEXT.format('"')})"
      | (?P<number>(?:0|[1-9][0-9]{{0,18}})L?(?![\w.]))
      | (?P<word>(?:True|False|None)(?!\w))
      | (?P<sign>[()\[\]{{}},:])
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\([\\'\"nrt]|x..|u....|U........)")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"True": True, "False": False, "None": None}
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


def parse_literal(text: str) -> Any:
    """The value of a literal.

    Raises:
        ValueError: It is no literal that numpy writes.

    Example:
        >>> parse_literal("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }")
        {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}
    """
    reader = _Reader(text)
    value = reader.value(0)
    if reader.kind != "end":
        raise ValueError("it goes on behind its end")
    return value


class _Reader:
    """Stands at one token of a text."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._next()

    def value(self, depth: int) -> Any:
        """The value that begins here; the reader goes on behind it."""
        kind, found = self.kind, self._found
        if kind in ("single", "double"):
            self._next()
            return _ESCAPE.sub(_unescaped, found)
        if kind == "number":
            self._next()
            return int(found.removesuffix("L"))
        if kind == "word":
            self._next()
            return _WORDS[found]
        if kind != "sign" or found not in _CLOSED_BY or depth == _DEEPEST:
            raise ValueError("it is not what numpy writes")
        self._next()
        return self._dictionary(depth) if found == "{" else self._sequence(found, depth)

    def _sequence(self, opened: str, depth: int) -> Any:
        items: list[Any] = []
        commas = 0
        while not self._takes(_CLOSED_BY[opened]):
            if len(items) > commas:
                raise ValueError("two values lie side by side")
            items.append(self.value(depth + 1))
            commas += self._takes(",")
        if opened == "[":
            return items
        # Parentheses around one value, without a comma, are no tuple.
        return items[0] if len(items) == 1 and not commas else tuple(items)

    def _dictionary(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        ended = True
        while not self._takes("}"):
            key = self.value(depth + 1) if ended else None
            if not isinstance(key, str) or key in found or not self._takes(":"):
                raise ValueError("a name is missing, or is there twice")
            found[key] = self.value(depth + 1)
            ended = self._takes(",")
        return found

    def _takes(self, sign: str) -> bool:
        if self.kind != "sign" or self._found != sign:
            return False
        self._next()
        return True

    def _next(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            raise ValueError("it is not what numpy writes")
        self.kind, self._found, self._at = match.lastgroup, match[match.lastgroup], match.end()


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _PLAIN.get(code, code)


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
    """Values, one behind the other, in the shape that their header states."""
    # Fortran's order is the other way round.
    if header.fortran:
        return values.reshape(header.shape[::-1]).T
    return values.reshape(header.shape)


POSITIONS = "positions"  # see `ArrayArchive.positions`

# How files start that are often taken for an NPZ archive.
_STARTS = {
    MAGIC: "a single array, ",
    b"PAR1": "a Parquet file, ",
    b"ARROW1": "an Arrow file, ",
}


class ArrayArchive:
    """An NPZ archive that is open: the header of every array, and the arrays that are asked for.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> file = Path(tempfile.mkdtemp()) / "some.npz"
        >>> np.savez(file, small=np.arange(3), large=np.zeros((100, 100)))
        >>> with ArrayArchive(file) as archive:
        ...     archive.headers["large"].shape, archive.read("small")
        ((100, 100), array([0, 1, 2]))
    """

    headers: dict[str, ArrayHeader]

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _opened(path)
        self._left = 0

    def __enter__(self) -> Self:
        try:
            with self._saying_what_is_wrong():
                size = self._path.stat().st_size
                self._left = allowance(size)
                self._archive = Archive(self._file, size, deflated=True)
                self._names = {name.removesuffix(".npy"): name for name in self._archive.entries}
                self.headers = {name: self._header(name) for name in self._names}
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def read(self, name: str) -> AnyArray:
        """One of the arrays."""
        size = self.headers[name].nbytes
        if size > self._left:
            raise FileError(
                f"{self._path} would unpack to far more than its own size: "
                f"{one_line(name[:100])!r} alone claims {megabytes(size)}. Write it with "
                "`numpy.savez`, which does not compress, or as a Parquet file."
            )
        self._left -= size
        with self._saying_what_is_wrong(), self._archive.open(self._names[name]) as entry:
            return read_values(entry, self.headers[name])

    def positions(self) -> bool | None:
        """Whether the archive states that whole numbers are positions in `classes`, or names.

        It does so with the array `positions`, a single truth value. An array of that name with a
        value for each row is a column like any other.
        """
        header = self.headers.get(POSITIONS)
        if header is None or header.shape:
            return None
        if header.dtype != bool:
            raise InputError(
                f"The array `{POSITIONS}` must be true or false, but is of the type {header.dtype}."
            )
        return bool(self.read(POSITIONS))

    def _header(self, name: str) -> ArrayHeader:
        entry = self._archive.entries[self._names[name]]
        with self._archive.open(entry.filename) as file:
            start = file.read(HEADER)
        if not start.startswith(MAGIC):
            raise FileError(f"{self._path} holds {one_line(name[:100])!r}, which is not an array.")
        return array_header(start, entry.file_size)

    @contextlib.contextmanager
    def _saying_what_is_wrong(self) -> Iterator[None]:
        try:
            yield
        except FileError:
            raise
        except PickledError as error:
            raise FileError(
                f"{self._path} holds pickled Python objects, which are never loaded. "
                "Save plain arrays: text with `.astype(str)`."
            ) from error
        except MemoryError as error:
            raise FileError(
                f"{self._path} is damaged, or needs more memory than there is."
            ) from error
        except Exception as error:
            # Headers are Python literals inside a zip file: damage shows in a dozen kinds of error.
            reason = one_line(str(error))[:200] or type(error).__name__
            raise FileError(f"{self._path} is damaged ({reason}). Write it again.") from error


def read_arrays(path: Path, needed: Callable[[str], bool]) -> dict[str, AnyArray]:
    """Those arrays of an NPZ archive whose names are needed; the others are not unpacked."""
    with ArrayArchive(path) as archive:
        return {name: archive.read(name) for name in archive.headers if needed(name)}


def _opened(path: Path) -> IO[bytes]:
    if path.is_dir():
        raise FileError(f"Cannot read {path}: it is a directory. Name an NPZ file.")
    file = None
    try:
        file = regular(path).open("rb")
        start = file.read(6)
    except OSError as error:
        if file is not None:
            file.close()
        reason = error.strerror or str(error)
        raise FileError(f"Cannot read {path}: {reason}. Name a file that can be read.") from error
    if start.startswith(b"PK"):
        return file
    file.close()
    found = next((what for magic, what in _STARTS.items() if start.startswith(magic)), "")
    raise FileError(
        f"{path} is {found if start else 'empty, '}not an NPZ archive. Write one with "
        "`numpy.savez`, or give the file its own ending."
    )
