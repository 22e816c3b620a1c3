"""A gate does not pass where nothing, or next to nothing, was judged."""

import numpy as np
import pytest

import dynsnap
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.gate import Rule, judge, read_rules
from dynsnap.predictions import write
from tests.messages import naming

TRUTH = ["cat", "dog"] * 30
OTHER = {"cat": "dog", "dog": "cat"}
LOST = Rule(metric="lost", at_most=0.02)


def predictions(labels, *, rows=60, **more):
    return dynsnap.Predictions(
        ids=range(rows),
        classes=["cat", "dog"],
        labels=labels and labels[:rows],
        truth=TRUTH[:rows],
        **more,
    )


GOOD = predictions(TRUTH)
HALF_LOST = predictions([OTHER[name] if row < 30 else name for row, name in enumerate(TRUTH)])


def compared(new, *, weights=None, rows=60, **more):
    return dynsnap.compare(predictions(TRUTH, rows=rows, weights=weights), new, **more)


def test_inputs_without_weight_do_not_count_towards_the_fewest():
    weights = [0.0] * 31 + [1.0] * 29
    found = compared(HALF_LOST, weights=weights)
    assert found.inputs == 60 and found.counting == 29
    with pytest.raises(ComparisonError, match=r"29 inputs.*weight.*30"):
        judge(found, [LOST])
    with pytest.raises(ComparisonError, match=r"29 inputs.*weight.*30"):
        judge(found, [Rule(metric="lost", at_most=0.02, class_name="*")])
    assert judge(found, [LOST], min_count=29).passed
    assert judge(compared(GOOD, weights=[0.0] * 30 + [1.0] * 30), [LOST]).passed


def test_inputs_of_a_class_without_weight_do_not_count_towards_the_fewest():
    weights = [0.0 if row % 2 == 0 and row > 8 else 1.0 for row in range(60)]  # 5 cats are left
    found = compared(GOOD, weights=weights)
    with pytest.raises(ComparisonError, match="class cat: 5 inputs"):
        judge(found, [Rule(metric="lost", at_most=0.02, class_name="cat", min_count=6)])
    rule = Rule(metric="lost", at_most=0.02, class_name="*", min_count=6)
    status = {each.part: each.status for each in judge(found, [rule]).outcomes}
    assert status == {"class cat": "not judged", "class dog": "passed"}


def scored(right, classes):
    names = [f"c{place}" for place in range(classes)]
    truth = [row % classes for row in range(60)]
    likeliest = [place if right else (place + 1) % classes for place in truth]
    scores = [[float(place == best) for place in range(classes)] for best in likeliest]
    return dynsnap.Predictions(
        ids=range(60), classes=names, scores=scores, truth=[names[place] for place in truth]
    )


@pytest.mark.parametrize(
    ("metric", "classes", "judged"),
    [
        ("top_2_accuracy", 2, False),
        ("top_2_accuracy", 3, True),
        ("top_2_consistency", 3, False),
        ("top_2_consistency", 4, True),
        ("top_1_consistency", 2, True),
    ],
)
def test_k_that_takes_in_all_classes_is_not_judged(metric, classes, judged):
    found = dynsnap.compare(scored(True, classes), scored(False, classes), top_k=[1, 2])
    if judged:
        judge(found, [Rule(metric=metric, at_least=0.9)])
        return
    with pytest.raises(ComparisonError, match=f"{classes} classes"):
        judge(found, [Rule(metric=metric, at_least=0.9)])
    assert judge(found, [Rule(metric=metric, at_least=0.9, allow_odd=True)]).passed


def test_an_exhausted_iterator_of_rules_is_no_rule():
    found = compared(HALF_LOST)
    with pytest.raises(PlanError, match="no rule"):
        judge(found, iter([]))
    assert not judge(found, iter([LOST])).passed


@pytest.mark.parametrize("count", [float("nan"), True, 0, 2.5, "30"])
def test_the_fewest_inputs_are_a_whole_number(count):
    with pytest.raises(PlanError, match="min_count"):
        Rule(metric="lost", at_most=0.02, min_count=count)
    with pytest.raises(PlanError, match="min_count"):
        judge(compared(GOOD), [LOST], min_count=count)


@pytest.mark.parametrize(
    "wrong",
    [
        {"allow_odd": "false"},
        {"slice": ("region",)},
        {"slice": "ab"},
        {"slice": ("region", None)},
        {"slice": (1, "north")},
        {"class_name": 0},
        {"at_most": "0.02"},
        {"at_most": False},
        {"confidence": "0.95"},
    ],
    ids=str,
)
def test_keys_of_a_rule_have_their_types(wrong):
    with pytest.raises(PlanError, match=next(iter(wrong))):
        Rule(**({"metric": "lost", "at_most": 0.02} | wrong))


def test_levels_are_of_the_same_predictions():
    rule = Rule(metric="lost", at_most=0.2, on="bound", confidence=0.5)
    bad = compared(HALF_LOST)
    for other in (
        compared(GOOD, confidence=0.5),
        compared(predictions(TRUTH, rows=40), confidence=0.5),
    ):
        with pytest.raises(ComparisonError, match="same predictions"):
            judge([bad, other], [rule])
    three = dynsnap.compare(GOOD, GOOD, HALF_LOST, confidence=0.5)
    with pytest.raises(ComparisonError, match="two"):
        judge([bad, three], [rule])
    assert not judge([bad, compared(HALF_LOST, confidence=0.5)], [rule]).passed


def test_relative_flips_of_more_than_chance_are_an_odd_rule():
    for threshold in (1.5, 85, 1e300):
        with pytest.raises(PlanError, match="unrelated"):
            Rule(metric="relative_nfr", at_most=threshold)
        Rule(metric="relative_nfr", at_most=threshold, allow_odd=True)
    Rule(metric="relative_nfr", at_most=1)


@pytest.mark.parametrize(
    "label",
    [
        "polar-bear",
        "Polar\u2010Bear",
        "polarbear",
        "\ufeffpolar bear",
        "polar bear\u200b",
        "po\u00adlar bear",
        "polar be\u0301ar",
        "p\u00f6lar bear",
    ],
)
def test_a_label_that_differs_by_what_is_hardly_seen_is_not_judged(label):
    truth = ["polar bear"] * 3 + TRUTH[3:]
    old, new = (
        dynsnap.Predictions(
            ids=range(60),
            classes=sorted({*truth, label}),
            labels=[first] * 3 + TRUTH[3:],
            truth=truth,
        )
        for first in (label, "cat")
    )
    with pytest.raises(ComparisonError, match="rename"):
        judge(dynsnap.compare(old, new), [LOST])


def test_predictions_that_are_held_against_themselves_are_wrong_use(tmp_path):
    again = dynsnap.Predictions(
        ids=range(60), classes=["cat", "dog"], labels=HALF_LOST.labels, truth=TRUTH
    )
    scores = [[1.0, 0.0], [0.0, 1.0]] * 30
    scored = predictions(None, scores=scores)
    for one in (HALF_LOST, scored):
        with pytest.raises(
            PlanError, match=naming('"generation 2"', '"generation 1"', "in memory", "two models")
        ):
            judge(dynsnap.compare(one, one), [LOST])
        with pytest.raises(PlanError, match=naming('"noise floor"', '"generation 1"', "in memory")):
            judge(dynsnap.compare(one, GOOD, noise_floor=one), [LOST])
    write(HALF_LOST, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").symlink_to(tmp_path / "a.parquet")
    for other in ("a.parquet", "b.parquet"):
        with pytest.raises(PlanError, match=r"same file: .*a\.parquet"):
            judge(dynsnap.compare(tmp_path / "a.parquet", tmp_path / other), [LOST])
    assert judge(dynsnap.compare(HALF_LOST, again), [LOST]).passed  # with a note, as two files


def test_an_array_that_is_filled_again_leaves_predictions_as_they_were():
    labels, weights = np.arange(60, dtype=np.int32) % 2, np.ones(60)
    old = dynsnap.Predictions(
        ids=range(60), classes=["cat", "dog"], labels=labels, truth=labels, weights=weights
    )
    labels[:40], weights[:40] = 1 - labels[:40], 0
    new = dynsnap.Predictions(ids=range(60), classes=["cat", "dog"], labels=labels)
    assert not judge(dynsnap.compare(old, new), [LOST]).passed


@pytest.mark.parametrize(
    ("metric", "threshold", "can_fail"),
    [
        ("lost", 0.5, False),
        ("lost", 0.49, True),
        ("never", 0.5, False),
        ("never", 0.49, True),
        ("neutral_churn", 0.6, False),
        ("neutral_churn", 0.49, True),
    ],
)
def test_a_rule_that_no_answers_of_new_could_fail_is_not_judged(metric, threshold, can_fail):
    found = dynsnap.compare(HALF_LOST, GOOD)  # the old model is right on half
    rule = {"metric": metric, "at_most": threshold}
    if can_fail:
        judge(found, [Rule(**rule)])
        return
    with pytest.raises(
        ComparisonError, match=naming("generation 1", r"right on 0\.5", r"0\.5 at worst", "fail")
    ):
        judge(found, [Rule(**rule)])
    with pytest.raises(ComparisonError, match="nowhere"):
        judge(found, [Rule(**rule, class_name="*")])
    assert judge(found, [Rule(**rule, allow_odd=True)]).passed
    judge(found, [Rule(**rule, on="bound")])  # of more inputs, more may be lost


def test_the_twin_has_a_name_of_its_own():
    names = ["old", "noise floor"]
    found = dynsnap.compare(GOOD, HALF_LOST, names=names, noise_floor=predictions(TRUTH))
    verdict = judge(found, [Rule(metric="lost", at_most=0.6)])
    assert list(verdict.verification)[:2] == names and len(verdict.verification) == 3


@pytest.mark.parametrize("given", ["lost=0.02", ["lost=0.02"], [None], [("lost", 0.02)]], ids=str)
def test_what_is_no_rule_is_wrong_use(given):
    with pytest.raises(PlanError, match=naming("`Rule`")):
        judge(compared(GOOD), given)
    assert not judge(compared(HALF_LOST), LOST).passed  # a single rule will do


@pytest.mark.parametrize("confidence", [1e-9, 0.05, 0.49])
def test_the_level_of_a_test_is_not_taken_for_a_confidence(confidence):
    rule = {"metric": "lost", "at_most": 0.51, "on": "bound", "confidence": confidence}
    with pytest.raises(PlanError, match=r"confidence.*at least 0\.5.*allow_odd"):
        Rule(**rule)
    Rule(**rule, allow_odd=True)


def test_a_confidence_that_has_no_effect_is_wrong_use(tmp_path):
    file = tmp_path / "gate.toml"
    text = '[[rule]]\nmetric = "lost"\nat_most = 0.51\nconfidence = 0.99\n'
    file.write_text(text)
    assert read_rules(file)[0].on == "bound"
    file.write_text(text + 'on = "value"\n')
    with pytest.raises(PlanError, match=r"confidence.*on = .value"):
        read_rules(file)
