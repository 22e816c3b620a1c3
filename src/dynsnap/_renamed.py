"""Old names of arguments, functions and settings: they still work, and name their successors."""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


class RenamedWarning(FutureWarning):
    """An old name was used. The message names its successor."""


def now_called(old: str, new: str) -> str:
    """The one sentence that every old name is answered with.

    Example:
        >>> now_called("carry", "carry_over")
        '`carry` is now `carry_over`'
    """
    return f"`{old}` is now `{new}`"


def renamed_arguments(**successors: str) -> Callable[[T], T]:
    """Let a function, or the constructor of a class, take keyword arguments by old names too.

    Example:
        >>> @renamed_arguments(colour="color")
        ... def paint(*, color):
        ...     return color
        >>> with warnings.catch_warnings(record=True) as said:
        ...     paint(colour="red")
        'red'
    """

    def decorate(made: T) -> T:
        if isinstance(made, type):
            made.__init__ = _taking_both(made.__init__, successors)  # type: ignore[misc]
            return made
        return _taking_both(made, successors)

    return decorate


def with_new_names(
    given: Mapping[str, Any], successors: Mapping[str, str], where: str, *, stacklevel: int = 3
) -> dict[str, Any]:
    """Arguments by their new names, with one warning for all that came by old ones."""
    found = dict(given)
    old = [name for name in successors if name in found]
    for name in old:
        if successors[name] in found:
            raise TypeError(
                f"{where} got both `{name}` and `{successors[name]}`, which are one argument: "
                f"{now_called(name, successors[name])}."
            )
        found[successors[name]] = found.pop(name)
    if old:
        said = ", ".join(now_called(name, successors[name]) for name in old)
        warnings.warn(f"{where}: {said}.", RenamedWarning, stacklevel=stacklevel)
    return found


def renamed_functions(module: str, successors: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module, parts of which have another name by now."""

    def find(name: str) -> Any:
        if (new := successors.get(name)) is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        said = now_called(f"{module}.{name}", f"{module}.{new}")
        warnings.warn(f"{said}.", RenamedWarning, stacklevel=2)
        return getattr(sys.modules[module], new)

    return find


def _taking_both(function: T, successors: Mapping[str, str]) -> T:
    known = inspect.signature(function).parameters
    makes = function.__name__ == "__init__"
    assert all(new in known and old not in known for old, new in successors.items())

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        if not successors.keys().isdisjoint(given):
            where = type(args[0]).__name__ if makes else function.__name__
            given = with_new_names(given, successors, where)
        return function(*args, **given)

    return call  # type: ignore[return-value]
