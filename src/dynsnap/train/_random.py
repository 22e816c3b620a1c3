"""Random numbers that leave torch's own generators, which all threads share, as they were."""

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Seeding torch's generators, drawing and setting them back is one step: no other training or
# building of a module may come in between.
_LOCK = threading.RLock()


@contextlib.contextmanager
def borrowed_random() -> Iterator[None]:
    """Use torch's generators alone for a while, and leave them as they were found.

    Example:
        >>> before = torch.get_rng_state()
        >>> with borrowed_random():
        ...     _ = torch.manual_seed(0)
        >>> bool((torch.get_rng_state() == before).all())
        True
    """
    # To seed torch is to seed all of these.
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()  # type: ignore[no-untyped-call]
    with _LOCK, torch.random.fork_rng(devices=list(devices)):
        yield


class OwnRandom(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Operations of this thread draw from generators of their own in place of torch's.

    On a CPU they draw what they would from torch's generator with the same seed.

    Example:
        >>> with OwnRandom(seed=1):
        ...     one = torch.dropout(torch.ones(9), 0.5, True)
        >>> with OwnRandom(seed=1):
        ...     bool((torch.dropout(torch.ones(9), 0.5, True) == one).all())
        True
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        named = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **named)
        own = self._of(_device(args, named))
        if (drawing := _with_generator(func)) is not None:
            if not any(isinstance(value, torch.Generator) for value in args):
                named["generator"] = named.get("generator") or own
            return drawing(*args, **named)
        if func is torch.ops.aten.native_dropout.default:  # a GPU's, which takes no generator
            return _dropout(own, *args, **named)
        with self:
            parts = func.decompose(*args, **named)  # into operations that do take one
        if parts is not NotImplemented:
            return parts
        # What can draw from torch's own generators only has them start at a number of ours.
        drawn = torch.randint(2**31, (), device=own.device, generator=own)
        with borrowed_random():
            torch.manual_seed(int(drawn))
            return func(*args, **named)

    def _of(self, device: torch.device) -> torch.Generator:
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[device]


def _device(args: tuple[Any, ...], named: dict[str, Any]) -> torch.device:
    """Where an operation draws: where what it is given lies, or where it is told to."""
    tensors = (value for value in args if isinstance(value, torch.Tensor))
    if (tensor := next(tensors, None)) is not None:
        return tensor.device
    return torch.device(named.get("device") or "cpu")


def _dropout(own: torch.Generator, value: Any, share: float, train: bool | None) -> Any:
    if not train:
        return value, torch.ones_like(value, dtype=torch.bool)
    kept = torch.empty_like(value).bernoulli_(1 - share, generator=own)
    return value * kept.div(1 - share), kept.bool()


@functools.cache
def _with_generator(func: Any) -> Any:
    """The variant of an operation that takes a generator beside the same arguments, or None."""
    wanted = {*_arguments(func), "generator"}
    for name in (func._overloadname, *func.overloadpacket.overloads()):
        if _arguments(variant := getattr(func.overloadpacket, name)) == wanted:
            return variant
    return None


def _arguments(func: Any) -> set[str]:
    return {argument.name for argument in func._schema.arguments}
