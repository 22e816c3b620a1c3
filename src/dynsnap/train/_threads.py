"""Thread safety: modules, generators and settings of torch that threads share."""

import atexit
import contextlib
import copy
import functools
import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, fx, nn
from torch.utils._python_dispatch import TorchDispatchMode


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


Result = TypeVar("Result")


def on_one_thread(compute: Callable[[], Result]) -> Result:
    """Compute on one thread of torch, whatever the caller has set.

    A product of matrices that is cut up for several threads may sum in another order, and how it
    is cut depends on how many matrices there are: on one thread each is computed as if alone.

    Example:
        >>> on_one_thread(torch.get_num_threads)
        1
    """
    if torch.get_num_threads() == 1:
        return compute()
    found: Result = _workers.run(compute)
    return found


class _Workers:
    """Threads of our own that are limited once and for all.

    Torch has a number for each thread, and one that new threads start with. To limit the caller's
    thread for a while would set both, and leave every thread that starts in the meantime limited.

    These are not the threads of an executor, which takes no work once the main thread has ended:
    those of a server may go on.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._threads = 0
        self._open = 0  # jobs that are not finished

    def run(self, compute: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        with self._changed:
            self._open += 1
            if self._open > self._threads and self._threads < (os.cpu_count() or 1):
                self._threads += 1
                threading.Thread(target=self._work, name="dynsnap", daemon=True).start()
        self._jobs.put((compute, future))
        return future.result()

    def finish(self) -> None:
        """Wait until nothing is computed: a thread must not be ended in the middle of that."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open)

    def _work(self) -> None:
        _limit_this_thread()
        while True:
            compute, future = self._jobs.get()
            try:
                future.set_result(compute())
            except BaseException as error:  # it is raised where the result is waited for
                future.set_exception(error)
            del compute, future  # what they hold is the caller's
            with self._changed:
                self._open -= 1
                self._changed.notify_all()


def _limit_this_thread() -> None:
    default = torch.get_num_threads()
    torch.set_num_threads(1)
    # Another new thread sets back what new threads start with.
    helper = threading.Thread(target=torch.set_num_threads, args=(default,))
    helper.start()
    helper.join()
    torch.set_flush_denormal(False)  # inherited from whichever thread came first


def _start_over() -> None:
    """A process that was forked has none of the threads."""
    global _workers
    _workers = _Workers()


_workers = _Workers()
os.register_at_fork(after_in_child=_start_over)
atexit.register(lambda: _workers.finish())


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
    """Where an operation draws: where what it is given lies, or where it is sent."""
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


class Tracer(fx.Tracer):
    """Records what a module does with its input.

    While fx's own traces, it replaces how *every* module of the process is called: a thread that
    runs another one fails. This one replaces `forward` in the layers of its own module alone.

    Example:
        >>> graph = Tracer().trace(nn.Sequential(nn.Linear(4, 2), nn.ReLU()))
        >>> [node.target for node in graph.nodes]
        ['input', '0', '1', 'output']
    """

    def trace(self, root: Any, concrete_args: Any = None) -> fx.Graph:
        parts = dict(root.named_modules())
        self.root = root
        self.graph = fx.Graph(tracer_cls=type(self))
        self.tensor_attrs = {
            value: f"{name}.{key}" if name else key
            for name, part in parts.items()
            for key, value in vars(part).items()
            if isinstance(value, Tensor)
        }
        forward, arguments = self.create_args_for_root(type(root).forward, True, concrete_args)
        with contextlib.ExitStack() as until:
            for name, part in parts.items():
                if part is not root and self.is_leaf_module(part, name):
                    until.enter_context(self._recorded(part, name))
            found = forward(*arguments)
            self.create_node("output", "output", (self.create_arg(found),), {})
        return self.graph

    @contextlib.contextmanager
    def _recorded(self, part: nn.Module, name: str) -> Iterator[None]:
        own = vars(part).get("forward")
        vars(part)["forward"] = partial(self._call, name)
        try:
            yield
        finally:
            if own is None:
                del vars(part)["forward"]
            else:
                vars(part)["forward"] = own

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self.create_proxy("call_module", name, args, kwargs)

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, Tensor) and not self._is_known(a):
            # What a forward pass makes of weights would be taken for a constant.
            raise ValueError("A tensor that is not the module's own cannot be recorded.")
        return super().create_arg(a)

    def _is_known(self, value: Tensor) -> bool:
        known = (*self.root.parameters(), *self.root.buffers(), *self.tensor_attrs)
        return any(value is one for one in known)
