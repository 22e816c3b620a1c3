"""The graph of a module, found without a change that other threads would see."""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import Tensor, fx, nn


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
