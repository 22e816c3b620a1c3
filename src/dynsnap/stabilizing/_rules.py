"""Rules that decide whether a deployed label changes, on bare arrays.

Changing a label from a to b loses a right answer with the probability that a is true, and gains
one with the probability that b is true. A rule estimates both and compares them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dynsnap import _check
from dynsnap._types import Floats, Labels, Scores
from dynsnap.errors import InputError, PlanError
from dynsnap.predictions import MARGIN, stabilize_scores

COST_RATIO = 2.0
_LEAST = 1e-6  # of a probability: no single answer of a model excludes a class for ever
_TIE = 1e-6  # what rounding may add to a lead; as in `stabilize_scores`


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What is known about inputs: the deployed label, and how likely each class is the true one.

    Attributes:
        labels: The column of the deployed class; -1 where nothing is deployed.
        posterior: (inputs, classes); rows sum to one. Rows without a deployed label are not read.
    """

    labels: Labels
    posterior: Scores


class Rule(Protocol):
    """Decides which labels change."""

    def decide(self, classes: tuple[str, ...], old: Belief, scores: Scores) -> Belief:
        """The belief after a model has scored the inputs.

        Args:
            classes: The names of the columns.
            old: The belief before; rows in the order of the scores.
            scores: (inputs, classes), what the new model scored; rows sum to one.
        """
        ...


def check_rule(rule: Rule) -> None:
    """Raise PlanError at once for what cannot decide, and not with the first request."""
    if isinstance(rule, type) or not callable(getattr(rule, "decide", None)):
        raise PlanError(
            "`rule` must be an object that decides which labels change, such as MarginRule(0.2), "
            f"but is {rule!r}."
        )


@dataclass(frozen=True, slots=True)
class MarginRule:
    """Keep the deployed label unless another class leads by a margin.

    Attributes:
        margin: By how much another class must lead.
        by_class: Margins of single deployed classes, which replace the common one.
        free: Classes that need no lead: a label of theirs is taken as it is. New classes belong
            here where a margin would suppress them, since no deployed label can be theirs.

    Example:
        >>> old = Belief(np.array([0, 0]), np.array([[1.0, 0.0], [1.0, 0.0]]))
        >>> scores = np.array([[0.45, 0.55], [0.1, 0.9]])
        >>> MarginRule(0.2).decide(("cat", "dog"), old, scores).labels
        array([0, 1])
    """

    margin: float = MARGIN
    by_class: Mapping[str, float] = field(default_factory=dict)
    free: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for margin in (self.margin, *self.by_class.values()):
            _check.margin(margin)

    def decide(self, classes: tuple[str, ...], old: Belief, scores: Scores) -> Belief:
        """The belief after a model has scored the inputs: the posterior is its scores."""
        found = old.labels.copy()
        margins = np.array([self.by_class.get(name, self.margin) for name in classes])
        wanted = scores.argmax(axis=1)
        for margin in np.unique(margins):
            rows = np.flatnonzero((old.labels >= 0) & (margins[old.labels] == margin))
            if len(rows):
                raised = stabilize_scores(scores[rows], old.labels[rows], margin=float(margin))
                found[rows] = raised.argmax(axis=1)
        return Belief(_with_free(found, old.labels, wanted, classes, self.free), scores)


@dataclass(frozen=True, slots=True, eq=False)
class CostRule:
    """Keep a posterior over all answers so far, and change a label where that is worth its cost.

    The rule of Träuble and others (NeurIPS 2021): the posterior before is multiplied by the
    likelihood of the new answer, and a label changes from a to b where b is more than `ratio` times
    as likely as a: the likeliest class of all, whether or not a model has named it. So a label on
    which both models agree may change, where two weak answers for a frequent class are together
    stronger evidence for a rare one. Generations of one model err together, so both have an
    exponent, of what they say beyond the shares; with exponents of 1 they count as independent.

    Attributes:
        ratio: What a lost right answer costs, in missed gains. 1 takes the likeliest class.
        shares: How often each class is the true one, by name.
        confusion: By true class (rows) and label (columns), in the order of `shares`: how often the
            model gives the label. Without one the scores are the likelihood.
        old_weight: The exponent of the posterior before.
        new_weight: The exponent of the likelihood of the new answer; the first answer for an input
            has none.
        new: Classes that the old model did not know. Its answer is no evidence for or against
            them, so their probability before is their share, except where one is deployed already.
        free: Classes whose labels are taken as they are.

    Example:
        >>> old = Belief(np.array([0, 0]), np.array([[0.8, 0.2], [0.8, 0.2]]))
        >>> rule = CostRule(2, shares={"cat": 0.5, "dog": 0.5})
        >>> found = rule.decide(("cat", "dog"), old, np.array([[0.25, 0.75], [0.05, 0.95]]))
        >>> found.labels, found.posterior.round(2)[:, 1]
        (array([0, 1]), array([0.43, 0.83]))
    """

    ratio: float
    shares: Mapping[str, float]
    confusion: Floats | None = None
    old_weight: float = 1.0
    new_weight: float = 1.0
    new: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _check.cost_ratio(self.ratio, name="ratio")
        for name, weight in (("old_weight", self.old_weight), ("new_weight", self.new_weight)):
            if not 0 <= weight <= 1:
                raise PlanError(f"`{name}` must be a number from 0 to 1, but is {weight}.")
        size = len(self.shares)
        if self.confusion is not None and np.shape(self.confusion) != (size, size):
            raise InputError(
                f"`confusion` must have a row and a column for each of {size} classes of `shares`, "
                f"but its shape is {np.shape(self.confusion)}."
            )

    def decide(self, classes: tuple[str, ...], old: Belief, scores: Scores) -> Belief:
        """The belief after a model has scored the inputs."""
        deployed = old.labels >= 0
        likelihood = self._likelihood(classes, scores)
        shares = self._shares_of(classes)
        before = self._before(classes, old, shares)
        prior = np.where(deployed[:, None], before, shares)
        # Both sides are evidence beyond the shares, which count once whatever the exponents are.
        together = np.log(shares) + np.log(prior / shares) * self.old_weight
        # A first answer repeats no earlier one: it counts in full, as the scores of a file do.
        together += np.log(likelihood) * np.where(deployed, self.new_weight, 1.0)[:, None]
        posterior = np.exp(together - together.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        rows = np.arange(len(scores))
        best = posterior.argmax(axis=1)
        of_deployed = posterior[rows, np.maximum(old.labels, 0)]
        keep = deployed & (posterior[rows, best] <= self.ratio * of_deployed * (1 + _TIE))
        wanted = scores.argmax(axis=1)
        found = np.where(keep, old.labels, np.where(deployed, best, wanted))
        return Belief(_with_free(found, old.labels, wanted, classes, self.free), posterior)

    def prior_of(self, classes: tuple[str, ...], labels: Labels, confusion: Floats) -> Scores:
        """The posterior of inputs of which only a label of an earlier model is known.

        Args:
            classes: The names of the columns that labels count.
            labels: A column for each input.
            confusion: As `confusion`, of the model that gave the labels.
        """
        found = self._shares_of(classes) * self._given(classes, labels, confusion)
        posterior: Scores = found / found.sum(axis=1, keepdims=True)
        return posterior

    def _shares_of(self, classes: tuple[str, ...]) -> Floats:
        shares = _positive(np.array([self.shares.get(name, 0.0) for name in classes]))
        normalized: Floats = shares / shares.sum()
        return normalized

    def _before(self, classes: tuple[str, ...], old: Belief, shares: Floats) -> Scores:
        new = np.array([name in self.new for name in classes])
        before = _positive(old.posterior)
        if new.any() and not new.all():
            known = before[:, ~new].sum(axis=1, keepdims=True)
            blind = np.where(new, shares, before * (1 - shares[new].sum()) / known)
            # A model that predicts a new class knows it: its answer is evidence.
            before = np.where(new[old.labels][:, None] & (old.labels >= 0)[:, None], before, blind)
        return before

    def _likelihood(self, classes: tuple[str, ...], scores: Scores) -> Scores:
        if self.confusion is None:
            return _positive(scores) / self._shares_of(classes)
        return self._given(classes, scores.argmax(axis=1), self.confusion)

    def _given(self, classes: tuple[str, ...], labels: Labels, confusion: Floats) -> Scores:
        """How likely each class gets these labels; 1 for labels and classes without a share."""
        place = {name: position for position, name in enumerate(self.shares)}
        columns = np.array([place.get(name, -1) for name in classes])
        known, rows = np.flatnonzero(columns >= 0), np.flatnonzero(columns[labels] >= 0)
        found = np.ones((len(labels), len(classes)))
        likely = confusion[np.ix_(columns[known], columns[labels[rows]])].T
        found[np.ix_(rows, known)] = _positive(likely)
        return found


def confusion_of(truth: Labels, labels: Labels, classes: int) -> Floats:
    """By true class and label, how often the label is given; half a count is added to each.

    Example:
        >>> confusion_of(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
        array([[0.5 , 0.5 ],
               [0.25, 0.75]])
    """
    counts = np.full((classes, classes), 0.5)
    np.add.at(counts, (truth, labels), 1)
    shares: Floats = counts / counts.sum(axis=1, keepdims=True)
    return shares


def _with_free(
    found: Labels, deployed: Labels, wanted: Labels, classes: tuple[str, ...], free: frozenset[str]
) -> Labels:
    taken = np.array([name in free for name in classes])[wanted] | (deployed < 0)
    chosen: Labels = np.where(taken, wanted, found)
    return chosen


def _positive(probabilities: Floats | Scores) -> Floats:
    clipped: Floats = np.maximum(probabilities, _LEAST, dtype=float)
    return clipped
