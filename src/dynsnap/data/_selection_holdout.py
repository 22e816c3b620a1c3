"""Rows that no generation trains on, so that members of all generations can be compared on them."""

import hashlib
from numbers import Real

import numpy as np

from dynsnap._types import AnyArray, Flags
from dynsnap.errors import PlanError

# Their evaluation set. Fingerprints of data and stored rounds hold this name, so it stays.
SELECTION_SET = "untouched"


def check_selection_holdout(share: float) -> None:
    """Raise unless a share of rows can be held out."""
    if not (isinstance(share, Real) and 0 <= share < 1):
        raise PlanError(f"`selection_holdout` must be at least 0 and below 1, got {share}.")


def selection_rows(inputs: AnyArray, share: float) -> Flags:
    """Which rows are held out: about this share of them, by their content.

    A row's own content decides, so it is on the same side in every generation that it is part of,
    whatever comes before or after it, and equal rows are on the same side.

    Example:
        >>> int(selection_rows(np.arange(1000.0).reshape(1000, 1), 0.1).sum())
        99
    """
    check_selection_holdout(share)
    if not share:
        return np.zeros(len(inputs), dtype=bool)
    bar = int(share * 2**32)
    texts = inputs.dtype.kind in "OU"
    # A number is the same number in any type, and so is a zero with a sign.
    contents = (
        str(row).encode() if texts else (row.astype(np.float32) + np.float32(0)).tobytes()
        for row in inputs
    )
    drawn = (hashlib.blake2b(content, digest_size=4).digest() for content in contents)
    return np.fromiter((int.from_bytes(one) < bar for one in drawn), dtype=bool, count=len(inputs))
