"""Models by name, for study files."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from dynsnap.errors import PlanError, did_you_mean
from dynsnap.train._factory import accepts
from dynsnap.train.models._convolutional import cnn
from dynsnap.train.models._dense import mlp, tabular_mlp
from dynsnap.train.models._fasttext import fasttext
from dynsnap.train.models._residual import DEPTHS, resnet

_FACTORIES: dict[str, Callable[..., nn.Module]] = {
    "mlp": mlp,
    "tabular-mlp": tabular_mlp,
    "cnn": cnn,
    "fasttext": fasttext,
    **{f"resnet{depth}": functools.partial(resnet, depth) for depth in DEPTHS},
}
NAMES = tuple(_FACTORIES)


def is_built_in(factory: Callable[..., Any]) -> bool:
    """Whether a factory is one of these models, with or without settings.

    Example:
        >>> is_built_in(by_name("resnet20")), is_built_in(nn.Linear)
        (True, False)
    """
    while isinstance(factory, functools.partial):
        factory = factory.func
    return factory in (mlp, tabular_mlp, cnn, fasttext, resnet)


def by_name(name: str, **settings: Any) -> Callable[..., nn.Module]:
    """A factory for one of `NAMES`, with some of its settings fixed.

    Example:
        >>> build = by_name("mlp", hidden=(32,))
        >>> build(classes=10, inputs=(8, 8))[1]
        Linear(in_features=64, out_features=32, bias=True)
    """
    if name not in _FACTORIES:
        raise PlanError(f"There is no model {name!r}. {did_you_mean(name, _FACTORIES)}")
    return with_settings(_FACTORIES[name], settings, name=name)


def with_settings(
    factory: Callable[..., nn.Module], settings: Mapping[str, Any], *, name: str
) -> Callable[..., nn.Module]:
    """A factory with some of its keywords fixed, after making sure that it has them.

    Example:
        >>> with_settings(mlp, {"hiden": (32,)}, name="mlp")
        Traceback (most recent call last):
            ...
        dynsnap.errors.PlanError: The model 'mlp' has no setting `hiden`. Did you mean "hidden"?
    """
    for setting in settings:
        if not accepts(factory, setting):
            known = inspect.signature(factory).parameters.keys() - settings.keys()
            raise PlanError(
                f"The model {name!r} has no setting `{setting}`. {did_you_mean(setting, known)}"
            )
    return functools.partial(factory, **settings)
