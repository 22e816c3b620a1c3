"""Training on one thread: sums in parallel come in any order, and differ in their last bits."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_LOCK = threading.Lock()
_limited = 0  # trainings that are under way
_limit: Any = None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit OpenMP and BLAS to one thread while it lasts.

    OpenMP keeps a limit for each of the caller's threads. BLAS has one for the whole process, which
    the last training that ends takes back, whichever began first.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    global _limited, _limit
    with _LOCK:
        _limited += 1
        if _limited == 1:
            _limit = threadpool_limits(limits=1, user_api="blas")
    try:
        with threadpool_limits(limits=1, user_api="openmp"):
            yield
    finally:
        with _LOCK:
            _limited -= 1
            if not _limited:
                _limit.restore_original_limits()
                _limit = None
