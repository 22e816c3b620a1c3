"""Between which two numbers every metric lies, for a single input and so for the mean of many."""

import math

Range = tuple[float, float]

_SHARE = (0.0, 1.0)
_RANGES: dict[str, Range] = {
    "composite": (-1.0, 1.0),
    "cohen_kappa": (-1.0, 1.0),
    "fleiss_kappa": (-1.0, 1.0),
    "krippendorff_alpha": (-1.0, 1.0),
    "pearson": (-1.0, 1.0),
    "relative_negative_flip_rate": (0.0, math.inf),
    "win_loss_ratio": (0.0, math.inf),
    # Between two rows of scores, each of which sums to one; and between those and the truth.
    "minkowski": (0.0, math.sqrt(2)),
    "correct_distance": (0.0, 3 * math.sqrt(2)),
}


def range_of(name: str) -> Range:
    """The least and the largest value that a metric can have.

    Example:
        >>> range_of("lost"), range_of("cohen_kappa")
        ((0.0, 1.0), (-1.0, 1.0))
    """
    return _RANGES.get(name, _SHARE)
