"""The metrics as functions of sums, and what one more input can do to each: at worst and at best.

A new kind of metric joins here as one more `Statistic`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison.intervals._bayesian_bootstrap import Ends, Metrics, Sampled
from dynsnap.metrics import catalogue, metric
from dynsnap.metrics._catalogue import metrics_of_cases
from dynsnap.metrics._classification import Confusion, of_classes, of_labels, with_one_more
from dynsnap.metrics._ranking import ClassRanks, overall, step_of
from dynsnap.metrics._ratios import kappa, ratio
from dynsnap.metrics._row_tally import Reach
from dynsnap.metrics._tally_formulas import (
    NEW_ACCURACY,
    agreement_metrics,
    cohen_kappa,
    generation_metrics,
    pair_metrics,
)
from dynsnap.metrics._tally_layout import CASES, CASES_WITHOUT_TRUTH

LowHigh: TypeAlias = tuple[Floats, Floats]


@dataclass(frozen=True)
class PairStatistic:
    """Every metric of a pair but Cohen's kappa.

    Attributes:
        columns: The metrics that are the mean of one number per input.
        truth: Whether the true classes are known.
        new_accuracy: Whether the accuracy of the newer generation is wanted, too.
        exact: The metrics whose interval is known without draws.
        without: Metrics of the cases that mean nothing here.
        reach: The least and the largest value that was seen, (groups,), of columns without limits.
    """

    columns: tuple[str, ...]
    truth: bool
    new_accuracy: bool = False
    exact: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    reach: Reach = field(default_factory=dict)

    def values(self, sums: Sequence[Floats]) -> Metrics:
        """From (..., cases + columns)."""
        return pair_metrics(sums[0], self.columns, truth=self.truth, names=self._names)

    def ends(self, drawn: Sequence[Floats], extra: Floats, observed: Sequence[Floats]) -> Ends:
        """One more input of each case in turn, and with each column at either end of its range."""
        (sums,) = drawn
        count = len(CASES if self.truth else CASES_WITHOUT_TRUTH)
        cases, columns = sums[..., :count], sums[..., count:]
        wanted = self._names - self.exact
        low: dict[str, Floats] = {}
        high: dict[str, Floats] = {}
        more = cases.copy()
        for case in range(count):
            more[..., case] += extra
            for name, each in pair_metrics(more, (), truth=self.truth, names=wanted).items():
                low[name] = np.minimum(low[name], each) if case else each
                high[name] = np.maximum(high[name], each) if case else each
            more[..., case] = cases[..., case]
        means = _means(
            self.columns, columns, cases.sum(axis=-1), extra, exact=self.exact, reach=self.reach
        )
        return Ends({**low, **means.low}, {**high, **means.high})

    @property
    def _names(self) -> frozenset[str]:
        more = {NEW_ACCURACY} if self.new_accuracy and self.truth else set()
        return (frozenset(metrics_of_cases(truth=self.truth)) | more) - self.without


@dataclass(frozen=True)
class MultipleStatistic:
    """Metrics of a pair as multiples of the same metrics of another pair: of the noise floor.

    Attributes:
        pair: The metrics above the line.
        floor: Those below it.
        names: Which of them, all with values from 0 up.
    """

    pair: PairStatistic
    floor: PairStatistic
    names: tuple[str, ...]

    def values(self, sums: Sequence[Floats]) -> Metrics:
        """From (..., cases + columns) of either pair."""
        above, below = self.pair.values(sums[:1]), self.floor.values(sums[1:])
        return {name: ratio(above[name], below[name]) for name in self.names}

    def ends(self, drawn: Sequence[Floats], extra: Floats, observed: Sequence[Floats]) -> Ends:
        """One more input that is at its best for one pair and at its worst for the other."""
        above = self.pair.ends(drawn[:1], extra, observed[:1])
        below = self.floor.ends(drawn[1:], extra, observed[1:])
        return Ends(
            {name: ratio(above.low[name], below.high[name]) for name in self.names},
            {name: ratio(above.high[name], below.low[name]) for name in self.names},
        )


@dataclass(frozen=True)
class GenerationStatistic:
    """Every metric of a generation.

    Attributes:
        columns: The metrics that are the mean of one number per input.
        most: The largest number that an input can have, where the catalogue knows none.
        reach: As for a pair.
    """

    columns: tuple[str, ...]
    most: Mapping[str, float] = field(default_factory=dict)
    reach: Reach = field(default_factory=dict)

    def values(self, sums: Sequence[Floats]) -> Metrics:
        """From (..., 1 + columns) and (..., 1 + bins)."""
        means, gaps = sums
        return generation_metrics(means, gaps, self.columns)

    def ends(self, drawn: Sequence[Floats], extra: Floats, observed: Sequence[Floats]) -> Ends:
        """Each column at either end of its range; the calibration error as a norm of its gaps.

        The expected calibration error is a sum of absolute means. In a sample it is too large, and
        in draws from the sample it is larger still. With the true signs instead of absolute values
        it is the mean of numbers between −1 and 1. In the sample that mean is at most the error
        that was seen, and it spreads alike: so the high end of the mean with the signs that were
        seen serves the error. And by the triangle inequality the error that was seen exceeds the
        true one by no more than the sum of what each mean is off, which gives the low end.
        """
        means, gaps = drawn
        weight = means[..., 0]
        found = _means(
            self.columns, means[..., 1:], weight, extra, most=self.most, reach=self.reach
        )
        if "correctness" not in self.columns:
            return found
        seen = ratio(observed[1], observed[0][..., :1])
        now = ratio(gaps, (weight + extra)[..., None])
        unseen = ratio(extra, weight + extra)
        with_signs = (np.where(seen < 0, -1.0, 1.0) * now).sum(axis=-1)
        off = np.abs(now - seen).sum(axis=-1)
        name = "expected_calibration_error"
        return Ends(
            {**found.low, name: np.abs(seen).sum(axis=-1) - off - unseen},
            {**found.high, name: with_signs + unseen},
        )


class ConfusionStatistic:
    """Every metric of the labels of one generation beside the truth."""

    def values(self, sums: Sequence[Floats]) -> Metrics:
        """From three times (..., classes), as in `Confusion`."""
        return of_labels(Confusion(*sums))

    def ends(self, drawn: Sequence[Floats], extra: Floats, observed: Sequence[Floats]) -> Ends:
        """One more input, labelled rightly, or as wrongly as can be."""
        return Ends(*with_one_more(Confusion(*drawn), extra))


class ClassStatistic:
    """Precision, recall and F1 of some classes, each a group of its own."""

    def values(self, sums: Sequence[Floats]) -> Metrics:
        """From (..., 3): by truth, by label, and where both are the class."""
        return of_classes(self._of(sums[0]))

    def ends(self, drawn: Sequence[Floats], extra: Floats, observed: Sequence[Floats]) -> Ends:
        """One more input that is of the class or got its label, rightly or not."""
        truth, label, both = self._of(drawn[0])
        whole = truth + label
        low = {
            "precision": ratio(both, label + extra),
            "recall": ratio(both, truth + extra),
            "f1": ratio(2 * both, whole + extra),
        }
        high = {
            "precision": ratio(both + extra, label + extra),
            "recall": ratio(both + extra, truth + extra),
            "f1": ratio(2 * (both + extra), whole + 2 * extra),
        }
        return Ends(low, high)

    def _of(self, sums: Floats) -> Confusion:
        return Confusion(*(sums[..., place] for place in range(3)))


@dataclass(frozen=True, eq=False)
class RankStatistic:
    """AUROC and average precision of one generation: over all classes, or of some of them.

    A draw moves each value by the influence of the inputs, to first order.

    Attributes:
        ranks: What was counted.
        heaviest: The largest weight of an input.
        chosen: The classes that are a group each; None for all classes in one group.
    """

    ranks: ClassRanks
    heaviest: float
    chosen: AnyArray | None = None

    def values(self, sums: Sequence[Floats]) -> Metrics:
        """Of what was counted; (..., 6 times classes) states how much weight there is."""
        values = {
            "auroc": self.ranks.auroc,
            "average_precision": self.ranks.average_precision,
        }
        if self.chosen is not None:
            return {name: each[self.chosen] for name, each in values.items()}
        weight = self._columns(sums[0])[0]
        found = {}
        for name, each in values.items():
            found[name], found[f"{name}_weighted"] = overall(
                np.broadcast_to(each, weight.shape), weight
            )
        return found

    def ends(self, drawn: Sequence[Floats], extra: Floats, observed: Sequence[Floats]) -> Ends:
        """One more input, of a class or not, ranked first or last in it."""
        inside, outside, *moved = self._columns(drawn[0])
        more = extra[..., None] if self.chosen is None else extra
        some = [each if self.chosen is None else each[self.chosen] for each in self.ranks[:2]]
        area = np.clip(some[0] + ratio(moved[0], inside) + ratio(moved[1], outside), 0, 1)
        mean = np.clip(some[1] + ratio(moved[2] + moved[3], inside), 0, 1)
        kept, rest = ratio(inside, inside + more), ratio(outside, outside + more)
        worse, better = self._steps(extra)
        # Of each: with an input of the class at worst and at best, and with another.
        four = {
            "auroc": (area * kept, area * rest, 1 - (1 - area) * kept, 1 - (1 - area) * rest),
            "average_precision": (mean * kept, mean * worse, 1 - (1 - mean) * better, mean),
        }
        if self.chosen is not None:
            return Ends(
                {name: np.minimum(*each[:2]) for name, each in four.items()},
                {name: np.maximum(*each[2:]) for name, each in four.items()},
            )
        low: dict[str, Floats] = {}
        high: dict[str, Floats] = {}
        for name, (own_low, low_else, own_high, high_else) in four.items():
            low |= _over_classes(name, own_low, low_else, inside, extra, 1)
            high |= _over_classes(name, own_high, high_else, inside, extra, -1)
        return Ends(low, high)

    def _columns(self, sums: Floats) -> list[Floats]:
        wide = sums.reshape(*sums.shape[:-1], -1, 6) if self.chosen is None else sums
        return [wide[..., place] for place in range(6)]

    def _steps(self, extra: Floats) -> tuple[Floats, Floats]:
        """What one more input leaves of the average precision, and of its distance to 1."""
        worse, better = self.ranks.worse, self.ranks.better
        if self.chosen is None:
            made = [step_of(each, extra, self.heaviest) for each in (worse, better)]
            return made[0], made[1]
        # The weight is drawn once for all classes.
        chosen = [
            step_of(each[self.chosen], extra[:, 0], self.heaviest) for each in (worse, better)
        ]
        return chosen[0], chosen[1]


def _over_classes(
    name: str, own: Floats, other: Floats, weight: Floats, extra: Floats, sign: int
) -> dict[str, Floats]:
    """The worst (sign 1) or best (-1) means over classes with one more input, which is of one class
    and not of the others: from the value of each class where it is of it, and where it is not."""
    if own.shape[-1] == 2:
        end = sign * np.minimum(sign * own[..., 1], sign * other[..., 1])
        return {name: end, f"{name}_weighted": end}
    known = ~np.isnan(own)
    count = known.sum(axis=-1)
    filled = np.where(known, other, 0)
    step = np.where(known, own - other, 0)
    total = filled.sum(axis=-1)
    mean = ratio(total + sign * np.minimum((sign * step).min(axis=-1), 0), count)
    weights = np.where(known, weight, 0)
    more = extra[..., None]
    part = np.where(known, (weights + more) * own - weights * other, 0)
    most = sign * (sign * part).min(axis=-1) + (weights * filled).sum(axis=-1)
    return {name: mean, f"{name}_weighted": ratio(most, weights.sum(axis=-1) + extra)}


def changes(old: Sampled, new: Sampled) -> Sampled:
    """The change of every metric of a generation that has one, new minus old, draw by draw.

    The further input is at its worst for the new generation and at its best for the old one.
    """
    names = {f"{name}_change": name for name in new.values if name in old.values}
    known = {change: name for change, name in names.items() if change in catalogue}

    def apart(one: Metrics, other: Metrics) -> Metrics:
        with np.errstate(invalid="ignore"):
            return {
                change: one[name] - other[name]
                for change, name in known.items()
                if name in one and name in other
            }

    return Sampled(
        apart(new.values, old.values),
        Ends(apart(new.ends.low, old.ends.high), apart(new.ends.high, old.ends.low)),
    )


@dataclass(frozen=True)
class CohenStatistic:
    """Cohen's kappa of a pair.

    Attributes:
        truth: Whether the true classes are known.
    """

    truth: bool

    def values(self, sums: Sequence[Floats]) -> Metrics:
        """From (..., cases) and twice (..., classes)."""
        cases, old, new = sums
        return {"cohen_kappa": cohen_kappa(ratio(*_changed(cases, self.truth)), old, new)}

    def ends(self, drawn: Sequence[Floats], extra: Floats, observed: Sequence[Floats]) -> Ends:
        """One more input whose label changed, or did not."""
        cases, old, new = drawn
        changed, weight = _changed(cases, self.truth)
        chance = _chance(_shares(old), _shares(new), ratio(extra, weight))
        low, high = _kappas(_share(changed, weight, extra), chance)
        return Ends({"cohen_kappa": low}, {"cohen_kappa": high})


@dataclass(frozen=True)
class AgreementStatistic:
    """Metrics of all generations at once.

    Attributes:
        pairs: How many pairs there are.
        truth: Whether the true classes are known.
        given: How many labels were given in all.
    """

    pairs: int
    truth: bool
    given: int

    def values(self, sums: Sequence[Floats]) -> Metrics:
        """From (..., 2), what is ambiguous and all there is; the cases of pairs; the labels."""
        ambiguous, *others = sums
        churns = self._churns(others)
        return agreement_metrics(
            churns,
            others[self.pairs :],
            ambiguity=churns[0] if self.pairs == 1 else ratio(ambiguous[..., 0], ambiguous[..., 1]),
            values=self.given,
        )

    def ends(self, drawn: Sequence[Floats], extra: Floats, observed: Sequence[Floats]) -> Ends:
        """One more input that all generations label differently, or all alike.

        The discrepancy is the largest of some shares, and too large in a sample. By the triangle
        inequality it is so by no more than what any of the shares is off.
        """
        ambiguous, *sums = drawn
        pairs = [_changed(each, self.truth) for each in sums[: self.pairs]]
        shares = [_share(changed, weight, extra) for changed, weight in pairs]
        low, high = (np.stack(side) for side in zip(*shares, strict=True))
        pooled = np.mean([_shares(each) for each in sums[self.pairs :]], axis=0)
        chance = _chance(pooled, pooled, ratio(extra, pairs[0][1]))
        fleiss = _kappas((low.mean(axis=0), high.mean(axis=0)), chance)
        seen = np.stack(self._churns(observed[1:]))
        ambiguity = shares[0]
        if self.pairs > 1:
            ambiguity = _share(ambiguous[..., 0], ambiguous[..., 1], extra)
        discrepancy = (
            seen.max(axis=0) - (seen[:, None] - low).max(axis=0),
            high.max(axis=0),
        )
        shrunk = (self.given - 1) / self.given
        found = [
            {
                "fleiss_kappa": fleiss[side],
                "krippendorff_alpha": 1 - (1 - fleiss[side]) * shrunk,
                "ambiguity": ambiguity[side],
                "discrepancy": discrepancy[side],
            }
            for side in (0, 1)
        ]
        return Ends(*found)

    def _churns(self, sums: Sequence[Floats]) -> list[Floats]:
        return [ratio(*_changed(each, self.truth)) for each in sums[: self.pairs]]


def _means(
    names: Sequence[str],
    sums: Floats,
    weight: Floats,
    extra: Floats,
    *,
    exact: frozenset[str] = frozenset(),
    reach: Reach | None = None,
    most: Mapping[str, float] | None = None,
) -> Ends:
    """Means of numbers in a known range, from (..., columns), with one more at either end of it.

    Where the range has no end, the one more is as far out as any that was seen.
    """
    low, high = {}, {}
    whole = weight + extra
    for place, name in enumerate(names):
        if name not in exact:
            ends = [
                reach[name][side] if reach and name in reach and math.isinf(end) else end
                for side, end in enumerate(metric(name).range)
            ]
            largest = (most or {}).get(name, ends[1])
            low[name] = ratio(sums[..., place] + extra * ends[0], whole)
            high[name] = ratio(sums[..., place] + extra * largest, whole)
    return Ends(low, high)


def _share(part: Floats, whole: Floats, extra: Floats) -> LowHigh:
    return ratio(part, whole + extra), ratio(part + extra, whole + extra)


def _changed(sums: Floats, truth: bool) -> tuple[Floats, Floats]:
    """How much changed its label, of how much, from (..., cases + columns)."""
    names = CASES if truth else CASES_WITHOUT_TRUTH
    cases = sums[..., : len(names)]
    changed = [
        place for place, name in enumerate(names) if name not in ("kept", "wrong_same", "same")
    ]
    return cases[..., changed].sum(axis=-1), cases.sum(axis=-1)


def _shares(labels: Floats) -> Floats:
    return ratio(labels, labels.sum(axis=-1, keepdims=True))


def _chance(old: Floats, new: Floats, extra: Floats) -> LowHigh:
    """The disagreement that chance gives, at least and at most, from shares (..., classes).

    It is least with one more input that has the commonest labels, and most with one whose label
    no other input has. `extra` is the weight of that input beside all others.
    """
    alike = (old * new).sum(axis=-1)
    common = alike + extra * (old.max(axis=-1) + new.max(axis=-1)) + extra**2
    whole = (1 + extra) ** 2
    return 1 - common / whole, 1 - alike / whole


def _kappas(churn: LowHigh, chance: LowHigh) -> LowHigh:
    return kappa(churn[1], chance[0]), kappa(churn[0], chance[1])
