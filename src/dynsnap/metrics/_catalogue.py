"""Every metric by name: what it is called, what it needs, which way is better, what its values are.

Tables, rules, intervals, JSON and pages all ask here, so that a metric is written down once. One
that follows from the cases of the inputs is complete with its entry; `register` adds another.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from dynsnap._registry import Registry
from dynsnap._types import Floats
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.metrics._ratios import ratio, relative_negative_flips

Direction: TypeAlias = Literal["higher", "lower", "neither"]
Scope: TypeAlias = Literal["generation", "pair", "many"]
Need: TypeAlias = Literal["truth", "scores"]
Interval: TypeAlias = Literal["share", "odds", "bootstrap"]
Range: TypeAlias = tuple[float, float]


class Cases(NamedTuple):
    """How much there is in all, and of each case of an input, old to new.

    The values are sums of weights, one for each resample and group. Without truth every input that
    keeps its label counts as `wrong_same`, and every other one as `wrong_other`.
    """

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


OfCases: TypeAlias = Callable[[Cases], Floats]

SHARE: Range = (0.0, 1.0)
_SIGNED: Range = (-1.0, 1.0)
_UNBOUNDED: Range = (0.0, math.inf)
# Between two rows of scores that have everything on one class each.
_FARTHEST = math.sqrt(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One entry of the catalogue.

    Attributes:
        name: The word in rules, JSON, tables and CSV files.
        symbol: The paper's symbol, or the field's usual one.
        meaning: One sentence for a reader who has not seen the metric before.
        direction: Which way is better; "neither" where it depends.
        scope: Whether it is about one generation, an ordered pair, or all generations at once.
        needs: What the predictions must hold beside labels.
        range: The least and the largest value, for a single input and so for the mean of many.
        interval: How far a value may be off, where all inputs count the same: "share" of the inputs
            in `whole` (exact, by Clopper and Pearson), "odds" of such a share, or "bootstrap".
        of_cases: The value, for a metric of a pair that follows from the cases of the inputs.
        whole: The inputs that it is a share of; all of them where this is None.
        aliases: Other words for it that rules may use.
    """

    name: str
    symbol: str
    meaning: str
    direction: Direction
    scope: Scope
    needs: frozenset[Need] = frozenset()
    range: Range = SHARE
    interval: Interval = "bootstrap"
    of_cases: OfCases | None = None
    whole: OfCases | None = None
    aliases: tuple[str, ...] = ()


_TRUTH: frozenset[Need] = frozenset({"truth"})
_SCORES: frozenset[Need] = frozenset({"scores"})
_BOTH: frozenset[Need] = _TRUTH | _SCORES


def _generation(
    name: str,
    symbol: str,
    direction: Direction,
    needs: frozenset[Need],
    meaning: str,
    *,
    interval: Interval = "bootstrap",
    aliases: tuple[str, ...] = (),
) -> Metric:
    return Metric(
        name=name,
        symbol=symbol,
        meaning=meaning,
        direction=direction,
        scope="generation",
        needs=needs,
        interval=interval,
        aliases=aliases,
    )


def _pair(
    name: str,
    symbol: str,
    direction: Direction,
    needs: frozenset[Need],
    meaning: str,
    of_cases: OfCases | None = None,
    *,
    interval: Interval = "bootstrap",
    whole: OfCases | None = None,
    range: Range = SHARE,  # noqa: A002  the field is called so
    aliases: tuple[str, ...] = (),
) -> Metric:
    return Metric(
        name=name,
        symbol=symbol,
        meaning=meaning,
        direction=direction,
        scope="pair",
        needs=needs,
        range=range,
        interval=interval,
        of_cases=of_cases,
        whole=whole,
        aliases=aliases,
    )


def _many(
    name: str,
    symbol: str,
    direction: Direction,
    meaning: str,
    *,
    interval: Interval = "bootstrap",
    range: Range = SHARE,  # noqa: A002  the field is called so
) -> Metric:
    return Metric(
        name=name,
        symbol=symbol,
        meaning=meaning,
        direction=direction,
        scope="many",
        range=range,
        interval=interval,
    )


def _top_k_accuracy(k: int) -> Metric:
    return _generation(
        f"top_{k}_accuracy",
        f"CACC-{k}",
        "higher",
        _BOTH,
        f"Share of inputs whose true class is among the {k} highest scores.",
        interval="share",
    )


def _top_k_consistency(k: int) -> Metric:
    return _pair(
        f"top_{k}_consistency",
        f"CCON-{k}",
        "higher",
        _SCORES,
        f"Share of inputs whose {k} highest classes, old and new, have one in common.",
        interval="share",
    )


# Whole numbers are added up before they are divided, so that shares come out exact.
_ENTRIES = (
    _generation(
        "accuracy",
        "ACC",
        "higher",
        _TRUTH,
        "Share of inputs labelled correctly.",
        interval="share",
    ),
    _top_k_accuracy(2),
    _generation(
        "correctness",
        "corr",
        "higher",
        _BOTH,
        "How near the scores are to the truth: 1 when all weight is on it, 0 when on one other.",
    ),
    _generation(
        "expected_calibration_error",
        "ECE",
        "lower",
        _BOTH,
        "Mean gap between confidence and accuracy over bins of equal width.",
        aliases=("ece",),
    ),
    _pair(
        "consistency",
        "CON",
        "higher",
        frozenset(),
        "Share of inputs that both generations label the same.",
        lambda of: ratio(of.kept + of.wrong_same, of.all),
        interval="share",
    ),
    _pair(
        "correct_consistency",
        "ACC-CON",
        "higher",
        _TRUTH,
        "Share of inputs that both generations label correctly.",
        lambda of: ratio(of.kept, of.all),
        interval="share",
    ),
    _top_k_consistency(2),
    _pair(
        "kept",
        "CtoC",
        "higher",
        _TRUTH,
        "Share of inputs right before and right now.",
        lambda of: ratio(of.kept, of.all),
        interval="share",
    ),
    _pair(
        "gained",
        "ItoC",
        "higher",
        _TRUTH,
        "Share of inputs wrong before and right now.",
        lambda of: ratio(of.gained, of.all),
        interval="share",
        aliases=("positive_flip_rate", "pfr"),
    ),
    _pair(
        "lost",
        "CtoI",
        "lower",
        _TRUTH,
        "Share of inputs right before and wrong now.",
        lambda of: ratio(of.lost, of.all),
        interval="share",
        aliases=("negative_flip_rate", "nfr"),
    ),
    _pair(
        "never",
        "ItoI",
        "lower",
        _TRUTH,
        "Share of inputs wrong before and wrong now.",
        lambda of: ratio(of.never, of.all),
        interval="share",
    ),
    _pair(
        "composite",
        "Com",
        "higher",
        _TRUTH,
        "Kept plus gained minus lost: the new accuracy less what was lost.",
        lambda of: ratio(of.kept + of.gained - of.lost, of.all),
        range=_SIGNED,
    ),
    _pair(
        "churn",
        "churn",
        "lower",
        frozenset(),
        "Share of inputs whose label changed.",
        lambda of: ratio(of.gained + of.lost + of.wrong_other, of.all),
        interval="share",
    ),
    _pair(
        "neutral_churn",
        "neutral",
        "lower",
        _TRUTH,
        "Share of inputs whose label changed from one wrong class to another.",
        lambda of: ratio(of.wrong_other, of.all),
        interval="share",
    ),
    _pair(
        "relative_negative_flip_rate",
        "rel-NFR",
        "lower",
        _TRUTH,
        "Lost, relative to what two unrelated models of these accuracies would lose.",
        lambda of: relative_negative_flips(
            ratio(of.lost, of.all),
            ratio(of.kept + of.lost, of.all),
            ratio(of.lost + of.never, of.all),
        ),
        range=_UNBOUNDED,
        aliases=("relative_nfr",),
    ),
    _pair(
        "backward_trust_compatibility",
        "BTC",
        "higher",
        _TRUTH,
        "Of the inputs that were right before, the share that is right now.",
        lambda of: ratio(of.kept, of.kept + of.lost),
        interval="share",
        whole=lambda of: of.kept + of.lost,
        aliases=("btc",),
    ),
    _pair(
        "backward_error_compatibility",
        "BEC",
        "higher",
        _TRUTH,
        "Of the inputs that are wrong now, the share that was wrong before.",
        lambda of: ratio(of.never, of.lost + of.never),
        interval="share",
        whole=lambda of: of.lost + of.never,
        aliases=("bec",),
    ),
    _pair(
        "win_loss_ratio",
        "PFR/NFR",
        "higher",
        _TRUTH,
        "Inputs gained for each input lost.",
        lambda of: ratio(of.gained, of.lost),
        interval="odds",
        whole=lambda of: of.gained + of.lost,
        range=_UNBOUNDED,
    ),
    _pair(
        "cohen_kappa",
        "κ",
        "higher",
        frozenset(),
        "Agreement beyond what the frequencies of the labels give by chance.",
        range=_SIGNED,
    ),
    _pair(
        "pearson",
        "r",
        "higher",
        _SCORES,
        "Mean correlation of the two rows of scores.",
        range=_SIGNED,
    ),
    _pair("cosine", "cos", "higher", _SCORES, "Mean cosine of the two rows of scores."),
    _pair(
        "minkowski",
        "d",
        "lower",
        _SCORES,
        "Mean distance of the two rows of scores.",
        range=(0.0, _FARTHEST),
        aliases=("distance",),
    ),
    _pair(
        "correct_distance",
        "cd",
        "lower",
        _BOTH,
        "Mean distance of the two rows from each other and of each from the truth.",
        range=(0.0, 3 * _FARTHEST),
    ),
    _pair(
        "prediction_difference",
        "TV",
        "lower",
        _SCORES,
        "Mean share of the score that moved to other classes (total variation).",
        aliases=("total_variation",),
    ),
    _pair(
        "jensen_shannon",
        "JS",
        "lower",
        _SCORES,
        "Mean Jensen-Shannon divergence of the two rows of scores, in bits.",
    ),
    _many(
        "fleiss_kappa",
        "Fleiss κ",
        "higher",
        "Agreement of all generations beyond what the pooled label frequencies give by chance.",
        range=_SIGNED,
    ),
    _many(
        "krippendorff_alpha",
        "α",
        "higher",
        "Fleiss' kappa with Krippendorff's correction for few inputs.",
        range=_SIGNED,
    ),
    _many(
        "ambiguity",
        "ambiguity",
        "lower",
        "Share of inputs whose label any generation changed.",
        interval="share",
    ),
    _many("discrepancy", "discrepancy", "lower", "The largest churn between any two generations."),
)

catalogue: Registry[Metric] = Registry("metric", {entry.name: entry for entry in _ENTRIES})

# Other words for the same thing -> the name above.
aliases: Mapping[str, str] = MappingProxyType(
    {alias: entry.name for entry in _ENTRIES for alias in entry.aliases}
)

_TOP_K = re.compile(r"top_([1-9][0-9]{0,5})_(accuracy|consistency)")


def metric(name: str) -> Metric:
    """The entry of a metric, by its name or by another word for it.

    `top_<k>_accuracy` and `top_<k>_consistency` exist for every k; the catalogue lists k = 2.

    Example:
        >>> metric("top_5_accuracy").symbol
        'CACC-5'
        >>> metric("negative_flip_rate").name
        'lost'
    """
    if name in catalogue:
        return catalogue[name]
    if match := _TOP_K.fullmatch(name):
        k = int(match[1])
        return _top_k_accuracy(k) if match[2] == "accuracy" else _top_k_consistency(k)
    for entry in catalogue.values():
        if name in entry.aliases:
            return entry
    # Reports show the symbol beside the name, so people write it.
    every = catalogue.values()
    meant = next((one.name for one in every if one.symbol.lower() == name.lower()), name)
    hint = did_you_mean(meant, [*catalogue, *aliases])
    raise PlanError(f"There is no metric {name!r}. {hint}")


def register(entry: Metric) -> None:
    """Make a metric known in this process: comparisons, rules and reports then have it.

    Args:
        entry: A metric of a pair that follows from the cases of the inputs.

    Example:
        >>> with catalogue.restored():  # forgotten afterwards
        ...     register(Metric(name="stuck", symbol="stuck", meaning="Share wrong alike.",
        ...                     direction="lower", scope="pair", needs=frozenset({"truth"}),
        ...                     interval="share", of_cases=lambda of: of.wrong_same / of.all))
        ...     metric("stuck").direction
        'lower'
    """
    if entry.scope != "pair" or entry.of_cases is None or "scores" in entry.needs:
        raise PlanError(
            f"The metric {entry.name!r} must be one of a pair that follows from the cases: give it "
            '`scope="pair"` and `of_cases`. A metric of scores needs the kernels of dynsnap.'
        )
    known = {*catalogue.own, *aliases}
    taken = [
        word for word in (entry.name, *entry.aliases) if word in known or _TOP_K.fullmatch(word)
    ]
    if taken:
        raise PlanError(f"The metric {taken[0]!r} is part of dynsnap. Choose another name.")
    catalogue.add(entry.name, entry)


def metrics_of_cases(*, truth: bool) -> dict[str, OfCases]:
    """The metrics of a pair that come from its cases alone, by name."""
    return {
        name: entry.of_cases
        for name, entry in catalogue.items()
        if entry.of_cases is not None and (truth or "truth" not in entry.needs)
    }
