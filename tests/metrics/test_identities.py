"""The identities that tie the metrics together, as laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import metrics
from tests.strategies import input_weights, scored_pairs, three_labellings

labellings = three_labellings()
weighted = st.integers(1, 20).flatmap(
    lambda n: st.tuples(three_labellings(max_inputs=n), st.none()) | _with_weights(n)
)


@st.composite
def _with_weights(draw, inputs):
    labels = draw(three_labellings(max_inputs=inputs))
    return labels, draw(input_weights(len(labels[0])))


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)


@given(weighted)
def test_the_four_cases_make_up_all_inputs(case):
    (old, new, truth), weights = case
    four = metrics.transitions(old, new, truth=truth, weights=weights)
    assert four.kept + four.gained + four.lost + four.never == close(1)


@given(weighted)
def test_new_accuracy_is_old_accuracy_plus_gained_minus_lost(case):
    (old, new, truth), weights = case
    flips = {"truth": truth, "weights": weights}
    before, now = metrics.accuracy(old, **flips), metrics.accuracy(new, **flips)
    change = metrics.positive_flip_rate(old, new, **flips) - metrics.negative_flip_rate(
        old, new, **flips
    )
    assert now == close(before + change)


@given(labellings)
def test_flip_rates_are_gained_and_lost(labels):
    old, new, truth = labels
    four = metrics.transitions(old, new, truth=truth)
    assert metrics.negative_flip_rate(old, new, truth=truth) == four.lost
    assert metrics.positive_flip_rate(old, new, truth=truth) == four.gained


@given(weighted)
def test_backward_trust_is_correct_consistency_over_old_accuracy(case):
    (old, new, truth), weights = case
    flips = {"truth": truth, "weights": weights}
    before = metrics.accuracy(old, **flips)
    trust = metrics.backward_trust_compatibility(old, new, **flips)
    if before == 0:
        assert math.isnan(trust)
    else:
        assert trust == close(metrics.correct_consistency(old, new, **flips) / before)


@given(weighted)
def test_composite_is_new_accuracy_minus_lost(case):
    (old, new, truth), weights = case
    four = metrics.transitions(old, new, truth=truth, weights=weights)
    assert four.composite == close(metrics.accuracy(new, truth=truth, weights=weights) - four.lost)


@given(weighted)
def test_churn_is_lost_plus_gained_plus_neutral(case):
    (old, new, truth), weights = case
    flips = {"truth": truth, "weights": weights}
    four = metrics.transitions(old, new, **flips)
    neutral = metrics.neutral_churn(old, new, **flips)
    assert metrics.churn(old, new, weights=weights) == close(four.lost + four.gained + neutral)


@given(weighted)
def test_churn_is_one_minus_consistency(case):
    (old, new, _), weights = case
    found = metrics.churn(old, new, weights=weights)
    assert found == close(1 - metrics.consistency(old, new, weights=weights))


@given(labellings)
def test_correct_consistency_is_the_share_kept(labels):
    old, new, truth = labels
    kept = metrics.transitions(old, new, truth=truth).kept
    assert metrics.correct_consistency(old, new, truth=truth) == kept


@given(labellings)
def test_correct_consistency_lies_within_theorem_5(labels):
    old, new, truth = labels
    a, b = metrics.accuracy(old, truth=truth), metrics.accuracy(new, truth=truth)
    found = metrics.correct_consistency(old, new, truth=truth)
    assert max(a + b - 1, 0) - 1e-12 <= found <= min(a, b) + 1e-12


@given(labellings, st.integers(0, 3))
def test_one_hot_rows_tie_cosine_and_pearson_to_consistency(labels, more):
    old, new, truth = labels
    classes = max(2, int(max(array.max() for array in labels)) + 1) + more
    eye = np.eye(classes)
    consistency = metrics.consistency(old, new)
    assert metrics.cosine(eye[old], eye[new]) == close(consistency)
    expected = (classes * consistency - 1) / (classes - 1)
    assert metrics.pearson(eye[old], eye[new]) == close(expected)
    churn = 1 - consistency
    assert metrics.prediction_difference(eye[old], eye[new]) == close(churn)
    assert metrics.jensen_shannon(eye[old], eye[new]) == close(churn)
    assert metrics.correctness(eye[old], truth=truth) == close(metrics.accuracy(old, truth=truth))


@given(scored_pairs())
def test_top_1_is_the_label(pair):
    old, new, truth = pair
    labels = old.argmax(axis=1), new.argmax(axis=1)
    assert metrics.top_k_consistency(old, new, k=1) == metrics.consistency(*labels)
    assert metrics.top_k_accuracy(old, truth=truth, k=1) == metrics.accuracy(labels[0], truth=truth)


@given(scored_pairs(), st.data())
def test_top_k_never_falls_as_k_grows_and_is_1_beyond_half_the_classes(pair, data):
    old, new, truth = pair
    classes = old.shape[1]
    k = data.draw(st.integers(1, classes))
    found = metrics.top_k_consistency(old, new, k=k)
    if 2 * k > classes:
        assert found == 1
    if k > 1:
        assert found >= metrics.top_k_consistency(old, new, k=k - 1)
        less = metrics.top_k_accuracy(old, truth=truth, k=k - 1)
        assert metrics.top_k_accuracy(old, truth=truth, k=k) >= less
    assert metrics.top_k_accuracy(old, truth=truth, k=classes) == 1


@given(scored_pairs())
def test_half_the_distance_of_order_1_is_the_prediction_difference(pair):
    old, new, _ = pair
    found = metrics.prediction_difference(old, new)
    assert found == close(metrics.minkowski(old, new, order=1) / 2)


@given(scored_pairs())
def test_score_metrics_lie_in_their_ranges_and_are_symmetric(pair):
    old, new, truth = pair
    ranges = {
        metrics.pearson: (-1, 1),
        metrics.cosine: (0, 1),
        metrics.prediction_difference: (0, 1),
        metrics.jensen_shannon: (0, 1),
        metrics.minkowski: (0, math.sqrt(2)),
    }
    for function, (low, high) in ranges.items():
        found = function(old, new)
        assert low - 1e-12 <= found <= high + 1e-12
        assert found == close(function(new, old))
    assert 0 <= metrics.expected_calibration_error(old, truth=truth) <= 1
    assert -1e-12 <= metrics.correctness(old, truth=truth) <= 1


@given(scored_pairs())
def test_a_generation_beside_itself_is_perfectly_consistent(pair):
    scores, _, truth = pair
    labels = scores.argmax(axis=1)
    assert metrics.consistency(labels, labels) == 1
    assert metrics.cosine(scores, scores) == close(1)
    assert metrics.pearson(scores, scores) == close(1)
    assert metrics.minkowski(scores, scores) == 0
    assert metrics.jensen_shannon(scores, scores) == close(0)
    assert metrics.transitions(labels, labels, truth=truth).lost == 0
    assert metrics.mcnemar(labels, labels, truth=truth) == 1


@given(labellings)
def test_whole_weights_count_an_input_that_many_times(labels):
    old, new, truth = labels
    weights = 1 + np.arange(len(old)) % 3
    often = [np.repeat(array, weights) for array in labels]
    found = metrics.transitions(old, new, truth=truth, weights=weights)
    expected = metrics.transitions(often[0], often[1], truth=often[2])
    assert found.lost == close(expected.lost)
    assert metrics.consistency(old, old, weights=weights) == 1
    kappa = metrics.cohen_kappa(old, new, weights=weights)
    assert kappa == close(metrics.cohen_kappa(often[0], often[1]))


@given(labellings)
def test_two_generations_make_discrepancy_and_ambiguity_the_churn(labels):
    old, new, _ = labels
    both = np.stack([old, new])
    churn = metrics.churn(old, new)
    assert metrics.discrepancy(both) == churn
    assert metrics.ambiguity(both) == churn


@given(three_labellings())
def test_names_and_positions_give_the_same(labels):
    names = np.array(["ant", "bee", "cat", "dog", "elk"])
    old, new, truth = labels
    by_name = names[old], names[new]
    assert metrics.cohen_kappa(*by_name) == close(metrics.cohen_kappa(old, new))
    found = metrics.transitions(*by_name, truth=names[truth])
    assert found == metrics.transitions(old, new, truth=truth)
