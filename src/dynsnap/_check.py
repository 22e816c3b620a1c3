"""Checks on what callers hand in: one property each, in the caller's own words."""

from dynsnap._types import AnyArray
from dynsnap.errors import InputError


def comparable(**arrays: AnyArray) -> None:
    """Raise unless the arrays cover the same inputs, and at least one."""
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"`{name}` has {size}" for name, size in sizes.items())
        raise InputError(
            f"Arrays must cover the same inputs in the same order, but {found}. "
            "Line them up by input id first, with `dynsnap.predictions.align`."
        )
    if 0 in sizes.values():
        raise InputError("There is nothing to compare: the arrays are empty.")
