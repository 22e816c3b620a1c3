"""What a thing is, as text: the same in every process, another when its code or settings change.

Of the caller's own code, everything that it leads to counts: methods, base classes,
and the functions, classes and values that its code names. Of a library's code its name counts.
"""

import dataclasses
import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from dynsnap.errors import PlanError

_LIBRARIES = [
    Path(sysconfig.get_path(place)).resolve()
    for place in ("stdlib", "platstdlib", "purelib", "platlib")
]


def identity(thing: Any) -> str:
    """A text that names a setting, a function or an object, with all that it was set to.

    Example:
        >>> identity(functools.partial(max, 3)) == identity(functools.partial(max, 4))
        False
    """
    return _Reader().read(thing)


def architecture(module: nn.Module) -> str:
    """The layers of a module with their settings, shapes and, where they are not torch's, code."""
    return _Reader().layers(module)


class _Reader:
    """Reads things as text, each function and class in full only once."""

    def __init__(self) -> None:
        self._met: set[Any] = set()

    def read(self, thing: Any, *, lenient: bool = False) -> str:
        """A thing as text; where that is not possible an error, or the name of its kind."""
        if isinstance(thing, functools.partial):
            settings = [self.read(value) for value in thing.args]
            named = sorted(thing.keywords.items())
            settings += [f"{name}={self.read(value)}" for name, value in named]
            return f"{self.read(thing.func)}({', '.join(settings)})"
        if isinstance(thing, types.MethodType):
            return f"{self.read(thing.__self__)}.{self.read(thing.__func__)}"
        if isinstance(thing, types.FunctionType):
            return self._function(thing, lenient)
        if isinstance(thing, type):
            return self._kind(thing)
        if isinstance(thing, tuple | list):
            return f"[{', '.join(self.read(part, lenient=lenient) for part in thing)}]"
        if isinstance(thing, dict):
            parts = [f"{key!r}: {self.read(part, lenient=lenient)}" for key, part in thing.items()]
            return f"{{{', '.join(parts)}}}"
        if isinstance(thing, nn.Module):
            return self.layers(thing)
        if dataclasses.is_dataclass(thing):
            fields = [
                f"{field.name}={self.read(getattr(thing, field.name), lenient=lenient)}"
                for field in dataclasses.fields(thing)
            ]
            return f"{self._kind(type(thing))}({', '.join(fields)})"
        if isinstance(thing, types.BuiltinFunctionType):
            return _name(thing)
        if isinstance(thing, types.ModuleType):
            return _module(thing)
        if isinstance(thing, set | frozenset):  # their order is another in every process
            return f"{{{', '.join(sorted(self.read(part, lenient=lenient) for part in thing))}}}"
        return f"{self._kind(type(thing))}:{_value(thing, lenient)}"

    def layers(self, module: nn.Module) -> str:
        """The layers of a module."""
        shapes = [f"{name}{tuple(value.shape)}" for name, value in module.state_dict().items()]
        kinds = {type(part) for part in module.modules()}
        code = []
        for kind in sorted(kinds, key=_name):
            forward = kind.forward
            if not kind.__module__.startswith("torch.") and isinstance(forward, types.FunctionType):
                code.append(f"{self._kind(kind)}:{self.read(forward)}")
        return "\n".join([str(module), *shapes, *code])

    def _function(self, function: types.FunctionType, lenient: bool) -> str:
        if function in self._met:
            return _name(function)
        self._met.add(function)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        values = (*cells, *(function.__defaults__ or ()))
        held = [self.read(value, lenient=lenient) for value in values]
        if _is_own(function):
            held += [self.read(value, lenient=True) for value in _globals_of(function)]
        keywords = self.read(function.__kwdefaults__ or {}, lenient=lenient)
        return f"{_name(function)}#{self._code(function.__code__)}[{', '.join(held)}]{keywords}"

    def _kind(self, kind: type) -> str:
        if kind in self._met or not _is_own(kind):
            return _name(kind)
        self._met.add(kind)
        inside = [f"{name}={self.read(part, lenient=True)}" for name, part in _written_in(kind)]
        bases = [self._kind(base) for base in kind.__bases__]
        return f"{_name(kind)}({', '.join(bases)}){{{', '.join(inside)}}}"

    def _code(self, code: types.CodeType) -> str:
        parts = [code.co_code.hex(), repr(code.co_names)]
        for constant in code.co_consts:
            nested = isinstance(constant, types.CodeType)
            parts.append(self._code(constant) if nested else self.read(constant))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _value(thing: Any, lenient: bool) -> str:
    if isinstance(thing, Tensor):
        wide = thing.double() if thing.is_floating_point() else thing  # numpy has no bfloat16
        return f"{thing.dtype}{_value(wide.numpy(force=True), lenient)}"
    if isinstance(thing, np.ndarray) and thing.dtype != object:  # long ones are shown in part only
        return f"{thing.dtype}{thing.shape}{hashlib.sha256(thing.tobytes()).hexdigest()}"
    text = repr(thing)
    if " at 0x" not in text:
        return text
    if lenient:
        return ""
    # The address of an object is another in every process.
    raise PlanError(
        f"Cannot tell one {type(thing).__name__} from another, so a round made with it could "
        "not be found again. Give it a `__repr__` that shows its settings, or make it a dataclass."
    )


def _module(module: types.ModuleType) -> str:
    """A module's name and, where it is the caller's own, what its file states."""
    file = getattr(module, "__file__", None)
    if file is None or not _is_own_module(module.__name__):
        return module.__name__
    return f"{module.__name__}#{hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]}"


def _globals_of(function: types.FunctionType) -> Iterator[Any]:
    """The values outside of a function that its code names."""
    names = set(_names(function.__code__))
    for name in sorted(names & function.__globals__.keys()):
        yield function.__globals__[name]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _written_in(kind: type) -> Iterator[tuple[str, Any]]:
    """What the body of a class holds: its functions, and its values."""
    for name, part in vars(kind).items():
        if isinstance(part, property):
            yield name, part.fget
        elif isinstance(part, staticmethod | classmethod):
            yield name, part.__func__
        elif isinstance(part, types.FunctionType) or not name.startswith("_"):
            yield name, part


def _is_own(thing: Callable[..., Any]) -> bool:
    return _is_own_module(thing.__module__)


@functools.cache
def _is_own_module(name: str | None) -> bool:
    """Whether a module is neither Python's, nor ours, nor installed."""
    root = (name or "builtins").partition(".")[0]
    if root == "dynsnap" or root in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(name or ""), "__file__", None)
    if file is None:
        return True  # a session at the keyboard
    place = Path(file).resolve()
    return not any(place.is_relative_to(library) for library in _LIBRARIES)
