"""Every metric by name: what it is called, what it needs, and which way is better.

Tables, rules, JSON and pages all speak these names, so a metric is spelled once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from dynsnap.errors import PlanError, did_you_mean

Direction: TypeAlias = Literal["higher", "lower", "neither"]
Scope: TypeAlias = Literal["generation", "pair", "many"]
Need: TypeAlias = Literal["truth", "scores"]


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
    """

    name: str
    symbol: str
    meaning: str
    direction: Direction
    scope: Scope
    needs: frozenset[Need] = frozenset()


_TRUTH: frozenset[Need] = frozenset({"truth"})
_SCORES: frozenset[Need] = frozenset({"scores"})
_BOTH: frozenset[Need] = _TRUTH | _SCORES


def _generation(
    name: str, symbol: str, direction: Direction, needs: frozenset[Need], meaning: str
) -> Metric:
    return Metric(
        name=name,
        symbol=symbol,
        meaning=meaning,
        direction=direction,
        scope="generation",
        needs=needs,
    )


def _pair(
    name: str, symbol: str, direction: Direction, needs: frozenset[Need], meaning: str
) -> Metric:
    return Metric(
        name=name, symbol=symbol, meaning=meaning, direction=direction, scope="pair", needs=needs
    )


def _many(name: str, symbol: str, direction: Direction, meaning: str) -> Metric:
    return Metric(name=name, symbol=symbol, meaning=meaning, direction=direction, scope="many")


def _top_k_accuracy(k: int) -> Metric:
    return _generation(
        f"top_{k}_accuracy",
        f"CACC-{k}",
        "higher",
        _BOTH,
        f"Share of inputs whose true class is among the {k} highest scores.",
    )


def _top_k_consistency(k: int) -> Metric:
    return _pair(
        f"top_{k}_consistency",
        f"CCON-{k}",
        "higher",
        _SCORES,
        f"Share of inputs whose {k} highest classes, old and new, have one in common.",
    )


_ENTRIES = (
    _generation("accuracy", "ACC", "higher", _TRUTH, "Share of inputs labelled correctly."),
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
    ),
    _pair("consistency", "CON", "higher", frozenset(), "Share of inputs labelled alike."),
    _pair(
        "correct_consistency",
        "ACC-CON",
        "higher",
        _TRUTH,
        "Share of inputs that both generations label correctly.",
    ),
    _top_k_consistency(2),
    _pair("kept", "CtoC", "higher", _TRUTH, "Share of inputs right before and right now."),
    _pair("gained", "ItoC", "higher", _TRUTH, "Share of inputs wrong before and right now."),
    _pair("lost", "CtoI", "lower", _TRUTH, "Share of inputs right before and wrong now."),
    _pair("never", "ItoI", "lower", _TRUTH, "Share of inputs wrong before and wrong now."),
    _pair(
        "composite",
        "Com",
        "higher",
        _TRUTH,
        "Kept plus gained minus lost: the new accuracy less what was lost.",
    ),
    _pair("churn", "churn", "lower", frozenset(), "Share of inputs whose label changed."),
    _pair(
        "neutral_churn",
        "neutral",
        "lower",
        _TRUTH,
        "Share of inputs whose label changed from one wrong class to another.",
    ),
    _pair(
        "relative_negative_flip_rate",
        "rel-NFR",
        "lower",
        _TRUTH,
        "Lost, relative to what two unrelated models of these accuracies would lose.",
    ),
    _pair(
        "backward_trust_compatibility",
        "BTC",
        "higher",
        _TRUTH,
        "Of the inputs that were right before, the share that is right now.",
    ),
    _pair(
        "backward_error_compatibility",
        "BEC",
        "higher",
        _TRUTH,
        "Of the inputs that are wrong now, the share that was wrong before.",
    ),
    _pair("win_loss_ratio", "PFR/NFR", "higher", _TRUTH, "Inputs gained for each input lost."),
    _pair(
        "cohen_kappa",
        "κ",
        "higher",
        frozenset(),
        "Agreement beyond what the frequencies of the labels give by chance.",
    ),
    _pair("pearson", "r", "higher", _SCORES, "Mean correlation of the two rows of scores."),
    _pair("cosine", "cos", "higher", _SCORES, "Mean cosine of the two rows of scores."),
    _pair("minkowski", "d", "lower", _SCORES, "Mean distance of the two rows of scores."),
    _pair(
        "correct_distance",
        "cd",
        "lower",
        _BOTH,
        "Mean distance of the two rows from each other and of each from the truth.",
    ),
    _pair(
        "prediction_difference",
        "TV",
        "lower",
        _SCORES,
        "Mean share of the score that moved to other classes (total variation).",
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
    ),
    _many(
        "krippendorff_alpha",
        "α",
        "higher",
        "Fleiss' kappa with Krippendorff's correction for few inputs.",
    ),
    _many("ambiguity", "ambiguity", "lower", "Share of inputs whose label any generation changed."),
    _many("discrepancy", "discrepancy", "lower", "The largest churn between any two generations."),
)

catalogue: Mapping[str, Metric] = MappingProxyType({entry.name: entry for entry in _ENTRIES})

# Other words for the same thing -> the name above.
aliases: Mapping[str, str] = MappingProxyType(
    {
        "negative_flip_rate": "lost",
        "nfr": "lost",
        "positive_flip_rate": "gained",
        "pfr": "gained",
        "relative_nfr": "relative_negative_flip_rate",
        "btc": "backward_trust_compatibility",
        "bec": "backward_error_compatibility",
        "distance": "minkowski",
        "total_variation": "prediction_difference",
        "ece": "expected_calibration_error",
    }
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
    name = aliases.get(name, name)
    if name in catalogue:
        return catalogue[name]
    if match := _TOP_K.fullmatch(name):
        k = int(match[1])
        return _top_k_accuracy(k) if match[2] == "accuracy" else _top_k_consistency(k)
    # Reports show the symbol beside the name, so people write it.
    meant = next((one.name for one in _ENTRIES if one.symbol.lower() == name.lower()), name)
    hint = did_you_mean(meant, [*catalogue, *aliases])
    raise PlanError(f"There is no metric {name!r}. {hint}")
