"""How loops become machine code. Import this late: numba is slow to load."""

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic

_OPTIONS = {
    # Fused multiply-adds are all that is allowed of "fast" maths: sums keep their order, so that
    # no result depends on how wide the machine's vectors are.
    "fastmath": {"contract"},
    "nogil": True,
    "error_model": "numpy",
    # Nothing is allocated, so there are no references to count, which would cost more than the
    # arithmetic.
    "_nrt": False,
}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile, and keep the machine code on disk where there is a place for it."""
    try:
        made: Any = numba.njit(cache=True, **_OPTIONS)(function)
        _forget_other_versions(made)
    except (RuntimeError, OSError):  # neither the package nor the home directory can be written to
        made = numba.njit(**_OPTIONS)(function)
    found: Callable[..., Any] = made
    return found


def _forget_other_versions(made: Any) -> None:
    """Clear an index of machine code that names classes which are gone: numba cannot read it."""
    cache = made._cache
    try:
        cache._cache_file._load_index()
    except (AttributeError, ImportError):
        cache.flush()


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for other compiled functions alone, which is quicker."""
    made: Callable[..., Any] = numba.njit(
        no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS
    )(function)
    return made


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile into the calling function."""
    made: Callable[..., Any] = numba.njit(inline="always")(function)
    return made


@intrinsic  # type: ignore[untyped-decorator]
def full_width(typing_context: Any) -> Any:
    """Let the function that calls this use the machine's widest vectors.

    On the processors that have vectors of 512 bits, the compiler keeps to 256 unless asked:
    it fears for the clock of programs that use them once in a while. This one uses nothing else.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # The set refuses names that it does not know; as a plain set it takes them.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate
