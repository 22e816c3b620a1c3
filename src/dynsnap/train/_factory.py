"""Modules from a caller's factory: what it is given, and what it must give back."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from dynsnap.errors import DynSnapError, PlanError
from dynsnap.train._chain import Chain, chain
from dynsnap.train._identity import architecture, identity
from dynsnap.train._items import count, forward
from dynsnap.train._threads import borrowed_random


def accepts(factory: Callable[..., Any], keyword: str) -> bool:
    """Whether a factory can be called with a keyword.

    Example:
        >>> accepts(lambda classes: None, "dropout")
        False
    """
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    found = parameters.get(keyword)
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if found is not None and found.kind in named:
        return True
    return any(part.kind is inspect.Parameter.VAR_KEYWORD for part in parameters.values())


@dataclass(frozen=True, eq=False, kw_only=True)
class Blueprint:
    """Builds modules for one task.

    Attributes:
        factory: The caller's function or class.
        classes: Outputs that a module must have.
        offers: What else the factory may ask for by keyword: `inputs`, the shape of one prepared
            input, or `words`, the size of the vocabulary.
    """

    factory: Callable[..., nn.Module]
    classes: int
    offers: Mapping[str, Any]

    def __post_init__(self) -> None:
        if isinstance(self.factory, nn.Module) or not callable(self.factory):
            raise PlanError(
                "`model` must be a function or class that builds a fresh module each time, got "
                f"{type(self.factory).__name__}. Hand in what builds it, such as a class."
            )

    def build(self, *, dropout: float = 0.0, seed: int = 0) -> nn.Module:
        """A fresh module on the CPU, initialised by the seed alone."""
        if dropout and not accepts(self.factory, "dropout"):
            raise PlanError(
                f"The recipe asks for dropout {dropout:g}, but the model's factory takes no "
                "`dropout`. Give it that keyword and put nn.Dropout before the output layer."
            )
        given = {"classes": self.classes, "dropout": dropout, **self.offers}
        wanted = {name: value for name, value in given.items() if accepts(self.factory, name)}
        with borrowed_random():
            torch.manual_seed(seed)
            try:
                module = self.factory(**wanted)
            except DynSnapError:
                raise
            except Exception as error:  # whatever the caller's factory has to say
                raise PlanError(
                    f"The model cannot be built: {_first_line(error)}. It was given "
                    f"{', '.join(wanted) or 'nothing'}, beside settings of its own: change those, "
                    "or what it asks for."
                ) from error
        if not isinstance(module, nn.Module):
            raise PlanError(f"`model` must build an nn.Module, but gave {type(module).__name__}.")
        lazy = (name for name, value in module.named_parameters() if is_lazy(value))
        if (name := next(lazy, None)) is not None:
            raise PlanError(
                f"The model's `{name}` gets its size from the first inputs that it sees, but "
                "learners are stored by size. Let the factory ask for `inputs`, and use layers "
                "that are given their sizes, such as nn.Linear for nn.LazyLinear."
            )
        if dropout and not any(is_dropout(part) for part in module.modules()):
            raise PlanError(
                f"The recipe asks for dropout {dropout:g}, but the model has no dropout layer."
            )
        return module

    def check(self, batch: Any) -> None:
        """Raise unless a module takes this batch and gives one row of scores for each input."""
        module = self.template(0.0).eval()
        if self.build() is module:
            raise PlanError(
                "`model` must build a fresh module each time, but gave the same one twice. "
                "Rounds that share a module would not start afresh."
            )
        rows = count(batch)
        shape = (
            {name: tuple(part.shape[1:]) for name, part in batch.items()}
            if isinstance(batch, Mapping)
            else tuple(batch.shape[1:])
        )
        try:
            with torch.no_grad():
                outputs = forward(module, batch)
        except Exception as error:  # whatever the caller's forward has to say
            raise PlanError(
                f"The model cannot take inputs of the shape {shape}: {_first_line(error)}. "
                "Let its factory ask for `inputs`, or prepare the inputs otherwise."
            ) from error
        if not isinstance(outputs, Tensor) or outputs.ndim != 2 or len(outputs) != rows:
            found = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
            raise PlanError(
                f"The model must give (inputs, classes) for {rows} inputs, but gave {found}."
            )
        if outputs.shape[1] != self.classes:
            raise PlanError(
                f"The model has {outputs.shape[1]} outputs, but there are {self.classes} classes. "
                "Let its factory ask for `classes`."
            )

    def layers(self, dropout: float) -> Chain | None:
        """The layers of a module that is a small dense chain, or None."""
        if dropout not in self._layers:
            self._layers[dropout] = chain(self.template(dropout))
        return self._layers[dropout]

    def template(self, dropout: float) -> nn.Module:
        """A module to look at, or to run with weights of others: always the same one."""
        if dropout not in self._templates:
            self._templates[dropout] = self.build(dropout=dropout)
        return self._templates[dropout]

    @cached_property
    def _layers(self) -> dict[float, Chain | None]:
        return {}

    @cached_property
    def _templates(self) -> dict[float, nn.Module]:
        return {}

    @cached_property
    def text(self) -> str:
        """The factory and what it builds: another whenever a round could be another."""
        return f"{identity(self.factory)}\n{architecture(self.template(0.0))}"


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0]


def is_dropout(module: nn.Module) -> bool:
    """Whether a layer drops units at random."""
    return isinstance(
        module,
        nn.Dropout
        | nn.Dropout1d
        | nn.Dropout2d
        | nn.Dropout3d
        | nn.AlphaDropout
        | nn.FeatureAlphaDropout,
    )
