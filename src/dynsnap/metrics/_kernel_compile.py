"""How the kernel is compiled. Import this late: numba is slow to load."""

from collections.abc import Callable
from typing import Any

import numba

TILE = 128  # rows that are worked on side by side

# Fused multiply-adds are all that is allowed of "fast" maths: sums keep their order, so that no
# result depends on how wide the machine's vectors are.
_OPTIONS = {"fastmath": {"contract"}, "nogil": True, "error_model": "numpy"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile, and keep the machine code on disk where there is a place for it."""
    try:
        made: Callable[..., Any] = numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # neither the package nor the home directory can be written to
        made = numba.njit(**_OPTIONS)(function)
    return made


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for other compiled functions alone, which is quicker."""
    made: Callable[..., Any] = numba.njit(
        no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS
    )(function)
    return made


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile into whoever calls it."""
    made: Callable[..., Any] = numba.njit(inline="always")(function)
    return made
