"""Models by name, for study files."""

import functools
from collections.abc import Callable
from typing import Any

from torch import nn

from dynsnap.errors import PlanError, did_you_mean
from dynsnap.train._factory import accepts
from dynsnap.train.models._convolutional import cnn
from dynsnap.train.models._dense import mlp
from dynsnap.train.models._fasttext import fasttext
from dynsnap.train.models._residual import DEPTHS, resnet

_FACTORIES: dict[str, Callable[..., nn.Module]] = {
    "mlp": mlp,
    "cnn": cnn,
    "fasttext": fasttext,
    **{f"resnet{depth}": functools.partial(resnet, depth) for depth in DEPTHS},
}
NAMES = tuple(_FACTORIES)


def by_name(name: str, **settings: Any) -> Callable[..., nn.Module]:
    """A factory for one of `NAMES`, with some of its settings fixed.

    Example:
        >>> build = by_name("mlp", hidden=(32,))
        >>> build(classes=10, inputs=(8, 8))[1]
        Linear(in_features=64, out_features=32, bias=True)
    """
    if name not in _FACTORIES:
        raise PlanError(f"There is no model {name!r}. {did_you_mean(name, _FACTORIES)}")
    for setting in settings:
        if not accepts(_FACTORIES[name], setting):
            raise PlanError(f"The model {name!r} has no setting `{setting}`.")
    return functools.partial(_FACTORIES[name], **settings)
