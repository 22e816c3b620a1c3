"""Rules that are chosen on held-out rows, and predictions that are updated by them."""

import numpy as np
import pytest

from dynsnap.errors import InputError, PlanError
from dynsnap.predictions import Predictions
from dynsnap.stabilizing import (
    CostRule,
    MarginRule,
    choose_cost_rule,
    choose_margin,
    rescore_first,
    update,
)
from tests.messages import naming

CLASSES = ("a", "b", "c", "d")


def made(rows=4000, *, generations=3, known=4, seed=0):
    """Noisy models of the same inputs; the first knows `known` of the four classes."""
    draw = np.random.default_rng(seed)
    truth = draw.integers(0, 4, rows)
    shared = draw.normal(size=(rows, 4))
    found = []
    for place in range(generations):
        width = known if place == 0 else 4
        logits = 1.6 * np.eye(4)[truth] + 0.8 * shared + draw.normal(size=(rows, 4))
        scores = np.exp(1.5 * logits[:, :width])
        scores /= scores.sum(axis=1, keepdims=True)
        found.append(
            Predictions(
                ids=np.arange(rows),
                classes=CLASSES[:width],
                scores=scores,
                truth=truth if width == 4 else None,
                positions=True,
            )
        )
    return found


def flips(old, new, truth):
    before = np.array(CLASSES)[truth] == old.names_of(old.labels)
    after = np.array(CLASSES)[truth] == new.names_of(new.labels)
    return np.sum(before & ~after), np.sum(~before & after)


def halves(predictions):
    rows = np.arange(len(predictions[0])) % 2 == 0
    return [one.take(rows) for one in predictions], [one.take(~rows) for one in predictions]


@pytest.mark.parametrize("ratio", [1, 3])
def test_the_margin_with_the_smallest_cost_is_chosen(ratio):
    old, new, _ = made()
    grid = (0, 0.1, 0.3, 0.6)
    choice = choose_margin(old, new, ratio=ratio, margins=grid, per_class=False)
    costs = []
    for margin in grid:
        lost, gained = flips(old, update(old, new, MarginRule(margin)), new.truth)
        costs.append(ratio * lost - gained)
    assert choice.rule.margin == grid[int(np.argmin(costs))]
    assert (choice.lost, choice.gained) == flips(old, update(old, new, choice.rule), new.truth)
    assert (choice.lost_before, choice.gained_before) == flips(old, new, new.truth)
    own = choose_margin(old, new, ratio=ratio, margins=grid)
    assert ratio * own.lost - own.gained <= min(costs)


def weighed(predictions, weights):
    return [
        Predictions(
            ids=one.ids,
            classes=one.classes,
            scores=one.scores,
            truth=one.truth,
            weights=weights,
            positions=True,
        )
        for one in predictions
    ]


def test_a_margin_is_chosen_by_what_rows_weigh():
    old, new, _ = made(1000)
    weights = np.random.default_rng(0).integers(0, 4, 1000)
    rows = np.repeat(np.arange(1000), weights)
    again = [
        Predictions(
            ids=np.arange(len(rows)),
            classes=CLASSES,
            scores=one.scores[rows],
            truth=one.truth[rows],
            positions=True,
        )
        for one in (old, new)
    ]
    found = choose_margin(*weighed((old, new), weights), per_class=False)
    assert found.rule.margin == choose_margin(*again, per_class=False).rule.margin
    # Heavy rows that lose by changing, and light ones that gain: only weights tell them apart.
    lost = (old.labels == new.truth) & (new.labels != new.truth)
    heavy = choose_margin(*weighed((old, new), np.where(lost, 1000.0, 1.0)), per_class=False)
    light = choose_margin(*weighed((old, new), np.where(lost, 0.001, 1.0)), per_class=False)
    assert light.rule.margin == 0 < heavy.rule.margin


@pytest.mark.parametrize("evidence", ["scores", "labels"])
def test_rows_without_weight_choose_no_rule(evidence):
    old, new, _ = made(1000)
    kept = np.arange(1000) % 3 > 0
    some = choose_cost_rule(old.take(kept), new.take(kept), evidence=evidence)
    zero = choose_cost_rule(*weighed((old, new), 2.0 * kept), evidence=evidence)
    assert zero.rule.shares == some.rule.shares
    assert (zero.rule.old_weight, zero.rule.new_weight) == (
        some.rule.old_weight,
        some.rule.new_weight,
    )
    np.testing.assert_array_equal(zero.old_confusion, some.old_confusion)
    if evidence == "labels":
        np.testing.assert_array_equal(zero.rule.confusion, some.rule.confusion)
    assert (zero.rows, zero.lost, zero.gained) == (some.rows, some.lost, some.gained)


@pytest.mark.parametrize("evidence", ["scores", "labels"])
def test_a_posterior_loses_less_and_is_right_more_often_on_other_rows(evidence):
    held, rest = halves(made())
    before, after = held[0], rest[0]
    for place in (1, 2):
        choice = choose_cost_rule(before, held[place], ratio=2, evidence=evidence)
        before = update(before, held[place], choice.rule)
        deployed = update(after, rest[place], choice.rule)
        lost, _ = flips(after, rest[place], rest[1].truth)
        kept_lost, _ = flips(after, deployed, rest[1].truth)
        assert kept_lost < 0.6 * lost
        assert np.mean(deployed.labels == deployed.truth) > np.mean(
            rest[place].labels == rest[place].truth
        )
        after = deployed


def test_old_labels_alone_become_a_posterior_by_their_confusion_matrix():
    old, new, _ = made()
    labels = Predictions(
        ids=old.ids, classes=old.classes, labels=old.labels, truth=new.truth, positions=True
    )
    choice = choose_cost_rule(labels, new)
    with pytest.raises(InputError, match=naming("labels", "held-out")):
        update(labels, new, choice.rule)
    after = update(labels, new, choice.rule, confusion=choice.old_confusion)
    assert flips(labels, after, new.truth)[0] < flips(labels, new, new.truth)[0]
    np.testing.assert_allclose(after.scores.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("choose", [choose_margin, choose_cost_rule])
def test_a_new_class_keeps_its_recall(choose):
    old, new, _ = made(known=3)
    choice = choose(old, new, ratio=20)
    after = update(old, new, choice.rule, confusion=choice.old_confusion)
    rows = new.truth == 3
    right = np.sum(new.labels[rows] == 3)
    assert right > 100 and np.sum(after.labels[rows] == 3) >= 0.97 * right


@pytest.mark.parametrize("choose", [choose_margin, choose_cost_rule])
def test_a_new_class_without_held_out_rows_needs_no_lead(choose):
    old, new, _ = made(known=3)
    seen = new.truth != 3
    choice = choose(old.take(seen), new.take(seen))
    assert choice.rule.free == {"d"}


def test_the_most_uncertain_inputs_are_scored_first():
    predictions = made()[0]
    chosen = rescore_first(predictions, 50)
    scores = predictions.scores
    entropy = -(scores * np.log(scores)).sum(axis=1)
    rest = np.setdiff1d(np.arange(len(scores)), chosen)
    assert len(chosen) == 50 and entropy[chosen].min() >= entropy[rest].max()
    assert len(rescore_first(predictions, 10**6)) == len(predictions)
    with pytest.raises(PlanError, match=naming("budget", "0")):
        rescore_first(predictions, 0)


def test_held_out_rows_need_truth_and_scores():
    old, new, _ = made(50)
    blind = Predictions(ids=new.ids, classes=new.classes, scores=new.scores)
    plain = Predictions(ids=new.ids, classes=new.classes, labels=new.labels, positions=True)
    untrue = Predictions(ids=old.ids, classes=old.classes, scores=old.scores)
    with pytest.raises(InputError, match=naming("truth")):
        choose_margin(untrue, blind)
    with pytest.raises(InputError, match=naming("scores")):
        choose_cost_rule(old, plain)
    with pytest.raises(InputError, match=naming("scores")):
        update(old, plain, MarginRule())
    with pytest.raises(InputError, match=naming("evidence", "votes")):
        choose_cost_rule(old, new, evidence="votes")


def test_a_class_that_the_old_model_lacks_has_its_share_as_prior():
    shares = {"a": 0.3, "b": 0.3, "c": 0.4}
    old = Predictions(ids=[1], classes=["a", "b"], scores=[[0.75, 0.25]])
    new = Predictions(ids=[1], classes=["a", "b", "c"], scores=[[0.2, 0.2, 0.6]])
    after = update(old, new, CostRule(1, shares, new_weight=0.0))
    np.testing.assert_allclose(after.scores, [[0.45, 0.15, 0.4]], atol=1e-6)


@pytest.mark.parametrize("ratio", [0, 0.5, -1, float("nan"), float("inf"), "2"])
@pytest.mark.parametrize("choose", [choose_margin, choose_cost_rule])
def test_a_ratio_that_rewards_losses_is_refused(choose, ratio):
    old, new, _ = made(40)
    with pytest.raises(PlanError, match=naming("ratio")):
        choose(old, new, ratio=ratio)


def test_no_margin_to_choose_from_is_refused():
    old, new, _ = made(40)
    with pytest.raises(PlanError, match=naming("margins")):
        choose_margin(old, new, margins=())


@pytest.mark.parametrize("choose", [choose_margin, choose_cost_rule])
def test_a_class_that_the_old_model_knows_but_rarely_predicts_is_not_new(choose):
    old, new, _ = made()
    rows = np.flatnonzero(old.labels != 3)  # few held-out rows: none is labelled as the last class
    held = old.take(rows), new.take(rows)
    assert choose(*held).rule.free | getattr(choose(*held).rule, "new", frozenset()) == {"d"}
    rule = choose(*held, known=CLASSES).rule
    assert not rule.free and not getattr(rule, "new", None)
