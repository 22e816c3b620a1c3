"""How good the labels of one generation are: the metrics that scikit-learn has, from three sums.

How much weight each class has in truth, gets as a label, and gets rightly is all that precision,
recall, F1, balanced accuracy and Matthews' coefficient need. So they follow from sums that a tally
keeps anyway, for all inputs and for every resample at once.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Floats, Labels
from dynsnap.errors import InputError
from dynsnap.metrics._ratios import ratio, relative

Average: TypeAlias = Literal["macro", "weighted"] | int | str
OF_CLASS = ("precision", "recall", "f1")


class Confusion(NamedTuple):
    """Sums of weights by class, (..., classes): by truth, by label, and where both are the class.

    Of a confusion matrix these are the sums of rows and columns, and the diagonal.
    """

    truth: Floats
    label: Floats
    both: Floats

    @property
    def used(self) -> AnyArray:
        """Which classes are a true class or a label of any input."""
        return (self.truth > 0) | (self.label > 0)


def of_classes(of: Confusion) -> dict[str, Floats]:
    """Precision, recall and F1 of every class, (..., classes); NaN where they are 0/0."""
    return {
        "precision": ratio(of.both, of.label),
        "recall": ratio(of.both, of.truth),
        "f1": ratio(2 * of.both, of.truth + of.label),
    }


def of_labels(of: Confusion) -> dict[str, Floats]:
    """Every metric of the labels of one generation over all classes, by name, (...,).

    As in scikit-learn: an average is over classes that occur in truth or as a label, one that is
    0/0 there counts as 0, and balanced accuracy is over classes that occur in truth. Matthews'
    coefficient is 0 where only one label is given. Unlike there, it is NaN with one true class.
    """
    total = of.truth.sum(axis=-1)
    each = {name: np.where(np.isnan(one), 0, one) for name, one in of_classes(of).items()}
    known = of.used.sum(axis=-1)
    found = {
        "balanced_accuracy": ratio(each["recall"].sum(axis=-1), (of.truth > 0).sum(axis=-1)),
        "matthews": matthews_of(*moments(of)),
    }
    for name, values in each.items():
        found[f"{name}_macro"] = ratio(values.sum(axis=-1), known)
        # Of recall, the true classes cancel: what is left is the accuracy, to the last bit.
        part = of.both if name == "recall" else of.truth * values
        found[f"{name}_weighted"] = ratio(part.sum(axis=-1), total)
    return found


def moments(of: Confusion) -> tuple[Floats, Floats, Floats]:
    """Covariances of truth and label, of truth, and of label, each times the squared weight.

    As products with what is left: of whole numbers they are exact, and 0 where they should be.
    """
    total = of.truth.sum(axis=-1, keepdims=True)
    covariance = (of.both * total - of.truth * of.label).sum(axis=-1)
    spread = [(part * (total - part)).sum(axis=-1) for part in (of.truth, of.label)]
    return covariance, *spread


def matthews_of(covariance: Floats, truth: Floats, label: Floats) -> Floats:
    """Matthews' coefficient from its three covariances."""
    found = ratio(covariance, np.sqrt(np.maximum(truth * label, 0)))
    return np.where(truth <= 0, np.nan, np.where(label <= 0, 0.0, found))


def confusion(
    labels: Labels, truth: Labels, weights: AnyArray | None
) -> tuple[AnyArray, Confusion]:
    """The classes that occur, and their sums."""
    labels, truth = _check.labels(labels=labels, truth=truth)
    known, places = np.unique(np.concatenate([truth, labels]), return_inverse=True)
    each = relative(weights, inputs=len(labels))
    true, said = places[: len(truth)], places[len(truth) :]

    def summed(where: AnyArray, weight: Floats) -> Floats:
        return np.bincount(where, weight, minlength=len(known)).astype(np.float64)

    right = true == said
    sums = Confusion(summed(true, each), summed(said, each), summed(true[right], each[right]))
    return known, sums


def balanced_accuracy(labels: Labels, *, truth: Labels, weights: AnyArray | None = None) -> float:
    """Mean over the true classes of the share of their inputs that is labelled correctly.

    Example:
        >>> balanced_accuracy(np.array([0, 0, 0, 0]), truth=np.array([0, 0, 0, 1]))
        0.5
    """
    return float(of_labels(confusion(labels, truth, weights)[1])["balanced_accuracy"])


def matthews(labels: Labels, *, truth: Labels, weights: AnyArray | None = None) -> float:
    """Matthews' correlation coefficient of labels and truth: 1 is right always, 0 is chance.

    0 where only one label is ever given; NaN where there is only one true class.

    Example:
        >>> round(matthews(np.array([1, 0, 0, 1]), truth=np.array([1, 0, 1, 1])), 4)
        0.5774
    """
    return float(of_labels(confusion(labels, truth, weights)[1])["matthews"])


def precision(
    labels: Labels, *, truth: Labels, average: Average = "macro", weights: AnyArray | None = None
) -> float:
    """Of the inputs that got a label, the share that is of that class.

    Args:
        labels: The labels.
        truth: The true classes.
        average: "macro" (the mean over the classes), "weighted" (by the weight of the true
            classes), or one class.
        weights: The importance of each input.

    Example:
        >>> labels, truth = np.array([0, 1, 1, 1]), np.array([0, 1, 0, 1])
        >>> round(precision(labels, truth=truth), 4), precision(labels, truth=truth, average=0)
        (0.8333, 1.0)
    """
    return _averaged("precision", labels, truth, average, weights)


def recall(
    labels: Labels, *, truth: Labels, average: Average = "macro", weights: AnyArray | None = None
) -> float:
    """Of the inputs of a class, the share that got its label. Arguments as for `precision`.

    Example:
        >>> recall(np.array([0, 1, 1, 1]), truth=np.array([0, 1, 0, 1]), average=0)
        0.5
    """
    return _averaged("recall", labels, truth, average, weights)


def f1(
    labels: Labels, *, truth: Labels, average: Average = "macro", weights: AnyArray | None = None
) -> float:
    """The harmonic mean of precision and recall. Arguments as for `precision`.

    Example:
        >>> f1(np.array([0, 1, 1, 1]), truth=np.array([0, 1, 0, 1]), average=1)
        0.8
    """
    return _averaged("f1", labels, truth, average, weights)


def _averaged(
    name: str, labels: Labels, truth: Labels, average: Average, weights: AnyArray | None
) -> float:
    known, sums = confusion(labels, truth, weights)
    if average in ("macro", "weighted"):
        return float(of_labels(sums)[f"{name}_{average}"])
    place = np.flatnonzero(known == average)
    if not len(place):
        raise InputError(
            f'`average` must be "macro", "weighted" or a class that occurs, got {average!r}.'
        )
    return float(of_classes(sums)[name][place[0]])


def with_one_more(
    of: Confusion, extra: Floats
) -> tuple[Mapping[str, Floats], Mapping[str, Floats]]:
    """Every metric of `of_labels` with one more input: at its lowest, and at its highest.

    At worst, the input is of the class and has the label for which that costs most, each chosen for
    itself; at best, it is labelled rightly. It is of a class that others are of as well: an average
    over classes counts the only input of a class as much as all inputs of another.

    Args:
        of: The sums, (..., classes).
        extra: The weight of the further input, (...,).
    """
    more = extra[..., None]
    used, true = of.used, of.truth > 0
    total = of.truth.sum(axis=-1)

    def each(truth: Floats, label: Floats, both: Floats) -> dict[str, Floats]:
        found = of_classes(Confusion(truth, label, both))
        return {name: np.where(np.isnan(one), 0, one) for name, one in found.items()}

    now = each(*of)
    missed = each(of.truth + more, of.label, of.both)
    mistaken = each(of.truth, of.label + more, of.both)
    right = each(of.truth + more, of.label + more, of.both + more)
    low: dict[str, Floats] = {}
    high: dict[str, Floats] = {}
    for name in OF_CLASS:
        value = now[name]
        for out, known in ((f"{name}_macro", used), ("balanced_accuracy", true)):
            if out == "balanced_accuracy" and name != "recall":
                continue
            count = known.sum(axis=-1)
            mean = ratio(value.sum(axis=-1), count)
            drop = _least(missed[name] - value, true)
            if out != "balanced_accuracy":
                drop = drop + _least(mistaken[name] - value, known)
            gain = -_least(value - right[name], true)
            low[out], high[out] = mean + ratio(drop, count), mean + ratio(gain, count)
        if name == "recall":
            part = of.both.sum(axis=-1)
            low["recall_weighted"] = ratio(part, total + extra)
            high["recall_weighted"] = ratio(part + extra, total + extra)
            continue
        share = (of.truth * value).sum(axis=-1)
        drop = _least((of.truth + more) * missed[name] - of.truth * value, true)
        drop = drop + _least(of.truth * (mistaken[name] - value), used)
        gain = -_least(of.truth * value - (of.truth + more) * right[name], true)
        low[f"{name}_weighted"] = ratio(share + drop, total + extra)
        high[f"{name}_weighted"] = ratio(share + np.maximum(gain, extra), total + extra)
    low["matthews"], high["matthews"] = _matthews_ends(of, extra)
    return low, high


def _least(values: Floats, known: AnyArray) -> Floats:
    """The least value over the classes that occur; 0 where none is below."""
    return np.asarray(np.minimum(np.where(known, values, 0).min(axis=-1), 0))


_EXTREMES = 4  # the most and the least frequent classes, of which a further input may be


def _matthews_ends(of: Confusion, extra: Floats) -> tuple[Floats, Floats]:
    """Matthews' coefficient with one more input of any class and any label.

    Of many classes only the most and the least frequent are tried: the effect of an input is
    monotone in how frequent its class and its label are.
    """
    classes = of.truth.shape[-1]
    chosen = np.arange(classes)
    if classes > 2 * _EXTREMES:
        heavy = (of.truth + of.label).reshape(-1, classes).sum(axis=0)
        rank = np.argsort(heavy, kind="stable")
        chosen = np.concatenate([rank[:_EXTREMES], rank[-_EXTREMES:]])
    covariance, truth, label = moments(of)
    total, right = of.truth.sum(axis=-1), of.both.sum(axis=-1)
    low = high = matthews_of(covariance, truth, label)
    for true in chosen.tolist():
        for said in chosen.tolist():
            hit = extra if true == said else 0.0
            overlap = extra * (of.label[..., true] + of.truth[..., said] + hit)
            found = matthews_of(
                covariance + right * extra + hit * (total + extra) - overlap,
                truth + 2 * extra * (total - of.truth[..., true]),
                label + 2 * extra * (total - of.label[..., said]),
            )
            low, high = np.fmin(low, found), np.fmax(high, found)
    return low, high
