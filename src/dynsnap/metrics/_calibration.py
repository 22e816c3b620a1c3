"""Whether a generation is right as often as it says it is."""

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Labels, Scores
from dynsnap.errors import InputError
from dynsnap.metrics._mean import relative


def expected_calibration_error(
    scores: Scores, *, truth: Labels, bins: int = 15, weights: AnyArray | None = None
) -> float:
    """Mean gap between confidence and accuracy, over bins of equal width.

    The confidence of an input is its highest score, and it is right when the class of that score
    (the lowest, among equals) is the true one. Bin b of B holds confidences above b/B and up to
    (b+1)/B; each bin counts with its share of the inputs.

    Example:
        >>> scores = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
        >>> round(expected_calibration_error(scores, truth=np.array([0, 0, 0, 0])), 3)
        0.325
    """
    (scores,) = _check.probabilities(scores=scores)
    inputs, classes = scores.shape
    truth = _check.truth(truth, inputs=inputs, classes=classes)
    if not bins >= 1 or bins % 1:  # NaN fails this too
        raise InputError(f"`bins` must be a whole number of at least 1, got {bins}.")
    confidence = scores.max(axis=1).astype(np.float64)
    right = scores.argmax(axis=1) == truth
    place = np.clip(np.ceil(confidence * bins).astype(np.intp) - 1, 0, bins - 1)
    each = relative(weights, inputs=inputs)
    # A bin's share times the gap of its means is the gap of its sums.
    gaps = np.bincount(place, weights=each * (right - confidence), minlength=bins)
    return float(np.abs(gaps).sum() / each.sum())
