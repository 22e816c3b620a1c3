"""Which snapshots of a round are worth keeping."""

import numpy as np

from dynsnap._types import Accuracies, Positions
from dynsnap.ensemble._plan import Beta, check_beta
from dynsnap.errors import InputError


def threshold(accuracy: Accuracies, *, beta: Beta = "mean") -> float:
    """The validation accuracy that a snapshot must reach to stay: the paper's τ.

    Example:
        >>> threshold(np.array([0.5, 1.0]), beta=0.5)
        0.75
    """
    best, worst = accuracy.max(), accuracy.min()
    bar = accuracy.mean() if isinstance(beta, str) else (1 - beta) * best + beta * worst
    # The mean of equal floats can round to just above them, and so can a weighted one. A round in
    # which nobody clears the bar would leave `grow` training for ever.
    return float(min(bar, best))


def survivors(accuracy: Accuracies, *, beta: Beta = "mean") -> Positions:
    """Positions of the snapshots worth keeping, best first; equals in their own order.

    A snapshot stays if its validation accuracy reaches the paper's
    τ = (1 − β)·max + β·min, or the mean of the round for β* = "mean". The best always stays.

    Example:
        >>> survivors(np.array([0.70, 0.90, 0.82]))
        array([1, 2])
        >>> survivors(np.array([0.70, 0.90, 0.82]), beta=1)
        array([1, 2, 0])
    """
    check_beta(beta)
    accuracy = np.asarray(accuracy, dtype=float)
    if accuracy.ndim != 1 or not len(accuracy):
        raise InputError(
            "`accuracy` must hold one validation accuracy for each of at least one snapshot, "
            f"but has the shape {accuracy.shape}."
        )
    if not np.isfinite(accuracy).all():
        raise InputError(
            f"`accuracy` holds values that are not finite: {accuracy}. "
            "Training may have diverged, or the validation split may be empty."
        )
    ranked: Positions = np.argsort(-accuracy, kind="stable")
    return np.asarray(ranked[accuracy[ranked] >= threshold(accuracy, beta=beta)])
