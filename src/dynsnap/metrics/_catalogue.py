"""Every metric by name: what it is called, what it needs, which way is better, what its values are.

Tables, rules, intervals, JSON and pages all ask here, so that a metric is written down once. One
that follows from the cases of the inputs is complete with its entry; `register` adds another.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from dynsnap._registry import Registry
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.metrics._metric import (
    ANY,
    BOTH,
    FARTHEST,
    SCORES,
    SIGNED,
    TRUTH,
    UNBOUNDED,
    Metric,
    OfCases,
    change,
    of_generation,
    of_many,
    of_pair,
    of_quality,
    top_k_accuracy_entry,
    top_k_consistency_entry,
)
from dynsnap.metrics._ratios import ratio, relative_negative_flips

_QUALITY = (
    of_quality(
        "balanced_accuracy",
        "BACC",
        "Mean over the true classes of the share of their inputs labelled correctly.",
    ),
    of_quality("precision_macro", "P macro", "Mean precision of all classes."),
    of_quality(
        "precision_weighted",
        "P weighted",
        "Mean precision of all classes, by how frequent they are in truth.",
    ),
    of_quality("recall_macro", "R macro", "Mean recall of all classes that are true or a label."),
    of_quality(
        "recall_weighted",
        "R weighted",
        "Mean recall of all classes, by how frequent they are in truth: the accuracy.",
        interval="share",
    ),
    of_quality("f1_macro", "F1 macro", "Mean F1 of all classes.", aliases=("macro_f1",)),
    of_quality(
        "f1_weighted",
        "F1 weighted",
        "Mean F1 of all classes, by how frequent they are in truth.",
        aliases=("weighted_f1",),
    ),
    of_quality(
        "matthews",
        "MCC",
        "Matthews' correlation of labels and truth: 1 is always right, 0 is chance.",
        range=SIGNED,
        aliases=("mcc", "matthews_correlation"),
    ),
    of_quality(
        "precision",
        "P",
        "Of the inputs that got the label of a class, the share that is of the class.",
        of="class",
        interval="share",
    ),
    of_quality(
        "recall",
        "R",
        "Of the inputs of a class, the share that got its label.",
        of="class",
        interval="share",
    ),
    of_quality("f1", "F1", "Harmonic mean of the precision and the recall of a class.", of="class"),
    of_quality(
        "log_loss",
        "log loss",
        "Mean negative logarithm of the score of the true class.",
        direction="lower",
        needs=BOTH,
        of="inputs",
        range=UNBOUNDED,
        aliases=("cross_entropy",),
    ),
    of_quality(
        "brier",
        "Brier",
        "Mean squared distance of the scores from the truth; half of it with two classes.",
        direction="lower",
        needs=BOTH,
        of="inputs",
        range=(0.0, 2.0),
        aliases=("brier_score",),
    ),
    of_quality(
        "auroc",
        "AUROC",
        "Chance that an input of a class scores higher than another; the mean over classes.",
        needs=BOTH,
        group="ranking",
        of="each",
        aliases=("auc", "roc_auc"),
    ),
    of_quality(
        "auroc_weighted",
        "AUROC weighted",
        "AUROC of all classes, each against the rest, by how frequent they are in truth.",
        needs=BOTH,
        group="ranking",
    ),
    of_quality(
        "average_precision",
        "AP",
        "Mean precision over the ranks of the inputs of a class; the mean over classes.",
        needs=BOTH,
        group="ranking",
        of="each",
    ),
    of_quality(
        "average_precision_weighted",
        "AP weighted",
        "Average precision of all classes, by how frequent they are in truth.",
        needs=BOTH,
        group="ranking",
    ),
)

_ACCURACY = of_generation(
    "accuracy",
    "ACC",
    "higher",
    TRUTH,
    "Share of inputs labelled correctly.",
    interval="share",
)

# Whole numbers are added up before they are divided, so that shares come out exact.
_ENTRIES = (
    _ACCURACY,
    top_k_accuracy_entry(2),
    of_generation(
        "correctness",
        "corr",
        "higher",
        BOTH,
        "How near the scores are to the truth: 1 when all weight is on it, 0 when on one other.",
    ),
    of_generation(
        "expected_calibration_error",
        "ECE",
        "lower",
        BOTH,
        "Mean gap between confidence and accuracy over bins of equal width.",
        aliases=("ece",),
    ),
    *_QUALITY,
    of_pair(
        "consistency",
        "CON",
        "higher",
        frozenset(),
        "Share of inputs that both generations label the same.",
        lambda of: ratio(of.kept + of.wrong_same, of.all),
        interval="share",
    ),
    of_pair(
        "correct_consistency",
        "ACC-CON",
        "higher",
        TRUTH,
        "Share of inputs that both generations label correctly.",
        lambda of: ratio(of.kept, of.all),
        interval="share",
    ),
    top_k_consistency_entry(2),
    of_pair(
        "kept",
        "CtoC",
        "higher",
        TRUTH,
        "Share of inputs right before and right now.",
        lambda of: ratio(of.kept, of.all),
        interval="share",
    ),
    of_pair(
        "gained",
        "ItoC",
        "higher",
        TRUTH,
        "Share of inputs wrong before and right now.",
        lambda of: ratio(of.gained, of.all),
        interval="share",
        aliases=("positive_flip_rate", "pfr"),
    ),
    of_pair(
        "lost",
        "CtoI",
        "lower",
        TRUTH,
        "Share of inputs right before and wrong now.",
        lambda of: ratio(of.lost, of.all),
        interval="share",
        aliases=("negative_flip_rate", "nfr"),
    ),
    of_pair(
        "never",
        "ItoI",
        "lower",
        TRUTH,
        "Share of inputs wrong before and wrong now.",
        lambda of: ratio(of.never, of.all),
        interval="share",
    ),
    of_pair(
        "composite",
        "Com",
        "higher",
        TRUTH,
        "Kept plus gained minus lost: the new accuracy less what was lost.",
        lambda of: ratio(of.kept + of.gained - of.lost, of.all),
        range=SIGNED,
    ),
    of_pair(
        "churn",
        "churn",
        "lower",
        frozenset(),
        "Share of inputs whose label changed.",
        lambda of: ratio(of.gained + of.lost + of.wrong_other, of.all),
        interval="share",
    ),
    of_pair(
        "neutral_churn",
        "neutral",
        "lower",
        TRUTH,
        "Share of inputs whose label changed from one wrong class to another.",
        lambda of: ratio(of.wrong_other, of.all),
        interval="share",
    ),
    of_pair(
        "relative_negative_flip_rate",
        "rel-NFR",
        "lower",
        TRUTH,
        "Lost, relative to what two unrelated models of these accuracies would lose.",
        lambda of: relative_negative_flips(
            ratio(of.lost, of.all),
            ratio(of.kept + of.lost, of.all),
            ratio(of.lost + of.never, of.all),
        ),
        range=UNBOUNDED,
        aliases=("relative_nfr",),
    ),
    of_pair(
        "backward_trust_compatibility",
        "BTC",
        "higher",
        TRUTH,
        "Of the inputs that were right before, the share that is right now.",
        lambda of: ratio(of.kept, of.kept + of.lost),
        interval="share",
        whole=lambda of: of.kept + of.lost,
        aliases=("btc",),
    ),
    of_pair(
        "backward_error_compatibility",
        "BEC",
        "higher",
        TRUTH,
        "Of the inputs that are wrong now, the share that was wrong before.",
        lambda of: ratio(of.never, of.lost + of.never),
        interval="share",
        whole=lambda of: of.lost + of.never,
        aliases=("bec",),
    ),
    of_pair(
        "win_loss_ratio",
        "PFR/NFR",
        "higher",
        TRUTH,
        "Inputs gained for each input lost.",
        lambda of: ratio(of.gained, of.lost),
        interval="odds",
        whole=lambda of: of.gained + of.lost,
        range=UNBOUNDED,
    ),
    of_pair(
        "cohen_kappa",
        "κ",
        "higher",
        frozenset(),
        "Agreement beyond what the frequencies of the labels give by chance.",
        range=SIGNED,
    ),
    of_pair(
        "pearson",
        "r",
        "higher",
        SCORES,
        "Mean correlation of the two rows of scores.",
        range=SIGNED,
    ),
    of_pair("cosine", "cos", "higher", SCORES, "Mean cosine of the two rows of scores."),
    of_pair(
        "minkowski",
        "d",
        "lower",
        SCORES,
        "Mean distance of the two rows of scores.",
        range=(0.0, FARTHEST),
        aliases=("distance",),
    ),
    of_pair(
        "correct_distance",
        "cd",
        "lower",
        BOTH,
        "Mean distance of the two rows from each other and of each from the truth.",
        range=(0.0, 3 * FARTHEST),
    ),
    of_pair(
        "prediction_difference",
        "TV",
        "lower",
        SCORES,
        "Mean share of the score that moved to other classes (total variation).",
        aliases=("total_variation",),
    ),
    of_pair(
        "jensen_shannon",
        "JS",
        "lower",
        SCORES,
        "Mean Jensen-Shannon divergence of the two rows of scores, in bits.",
    ),
    replace(change(_ACCURACY), of_cases=lambda of: ratio(of.gained - of.lost, of.all)),
    *(change(entry) for entry in _QUALITY),
    of_many(
        "fleiss_kappa",
        "Fleiss κ",
        "higher",
        "Agreement of all generations beyond what the pooled label frequencies give by chance.",
        range=SIGNED,
    ),
    of_many(
        "krippendorff_alpha",
        "α",
        "higher",
        "Fleiss' kappa with Krippendorff's correction for few inputs.",
        range=SIGNED,
    ),
    of_many(
        "ambiguity",
        "ambiguity",
        "lower",
        "Share of inputs whose label any generation changed.",
        interval="share",
    ),
    of_many(
        "discrepancy", "discrepancy", "lower", "The largest churn between any two generations."
    ),
)

# Of answers that are no classes, beside those metrics that follow from the cases.
_OF_TASKS = (
    Metric(
        name="mean_absolute_error",
        symbol="MAE",
        meaning="Mean distance of the predictions from the true numbers.",
        direction="lower",
        scope="generation",
        needs=TRUTH,
        range=UNBOUNDED,
        aliases=("mae",),
        tasks=("regression",),
    ),
    Metric(
        name="jaccard_accuracy",
        symbol="J-ACC",
        meaning="Mean share of labels in common with the truth, of all that either has.",
        direction="higher",
        scope="generation",
        needs=TRUTH,
        tasks=("multilabel",),
    ),
    Metric(
        name="mean_absolute_change",
        symbol="|Δ|",
        meaning="Mean distance of the two predictions from each other.",
        direction="lower",
        scope="pair",
        range=UNBOUNDED,
        tasks=("regression",),
    ),
    Metric(
        name="mean_absolute_error_change",
        symbol="ΔMAE",
        meaning="Mean absolute error of the newer predictions less that of the older.",
        direction="lower",
        scope="pair",
        needs=TRUTH,
        range=ANY,
        aliases=("mae_change",),
        change_of="mean_absolute_error",
        tasks=("regression",),
    ),
    Metric(
        name="jaccard_consistency",
        symbol="J-CON",
        meaning="Mean share of labels that the two sets have in common, of all that either has.",
        direction="higher",
        scope="pair",
        tasks=("multilabel", "ranking"),
    ),
)

catalogue: Registry[Metric] = Registry("metric", {entry.name: entry for entry in _ENTRIES})
task_metrics: Mapping[str, Metric] = MappingProxyType({entry.name: entry for entry in _OF_TASKS})

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
    if name in task_metrics:
        return task_metrics[name]
    if match := _TOP_K.fullmatch(name):
        k = int(match[1])
        return top_k_accuracy_entry(k) if match[2] == "accuracy" else top_k_consistency_entry(k)
    every = [*catalogue.values(), *task_metrics.values()]
    for entry in every:
        if name in entry.aliases:
            return entry
    # Reports show the symbol beside the name, so people write it.
    meant = next((one.name for one in every if one.symbol.lower() == name.lower()), name)
    names = [*catalogue, *aliases, *task_metrics]
    hint = did_you_mean(meant, names, page="docs/glossary.md")
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
    if entry.group != "consistency" or entry.of != "inputs" or entry.change_of is not None:
        raise PlanError(
            f"The metric {entry.name!r} follows from the cases of any inputs: leave out `group`, "
            "`of` and `change_of`."
        )
    known = {*catalogue.own, *aliases, *task_metrics}
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
