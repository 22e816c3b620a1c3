"""What a thing is, as text: the same in every process, another when its code or settings change."""

import dataclasses
import functools
import hashlib
import types
from collections.abc import Callable
from typing import Any

from torch import nn

from dynsnap.errors import PlanError


def identity(thing: Any) -> str:
    """A text that names a setting, a function or an object, with all that it was set to.

    Example:
        >>> identity(functools.partial(max, 3)) == identity(functools.partial(max, 4))
        False
    """
    if isinstance(thing, functools.partial):
        settings = [identity(value) for value in thing.args]
        settings += [f"{name}={identity(value)}" for name, value in sorted(thing.keywords.items())]
        return f"{identity(thing.func)}({', '.join(settings)})"
    if isinstance(thing, types.MethodType):
        return f"{identity(thing.__self__)}.{identity(thing.__func__)}"
    if isinstance(thing, types.FunctionType):
        return _function(thing)
    if isinstance(thing, type):
        return f"{thing.__module__}.{thing.__qualname__}"
    if isinstance(thing, tuple | list):
        return f"[{', '.join(identity(part) for part in thing)}]"
    if isinstance(thing, dict):
        return f"{{{', '.join(f'{key!r}: {identity(part)}' for key, part in thing.items())}}}"
    if dataclasses.is_dataclass(thing):
        fields = [
            f"{field.name}={identity(getattr(thing, field.name))}"
            for field in dataclasses.fields(thing)
        ]
        return f"{identity(type(thing))}({', '.join(fields)})"
    if isinstance(thing, nn.Module):
        return architecture(thing)
    if isinstance(thing, types.BuiltinFunctionType):
        return f"{thing.__module__}.{thing.__qualname__}"
    if isinstance(thing, types.ModuleType):
        return thing.__name__
    if isinstance(thing, set | frozenset):  # their order is another in every process
        return f"{{{', '.join(sorted(identity(part) for part in thing))}}}"
    text = repr(thing)
    if " at 0x" in text:  # the address of an object is another in every process
        raise PlanError(
            f"Cannot tell one {type(thing).__name__} from another, so a round made with it could "
            "not be found again. Give it a `__repr__` that shows its settings, or make it a "
            "dataclass."
        )
    return f"{type(thing).__module__}.{type(thing).__qualname__}:{text}"


def architecture(module: nn.Module) -> str:
    """The layers of a module with their settings, shapes and, where they are not torch's, code."""
    shapes = [f"{name}{tuple(value.shape)}" for name, value in module.state_dict().items()]
    own = {type(part) for part in module.modules()}
    code = [
        f"{identity(kind)}:{identity(kind.forward)}"
        for kind in own
        if not kind.__module__.startswith("torch.") and isinstance(kind.forward, types.FunctionType)
    ]
    return "\n".join([str(module), *shapes, *sorted(code)])


def _function(function: Callable[..., Any]) -> str:
    assert isinstance(function, types.FunctionType)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    values = (*cells, *(function.__defaults__ or ()))
    # A function may hold itself; its name stands for it there.
    held = [identity(value) for value in values if value is not function]
    keywords = identity(function.__kwdefaults__ or {})
    name = f"{function.__module__}.{function.__qualname__}"
    return f"{name}#{_code(function.__code__)}[{', '.join(held)}]{keywords}"


def _code(code: types.CodeType) -> str:
    parts = [code.co_code.hex(), repr(code.co_names)]
    for constant in code.co_consts:
        nested = isinstance(constant, types.CodeType)
        parts.append(_code(constant) if nested else identity(constant))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
