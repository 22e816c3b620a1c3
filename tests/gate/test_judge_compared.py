"""Gates on real comparisons, held against metrics computed on the rows themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap import metrics
from dynsnap.comparison import compare
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.gate import Rule, judge
from dynsnap.predictions import Predictions
from tests.messages import naming
from tests.strategies import three_labellings

NAMES = [str(place) for place in range(5)]
LENIENT = {"min_count": 1, "allow_unknown_labels": 1}  # labels are drawn at random, and few


def compared(old, new, truth):
    ids = np.arange(len(truth))
    said = [
        Predictions(
            ids=ids, classes=NAMES, labels=labels, truth=truth, slices={"even": ids % 2 == 0}
        )
        for labels in (old, new)
    ]
    return compare(*said, resamples=20)


@settings(max_examples=30)
@given(three_labellings(max_classes=5), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))
def test_all_inputs_are_judged_by_the_metric_itself(labels, threshold):
    old, new, truth = labels
    comparison = compared(*labels)
    expected = {
        "lost": metrics.transitions(old, new, truth=truth).lost,
        "correct_consistency": metrics.correct_consistency(old, new, truth=truth),
        "accuracy": metrics.accuracy(new, truth=truth),
        "ambiguity": metrics.ambiguity(np.stack([old, new])),
    }
    for name, value in expected.items():
        (outcome,) = judge(
            comparison, [Rule(metric=name, at_most=threshold, allow_odd=True)], **LENIENT
        ).outcomes
        assert abs(outcome.judged - value) < 1e-12
        assert (outcome.status == "passed") == (value <= threshold + 1e-12)


@settings(max_examples=30)
@given(three_labellings(max_classes=5))
def test_each_part_is_judged_by_the_metric_of_its_rows(labels):
    old, new, truth = labels
    ids = np.arange(len(truth))
    parts = {f"class {name}": truth == place for place, name in enumerate(NAMES)}
    comparison = compared(*labels)
    for value in comparison.slices["even"]:
        parts[f"even = {value}"] = (ids % 2 == 0) == (value.lower() == "true")
    for name in ("lost", "accuracy"):
        rules = [
            Rule(metric=name, at_most=0.5, class_name="*", allow_odd=True),
            Rule(metric=name, at_most=0.5, slice=("even", "*"), allow_odd=True),
        ]
        outcomes = judge(comparison, rules, **LENIENT).outcomes
        assert {outcome.part for outcome in outcomes} == set(parts)
        for outcome in outcomes:
            rows = parts[outcome.part]
            assert outcome.inputs == rows.sum()
            if not rows.any():
                assert outcome.status == "not judged"
                continue
            if name == "lost":
                value = metrics.transitions(old[rows], new[rows], truth=truth[rows]).lost
            else:
                value = metrics.accuracy(new[rows], truth=truth[rows])
            assert abs(outcome.judged - value) < 1e-12


@pytest.mark.parametrize(
    ("rule", "way_out"),
    [
        (
            Rule(metric="top_9_accuracy", at_least=0.5),
            naming("top_9_accuracy", "2 classes", "smaller k"),
        ),
        (
            Rule(metric="cohen_kappa", at_least=0, class_name="a"),
            naming("cohen_kappa", "class a", "all inputs", "another metric"),
        ),
        (
            Rule(metric="lost", at_most=0.9, min_count=9),
            naming("4 inputs", r"9 \(min_count\)", "more inputs"),
        ),
        (
            Rule(metric="win_loss_ratio", at_least=1),
            naming("win_loss_ratio", "undefined", r"\(0/0\)", "more inputs"),
        ),
        (
            Rule(metric="lost", at_most=0.9, class_name="*", min_count=9),
            naming("class a: 4 inputs", "class b: 0 inputs", r"9 \(min_count\)", "more inputs"),
        ),
    ],
)
def test_what_cannot_be_judged_says_the_way_out(rule, way_out):
    scores = np.eye(2)[[0, 1, 0, 1]]
    old, new = (
        Predictions(ids=range(4), classes=["a", "b"], scores=each, truth=[0] * 4)
        for each in (scores, scores.copy())
    )
    with pytest.raises(ComparisonError, match=way_out):
        judge(compare(old, new, top_k=[1, 9]), [rule], **LENIENT)


def test_judging_no_comparison_at_all_is_refused():
    with pytest.raises(PlanError, match="two generations"):
        judge([], [Rule(metric="lost", at_most=0.9)])
