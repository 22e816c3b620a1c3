"""What a file may hold and how much of it, checked before anything is made of it.

A file may come from a stranger. It never chooses what is imported, a document in it is checked
against an explicit schema, and a size that it declares is bounded before memory is taken for it.
"""

from dynsnap._untrusted._archive import Archive
from dynsnap._untrusted._arrays import (
    POSITIONS,
    ArrayArchive,
    read_arrays,
)
from dynsnap._untrusted._digest import DIGEST, check_digest, read_pinned
from dynsnap._untrusted._json import MOST_JSON, parse_json
from dynsnap._untrusted._limits import Bounded, allowance, megabytes
from dynsnap._untrusted._npy import HEADER, ArrayHeader, array_header, in_shape
from dynsnap._untrusted._regular import regular
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
from dynsnap._untrusted._toml import read_toml

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
