"""Losses and optimisers by name, as study files and estimators ask for them."""

import functools
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dynsnap.errors import PlanError, did_you_mean
from dynsnap.train._optimizers import Adam, OptimizerFactory


@dataclass(frozen=True, slots=True, kw_only=True)
class Focal:
    """Focal loss: the cross-entropy of a row times (1 − p)^gamma, p the score of its class.

    Attributes:
        gamma: How little rows count that are right already; 0 is the cross-entropy.

    Example:
        >>> logits, labels = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> bool(Focal(gamma=0)(logits, labels) == functional.cross_entropy(logits, labels))
        True
    """

    gamma: float = 2.0

    def __post_init__(self) -> None:
        if not self.gamma >= 0:
            raise PlanError(f"`gamma` must not be negative, got {self.gamma!r}.")

    def __call__(self, logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """The loss of a batch, or of each of its rows where the reduction is "none"."""
        each = functional.cross_entropy(logits, labels, reduction="none")
        each = (1 - torch.exp(-each)).clamp(min=0) ** self.gamma * each if self.gamma else each
        return each.mean() if reduction == "mean" else each


# No name is ever imported: these are all that a file may choose.
_OPTIMIZERS: dict[str, Any] = {
    "adam": Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "nadam": torch.optim.NAdam,
    "adagrad": torch.optim.Adagrad,
}
_LOSSES: dict[str, Any] = {
    "cross_entropy": nn.CrossEntropyLoss,
    "focal": Focal,
    "multi_margin": nn.MultiMarginLoss,
}
# Settings of a loss that a study says otherwise, or that rounds decide.
_NOT_OF_LOSSES = ("weight", "size_average", "reduce", "reduction")


def named_optimizer(name: str, settings: Mapping[str, Any], *, where: str) -> OptimizerFactory:
    """An optimiser by its name: adam, adamw, sgd, rmsprop, nadam or adagrad.

    Args:
        name: Its name.
        settings: Its settings, by torch's names; the learning rate is one of the training.
        where: What to call the table of settings in messages.

    Example:
        >>> named_optimizer("sgd", {"momentum": 0.9}, where="[training.optimizer]").keywords
        {'momentum': 0.9}
    """
    kind = _known(_OPTIMIZERS, name, "optimizer", where)
    given = _checked(kind, settings, where, without=("params", "lr"))
    if kind is Adam:
        return Adam(**given)
    factory = functools.partial(kind, **given)
    _made(lambda: factory([nn.Parameter(torch.zeros(1))], 0.1), where)
    return factory


def named_loss(name: str, settings: Mapping[str, Any], *, where: str) -> Any:
    """A loss by its name: cross_entropy, focal or multi_margin.

    Args:
        name: Its name.
        settings: Its settings, such as `gamma`; weights of classes are `class_weight`.
        where: What to call the table of settings in messages.

    Returns:
        The loss; None for the plain cross-entropy, which all ways to train know.

    Example:
        >>> named_loss("focal", {"gamma": 1.0}, where="[training.loss]")
        Focal(gamma=1.0)
        >>> named_loss("cross_entropy", {}, where="[training.loss]")
    """
    kind = _known(_LOSSES, name, "loss", where)
    given = _checked(kind, settings, where, without=_NOT_OF_LOSSES)
    if name == "cross_entropy" and not given:
        return None
    made = _made(lambda: kind(**given), where)
    logits, labels = torch.zeros(2, 2), torch.tensor([0, 1])
    _made(lambda: made(logits, labels), where)
    return made


def _known(among: Mapping[str, Any], name: str, what: str, where: str) -> Any:
    if name not in among:
        raise PlanError(f"{where}: there is no {what} {name!r}. {did_you_mean(name, among)}")
    return among[name]


def _checked(
    kind: Any, settings: Mapping[str, Any], where: str, *, without: tuple[str, ...]
) -> dict[str, Any]:
    known = [name for name in inspect.signature(kind).parameters if name not in without]
    for name in settings:
        if name not in known:
            raise PlanError(
                f"{where}: {kind.__name__} has no setting `{name}`. {did_you_mean(name, known)}"
            )
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
    }


def _made(make: Any, where: str) -> Any:
    try:
        return make()
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, PlanError):
            raise
        raise PlanError(f"{where} cannot be used as it stands: {error}.") from error
