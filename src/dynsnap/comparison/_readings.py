"""What sums say of some inputs, be they all of them or a group: metrics, cases, McNemar's test."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison._results import Estimate, TransitionCounts
from dynsnap.comparison.intervals import (
    BayesianBootstrap,
    Ends,
    Metrics,
    MultipleStatistic,
    PairStatistic,
    Sampled,
    clopper_pearson,
)
from dynsnap.metrics import Cases, catalogue, mcnemar_of_counts, metric, task_metrics
from dynsnap.metrics._catalogue import metrics_of_cases
from dynsnap.metrics._ratios import ratio
from dynsnap.metrics._tally_layout import CASES, CASES_WITHOUT_TRUTH

_UNDEFINED = "its value is undefined: 0/0"
_NO_SHARE = "it is registered as a share, but is not between 0 and 1"


def estimates(
    bootstrap: BayesianBootstrap,
    sampled: Sampled,
    wholes: Mapping[str, AnyArray],
) -> list[dict[str, Estimate]]:
    """Metrics with their intervals for each group, in the order of the catalogue.

    Args:
        bootstrap: How intervals are made.
        sampled: The metrics.
        wholes: Which of them are shares of inputs that all count the same, and of how many,
            (groups,): see `wholes_of`.
    """
    groups = len(next(iter(sampled.values.values()), ()))
    found: list[dict[str, Estimate]] = [{} for _ in range(groups)]
    exact = _exact(sampled.values, wholes, confidence=bootstrap.confidence)
    for name, values in sampled.values.items():
        low, high = exact[name] if name in exact else bootstrap.interval(sampled, name)
        # What is known to lie in a range may be outside by a rounding error.
        low, high = np.minimum(low, values), np.maximum(high, values)
        each = zip(found, values.tolist(), low.tolist(), high.tolist(), strict=True)
        for metrics, value, *ends in each:
            if math.isnan(value):
                metrics[name] = Estimate(value, reason=_UNDEFINED)
            elif any(map(math.isnan, ends)):
                reason = _NO_SHARE if name in exact else bootstrap.shortage
                metrics[name] = Estimate(value, reason=reason)
            else:
                metrics[name] = Estimate(value, *ends)
    return [ordered(each) for each in found]


def multiples(
    bootstrap: BayesianBootstrap,
    pair: PairStatistic,
    twin: PairStatistic,
    sums: Floats,
    floor: Floats,
    *,
    heaviest: Floats,
    inputs: AnyArray,
    order: AnyArray | None,
) -> list[tuple[dict[str, Estimate], dict[str, Estimate]]]:
    """For each group, the noise floor's values, and the metrics as multiples of them.

    The draws are the same for both pairs, so that what moves both cancels out.

    Args:
        bootstrap: How intervals are made.
        pair: The metrics of the pair as functions of its sums.
        twin: Those of OLD and its twin, or of two answers of OLD.
        sums: Of the pair, (groups, blocks, columns).
        floor: Of OLD and its twin, likewise.
        heaviest: The largest weight of an input in each group.
        inputs: How many inputs each group has.
        order: As `BayesianBootstrap.sampled` takes it.
    """
    both = [pair.columns, twin.columns]
    every = {*metrics_of_cases(truth=pair.truth), *(set(both[0]) & set(both[1]))} - pair.without
    seen = {**pair.reach, **twin.reach}
    names = tuple(
        name for name in (*catalogue, *task_metrics) if name in every and _is_floored(name, seen)
    )
    others = frozenset(every | {*both[0], *both[1]}) - {*names}
    above, below = (replace(each, new_accuracy=False, exact=others) for each in (pair, twin))
    cases = len(CASES if pair.truth else CASES_WITHOUT_TRUTH)
    cut = [
        each[..., : cases + len(columns)] for each, columns in zip((sums, floor), both, strict=True)
    ]
    sampled = bootstrap.sampled(
        MultipleStatistic(above, below, names),
        *cut,
        heaviest=heaviest,
        inputs=inputs,
        order=order,
    )
    floors = below.values([cut[1].sum(axis=1)])
    found: list[tuple[dict[str, Estimate], dict[str, Estimate]]] = [({}, {}) for _ in inputs]
    for name in names:
        low, high = bootstrap.interval(sampled, name, limits=(0.0, math.inf))
        each = zip(found, floors[name], sampled.values[name], low, high, strict=True)
        for (values, relative), beside, value, *ends in each:
            values[name] = Estimate(float(beside))
            if any(map(math.isnan, ends)):
                relative[name] = Estimate(float(value), reason=bootstrap.shortage or _UNDEFINED)
            else:
                relative[name] = Estimate(float(value), float(ends[0]), float(ends[1]))
    return found


def _is_floored(name: str, seen: Container[str]) -> bool:
    """Whether a multiple of a metric makes sense: of a distance, which is 0 between equals.

    Of one without a largest value, the largest must have been `seen`.
    """
    entry = metric(name)
    limited = math.isfinite(entry.range[1]) or name in seen
    return entry.direction == "lower" and entry.range[0] == 0 and limited


def exact_of(columns: Iterable[str], *, weighted: bool) -> frozenset[str]:
    """The metrics of a pair whose interval is exact: shares of inputs that all count the same."""
    names = () if weighted else (*catalogue, *columns)
    return frozenset(name for name in names if metric(name).interval != "bootstrap")


def wholes_of(values: Metrics, cases: AnyArray, *, weighted: bool) -> dict[str, AnyArray]:
    """Of how many inputs each metric is a share, for those that are, where all count the same.

    Args:
        values: The metrics.
        cases: How many inputs of each group are of each case, (groups, cases); or, as one case,
            how many there are.
        weighted: Whether inputs have weights.
    """
    if weighted:
        return {}
    inputs = cases.sum(axis=1)
    each = Cases(inputs, *cases.T) if cases.shape[1] == len(CASES) else None
    found = {name: metric(name) for name in values}
    return {
        name: inputs if entry.whole is None or each is None else entry.whole(each)
        for name, entry in found.items()
        if entry.interval != "bootstrap"
    }


def effective_inputs(weight: float, squares: float) -> float:
    """Kish's effective number of inputs: how many of equal weight would be as much evidence.

    Args:
        weight: The sum of the weights.
        squares: The sum of their squares.

    Example:
        >>> effective_inputs(4.0, 4.0), effective_inputs(1e50 + 99, 1e100)
        (4.0, 1.0)
    """
    return weight * (weight / squares) if squares > 0 else 0.0


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


def joined(found: Sequence[Sampled]) -> Sampled:
    """The metrics of all of them; of one that several have, that of the last."""

    def all_of(parts: Iterable[Metrics]) -> Metrics:
        return {name: values for part in parts for name, values in part.items()}

    return Sampled(
        all_of(each.values for each in found),
        Ends(all_of(each.ends.low for each in found), all_of(each.ends.high for each in found)),
    )


def _exact(
    values: Metrics, wholes: Mapping[str, AnyArray], *, confidence: float
) -> dict[str, tuple[Floats, Floats]]:
    """The exact interval of each share, and of the odds that are the share of one of two cases."""
    names = [name for name in values if name in wholes]
    if not names:
        return {}
    inputs = np.stack([wholes[name] for name in names])
    shares = np.stack([_as_share(values[name]) if _odds(name) else values[name] for name in names])
    cases = np.rint(np.where(inputs > 0, shares, 0) * inputs)
    low, high = clopper_pearson(cases, inputs, confidence=confidence)
    return {
        name: (ratio(*_of_two(low[place])), ratio(*_of_two(high[place])))
        if _odds(name)
        else (low[place], high[place])
        for place, name in enumerate(names)
    }


def _odds(name: str) -> bool:
    """Whether a metric is so many of one case for each of another, not a share."""
    return metric(name).interval == "odds"


def _as_share(odds: Floats) -> Floats:
    return np.where(np.isinf(odds), 1.0, ratio(odds, 1 + odds))


def _of_two(share: Floats) -> tuple[Floats, Floats]:
    return share, 1 - share


def ordered(metrics: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """In the order of the catalogue; other top-k metrics beside those of the top two."""
    places = {name: place for place, name in enumerate((*catalogue, *task_metrics))}

    def place(name: str) -> tuple[int, int]:
        if name in places and not name.startswith("top_"):
            return places[name], 0
        _, k, kind = name.split("_")
        return places[f"top_2_{kind}"], int(k)

    return {name: metrics[name] for name in sorted(metrics, key=place)}
