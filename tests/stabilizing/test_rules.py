"""Rules: laws of their decisions, and a slow reference for the posterior."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynsnap.errors import InputError, PlanError
from dynsnap.predictions import Predictions, stabilize, stabilize_scores
from dynsnap.stabilizing import Belief, CostRule, MarginRule, update
from tests import strategies
from tests.messages import naming

RATIOS = st.floats(1, 50)
WEIGHTS = st.floats(0, 1)


def names(scores):
    return tuple("abcdefgh"[: scores.shape[1]])


def shares_of(scores):
    count = scores.shape[1]
    return {
        name: (place + 1) / (count * (count + 1) / 2) for place, name in enumerate(names(scores))
    }


@given(strategies.scored_pairs(), st.floats(0, 1))
def test_a_margin_rule_decides_as_stabilized_scores_do(pair, margin):
    new, old, deployed = pair
    found = MarginRule(margin).decide(names(new), Belief(deployed, old), new)
    wanted = stabilize_scores(new, deployed, margin=margin).argmax(axis=1)
    np.testing.assert_array_equal(found.labels, wanted)


@given(strategies.scored_pairs(), st.floats(0, 1), st.floats(0, 1))
def test_a_class_has_the_margin_of_its_own(pair, common, own):
    new, old, deployed = pair
    rule = MarginRule(common, {"a": own})
    found = rule.decide(names(new), Belief(deployed, old), new).labels
    for margin, rows in ((own, deployed == 0), (common, deployed != 0)):
        wanted = MarginRule(margin).decide(names(new), Belief(deployed, old), new).labels
        np.testing.assert_array_equal(found[rows], wanted[rows])


@given(strategies.scored_pairs(), RATIOS, WEIGHTS, WEIGHTS, st.booleans())
def test_the_posterior_is_a_product_and_a_label_changes_where_it_pays(
    pair, ratio, before, after, by_labels
):
    new, old, deployed = pair
    size = new.shape[1]
    shares = shares_of(new)
    confusion = None
    if by_labels:
        confusion = np.arange(1, size * size + 1).reshape(size, size).astype(float)
        confusion /= confusion.sum(axis=1, keepdims=True)
    rule = CostRule(ratio, shares, confusion=confusion, old_weight=before, new_weight=after)
    found = rule.decide(names(new), Belief(deployed, old), new)
    for row in range(len(new)):
        label = int(new[row].argmax())
        weights = []
        for place, name in enumerate(names(new)):
            likely = new[row, place] if confusion is None else confusion[place, label]
            likely = max(likely, 1e-6)
            if confusion is None:
                likely /= shares[name]
            share, prior = shares[name], max(old[row, place], 1e-6)
            weights.append(share * (prior / share) ** before * likely**after)
        posterior = np.array(weights) / sum(weights)
        np.testing.assert_allclose(found.posterior[row], posterior, rtol=1e-9, atol=1e-12)
        ahead = posterior.max() / posterior[deployed[row]]
        if ahead > ratio * (1 + 1e-5):
            assert posterior[found.labels[row]] == pytest.approx(posterior.max())
        elif ahead < ratio:
            assert found.labels[row] == deployed[row]


@given(strategies.scored_pairs(), RATIOS, RATIOS)
def test_a_dearer_loss_changes_no_more_labels(pair, one, other):
    new, old, deployed = pair
    few, many = (
        CostRule(ratio, shares_of(new)).decide(names(new), Belief(deployed, old), new).labels
        for ratio in sorted((one, other), reverse=True)
    )
    assert ((few == deployed) | (many != deployed)).all()


@given(strategies.scored_pairs(), st.sampled_from([MarginRule(0.4), None]))
def test_inputs_without_a_deployed_label_get_the_label_of_the_model(pair, rule):
    new, old, _ = pair
    rule = rule or CostRule(3, shares_of(new))
    nothing = np.full(len(new), -1)
    found = rule.decide(names(new), Belief(nothing, old), new)
    np.testing.assert_array_equal(found.labels, new.argmax(axis=1))
    np.testing.assert_allclose(found.posterior, np.maximum(new, 1e-6), atol=1e-5)


@given(strategies.scored_pairs(), st.booleans())
def test_labels_of_free_classes_are_taken_as_they_are(pair, margin):
    new, old, deployed = pair
    free = frozenset("b")
    rule = MarginRule(1.0, free=free) if margin else CostRule(1e30, shares_of(new), free=free)
    found = rule.decide(names(new), Belief(deployed, old), new).labels
    wanted = new.argmax(axis=1)
    np.testing.assert_array_equal(found, np.where(wanted == 1, 1, deployed))


@pytest.mark.parametrize("ratio", [0.5, -1, np.nan, np.inf])
def test_a_ratio_below_one_is_refused(ratio):
    with pytest.raises(PlanError, match=naming("ratio", str(ratio))):
        CostRule(ratio, {"a": 1.0})


def test_weights_margins_and_matrices_out_of_shape_are_refused():
    with pytest.raises(PlanError, match=naming("old_weight", "1.5")):
        CostRule(1, {"a": 1.0}, old_weight=1.5)
    with pytest.raises(PlanError, match=naming("margin", "2")):
        MarginRule(0.1, {"a": 2})
    with pytest.raises(InputError, match=naming("confusion", r"\(2, 3\)")):
        CostRule(1, {"a": 0.5, "b": 0.5}, confusion=np.ones((2, 3)))


def test_a_new_class_that_is_deployed_is_not_new_there():
    rule = CostRule(2, {"a": 0.6, "b": 0.3, "c": 0.1}, new=frozenset({"c"}))
    before = np.array([[0.02, 0.01, 0.97], [0.9, 0.09, 0.01]])
    scores = np.array([[0.5, 0.1, 0.4], [0.1, 0.1, 0.8]])
    found = rule.decide(("a", "b", "c"), Belief(np.array([2, 0]), before), scores)
    # Of the first, an earlier version was sure; of the second, it did not know the class.
    assert found.labels.tolist() == [2, 2]
    known = CostRule(2, rule.shares).decide(
        ("a", "b", "c"), Belief(np.array([2, 0]), before), scores
    )
    assert np.allclose(found.posterior[0], known.posterior[0])
    assert found.posterior[1, 2] > known.posterior[1, 2]


@given(st.floats(0.01, 0.2), st.floats(0.3, 0.45), st.floats(1, 4))
def test_two_weak_answers_for_a_frequent_class_can_together_speak_for_a_rare_one(
    rare, second, ratio
):
    # Two models that are independent given the class: odds multiply, and count the shares once.
    said = np.array([[1 - second, second]])
    odds = (second / (1 - second)) ** 2 / (rare / (1 - rare))
    assume(abs(odds / ratio - 1) > 1e-3)
    rule = CostRule(ratio, {"often": 1 - rare, "rarely": rare})
    found = rule.decide(("often", "rarely"), Belief(np.array([0]), said), said)
    assert found.labels.tolist() == [int(odds > ratio)]
    assert found.posterior[0, 1] == pytest.approx(odds / (1 + odds))


def test_a_first_answer_leaves_the_scores_as_they_are_whatever_the_exponents():
    scores = np.array([[0.7, 0.3], [0.2, 0.8]])
    nothing = Belief(np.array([-1, -1]), np.full((2, 2), 0.5))
    rule = CostRule(2, shares={"a": 0.9, "b": 0.1}, old_weight=0.25, new_weight=0.5)
    found = rule.decide(("a", "b"), nothing, scores)
    np.testing.assert_allclose(found.posterior, scores)
    assert found.labels.tolist() == [0, 1]


WAYS = [
    lambda old, new: stabilize(old, new, margin=0.2),
    lambda old, new: update(old, new, MarginRule(0.2)),
    lambda old, new: update(old, new, CostRule(2, {"a": 0.5, "b": 0.5})),
]


@pytest.mark.parametrize("way", WAYS)
def test_labels_that_a_threshold_of_one_s_own_decided_are_never_replaced_silently(way):
    old = Predictions(ids=[1], classes=["a", "b"], scores=[[0.2, 0.8]])
    scores = [[0.6, 0.4], [0.6, 0.4]]  # with a threshold of 0.3, both are "b"
    new = Predictions(ids=[1, 2], classes=["a", "b"], labels=["b", "b"], scores=scores)
    with pytest.raises(InputError, match=naming("2 of 2", "'b'", "1", "'a'")) as caught:
        way(old, new)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_an_input_that_was_never_answered_keeps_the_label_that_its_file_names_in_a_tie(way):
    old = Predictions(ids=[1], classes=["a", "b"], scores=[[0.2, 0.8]])
    scores = [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    new = Predictions(ids=[1, 2, 3], classes=["a", "b"], labels=["b", "b", "a"], scores=scores)
    made = way(old, new)
    assert made.names_of(made.labels).tolist() == ["b", "b", "a"]
