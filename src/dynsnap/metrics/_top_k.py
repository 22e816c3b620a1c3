"""The k highest classes of an input, instead of the one."""

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Flags, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.metrics._mean import mean


def top_k_consistency(
    old_scores: Scores, new_scores: Scores, *, k: int, weights: AnyArray | None = None
) -> float:
    """Share of inputs whose k highest classes, old and new, have at least one in common.

    The paper's CCON-K, with ranks 1 to k, so that k = 1 is the consistency. Among equal scores
    the lower class index ranks first. It is 1 whatever the scores when 2k exceeds the classes.

    Example:
        >>> old = np.array([[0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1]])
        >>> new = np.array([[0.3, 0.4, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
        >>> top_k_consistency(old, new, k=2)
        0.5
    """
    old_scores, new_scores = _check.scores(old_scores=old_scores, new_scores=new_scores)
    common = _top(old_scores, k) & _top(new_scores, k)
    return mean(np.any(common, axis=1), weights)


def top_k_accuracy(
    scores: Scores, *, truth: Labels, k: int, weights: AnyArray | None = None
) -> float:
    """Share of inputs whose true class is among the k highest scores. The paper's CACC-K.

    Among equal scores the lower class index ranks first.

    Example:
        >>> scores = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
        >>> top_k_accuracy(scores, truth=np.array([1, 0]), k=2)
        0.5
    """
    (scores,) = _check.scores(scores=scores)
    inputs, classes = scores.shape
    truth = _check.truth(truth, inputs=inputs, classes=classes)
    return mean(_top(scores, k)[np.arange(inputs), truth], weights)


def _top(scores: AnyArray, k: int) -> Flags:
    """Which classes are among the k highest of their row."""
    classes = scores.shape[1]
    if k not in range(1, classes + 1):
        raise InputError(f"`k` must be a whole number from 1 to the {classes} classes, got {k}.")
    # Reversed, a stable sort puts the lower of two equal classes last, that is, first in rank.
    ranked = classes - 1 - np.argsort(scores[:, ::-1], axis=1, kind="stable")[:, ::-1]
    top: Flags = np.zeros(scores.shape, dtype=np.bool_)
    np.put_along_axis(top, ranked[:, :k], True, axis=1)
    return top
