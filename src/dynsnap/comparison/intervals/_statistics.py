"""The metrics as functions of sums, and what one more input can do to each: at worst and at best.

A new kind of metric joins here as one more `Statistic`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dynsnap._types import Floats
from dynsnap.comparison.intervals._bayesian_bootstrap import Ends, Metrics
from dynsnap.metrics import metric
from dynsnap.metrics._catalogue import metrics_of_cases
from dynsnap.metrics._ratios import kappa, ratio
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
    """

    columns: tuple[str, ...]
    truth: bool
    new_accuracy: bool = False
    exact: frozenset[str] = frozenset()

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
        means = _means(self.columns, columns, cases.sum(axis=-1), extra, exact=self.exact)
        return Ends({**low, **means.low}, {**high, **means.high})

    @property
    def _names(self) -> frozenset[str]:
        more = {NEW_ACCURACY} if self.new_accuracy and self.truth else set()
        return frozenset(metrics_of_cases(truth=self.truth)) | more


@dataclass(frozen=True)
class GenerationStatistic:
    """Every metric of a generation.

    Attributes:
        columns: The metrics that are the mean of one number per input.
    """

    columns: tuple[str, ...]

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
        found = _means(self.columns, means[..., 1:], weight, extra)
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
) -> Ends:
    """Means of numbers in a known range, from (..., columns), with one more at either end of it."""
    low, high = {}, {}
    whole = weight + extra
    for place, name in enumerate(names):
        if name not in exact:
            least, most = metric(name).range
            low[name] = ratio(sums[..., place] + extra * least, whole)
            high[name] = ratio(sums[..., place] + extra * most, whole)
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
