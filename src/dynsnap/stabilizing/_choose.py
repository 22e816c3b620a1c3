"""Choose a rule on held-out rows: what it costs there, under a guard for new classes."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from dynsnap import _check
from dynsnap._types import AnyArray, Floats, Labels
from dynsnap.errors import InputError, PlanError
from dynsnap.predictions import Predictions, align
from dynsnap.stabilizing._rules import (
    COST_RATIO,
    CostRule,
    MarginRule,
    Rule,
    confusion_of,
)
from dynsnap.stabilizing._update import update

MARGINS = tuple(step / 20 for step in range(20))
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
FEWEST_CHANGES = 100  # held-out rows of a class whose label would change: fewer choose no margin
GUARD = 0.97  # the share of a new class's recall that a rule has to leave


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A rule, and what it did on the held-out rows that it was chosen on.

    Rows are chosen by as they weigh, where the held-out predictions have weights, and counted here.

    Attributes:
        rule: The rule.
        rows: Held-out rows.
        lost: Right answers of the old predictions that turn wrong; `lost_before` without the rule.
        gained: Wrong answers that turn right; `gained_before` without the rule.
        old_confusion: How often the old model gives each label to each class, in the order of the
            rule's shares; `update` needs it for old predictions without scores.
    """

    rule: MarginRule | CostRule
    rows: int
    lost: int
    lost_before: int
    gained: int
    gained_before: int
    old_confusion: Floats


def choose_margin(
    old: Predictions,
    new: Predictions,
    *,
    ratio: float = COST_RATIO,
    margins: Iterable[float] = MARGINS,
    per_class: bool = True,
    known: Collection[str] | None = None,
) -> Choice:
    """The margin that costs least on held-out rows.

    The cost of a margin is `ratio` for each lost answer, less one for each gained answer; ties go
    to the smaller margin. A deployed class has a margin of its own where at least 100 held-out rows
    would change from it. A new class that keeps less than 97 % of its recall needs no lead.

    Args:
        old: The deployed predictions of held-out rows, which neither model was trained on.
        new: Those of the retrained model for the same rows, with scores and the truth.
        ratio: What a lost right answer costs, in missed gains.
        margins: The margins to choose from.
        per_class: Whether classes may have margins of their own.
        known: The classes that the deployed model was trained on, so that a class which it rarely
            predicts is not taken for a new one; by default those that it predicts here.
    """
    _check.cost_ratio(ratio, name="ratio")
    held = _HeldOut.of(old, new, known)
    # Which rows change depends on the margin of their own deployed class alone, so that classes
    # are chosen one by one.
    costs = {
        margin: held.costs(MarginRule(margin), ratio) for margin in sorted({*margins}, key=float)
    }
    if not costs:
        raise PlanError("`margins` is empty. Give at least one margin between 0 and 1.")
    common = min(costs, key=lambda margin: costs[margin].sum())
    by_class = {}
    if per_class:
        for name in held.old.classes:
            rows = held.deployed_as(name)
            if np.sum(rows & held.would_change) >= FEWEST_CHANGES:
                best = min(costs, key=lambda margin: costs[margin][rows].sum())
                if best != common:
                    by_class[name] = best
    return held.choice(MarginRule(common, by_class))


def choose_cost_rule(
    old: Predictions,
    new: Predictions,
    *,
    ratio: float = COST_RATIO,
    evidence: str = "scores",
    independent: bool = False,
    known: Collection[str] | None = None,
) -> Choice:
    """The Bayesian rule, with confusion matrices and exponents from held-out rows.

    The exponents are those with the smallest log loss of the posterior.

    Args:
        old: The deployed predictions of held-out rows, which neither model was trained on.
        new: Those of the retrained model for the same rows, with scores and the truth.
        ratio: What a lost right answer costs, in missed gains.
        evidence: What the new model contributes: "scores", or "labels" by its confusion matrix.
        independent: Whether both models count as independent (exponents of 1), as in the paper.
        known: The classes that the deployed model was trained on, so that a class which it rarely
            predicts is not taken for a new one; by default those that it predicts here.
    """
    if evidence not in ("scores", "labels"):
        raise InputError(f'`evidence` must be "scores" or "labels", but is {evidence!r}.')
    held = _HeldOut.of(old, new, known)
    size = len(held.new.classes)
    counts = np.bincount(held.truth, weights=held.weights, minlength=size) + 0.5
    rule = CostRule(
        ratio,
        shares=dict(zip(held.new.classes, (counts / counts.sum()).tolist(), strict=True)),
        confusion=held.new_confusion if evidence == "labels" else None,
        new=frozenset(held.new_classes),
    )
    if not independent:
        rules = [
            replace(rule, old_weight=before, new_weight=after)
            for before, after in product(WEIGHTS, WEIGHTS)
            if before or after
        ]
        rule = min(rules, key=held.log_loss)
    return held.choice(rule)


@dataclass(frozen=True, slots=True, eq=False)
class _HeldOut:
    """Both predictions of the same labelled rows, over one list of classes.

    New classes are those that the old model is not known to have learned, and names in no label.
    """

    old: Predictions
    new: Predictions
    truth: Labels
    weights: Floats  # of rows, 1 on average
    new_classes: tuple[str, ...]
    old_confusion: Floats

    @classmethod
    def of(cls, old: Predictions, new: Predictions, learned: Collection[str] | None) -> "_HeldOut":
        if new.scores is None:
            raise InputError("Held-out predictions of the new model need scores.")
        both = align(old, new, names=("held-out old", "held-out new"))
        aligned_old, aligned_new = both.generations
        if (truth := aligned_new.truth) is None:
            raise InputError(
                "A rule is chosen on held-out rows with the truth, but neither of the held-out "
                "predictions has a column `truth`."
            )
        # Of a class that neither model has heard of, no answer can be right: no rule is better.
        given = np.union1d(aligned_old.labels, aligned_new.labels)
        weights = np.ones(len(truth)) if aligned_new.weights is None else aligned_new.weights
        if not (known := np.isin(truth, given) & (weights > 0)).any():
            raise InputError("No held-out row is of a class that either model predicts.")
        aligned_old, aligned_new = aligned_old.take(known), aligned_new.take(known)
        truth = truth[known]
        # Models may have columns for classes that come later; a label shows what is known.
        deployed = {*aligned_old.names_of(np.unique(aligned_old.labels)), *(learned or ())}
        weights = weights[known] / weights[known].mean()
        size = len(aligned_new.classes)
        return cls(
            old=aligned_old,
            new=aligned_new,
            truth=np.asarray(truth),
            weights=weights,
            new_classes=tuple(name for name in aligned_new.classes if name not in deployed),
            old_confusion=confusion_of(truth, aligned_old.labels, size, weights=weights),
        )

    @property
    def new_confusion(self) -> Floats:
        size = len(self.new.classes)
        return confusion_of(self.truth, self.new.labels, size, weights=self.weights)

    @property
    def would_change(self) -> AnyArray:
        changed: AnyArray = self.old.labels != self.new.labels
        return changed

    def deployed_as(self, name: str) -> AnyArray:
        rows: AnyArray = self.old.labels == self.old.classes.index(name)
        return rows

    def after(self, rule: Rule) -> Predictions:
        return update(self.old, self.new, rule, confusion=self.old_confusion)

    def costs(self, rule: Rule, ratio: float) -> Floats:
        lost, gained = self.flips(self.after(rule).labels)
        cost: Floats = self.weights * (ratio * lost - gained.astype(float))
        return cost

    def flips(self, labels: Labels) -> tuple[AnyArray, AnyArray]:
        before, after = self.old.labels == self.truth, labels == self.truth
        return before & ~after, ~before & after

    def log_loss(self, rule: Rule) -> float:
        scores = self.after(rule).scores
        assert scores is not None
        likely = scores[np.arange(len(self.truth)), self.truth].astype(float)
        return float(-(self.weights * np.log(np.maximum(likely, 1e-12))).mean())

    def choice(self, rule: MarginRule | CostRule) -> Choice:
        guarded = replace(rule, free=self._suppressed(rule))
        before = self.flips(self.new.labels)
        after = self.flips(self.after(guarded).labels)
        return Choice(
            rule=guarded,
            rows=len(self.truth),
            lost=int(after[0].sum()),
            lost_before=int(before[0].sum()),
            gained=int(after[1].sum()),
            gained_before=int(before[1].sum()),
            old_confusion=self.old_confusion,
        )

    def _suppressed(self, rule: Rule) -> frozenset[str]:
        """New classes that a rule would forget, or of which the held-out rows know nothing."""
        labels = self.after(rule).labels
        found = set()
        for name in self.new_classes:
            rows = self.truth == self.new.classes.index(name)
            right = np.sum(self.new.labels[rows] == self.truth[rows])
            if not rows.any() or np.sum(labels[rows] == self.truth[rows]) < GUARD * right:
                found.add(name)
        return frozenset(found)
