"""Metrics from sums: of one tally, or of many resamples of its blocks at once.

Every function takes arrays whose last axis holds what was summed, and gives one value for each
place of the axes before it.
"""

from collections.abc import Collection, Sequence

import numpy as np

from dynsnap._types import Floats
from dynsnap.metrics._catalogue import metrics_of_cases
from dynsnap.metrics._metric import Cases
from dynsnap.metrics._ratios import alpha, kappa, ratio
from dynsnap.metrics._tally_layout import CASES, CASES_WITHOUT_TRUTH

NEW_ACCURACY = "accuracy"


def pair_metrics(
    sums: Floats, columns: Sequence[str], *, truth: bool, names: Collection[str] | None = None
) -> dict[str, Floats]:
    """Every metric of a pair but Cohen's kappa, from (..., cases + columns).

    Args:
        sums: What was counted.
        columns: The metrics that are the mean of one number per row.
        truth: Whether the true classes are known.
        names: Which of the metrics of labels are wanted; all of them if None.

    Example:
        >>> found = pair_metrics(np.array([6.0, 1.0, 2.0, 1.0, 0.0]), (), truth=True)
        >>> float(found["consistency"]), float(found["backward_trust_compatibility"])
        (0.7, 0.75)
    """
    count = len(CASES if truth else CASES_WITHOUT_TRUTH)
    each = [sums[..., place] for place in range(count)]
    weight = sums[..., :count].sum(axis=-1)
    if not truth:
        each = [np.zeros_like(weight)] * (len(CASES) - count) + each
    cases, known = Cases(weight, *each), metrics_of_cases(truth=truth)
    wanted = known if names is None else names
    found = {name: of(cases) for name, of in known.items() if name in wanted}
    if truth and NEW_ACCURACY in wanted:
        # Of the newer generation; not a metric of the pair, and given where it is asked for.
        found[NEW_ACCURACY] = ratio(cases.kept, cases.all) + ratio(cases.gained, cases.all)
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
