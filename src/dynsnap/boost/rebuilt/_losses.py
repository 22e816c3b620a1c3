"""Losses, made anew by their names: an archive may say which, and nothing else about them."""

from collections.abc import Callable, Mapping
from typing import Any

from dynsnap.boost._structure import invalid, shown, unchecked

_LOSSES = ("HalfBinomialLoss", "HalfMultinomialLoss", "ExponentialLoss")
_LINKS = ("Interval", "LogitLink", "HalfLogitLink", "MultinomialLogit", "IdentityLink", "LogLink")
_KERNELS = ("CyHalfBinomialLoss", "CyHalfMultinomialLoss", "CyExponentialLoss")
_OF_SGD = ("ModifiedHuber", "Hinge", "SquaredHinge")


def makers() -> Mapping[str, Callable[[Any], Any]]:
    """What makes each of them."""
    from sklearn._loss import _loss as kernels
    from sklearn._loss import loss as losses
    from sklearn.linear_model import _sgd_fast

    def loss(name: str) -> Callable[[Any], Any]:
        return lambda state: _make(getattr(losses, name), state)

    def kernel(module: Any, name: str) -> Callable[[Any], Any]:
        return lambda state: getattr(module, name)(*_margin(name, state[0]))

    return {
        **{f"sklearn._loss.loss.{name}": loss(name) for name in _LOSSES},
        # Before scikit-learn 1.7 the compiled module had no more than its own name.
        **{
            f"{module}.{name}": kernel(kernels, name)
            for name in _KERNELS
            for module in ("sklearn._loss._loss", "_loss")
        },
        **{f"sklearn.linear_model._sgd_fast.{name}": kernel(_sgd_fast, name) for name in _OF_SGD},
        # They come with their loss.
        **{f"sklearn._loss.link.{name}": lambda _state: None for name in _LINKS},
    }


def _make(kind: Any, state: Any) -> Any:
    if not isinstance(state, dict):
        raise invalid("a loss is not complete")
    several, count = kind.__name__ == "HalfMultinomialLoss", state.get("n_classes")
    if several and (type(count) is not int or not 3 <= count < 2**20):
        raise invalid(f"a loss has {shown(count)} classes")
    made = kind(n_classes=count) if several else kind()
    for name in ("approx_hessian", "constant_hessian"):
        if not isinstance(state.get(name), bool):
            raise invalid(f"`{name}` of a loss is neither true nor false")
        setattr(made, name, state[name])
    if any(state.get(name) is not None for name in ("xp", "device", "y_true_int")):
        raise unchecked("a loss for another device")
    return made


def _margin(name: str, args: Any) -> tuple[float, ...]:
    if name not in ("Hinge", "SquaredHinge"):
        return ()
    if not isinstance(args, tuple) or len(args) != 1 or not isinstance(args[0], float):
        raise invalid("a loss has no margin")
    return args
