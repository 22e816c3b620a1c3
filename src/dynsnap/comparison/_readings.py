"""What sums say of some inputs, be they all of them or a group: metrics, cases, McNemar's test."""

from collections.abc import Mapping
from functools import cache

from dynsnap._types import AnyArray
from dynsnap.comparison._bootstrap import Bootstrap, Metrics, Sampled
from dynsnap.comparison._results import Estimate, TransitionCounts
from dynsnap.metrics import catalogue, mcnemar_of_counts
from dynsnap.metrics._tally_layout import CASES

_OF_ALL = (
    "accuracy",
    "consistency",
    "correct_consistency",
    "kept",
    "gained",
    "lost",
    "never",
    "churn",
    "neutral_churn",
    "ambiguity",
    "discrepancy",
)


def estimates(bootstrap: Bootstrap, sampled: Sampled, cases: AnyArray) -> list[dict[str, Estimate]]:
    """Metrics with their intervals for each group, in the order of the catalogue.

    Args:
        bootstrap: How intervals are made.
        sampled: The metrics.
        cases: How many inputs of each group are of each case, (groups, cases).
    """
    wholes = _wholes(sampled.values, cases)
    return [_ordered(each) for each in bootstrap.estimates(sampled, wholes=wholes)]


def transitions(cases: AnyArray) -> TransitionCounts | None:
    """The four cases of a pair from how many inputs are of each, None without truth."""
    if len(cases) < len(CASES):
        return None
    kept, gained, lost, same, other = (int(each) for each in cases)
    return TransitionCounts(kept=kept, gained=gained, lost=lost, never=same + other)


def mcnemar(cases: AnyArray) -> float | None:
    """The p-value of McNemar's exact test, None without truth."""
    found = transitions(cases)
    return None if found is None else mcnemar_of_counts(gained=found.gained, lost=found.lost)


def _wholes(values: Metrics, cases: AnyArray) -> dict[str, AnyArray]:
    """Of how many inputs each metric is a share, for those that are; from (groups, cases)."""
    inputs = cases.sum(axis=1)
    wholes = {name: inputs for name in values if name in _OF_ALL or name.startswith("top_")}
    if cases.shape[1] == len(CASES):
        wholes["backward_trust_compatibility"] = cases[:, 0] + cases[:, 2]
        wholes["backward_error_compatibility"] = inputs - cases[:, 0] - cases[:, 1]
    return wholes


def _ordered(metrics: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """In the order of the catalogue; other top-k metrics beside those of the top two."""
    return {name: metrics[name] for name in sorted(metrics, key=_place)}


@cache
def _place(name: str) -> tuple[int, int]:
    if not name.startswith("top_"):
        return list(catalogue).index(name), 0
    _, k, kind = name.split("_")
    return list(catalogue).index(f"top_2_{kind}"), int(k)
