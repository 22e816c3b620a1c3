"""Arrow's types and columns as every library writes them, brought to a few plain kinds."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text, or bytes that may be text."""
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or is_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def is_view(kind: pa.DataType) -> bool:
    """Whether values are text in the newer layout, which not every operation takes yet."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether values are numbers of any width."""
    types = pa.types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_plain(kind: pa.DataType) -> bool:
    """Whether a value can be read as a name: text, a number, a truth value, a time."""
    kind = bare(kind)
    return bool(
        is_text(kind) or is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
    )


def native(values: Any) -> Any:
    """An array of numpy in this machine's order of bytes, the only one that Arrow takes.

    Example:
        >>> native(np.array([1, 2], ">i8")).dtype.isnative
        True
    """
    if isinstance(values, np.ndarray) and not values.dtype.isnative:
        return values.astype(values.dtype.newbyteorder("="))
    return values


# A column of objects of several kinds: a type that no role and no slice takes.
MIXED = pa.struct([("mixed", pa.list_(pa.null()))])


def type_name(kind: pa.DataType) -> str:
    """What a message states about the type of values.

    Example:
        >>> type_name(pa.date32()), type_name(MIXED)
        ('of the type date32[day]', 'of several kinds')
    """
    return "of several kinds" if kind == MIXED else f"of the type {kind}"


def bare(kind: pa.DataType) -> pa.DataType:
    """The type of the values themselves, however they are packed.

    Example:
        >>> bare(pa.dictionary(pa.uint32(), pa.string()))
        DataType(string)
    """
    while True:
        if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            return kind


def unpacked(column: Any) -> Any:
    """The same values, packed as a dictionary of plain ones at most: what all operations take.

    Libraries write more than that: views of text, dictionaries of views or of dictionaries, runs
    of equal values, types of their own.

    Example:
        >>> views = pa.array(["a", "b"]).cast(pa.string_view())
        >>> found = unpacked(pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.uint8()), views))
        >>> str(found.dictionary.type), found.to_pylist()
        ('large_string', ['b', 'a'])
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return unpacked(column.storage)
    if pa.types.is_run_end_encoded(kind):
        runs = pa.RunEndEncodedArray.from_arrays(column.run_ends, _decoded(column.values))
        return pc.run_end_decode(runs.slice(column.offset, len(column)))
    if pa.types.is_dictionary(kind):
        values = _decoded(column.dictionary)
        if values is column.dictionary:
            return column
        return pa.DictionaryArray.from_arrays(column.indices, values)
    if is_view(kind):
        text = pa.types.is_string_view(kind)
        return column.cast(pa.large_string() if text else pa.large_binary())
    return column


def combined(column: Any) -> Any:
    """The chunks of a column as one array, whatever dictionaries of their own they have."""
    if column.num_chunks == 1:
        return unpacked(column.chunk(0))
    if not column.num_chunks:
        return pa.array([], bare(column.type))
    return pa.concat_arrays([_decoded(chunk) for chunk in column.chunks])


def _decoded(values: Any) -> Any:
    plain = unpacked(values)
    return plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain
