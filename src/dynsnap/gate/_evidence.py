"""What an interval decides about a threshold, and how many inputs would decide what it leaves open.

A rule on a bound has three answers: the whole interval is on the good side of the threshold, the
whole interval is on the bad side, or the interval covers it. `Rule.unresolved` states what the last
one means. Over many classes or slices, Holm's method keeps the chance of any wrong answer at the
level of one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np

from dynsnap import seeds
from dynsnap.comparison import Estimate
from dynsnap.comparison.intervals import clopper_pearson
from dynsnap.gate._rule import ROUNDING, Rule
from dynsnap.metrics import Metric, metric

Answer: TypeAlias = Literal["good", "bad", "open"]

# Beyond so many, "more inputs" is no advice.
MOST_FURTHER = 10_000_000

_DRAWS = 4000
OF_ONE_SIDE = ("accuracy_change", "composite")  # at worst, what OLD had right counts −1

# Inputs with the same old and new label change none of these, whatever their truth is.
OF_DISAGREEMENTS = ("lost", "gained", "accuracy_change")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided of one part of the inputs.

    Attributes:
        answer: Where the interval lies.
        confidence: The level of the interval that decided; a stricter one where Holm's method
            allows for many parts.
    """

    answer: Answer
    confidence: float


def answer(rule: Rule, estimate: Estimate, threshold: float) -> Answer:
    """Where an interval lies. Both of its ends must be numbers.

    Example:
        >>> rule = Rule(metric="lost", at_most=0.02, on="bound")
        >>> [answer(rule, Estimate(0.01, low, high), 0.02)
        ...  for low, high in ((0.005, 0.015), (0.03, 0.05), (0.01, 0.03))]
        ['good', 'bad', 'open']
    """
    low, high = estimate.low, estimate.high
    assert low is not None and high is not None
    if rule.at_least is not None:
        low, high, threshold = -high, -low, -threshold
    if high <= threshold + ROUNDING:
        return "good"
    return "bad" if low > threshold + ROUNDING else "open"


def decide(
    rule: Rule,
    parts: Sequence[float],
    interval: Callable[[float, int], Estimate],
) -> list[Decision]:
    """Decide every part of a rule on a bound.

    Args:
        rule: The rule.
        parts: The threshold of each part.
        interval: The metric on a part, with an interval of a level.
    """
    if rule.correction is None:
        level = rule.confidence
        return [
            Decision(answer(rule, interval(level, place), threshold), level)
            for place, threshold in enumerate(parts)
        ]
    found: dict[int, Decision] = {}
    widest = rule.confidence
    claims: tuple[Answer, Answer] = ("bad", "good")
    for wanted in claims:

        def holds(level: float, place: int, wanted: Answer = wanted) -> bool:
            return answer(rule, interval(level, place), parts[place]) == wanted

        rejected, last = holm_levels(len(parts), rule.confidence, holds)
        widest = max(widest, last)
        found |= {place: Decision(wanted, level) for place, level in rejected.items()}
    return [found.get(place, Decision("open", widest)) for place in range(len(parts))]


def holm_levels(
    parts: int, confidence: float, holds: Callable[[float, int], bool]
) -> tuple[dict[int, float], float]:
    """Holm's method by intervals: which of many claims hold together at a level.

    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6 (1979). The first claim must hold at 1 − α/m, the next at 1 − α/(m − 1), and so on;
    the chance that any claim is wrong is at most α, however the parts depend on each other.

    Args:
        parts: How many claims there are.
        confidence: The level of all of them together, 1 − α.
        holds: Whether a claim holds at a level; at a lower one, it holds all the more.

    Returns:
        The claims that hold, each with the level at which it was found to; and the last level.

    Example:
        >>> needed = [0.999, 0.98, 0.9]
        >>> found, last = holm_levels(3, 0.95, lambda level, place: level <= needed[place])
        >>> sorted(found), round(last, 3)
        ([0, 1], 0.95)
    """
    found: dict[int, float] = {}
    level = confidence
    while len(found) < parts:
        level = 1 - (1 - confidence) / (parts - len(found))
        more = [place for place in range(parts) if place not in found and holds(level, place)]
        if not more:
            break
        found |= dict.fromkeys(more, level)
    return found, level


def inputs_needed(rule: Rule, *, confidence: float | None = None) -> int | None:
    """The fewest inputs with which a rule on a bound can pass: those that it needs if all are good.

    None for a rule on a value or on a multiple of the noise floor, for a metric whose interval
    follows no formula, and where no number of inputs is enough (`lost` at most 0).

    Args:
        rule: The rule.
        confidence: The level, where it is another than the rule's.

    Example:
        >>> inputs_needed(Rule(metric="lost", at_most=0.02, on="bound"))
        183
        >>> inputs_needed(Rule(metric="accuracy_change", at_least=-0.005, on="bound"))
        736
    """
    entry = metric(rule.metric)
    least, most = entry.range
    plain = _of_all_inputs(entry) or rule.metric in OF_ONE_SIDE
    if rule.on != "bound" or rule.relative_to or not plain:
        return None
    best, worst = (most, least) if rule.at_least is not None else (least, most)
    if rule.metric == "accuracy_change" and rule.threshold < 0:
        best = 0.0  # of a model that loses and gains nothing
    room = (rule.threshold - best) / (worst - best)
    return _runs(room, confidence or rule.confidence)


def _of_all_inputs(entry: Metric) -> bool:
    """Whether a metric is a share of all inputs of a part, with an exact interval."""
    return entry.interval == "share" and entry.whole is None and entry.of != "class"


def _runs(room: float, confidence: float) -> int | None:
    """How many equal observations leave less than this share of their range open."""
    if room <= 0:
        return None
    if room >= 1:
        return 1
    needed = math.log((1 - confidence) / 2) / math.log1p(-room) - 1e-9
    return math.ceil(needed) if math.isfinite(needed) else None  # no number of inputs suffices


def can_fail(
    rule: Rule,
    estimate: Estimate,
    threshold: float,
    worst: float,
    inputs: float,
    *,
    confidence: float,
) -> bool:
    """Whether the worst value could put the whole interval of so many inputs beyond the threshold.

    A rule that fails only if a model is clearly worse passes everything where there are too few.

    Args:
        rule: The rule.
        estimate: The metric with its interval at the rule's own level.
        threshold: What it is held against.
        worst: Its worst value; NaN where that is not known.
        inputs: How many inputs there are.
        confidence: The level that decides.
    """
    entry = metric(rule.metric)
    least, most = entry.range
    if entry.interval in ("share", "odds") and not _of_all_inputs(entry):
        if entry.interval == "odds":
            value, low, high = map(_as_share, _ends(estimate))
            estimate = Estimate(value, low, high)
            threshold, worst, least, most = _as_share(threshold), 0.0, 0.0, 1.0
        inputs = min(inputs, _behind(estimate, rule.confidence))
    if not math.isfinite(least) or not math.isfinite(most) or math.isnan(worst):
        return True  # not known; the interval itself will say
    change = entry.change_of is not None and entry.direction == "higher"
    if (least, most) == (-1.0, 1.0) and (change or rule.metric in OF_ONE_SIDE):
        low, high = -1.0, _best_of_losses(-worst, inputs, confidence)
    else:
        # A share of inputs, or a mean over them: as one, on the scale of its range.
        width, of = most - least, np.array([max(1, round(inputs))])
        cases = np.rint(np.clip((worst - least) / width, 0, 1) * of)
        ends = clopper_pearson(cases, of, confidence=confidence)
        low, high = (least + width * float(end[0]) for end in ends)
    return answer(rule, Estimate(worst, low, high), threshold) == "bad"


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    low, high = (math.nan if end is None else end for end in (estimate.low, estimate.high))
    return estimate.value, low, high


def _as_share(odds: float) -> float:
    return 1.0 if math.isinf(odds) else odds / (1 + odds)


def _behind(estimate: Estimate, confidence: float) -> float:
    """About how many inputs the exact interval of a share rests on, of which it is a share."""
    value, low, high = _ends(estimate)
    if math.isnan(value + low + high) or not low < high:
        return math.inf  # said where the interval is asked for
    tail = (1 - confidence) / 2
    if value >= 1 or value <= 0:
        open_ = max(low, 1e-300) if value >= 1 else max(1 - high, 1e-300)
        return math.log(tail) / min(math.log(open_), -1e-12)
    z = NormalDist().inv_cdf(1 - tail)
    return value * (1 - value) * (2 * z / (high - low)) ** 2


def _best_of_losses(share: float, inputs: float, confidence: float) -> float:
    """The high end of the mean of −1 for a share of the inputs and 0 for others.

    As the bootstrap has it: every input weighed at random, and beside them one more, which is 1.
    """
    rng = seeds.generator(0, "worst case", round(inputs))
    share = min(1.0, max(0.0, share))
    lost, others = share * inputs, (1 - share) * inputs
    weights = [rng.gamma(shape, size=_DRAWS) for shape in (lost, others, 1.0)]
    means = (weights[2] - weights[0]) / np.sum(weights, axis=0)
    return float(np.quantile(means, (1 + confidence) / 2))


def further_inputs(
    rule: Rule,
    estimate: Estimate,
    threshold: float,
    inputs: float,
    *,
    confidence: float,
    exact: bool = True,
) -> int | None:
    """About how many further inputs, drawn like these, would settle what an interval leaves open.

    The value is taken to stay what it is. None where no number below ten millions is enough, as
    where the value is the threshold. `exact` states that shares are of whole inputs.
    """
    gap = abs(estimate.value - threshold)
    if not math.isfinite(gap) or gap <= ROUNDING or inputs < 1:
        return None
    if exact and _of_all_inputs(metric(rule.metric)) and rule.relative_to is None:
        total = _share_settled(estimate.value, threshold, inputs, confidence)
    else:
        end = estimate.low if estimate.value > threshold else estimate.high
        if end is None or not math.isfinite(end):
            return None
        total = math.ceil(inputs * ((end - estimate.value) / gap) ** 2)
    return _further(total, inputs)


def further_disagreements(
    rule: Rule,
    estimate: Estimate,
    threshold: float,
    inputs: float,
    churn: float | None,
    *,
    confidence: float,
) -> int | None:
    """About how many inputs would settle it if only those are labelled on which labels differ.

    Only they can be lost or gained. The share of inputs on which labels differ needs no truth, so
    the metric is that share times its mean among the labelled disagreements: a stratified
    estimate. None for metrics that also depend on the truth of other inputs, and for classes.
    """
    if rule.metric not in OF_DISAGREEMENTS or rule.relative_to is not None:
        return None
    if rule.class_name is not None:  # only its truth shows of which class an input is
        return None
    if churn is None or not 0 < churn <= 1 or math.isnan(estimate.value):
        return None
    known = churn * inputs
    mean, limit = estimate.value / churn, threshold / churn
    if abs(limit) >= 1 or abs(mean - limit) <= ROUNDING:
        return None
    if rule.metric == "accuracy_change":
        # Each is a gain, a loss, or neither: the variance is at most 1 − mean².
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        total: int | None = math.ceil((1 - mean**2) * (z / (mean - limit)) ** 2)
    else:
        total = _share_settled(min(1.0, mean), limit, known, confidence)
    return _further(total, known)


def _further(total: int | None, known: float) -> int | None:
    if total is None:
        return None
    more = max(1, math.ceil(total - known))
    return more if more <= MOST_FURTHER else None


def _share_settled(share: float, threshold: float, inputs: float, confidence: float) -> int | None:
    """The fewest inputs with this share whose exact interval leaves the threshold out."""

    def settled(count: int) -> bool:
        cases, of = np.array([round(share * count)]), np.array([count])
        low, high = clopper_pearson(cases, of, confidence=confidence)
        return bool(low[0] > threshold) if share > threshold else bool(high[0] <= threshold)

    short, enough = 0, max(1, math.ceil(inputs))
    while not settled(enough):
        short, enough = enough, 2 * enough
        if short > 2 * MOST_FURTHER:
            return None
    while enough - short > max(1, enough // 200):  # a projection: half a percent is enough
        middle = (short + enough) // 2
        short, enough = (short, middle) if settled(middle) else (middle, enough)
    return enough
