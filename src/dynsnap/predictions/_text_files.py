"""Tables written as text: CSV, TSV and JSON Lines. Text stays as it is written.

JSON is looked through before it is parsed: the parser calls itself for every level of nesting, and
gives every name that occurs anywhere a column in every row.
"""

import codecs
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._untrusted import Bounded, allowance
from dynsnap.errors import InputError
from dynsnap.predictions._declared import (
    check_columns,
    check_first_line,
    check_whole,
    refuse_utf16,
)
from dynsnap.predictions._schema import ColumnNames
from dynsnap.predictions._text import on_one_line, shown

_BLOCK = 16 << 20  # bytes: a line must fit in, also one of many thousand scores
_MARKS = {"CSV": ",", "TSV": "\t"}
_DEEPEST = 4  # levels of a line: the row, a list of scores, and some that are nobody's
# It never steps back: of a text of some megabytes, every step would be kept in memory.
_KEY = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t]*:', re.DOTALL)


def compression_of(path: Path) -> str | None:
    """How a file as a whole is compressed, as its name shows."""
    return "gzip" if path.name.lower().endswith(".gz") else None


def read_delimited(path: Path, kind: str, columns: ColumnNames) -> pa.Table:
    """A CSV or TSV file. "007" is not 7, and "NA" may be a class."""
    from pyarrow import csv

    mark = _MARKS[kind]
    read_options = csv.ReadOptions(block_size=_BLOCK)
    parse_options = csv.ParseOptions(newlines_in_values=True, delimiter=mark)
    with _unpacked(path) as stream:
        check_first_line(stream.read(_BLOCK), mark=mark)
    with _unpacked(path) as stream:
        names = csv.open_csv(stream, read_options, parse_options).schema.names
    check_separator(names, mark=mark)

    def type_of(name: str) -> pa.DataType:
        number = name == columns.weight or name.startswith(columns.score_prefix)
        return pa.float64() if number else pa.string()

    convert_options = csv.ConvertOptions(column_types={name: type_of(name) for name in names})
    with _unpacked(path) as stream:
        table = csv.read_csv(stream, read_options, parse_options, convert_options)
    if names.count(columns.id) != 1:
        return table  # what is wrong is said where columns are interpreted
    ids = _whole_numbers(table.column(columns.id))
    return table.set_column(names.index(columns.id), columns.id, ids)


def check_separator(names: Sequence[str], *, mark: str) -> None:
    """Raise if a table has one column whose name holds another separator than the expected one."""
    other = next((each for each in ",;\t|" if each != mark and each in names[0]), None)
    if len(names) == 1 and other is not None:
        advice = "Call it .tsv." if other == "\t" else "Call it .csv."
        if other not in _MARKS.values():
            advice = "Write it with commas."
        raise InputError(
            f"There is one column, {shown(names[0])}: values seem to be separated by "
            f"{shown(other)}. {advice}"
        )


def read_json_lines(path: Path) -> pa.Table:
    """A file with one JSON object in each line, whose names are columns."""
    from pyarrow import json

    _check_lines(path)
    options = json.ReadOptions(block_size=_BLOCK)
    with _unpacked(path) as stream:
        table = json.read_json(stream, options)
    table.validate(full=True)  # the parser does not look whether text is UTF-8
    # The parser takes texts that look like times for times; they may be names.
    times = [field for field in table.schema if pa.types.is_temporal(field.type)]
    if not times:
        return table
    as_text = pa.schema([(field.name, pa.string()) for field in times])
    with _unpacked(path) as stream:
        again = json.read_json(stream, options, json.ParseOptions(explicit_schema=as_text))
    return again.select(table.column_names)


def _check_lines(path: Path) -> None:
    """Raise unless each line is one object of little depth, and all have about the same names."""
    rows, first, names = 0, 1, set[bytes]()
    for block in _blocks(path):
        if not rows:
            refuse_utf16(block)
        lines = _check_shape(block, first)
        first += lines
        rows += lines
        names.update(_KEY.findall(block))
        check_columns(len(names))
    check_whole(rows * len(names), path.stat().st_size)


def _blocks(path: Path) -> Iterator[bytes]:
    """The file in pieces that end with a line."""
    rest = b""
    with _unpacked(path) as stream:
        while piece := stream.read(_BLOCK):
            whole = rest + piece
            end = max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1
            if not end and len(whole) > _BLOCK:
                raise InputError(
                    f"A line is longer than {_BLOCK >> 20} MB. Write one JSON object in each line."
                )
            if end:
                yield whole[:end]
            rest = whole[end:]
    if rest:
        yield rest + b"\n"


def _check_shape(block: bytes, first: int) -> int:
    """Raise if a line is not one object, or nested too deeply; tell how many lines there are.

    Every line starts and ends outside of texts and objects, so the parser, which may begin at any
    line, is never deeper than what is seen here.
    """
    content = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero((content == 10) | (content == 13))
    quotes = np.flatnonzero(content == 34)
    slashes = np.flatnonzero(content == 92)
    if len(slashes):
        quotes = quotes[~_escaped(quotes, slashes)]
    before = np.searchsorted(quotes, ends)  # quotes up to the end of each line
    odd = np.flatnonzero(np.diff(before, prepend=0) % 2)
    if len(odd):
        raise _damaged(block, ends, int(odd[0]), first, "a text in it does not end")
    signs = np.flatnonzero(np.isin(content, np.frombuffer(b"{}[]", np.uint8)))
    signs = signs[np.searchsorted(quotes, signs) % 2 == 0]  # the others are in texts
    steps = np.where(np.isin(content[signs], np.frombuffer(b"{[", np.uint8)), 1, -1)
    depth = np.cumsum(steps)
    inside = np.searchsorted(signs, ends)  # signs up to the end of each line
    left = np.concatenate([[0], depth])[inside]
    wrong = np.flatnonzero(left)
    if len(wrong):
        reason = "an object in it does not end. Write each object in a line of its own"
        raise _damaged(block, ends, int(wrong[0]), first, reason)
    if len(depth) and (depth.min() < 0 or depth.max() > _DEEPEST):
        place = int(np.argmax((depth < 0) | (depth > _DEEPEST)))
        line = int(np.searchsorted(ends, signs[place]))
        reason = f"objects and lists in it are nested more than {_DEEPEST} levels deep"
        raise _damaged(block, ends, line, first, reason)
    opens, closes = signs[depth - steps == 0], signs[depth == 0]
    _check_alone(block, ends, first, opens, closes)
    return len(ends)


def _check_alone(block: bytes, ends: Any, first: int, opens: Any, closes: Any) -> None:
    """Raise if a line holds anything but one object: a `null` of its own would end the process.

    Args:
        opens: Where objects and lists begin that are in no other.
        closes: Where these end.
    """
    starts = np.concatenate([[0], ends[:-1] + 1])
    if first == 1 and block.startswith(codecs.BOM_UTF8):
        starts[0] = len(codecs.BOM_UTF8)
    which = np.searchsorted(opens, starts)  # the first object of each line
    held = np.searchsorted(opens, ends) - which
    many = np.flatnonzero(held > 1)
    if len(many):
        reason = "there are several in it. Write each object in a line of its own"
        raise _damaged(block, ends, int(many[0]), first, reason)
    # Of a line without an object all is before it, and nothing behind.
    begin = np.where(held, np.append(opens, 0)[which], ends)
    behind = np.where(held, np.append(closes, 0)[which] + 1, ends)
    for line in np.flatnonzero((begin > starts) | (behind < ends)).tolist():
        if (block[starts[line] : begin[line]] + block[behind[line] : ends[line]]).strip():
            raise _damaged(block, ends, line, first, "there is something else in it")


def _escaped(quotes: Any, slashes: Any) -> Any:
    """Which quotes come after an odd number of backslashes in a row."""
    starts = np.concatenate([[True], np.diff(slashes) > 1])
    begin = slashes[np.maximum.accumulate(np.where(starts, np.arange(len(slashes)), 0))]
    last = np.searchsorted(slashes, quotes) - 1  # the backslash before each quote
    near = (last >= 0) & (slashes[last] == quotes - 1)
    return near & ((quotes - begin[last]) % 2 == 1)


def _damaged(block: bytes, ends: Any, line: int, first: int, reason: str) -> InputError:
    start = 0 if not line else int(ends[line - 1]) + 1
    text = on_one_line(block[start : start + 40].decode("utf-8", "replace").strip(), limit=40)
    return InputError(f"Line {first + line} is no JSON object, {shown(text)}: {reason}.")


def _unpacked(path: Path) -> Any:
    """The bytes of a file, unpacked on the way where its name has it so, and not without end."""
    stream = pa.input_stream(str(path), compression=compression_of(path))
    if compression_of(path) is None:
        return stream
    return io.BufferedReader(Bounded(stream, allowance(path.stat().st_size)))


def ids_become_numbers(kind: str, ids: pa.Array) -> bool:
    """Whether ids that are text come back as numbers from a file of this kind, as "7" does."""
    if kind not in _MARKS or pa.types.is_integer(ids.type):
        return False
    return bool(pa.types.is_integer(_whole_numbers(pa.chunked_array([ids.cast(pa.string())])).type))


def _whole_numbers(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids as numbers, if all of them are whole numbers written in the usual way."""
    try:
        numbers = pc.cast(ids, pa.int64())
    except pa.ArrowInvalid:
        return ids
    return numbers if pc.cast(numbers, pa.string()).equals(ids) else ids
