"""Metrics from sums: of one tally, or of many resamples of its blocks at once.

Every function takes arrays whose last axis holds what was summed, and gives one value for each
place of the axes before it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dynsnap._types import Floats
from dynsnap.metrics._ratios import alpha, kappa, ratio, relative_negative_flips
from dynsnap.metrics._tally_layout import CASES, CASES_WITHOUT_TRUTH


class Cases(NamedTuple):
    """How much there is in all, and of each case, in the order of `CASES`."""

    all: Floats
    kept: Floats
    gained: Floats
    lost: Floats
    wrong_same: Floats
    wrong_other: Floats

    @property
    def never(self) -> Floats:
        """Wrong before and wrong now."""
        return self.wrong_same + self.wrong_other


NEW_ACCURACY = "accuracy"

# Whole numbers are added up before they are divided, so that shares come out exact.
_OF_LABELS: Mapping[str, Callable[[Cases], Floats]] = {
    "consistency": lambda of: ratio(of.kept + of.wrong_same, of.all),
    "correct_consistency": lambda of: ratio(of.kept, of.all),
    "kept": lambda of: ratio(of.kept, of.all),
    "gained": lambda of: ratio(of.gained, of.all),
    "lost": lambda of: ratio(of.lost, of.all),
    "never": lambda of: ratio(of.never, of.all),
    "composite": lambda of: ratio(of.kept + of.gained - of.lost, of.all),
    "churn": lambda of: ratio(of.gained + of.lost + of.wrong_other, of.all),
    "neutral_churn": lambda of: ratio(of.wrong_other, of.all),
    "relative_negative_flip_rate": lambda of: relative_negative_flips(
        ratio(of.lost, of.all),
        ratio(of.kept + of.lost, of.all),
        ratio(of.lost + of.never, of.all),
    ),
    "backward_trust_compatibility": lambda of: ratio(of.kept, of.kept + of.lost),
    "backward_error_compatibility": lambda of: ratio(of.never, of.lost + of.never),
    "win_loss_ratio": lambda of: ratio(of.gained, of.lost),
    # Of the newer generation; not a metric of the pair, and given where it is asked for by name.
    NEW_ACCURACY: lambda of: ratio(of.kept, of.all) + ratio(of.gained, of.all),
}
_WITHOUT_TRUTH: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "consistency": lambda same, other: ratio(same, same + other),
    "churn": lambda same, other: ratio(other, same + other),
}


def label_metrics(*, truth: bool) -> tuple[str, ...]:
    """The metrics of a pair that come from its cases alone."""
    return tuple(name for name in (_OF_LABELS if truth else _WITHOUT_TRUTH) if name != NEW_ACCURACY)


def pair_metrics(
    sums: Floats, columns: Sequence[str], *, truth: bool, names: Collection[str] | None = None
) -> dict[str, Floats]:
    """Every metric of a pair but Cohen's kappa, from (..., cases + columns).

    Args:
        sums: What was counted.
        columns: The metrics that are the mean of one number per row.
        truth: Whether the true classes are known.
        names: Which of the metrics of labels are wanted; those of `label_metrics` if None.

    Example:
        >>> found = pair_metrics(np.array([6.0, 1.0, 2.0, 1.0, 0.0]), (), truth=True)
        >>> float(found["consistency"]), float(found["backward_trust_compatibility"])
        (0.7, 0.75)
    """
    count = len(CASES if truth else CASES_WITHOUT_TRUTH)
    each = [sums[..., place] for place in range(count)]
    weight = sums[..., :count].sum(axis=-1)
    wanted = label_metrics(truth=truth) if names is None else names
    if truth:
        cases = Cases(weight, *each)
        found = {name: of(cases) for name, of in _OF_LABELS.items() if name in wanted}
    else:
        found = {name: of(*each) for name, of in _WITHOUT_TRUTH.items() if name in wanted}
    for place, name in enumerate(columns, count):
        found[name] = ratio(sums[..., place], weight)
    return found


def generation_metrics(means: Floats, gaps: Floats, columns: Sequence[str]) -> dict[str, Floats]:
    """Every metric of a generation, from (..., 1 + columns) and (..., 1 + bins)."""
    weight = means[..., 0]
    found = {name: ratio(means[..., place], weight) for place, name in enumerate(columns, 1)}
    if "correctness" in found:  # with scores and truth there is calibration, too
        found["expected_calibration_error"] = ratio(np.abs(gaps).sum(axis=-1), weight)
    return found


def cohen_kappa(churn: Floats, old: Floats, new: Floats) -> Floats:
    """Cohen's kappa, from how much weight each label got, as (..., classes)."""
    return kappa(churn, 1 - (_shares(old) * _shares(new)).sum(axis=-1))


def agreement_metrics(
    churns: Sequence[Floats], labels: Sequence[Floats], *, ambiguity: Floats, values: int
) -> dict[str, Floats]:
    """Metrics of all generations at once.

    Args:
        churns: Of every two generations.
        labels: How much weight each label got, as (..., classes), of every generation.
        ambiguity: The share of inputs that not all label alike.
        values: How many labels were given in all.
    """
    observed = np.mean(churns, axis=0)
    pooled = np.mean([_shares(each) for each in labels], axis=0)
    expected = 1 - (pooled**2).sum(axis=-1)
    return {
        "fleiss_kappa": kappa(observed, expected),
        "krippendorff_alpha": alpha(observed, expected, values=values),
        "ambiguity": ambiguity,
        "discrepancy": np.asarray(np.max(churns, axis=0)),
    }


def _shares(labels: Floats) -> Floats:
    # Divided by its own sum: a single label then has exactly 1, and kappa is 0/0 as it should be.
    return ratio(labels, labels.sum(axis=-1, keepdims=True))
