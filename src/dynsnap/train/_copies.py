"""A module for each thread that runs it."""

import contextlib
import copy
import threading
from collections.abc import Iterator

from torch import Tensor, nn


class Copies:
    """Copies of one module, so that each thread has one to itself while it runs it.

    A module cannot be shared: to call it with the weights of a learner is to put them into it for
    as long as the call lasts. Copies have their weights, which are replaced in every call, in
    common: they cost little memory. There are as many as threads have ever run the module at once.

    Example:
        >>> copies = Copies(nn.Linear(2, 1))
        >>> with copies.lent() as one, copies.lent() as other:
        ...     one is other, one.weight is other.weight
        (False, True)
    """

    def __init__(self, module: nn.Module) -> None:
        # The original is a copy as well, and never run: the caller may do what it likes with its.
        self._original = _copy(module) or module
        self._returned = threading.Condition()
        self._free = [_copy(self._original) or self._original]

    @contextlib.contextmanager
    def lent(self) -> Iterator[nn.Module]:
        """A module that no other thread has."""
        module = self._take()
        try:
            yield module
        finally:
            with self._returned:
                self._free.append(module)
                self._returned.notify()

    def _take(self) -> nn.Module:
        with self._returned:
            if self._free:
                return self._free.pop()
        if (fresh := _copy(self._original)) is not None:
            return fresh
        with self._returned:  # there is one module only: threads take turns
            self._returned.wait_for(lambda: self._free)
            return self._free.pop()


def _copy(module: nn.Module) -> nn.Module | None:
    """A copy with the same tensors for weights, or None for a module that cannot be copied."""
    state = module.state_dict(keep_vars=True).values()
    shared = {id(value): value for value in state if isinstance(value, Tensor)}
    try:
        copied = copy.deepcopy(module, shared)
    except Exception:  # whatever parts of a caller's module have against it
        return None
    return None if copied is module else copied
