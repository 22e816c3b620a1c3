"""Kinds of Arrow types, as far as reading tells them apart."""

import pyarrow as pa


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
    return bool(pa.types.is_string_view(kind))


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
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        is_text(kind) or is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
    )
