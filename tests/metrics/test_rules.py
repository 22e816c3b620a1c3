"""The rules that the package states where a definition leaves something open."""

import math

import numpy as np
import pytest

from dynsnap import metrics
from dynsnap.errors import InputError
from tests.messages import naming

ROWS = np.array([[0.6, 0.4], [0.3, 0.7]])
TRUTH = np.array([0, 1])
PAIRS = [
    metrics.pearson,
    metrics.cosine,
    metrics.minkowski,
    metrics.prediction_difference,
    metrics.jensen_shannon,
    lambda old, new: metrics.top_k_consistency(old, new, k=1),
    lambda old, new: metrics.correct_distance(old, new, truth=np.zeros(len(old), int)),
]
ALONE = [
    metrics.correctness,
    metrics.expected_calibration_error,
    lambda scores, truth: metrics.top_k_accuracy(scores, truth=truth, k=1),
]
WITH_TRUTH = [
    metrics.correct_consistency,
    metrics.transitions,
    metrics.neutral_churn,
    metrics.negative_flip_rate,
    metrics.positive_flip_rate,
    metrics.relative_negative_flip_rate,
    metrics.backward_trust_compatibility,
    metrics.backward_error_compatibility,
    metrics.win_loss_ratio,
    metrics.mcnemar,
]
MANY = [
    metrics.fleiss_kappa,
    metrics.krippendorff_alpha,
    metrics.ambiguity,
    metrics.discrepancy,
]


# Ties.


def test_among_equal_scores_the_lower_class_ranks_first():
    level = np.array([[0.25, 0.25, 0.25, 0.25]])
    for k in (1, 2, 3):
        right = [metrics.top_k_accuracy(level, truth=np.array([c]), k=k) for c in range(4)]
        assert right == [float(c < k) for c in range(4)]
    late = np.array([[0.1, 0.2, 0.35, 0.35]])
    early = np.array([[0.35, 0.35, 0.2, 0.1]])
    assert metrics.top_k_consistency(level, late, k=2) == 0
    assert metrics.top_k_consistency(level, early, k=1) == 1


def test_calibration_takes_the_lower_of_two_equal_classes():
    level = np.array([[0.5, 0.5]])
    assert metrics.expected_calibration_error(level, truth=np.array([0])) == 0.5
    assert metrics.expected_calibration_error(level, truth=np.array([1])) == 0.5
    sure = np.array([[0.4, 0.4, 0.2]])
    found = [metrics.expected_calibration_error(sure, truth=np.array([c])) for c in range(3)]
    assert found == pytest.approx([0.6, 0.4, 0.4])


def test_calibration_bins_are_closed_on_the_right():
    scores = np.array([[0.5, 0.5], [0.6, 0.4]])
    # With two bins 0.5 falls into the first and 0.6 into the second: the gaps do not cancel.
    found = metrics.expected_calibration_error(scores, truth=np.array([0, 1]), bins=2)
    assert found == pytest.approx(0.5 * 0.5 + 0.5 * 0.6)
    one = metrics.expected_calibration_error(scores, truth=np.array([0, 1]), bins=1)
    assert one == pytest.approx(abs(0.5 - 0.55))


# Constant rows and rows of zeros.


@pytest.mark.parametrize("classes", [1, 2, 3, 7, 10])
def test_two_constant_rows_correlate_fully_and_one_not_at_all(classes):
    level = np.full((1, classes), 1 / classes)
    assert metrics.pearson(level, level) == 1
    assert metrics.pearson(level, np.full((1, classes), 0.1)) == 1
    if classes > 1:
        assert metrics.pearson(level, np.eye(classes)[:1]) == 0
        assert metrics.pearson(np.eye(classes)[:1], level) == 0


def test_two_rows_of_zeros_point_the_same_way_and_one_nowhere():
    zeros, row = np.zeros((1, 3)), np.array([[0.2, 0.3, 0.5]])
    assert metrics.cosine(zeros, zeros) == 1
    assert metrics.cosine(zeros, row) == 0
    assert metrics.cosine(row, zeros) == 0


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_tiny_and_huge_scores_keep_their_direction_and_length(size):
    old, new = np.array([[3.0, 4.0, 0.0]]) * size, np.array([[4.0, 3.0, 0.0]]) * size
    assert metrics.cosine(old, new) == pytest.approx(0.96)
    assert metrics.pearson(old, new) == pytest.approx(np.corrcoef(old / size, new / size)[0, 1])
    assert metrics.minkowski(old, new) == pytest.approx(math.sqrt(2) * size)


# Top k beyond the classes.


@pytest.mark.parametrize("k", [0, -1, 3, 1.5])
def test_k_outside_the_classes_is_refused(k):
    with pytest.raises(InputError, match=naming("`k`", "2 classes", rf"got {k}")):
        metrics.top_k_consistency(ROWS, ROWS, k=k)
    with pytest.raises(InputError, match="`k` must be"):
        metrics.top_k_accuracy(ROWS, truth=TRUTH, k=k)


# Shares of nothing.


def test_a_share_of_nothing_is_nan():
    right, wrong = np.zeros(3, int), np.ones(3, int)
    truth = np.zeros(3, int)
    assert math.isnan(metrics.backward_trust_compatibility(wrong, right, truth=truth))
    assert math.isnan(metrics.backward_error_compatibility(wrong, right, truth=truth))
    assert math.isnan(metrics.relative_negative_flip_rate(wrong, right, truth=truth))
    assert math.isnan(metrics.relative_negative_flip_rate(right, right, truth=truth))
    assert math.isnan(metrics.win_loss_ratio(right, right, truth=truth))
    assert metrics.win_loss_ratio(wrong, right, truth=truth) == math.inf
    assert metrics.win_loss_ratio(right, wrong, truth=truth) == 0


def test_agreement_on_a_single_label_is_nan_with_any_weights():
    same = np.zeros((3, 7), int)
    for weights in (None, np.full(7, 0.1), np.arange(7) / 3):
        assert math.isnan(metrics.cohen_kappa(same[0], same[1], weights=weights))
        assert math.isnan(metrics.fleiss_kappa(same, weights=weights))
        assert math.isnan(metrics.krippendorff_alpha(same, weights=weights))


def test_a_share_of_nothing_stays_nan_under_weights():
    truth, old = np.array([0, 0, 0]), np.array([0, 1, 0])
    weights = np.array([0.1, 0.7, 0.2])
    assert math.isnan(
        metrics.backward_error_compatibility(old, truth, truth=truth, weights=weights)
    )
    assert math.isnan(metrics.relative_negative_flip_rate(old, truth, truth=truth, weights=weights))


# Empty input.


def test_empty_input_is_refused_everywhere():
    nothing, no_rows = np.zeros(0, int), np.zeros((0, 3))
    for function in (metrics.consistency, metrics.churn, metrics.cohen_kappa):
        with pytest.raises(InputError, match="nothing to compare"):
            function(nothing, nothing)
        with pytest.raises(InputError, match="nothing to compare"):
            function([], [])
    for function in WITH_TRUTH:
        with pytest.raises(InputError, match="nothing to compare"):
            function(nothing, nothing, truth=nothing)
    for function in PAIRS:
        with pytest.raises(InputError, match="nothing to compare"):
            function(no_rows, no_rows)
    for function in ALONE:
        with pytest.raises(InputError, match="nothing to compare"):
            function(no_rows, truth=nothing)
    for function in MANY:
        with pytest.raises(InputError, match="nothing to compare"):
            function(np.zeros((2, 0), int))


# Scores that are no numbers, or no probabilities.


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused_everywhere(bad):
    rows = np.array([[0.6, 0.4], [bad, 0.7]])
    for function in PAIRS:
        with pytest.raises(InputError, match=naming("`old_scores`", r"\(1, 0\)")):
            function(rows, ROWS)
        with pytest.raises(InputError, match="`new_scores` holds"):
            function(ROWS, rows)
    for function in ALONE:
        with pytest.raises(InputError, match="`scores` holds"):
            function(rows, truth=TRUTH)


@pytest.mark.parametrize("function", [metrics.prediction_difference, metrics.jensen_shannon])
def test_pairs_of_probabilities_must_sum_to_one(function):
    off = ROWS + np.array([[0, 0], [0, 0.02]])
    with pytest.raises(InputError, match=naming("`new_scores`", "1", "1.02", "softmax")):
        function(ROWS, off)
    assert function(ROWS, ROWS + 0.004) < 0.01  # 0.008 in all: rounding of stored scores
    with pytest.raises(InputError, match=naming("`old_scores`", "negative", "0")):
        function(np.array([[1.5, -0.5], [0.5, 0.5]]), ROWS)


@pytest.mark.parametrize("function", [metrics.correctness, metrics.expected_calibration_error])
def test_probabilities_of_one_generation_must_sum_to_one(function):
    with pytest.raises(InputError, match=r"row 0 sums to 2"):
        function(np.ones((2, 2)), truth=TRUTH)
    with pytest.raises(InputError, match=naming("`scores`", "negative", "1", "-0.5")):
        function(np.array([[0.5, 0.5], [1.5, -0.5]]), truth=TRUTH)


def test_distances_directions_and_ranks_take_any_real_scores():
    logits = np.array([[4.0, -3.0], [0.0, 7.0]])
    assert metrics.minkowski(logits, logits + 1, order=1) == 2
    assert metrics.minkowski(np.array([[1.0], [5.0]]), np.array([[2.0], [8.0]])) == 2
    assert metrics.correct_distance(logits, logits, truth=TRUTH) > 0
    assert metrics.cosine(logits, -logits) == pytest.approx(-1)
    assert metrics.pearson(logits, 3 * logits - 5) == pytest.approx(1)
    assert metrics.top_k_accuracy(logits, truth=TRUTH, k=1) == 1


def test_small_float_types_are_measured_like_the_large_one():
    rng = np.random.default_rng(0)
    old, new = rng.dirichlet(np.ones(5), (2, 50)).astype(np.float32)
    for function in PAIRS:
        exact = function(old.astype(np.float64), new.astype(np.float64))
        assert function(old, new) == pytest.approx(exact, rel=1e-12)
        assert function(old.astype(np.float16), new) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("order", [0.5, 0, -2, math.nan])
def test_orders_below_one_are_refused(order):
    with pytest.raises(InputError, match=naming("`order`", "1")):
        metrics.minkowski(ROWS, ROWS, order=order)


# Shapes, kinds and lengths.


def test_labels_of_different_inputs_are_refused_by_name():
    with pytest.raises(InputError, match=naming("`old`", "2", "`new`", "3", "align")):
        metrics.consistency(np.zeros(2, int), np.zeros(3, int))
    with pytest.raises(InputError, match=r"`truth` has 1"):
        metrics.accuracy(np.zeros(2, int), truth=np.zeros(1, int))


def test_scores_in_the_place_of_labels_are_refused():
    with pytest.raises(InputError, match=naming("`old`", "argmax")):
        metrics.consistency(ROWS, ROWS)
    with pytest.raises(InputError, match=naming("`new`", "positions", "float64")):
        metrics.consistency(TRUTH, TRUTH * 1.0)


def test_names_are_not_compared_with_positions():
    with pytest.raises(InputError, match=naming("`old` is <U1", "`new` is int64")):
        metrics.consistency(np.array(["0", "1"]), TRUTH)


def test_scores_of_different_classes_are_refused():
    with pytest.raises(InputError, match=naming("`old_scores`", "2", "`new_scores`", "3")):
        metrics.cosine(ROWS, np.ones((2, 3)))
    with pytest.raises(InputError, match=r"at least one"):
        metrics.cosine(np.ones((2, 0)), np.ones((2, 0)))


def test_scores_of_one_axis_are_refused_with_the_way_out():
    with pytest.raises(InputError, match=naming(r"\(inputs, classes\)", r"\(2,\)", r"\[:, None\]")):
        metrics.minkowski(np.zeros(2), np.zeros(2))
    with pytest.raises(InputError, match="must hold numbers"):
        metrics.cosine(np.array([["a", "b"]]), np.array([["a", "b"]]))


def test_truth_outside_the_classes_is_refused():
    for truth, found in ([0, 2], "row 1 holds 2"), ([-1, 0], "row 0 holds -1"):
        with pytest.raises(InputError, match=naming("0 and 1", found)):
            metrics.top_k_accuracy(ROWS, truth=np.array(truth), k=1)
    with pytest.raises(InputError, match=naming("`truth`", "position")):
        metrics.correctness(ROWS, truth=np.array([0.0, 1.0]))
    with pytest.raises(InputError, match=naming("`truth`", "2 inputs", r"\(3,\)")):
        metrics.expected_calibration_error(ROWS, truth=np.array([0, 1, 1]))


@pytest.mark.parametrize("bins", [0, -3, 2.5, math.nan])
def test_bins_must_be_a_whole_number(bins):
    with pytest.raises(InputError, match=naming("`bins`", "whole")):
        metrics.expected_calibration_error(ROWS, truth=TRUTH, bins=bins)


def test_weights_must_be_sound():
    for weights, message in [
        ([1.0], naming("`weights`", "2 inputs", r"\(1,\)")),
        ([1.0, -1.0], naming("`weights`", "negative")),
        ([0.0, 0.0], naming("`weights`", "above 0")),
        ([np.nan, 1.0], "`weights` holds nan"),
    ]:
        with pytest.raises(InputError, match=message):
            metrics.consistency(TRUTH, TRUTH, weights=np.array(weights))


def test_huge_weights_do_not_overflow():
    weights = np.array([1e308, 1e308])
    assert metrics.consistency(TRUTH, np.array([0, 0]), weights=weights) == 0.5


def test_generations_need_two_rows():
    for function in MANY:
        with pytest.raises(InputError, match=naming("generations", r"\(1, 4\)")):
            function(np.zeros((1, 4), int))
        with pytest.raises(InputError, match=r"\(generations, inputs\)"):
            function(np.zeros(4, int))


def test_negative_counts_are_refused():
    with pytest.raises(InputError, match=naming("lost=-1", "negative")):
        metrics.mcnemar_of_counts(lost=-1, gained=3)


def test_plain_lists_work_like_arrays():
    assert metrics.consistency([0, 1, 2], [0, 1, 1]) == pytest.approx(2 / 3)
    assert metrics.cosine([[1, 0]], [[1, 0]]) == 1
    assert metrics.fleiss_kappa([[0, 1], [0, 1]]) == 1
