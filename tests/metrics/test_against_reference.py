"""Every function against a slow one, and against scikit-learn where it has the metric."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dynsnap import metrics
from dynsnap.metrics import catalogue
from tests.metrics import reference
from tests.strategies import input_weights, scored_pairs, three_labellings

CLOSE = {"rel": 1e-9, "abs": 1e-12, "nan_ok": True}


def _transition(name):
    return lambda old, new, truth, w: getattr(
        metrics.transitions(old, new, truth=truth, weights=w), name
    )


def _labels(function):
    return lambda old, new, truth, w: function(old, new, weights=w)


def _truth(function):
    return lambda old, new, truth, w: function(old, new, truth=truth, weights=w)


def _alone(function):
    return lambda old, new, truth, w: function(old, truth=truth, weights=w)


BY_LABELS = {
    "accuracy": _alone(metrics.accuracy),
    "consistency": _labels(metrics.consistency),
    "churn": _labels(metrics.churn),
    "cohen_kappa": _labels(metrics.cohen_kappa),
    "correct_consistency": _truth(metrics.correct_consistency),
    "neutral_churn": _truth(metrics.neutral_churn),
    "relative_negative_flip_rate": _truth(metrics.relative_negative_flip_rate),
    "backward_trust_compatibility": _truth(metrics.backward_trust_compatibility),
    "backward_error_compatibility": _truth(metrics.backward_error_compatibility),
    "win_loss_ratio": _truth(metrics.win_loss_ratio),
    **{name: _transition(name) for name in ("kept", "gained", "lost", "never", "composite")},
}
BY_SCORES = {
    "pearson": _labels(metrics.pearson),
    "cosine": _labels(metrics.cosine),
    "minkowski": _labels(metrics.minkowski),
    "prediction_difference": _labels(metrics.prediction_difference),
    "jensen_shannon": _labels(metrics.jensen_shannon),
    "correct_distance": _truth(metrics.correct_distance),
    "correctness": _alone(metrics.correctness),
    "expected_calibration_error": _alone(metrics.expected_calibration_error),
    "top_2_accuracy": lambda a, b, y, w: metrics.top_k_accuracy(a, truth=y, k=2, weights=w),
    "top_2_consistency": lambda a, b, y, w: metrics.top_k_consistency(a, b, k=2, weights=w),
}
BY_GENERATIONS = {
    "fleiss_kappa": metrics.fleiss_kappa,
    "krippendorff_alpha": metrics.krippendorff_alpha,
    "ambiguity": metrics.ambiguity,
    "discrepancy": metrics.discrepancy,
}
# Metrics that are complete with their entry in the catalogue: what each is, by the functions of
# `reference` or row by row, from old and new labels, the truth and weights.
BY_ENTRY = {
    "accuracy_change": lambda *of: reference.gained(*of) - reference.lost(*of),
}


@st.composite
def many_labellings(draw):
    shape = draw(st.tuples(st.integers(2, 5), st.integers(1, 12)))
    return draw(hnp.arrays(np.int64, shape, elements=st.integers(0, draw(st.integers(0, 3)))))


def _weights(data, inputs):
    return data.draw(st.none() | input_weights(inputs))


def test_every_metric_of_the_catalogue_is_held_against_a_reference():
    # Those of scikit-learn, and changes, are held against theirs in test_classification.py.
    plain = {
        name
        for name, entry in catalogue.items()
        if entry.group == "consistency" and (entry.change_of is None or entry.of_cases is not None)
    }
    held = {*BY_LABELS, *BY_SCORES, *BY_GENERATIONS, *BY_ENTRY}
    assert held == plain, "a metric of cases goes into BY_ENTRY, with a definition of its own"


@pytest.mark.parametrize("name", BY_ENTRY)
@given(three_labellings(max_inputs=12, max_classes=4), st.data())
def test_entries_agree_with_a_definition_from_the_rows(name, labels, data):
    weights = _weights(data, len(labels[0]))
    plain = [array.tolist() for array in labels]
    found = catalogue[name].of_cases(reference.cases(*plain, weights))
    assert found == pytest.approx(BY_ENTRY[name](*plain, weights), **CLOSE)


@pytest.mark.parametrize("name", BY_LABELS)
@given(three_labellings(max_inputs=12, max_classes=4), st.data())
def test_label_metrics_agree_with_the_slow_reference(name, labels, data):
    weights = _weights(data, len(labels[0]))
    plain = [array.tolist() for array in labels]
    slow = "kept" if name == "correct_consistency" else name
    expected = getattr(reference, slow)(*plain, weights)
    assert BY_LABELS[name](*labels, weights) == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize("name", BY_SCORES)
@given(scored_pairs(), st.data())
def test_score_metrics_agree_with_the_slow_reference(name, pair, data):
    weights = _weights(data, len(pair[0]))
    expected = getattr(reference, name)(*(array.tolist() for array in pair), weights)
    assert BY_SCORES[name](*pair, weights) == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize("name", BY_GENERATIONS)
@given(many_labellings(), st.data())
def test_metrics_of_all_generations_agree_with_the_slow_reference(name, labels, data):
    weights = _weights(data, labels.shape[1])
    expected = getattr(reference, name)(labels.tolist(), weights)
    found = BY_GENERATIONS[name](labels, weights=weights)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("order", [1, 1.5, 2, 3, 7.25, 60, math.inf])
@given(scored_pairs())
def test_distances_of_any_order_agree_with_the_slow_reference(order, pair):
    old, new, truth = pair
    expected = [reference.distance(a, b, order) for a, b in zip(old, new, strict=True)]
    assert metrics.distances(old, new, order=order) == pytest.approx(expected, **CLOSE)
    slow = [
        reference._correct_distance(a, b, y, order) for a, b, y in zip(old, new, truth, strict=True)
    ]
    found = metrics.correct_distance(old, new, truth=truth, order=order)
    assert found == pytest.approx(np.mean(slow), **CLOSE)


@given(scored_pairs(), st.data())
def test_top_k_agrees_with_ranking_each_row(pair, data):
    old, new, truth = pair
    k = data.draw(st.integers(1, old.shape[1]))
    top = [[set(reference.ranked(row)[:k]) for row in rows.tolist()] for rows in (old, new)]
    consistent = np.mean([bool(a & b) for a, b in zip(*top, strict=True)])
    assert metrics.top_k_consistency(old, new, k=k) == pytest.approx(consistent)
    right = np.mean([y in a for a, y in zip(top[0], truth, strict=True)])
    assert metrics.top_k_accuracy(old, truth=truth, k=k) == pytest.approx(right)


@given(three_labellings())
def test_cohen_kappa_agrees_with_scikit_learn(labels):
    from sklearn.metrics import cohen_kappa_score

    old, new, _ = labels
    if len({*old.tolist(), *new.tolist()}) > 1:
        assert metrics.cohen_kappa(old, new) == pytest.approx(cohen_kappa_score(old, new))


@given(scored_pairs(), st.data())
def test_top_k_accuracy_agrees_with_scikit_learn_where_no_scores_are_equal(pair, data):
    from sklearn.metrics import top_k_accuracy_score

    scores, _, truth = pair
    classes = scores.shape[1]
    assume(classes > 2)  # scikit-learn takes one column for two classes
    scores = scores + np.linspace(0, 1e-3, classes)  # scikit-learn breaks ties the other way
    k = data.draw(st.integers(1, classes - 1))
    expected = top_k_accuracy_score(truth, scores, k=k, labels=range(classes))
    assert metrics.top_k_accuracy(scores, truth=truth, k=k) == pytest.approx(expected)


@given(three_labellings())
def test_accuracy_agrees_with_scikit_learn(labels):
    from sklearn.metrics import accuracy_score

    found = metrics.accuracy(labels[0], truth=labels[2])
    assert found == pytest.approx(accuracy_score(labels[2], labels[0]))


def test_mcnemar_is_exact_for_every_small_count():
    for lost, gained in itertools.product(range(0, 60, 3), range(0, 60, 4)):
        expected = reference.mcnemar(lost, gained)
        found = metrics.mcnemar_of_counts(lost=lost, gained=gained)
        assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("counts", [(500, 600), (4_900, 5_200), (30, 4_000)])
def test_mcnemar_stays_exact_for_large_counts(counts):
    expected = reference.mcnemar(*counts)
    assert metrics.mcnemar_of_counts(lost=counts[0], gained=counts[1]) == pytest.approx(
        expected, rel=1e-6, abs=1e-300
    )


def test_mcnemar_changes_smoothly_where_the_approximation_begins():
    exact = metrics.mcnemar_of_counts(lost=499_000, gained=501_000)
    approximate = metrics.mcnemar_of_counts(lost=499_000, gained=501_001)
    assert approximate == pytest.approx(exact, rel=0.01)
    assert metrics.mcnemar_of_counts(lost=10**12, gained=10**12) == 1.0
    assert metrics.mcnemar_of_counts(lost=10**12, gained=2 * 10**12) == 0.0


@given(three_labellings())
def test_mcnemar_of_labels_is_mcnemar_of_their_counts(labels):
    old, new, truth = labels
    lost = int(((old == truth) & (new != truth)).sum())
    gained = int(((old != truth) & (new == truth)).sum())
    found = metrics.mcnemar(old, new, truth=truth)
    assert found == pytest.approx(reference.mcnemar(lost, gained))
