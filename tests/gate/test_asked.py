"""What a caller from Python asks of a gate is what a file of rules asks."""

import dataclasses
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

from dynsnap.errors import ComparisonError, PlanError
from dynsnap.gate import Rule, check
from tests.messages import naming

IDS = list(range(40))
TRUTH = ["cat", "dog"] * 20


@pytest.mark.parametrize(
    ("asked", "on"),
    [
        ({}, "value"),
        ({"confidence": 0.95}, "bound"),
        ({"unresolved": "report"}, "bound"),
        ({"class_name": "*", "correction": "holm"}, "bound"),
        ({"on": "value"}, "value"),
    ],
)
def test_who_names_a_confidence_means_the_bound(asked, on):
    rule = Rule(metric="lost", at_most=0.1, **asked)
    assert rule.on == on
    assert dataclasses.replace(rule, name="again").on == on


@pytest.mark.parametrize("given", [0.95, np.float32(0.95), np.float64(0.95), Fraction(19, 20)])
def test_a_number_of_any_kind_is_the_same_rule(given):
    plain = Rule(metric="lost", at_most=0.95, confidence=0.95)
    found = Rule(metric="lost", at_most=given, confidence=given)
    assert found == plain and found.title == plain.title
    assert json.dumps([found.at_most, found.confidence]) == "[0.95, 0.95]"
    near = Rule(metric="lost", at_most=0.95, confidence=0.9500000001)
    assert near != plain and near.title != plain.title


def test_a_confidence_in_percent_is_refused_with_the_fraction():
    with pytest.raises(PlanError, match=naming("`confidence`", "0.9,", "90")):
        Rule(metric="lost", at_most=0.1, confidence=90)


def test_a_rule_that_was_stored_asks_for_what_it_asked_for():
    for rule in (Rule(metric="lost", at_most=0.1), Rule(metric="lost", at_most=0.1, on="bound")):
        again = pickle.loads(pickle.dumps(rule))  # noqa: S301 (our own)
        assert again == rule and dataclasses.replace(again, name="again").on == rule.on


def test_a_confidence_is_not_passed_by_the_value():
    old = {"id": IDS, "truth": TRUTH, "label": TRUTH}
    new = {"id": IDS, "label": ["dog", *TRUTH[1:]]}
    rule = Rule(metric="lost", at_most=0.05, confidence=0.95)  # 1 of 40; its high end is 0.13
    assert not check(old, new, rule).passed


def test_one_table_may_hold_both_models():
    wide = {"id": IDS, "truth": TRUTH, "v1": TRUTH, "v2": ["dog", "cat", *TRUTH[2:]]}
    rule = Rule(metric="lost", at_most=0.02)
    verdict = check(wide, None, rule, columns={"labels": ["v1", "v2"]})
    assert (verdict.passed, verdict.outcomes[0].judged) == (False, 0.05)


def test_labels_of_sets_that_differ_by_case_are_refused():
    sets = [[], ["cat"], ["dog", "cat"], ["dog"]] * 10
    old = {"id": IDS, "truth": sets, "label": [[each.upper() for each in some] for some in sets]}
    new = {"id": IDS, "label": sets}
    rule = Rule(metric="lost", at_most=0.02)
    with pytest.raises(ComparisonError, match="--rename cat=CAT"):
        check(old, new, rule, task="multilabel")
    renamed = check(old, new, rule, task="multilabel", rename={"CAT": "cat", "DOG": "dog"})
    assert renamed.passed


@pytest.mark.parametrize("labels", [("Cat", "Dog"), ("cat ", " dog")])
def test_classes_that_differ_by_case_or_spaces_name_the_option(labels):
    old = {"id": IDS, "truth": TRUTH, "label": TRUTH}
    new = {"id": IDS, "label": list(labels) * 20}
    with pytest.raises(ComparisonError) as refused:
        check(old, new, Rule(metric="lost", at_most=0.02))
    first, option = labels[0], "--rename "
    quoted = f"'{first}=cat'" if " " in first else f"{first}=cat"
    assert option + quoted in str(refused.value)


def test_a_grade_of_0_is_no_threshold():
    old, new = ({"id": IDS, "correct": [0.0, some] * 20} for some in (1.0, 0.5))
    with pytest.raises(PlanError, match="threshold"):
        check(old, new, Rule(metric="lost", at_most=0.1), task="graded", threshold=0)
