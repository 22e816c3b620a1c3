"""Rules applied to predictions: the next deployed ones, and which inputs to score again first."""

import numpy as np

from dynsnap._types import AnyArray, Floats, Labels, Scores
from dynsnap.errors import InputError, PlanError
from dynsnap.predictions import Predictions, deployed_in, refuse_own_decisions, relabelled
from dynsnap.stabilizing._rules import Belief, CostRule, Rule, check_rule


def update(
    old: Predictions, new: Predictions, rule: Rule, *, confusion: Floats | None = None
) -> Predictions:
    """The new predictions, with every label that the rule decides to keep.

    Scores of the result are the posterior, which the next update starts from: the result is the
    old predictions of the next retrain. Inputs that the old predictions lack keep their new label.

    Args:
        old: The deployed predictions. Their scores are the posterior so far; a cost rule derives
            it from labels where there are no scores.
        new: The predictions of the retrained model, with scores.
        rule: Decides which labels change.
        confusion: For a cost rule and old predictions without scores: how often each label is
            given to each class, in the order of the rule's `shares`.

    Example:
        >>> from dynsnap.stabilizing import MarginRule
        >>> old = Predictions(ids=[1, 2], classes=["cat", "dog"], labels=["dog", "dog"])
        >>> new = Predictions(ids=[2, 1], classes=["cat", "dog"],
        ...                   scores=[[0.55, 0.45], [0.9, 0.1]])
        >>> kept = update(old, new, MarginRule(0.2))
        >>> kept.names_of(kept.labels).tolist()
        ['dog', 'cat']
    """
    check_rule(rule)
    scores = _scores_of(new)
    refuse_own_decisions(new)
    places, deployed = deployed_in(old, new)
    posterior = _posterior(old, new.classes, places, deployed, rule, confusion)
    found = rule.decide(new.classes, Belief(deployed, posterior), scores)
    note = "Stabilized: deployed labels are kept where a rule found no reason to change them."
    # Of classes with the same score, a file may name another one than the first.
    labels = np.where(deployed < 0, new.labels, found.labels)
    return relabelled(
        new,
        labels=labels.astype(new.labels.dtype),
        scores=found.posterior.astype(scores.dtype),
        note=note,
    )


def rescore_first(predictions: Predictions, budget: int) -> AnyArray:
    """The ids of the inputs to score again where not all can be: the most uncertain ones.

    Uncertainty is the entropy of an input's scores, which after `update` are its posterior over
    all answers so far. Ties go to the input that comes first.

    Example:
        >>> made = Predictions(ids=["a", "b", "c"], classes=["x", "y"],
        ...                    scores=[[0.9, 0.1], [0.5, 0.5], [0.7, 0.3]])
        >>> rescore_first(made, 2).tolist()
        ['b', 'c']
    """
    if budget < 1:
        raise PlanError(f"`budget` must be at least one input, but is {budget}.")
    scores = _scores_of(predictions).astype(float)
    entropy = -(scores * np.log(np.maximum(scores, np.finfo(float).tiny))).sum(axis=1)
    order = np.argsort(-entropy, kind="stable")[:budget]
    chosen: AnyArray = predictions.ids[order]
    return chosen


def _posterior(
    old: Predictions,
    classes: tuple[str, ...],
    places: AnyArray,
    deployed: AnyArray,
    rule: Rule,
    confusion: Floats | None,
) -> Scores:
    """What is known of each new input, over the new classes; uniform where nothing is."""
    found: Scores = np.full((len(places), len(classes)), 1 / len(classes))
    rows = np.flatnonzero(deployed >= 0)
    if old.scores is None:
        if isinstance(rule, CostRule):
            found[rows] = posterior_of_labels(classes, deployed[rows], rule, confusion)
        return found
    return spread(old.scores[places[rows]], old.classes, classes, rule, into=found, rows=rows)


def posterior_of_labels(
    classes: tuple[str, ...], labels: Labels, rule: CostRule, confusion: Floats | None
) -> Scores:
    """What a cost rule knows of inputs of which only labels are known, by their confusion."""
    if confusion is None:
        raise InputError(
            "The old predictions hold labels alone, and a cost rule needs their "
            "probabilities. Give held-out predictions of the old model with the truth, or "
            "old predictions with scores."
        )
    return rule.prior_of(classes, labels, confusion)


def spread(
    scores: Scores,
    given: tuple[str, ...],
    classes: tuple[str, ...],
    rule: Rule,
    *,
    into: Scores,
    rows: AnyArray,
) -> Scores:
    """Write scores over some classes into rows over others.

    A class that the earlier model did not know has the probability of its share: the model's
    answer is no evidence for or against it.
    """
    shares = rule.shares if isinstance(rule, CostRule) else {}
    column = {name: position for position, name in enumerate(given)}
    fresh = np.array([name not in column for name in classes])
    total = sum(shares.get(name, 0.0) for name in classes if name not in column)
    made = np.zeros((len(scores), len(classes)))
    known = np.flatnonzero(~fresh)
    made[:, known] = scores[:, [column[classes[place]] for place in known]]
    sums = made.sum(axis=1, keepdims=True)
    made = np.divide(made, sums, out=np.full_like(made, 1 / len(classes)), where=sums > 0)
    made *= 1 - total
    for place in np.flatnonzero(fresh):
        made[:, place] = shares.get(classes[place], 0.0)
    sums = made.sum(axis=1, keepdims=True)  # 0 where nothing is known of any of the classes
    into[rows] = np.divide(made, sums, out=np.full_like(made, 1 / len(classes)), where=sums > 0)
    return into


def _scores_of(predictions: Predictions) -> Scores:
    if predictions.scores is None:
        raise InputError(
            "The predictions hold labels alone, and need scores (columns `score:<class>`)."
        )
    return predictions.scores
