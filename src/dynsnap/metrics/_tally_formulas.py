"""Metrics from sums: of one tally, or of many resamples of its blocks at once.

Every function takes arrays whose last axis holds what was summed, and gives one value for each
place of the axes before it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from dynsnap._types import Floats
from dynsnap.metrics._ratios import alpha, kappa, ratio, relative_negative_flips
from dynsnap.metrics._tally_layout import CASES, CASES_WITHOUT_TRUTH


def pair_metrics(sums: Floats, columns: Sequence[str], *, truth: bool) -> dict[str, Floats]:
    """Every metric of a pair but Cohen's kappa, from (..., cases + columns).

    Example:
        >>> found = pair_metrics(np.array([6.0, 1.0, 2.0, 1.0, 0.0]), (), truth=True)
        >>> float(found["consistency"]), float(found["backward_trust_compatibility"])
        (0.7, 0.75)
    """
    names = CASES if truth else CASES_WITHOUT_TRUTH
    cases = {name: sums[..., place] for place, name in enumerate(names)}
    weight = sums[..., : len(names)].sum(axis=-1)
    if truth:
        found = _of_labels(cases, weight)
    else:
        found = {
            "consistency": ratio(cases["same"], weight),
            "churn": ratio(cases["other"], weight),
        }
    for place, name in enumerate(columns, len(names)):
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


def _of_labels(cases: Mapping[str, Floats], weight: Floats) -> dict[str, Floats]:
    kept, gained, lost, other = (cases[name] for name in ("kept", "gained", "lost", "wrong_other"))
    same = cases["wrong_same"]
    never = same + other
    # Whole numbers are added up before they are divided, so that shares come out exact.
    return {
        "consistency": ratio(kept + same, weight),
        "correct_consistency": ratio(kept, weight),
        "kept": ratio(kept, weight),
        "gained": ratio(gained, weight),
        "lost": ratio(lost, weight),
        "never": ratio(never, weight),
        "composite": ratio(kept + gained - lost, weight),
        "churn": ratio(gained + lost + other, weight),
        "neutral_churn": ratio(other, weight),
        "relative_negative_flip_rate": relative_negative_flips(
            ratio(lost, weight), ratio(kept + lost, weight), ratio(lost + never, weight)
        ),
        "backward_trust_compatibility": ratio(kept, kept + lost),
        "backward_error_compatibility": ratio(never, lost + never),
        "win_loss_ratio": ratio(gained, lost),
    }


def _shares(labels: Floats) -> Floats:
    # Divided by its own sum: a single label then has exactly 1, and kappa is 0/0 as it should be.
    return ratio(labels, labels.sum(axis=-1, keepdims=True))
