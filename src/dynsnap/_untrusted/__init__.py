"""What a file may hold and how much of it, checked before anything is made of it.

A file may come from a stranger. It never chooses what is imported, a document in it is checked
against an explicit schema, and a size that it declares is bounded before memory is taken for it.
"""

from dynsnap._untrusted._arrays import (
    HEADER,
    POSITIONS,
    ArrayArchive,
    ArrayHeader,
    array_header,
    in_shape,
    read_arrays,
)
from dynsnap._untrusted._documents import MOST_JSON, parse_json, read_toml
from dynsnap._untrusted._limits import (
    DIGEST,
    Archive,
    Bounded,
    allowance,
    check_digest,
    megabytes,
    read_pinned,
    regular,
)
from dynsnap._untrusted._schema import (
    AnyOf,
    Flag,
    ListOf,
    MapOf,
    Null,
    Number,
    OneOf,
    Plain,
    Schema,
    Table,
    Text,
    Whole,
    mismatch,
)

__all__ = [
    "DIGEST",
    "HEADER",
    "MOST_JSON",
    "POSITIONS",
    "AnyOf",
    "Archive",
    "ArrayArchive",
    "ArrayHeader",
    "Bounded",
    "Flag",
    "ListOf",
    "MapOf",
    "Null",
    "Number",
    "OneOf",
    "Plain",
    "Schema",
    "Table",
    "Text",
    "Whole",
    "allowance",
    "array_header",
    "check_digest",
    "in_shape",
    "megabytes",
    "mismatch",
    "parse_json",
    "read_arrays",
    "read_pinned",
    "read_toml",
    "regular",
]
