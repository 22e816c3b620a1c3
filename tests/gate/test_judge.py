import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.comparison import Estimate, GenerationResult
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.gate import Rule, judge, to_json
from tests.gate import made
from tests.messages import naming

shares = st.floats(0, 1)


def status(comparison, **rule):
    return judge(comparison, [Rule(allow_odd=True, **rule)]).outcomes[0].status


@given(shares, shares)
def test_a_value_passes_exactly_when_it_is_on_the_right_side(value, threshold):
    comparison = made.comparison(made.pair(lost=value))
    close = abs(value - threshold) <= 1e-12
    at_least = status(comparison, metric="lost", at_least=threshold)
    at_most = status(comparison, metric="lost", at_most=threshold)
    assert at_least == ("passed" if value >= threshold or close else "failed")
    assert at_most == ("passed" if value <= threshold or close else "failed")


@given(shares, shares)
def test_whatever_passes_on_the_bound_passes_on_the_value(value, threshold):
    comparison = made.comparison(made.pair(lost=value))
    for side in ("at_least", "at_most"):
        if status(comparison, metric="lost", on="bound", **{side: threshold}) == "passed":
            assert status(comparison, metric="lost", **{side: threshold}) == "passed"


def test_the_worse_end_of_the_interval_is_judged():
    comparison = made.comparison(made.pair(lost=Estimate(0.05, 0.02, 0.09)))
    outcomes = judge(
        comparison,
        [
            Rule(metric="lost", at_most=0.1, on="bound"),
            Rule(metric="lost", at_least=0.01, on="bound", allow_odd=True),
        ],
    ).outcomes
    assert [outcome.judged for outcome in outcomes] == [0.09, 0.02]


def test_rounding_errors_do_not_fail_a_rule():
    value = 0.1 + 0.2  # 0.30000000000000004
    assert status(made.comparison(made.pair(lost=value)), metric="lost", at_most=0.3) == "passed"


def test_metrics_of_one_generation_are_those_of_the_new_one():
    outcome = judge(made.comparison(), [Rule(metric="accuracy", at_least=0.8)]).outcomes[0]
    assert outcome.judged == 0.85
    assert outcome.part == "all inputs"


def test_metrics_of_all_generations_can_be_judged():
    assert status(made.comparison(), metric="ambiguity", at_most=0.3) == "passed"


def test_every_class_is_judged_on_its_own():
    pair = made.pair(groups=(made.group("cat", lost=0.0), made.group("frog", lost=0.5)))
    verdict = judge(made.comparison(pair), [Rule(metric="lost", at_most=0.1, class_name="*")])
    assert [(outcome.part, outcome.status) for outcome in verdict.outcomes] == [
        ("class cat", "passed"),
        ("class frog", "failed"),
    ]
    assert not verdict.passed
    assert [outcome.part for outcome in verdict.failed] == ["class frog"]


def test_slices_are_judged_by_column_and_value():
    groups = tuple(
        made.group(name, kind="slice", column=column, lost=lost)
        for column, name, lost in [("a", "x", 0.0), ("a", "y", 0.5), ("b", "x", 0.5)]
    )
    comparison = made.comparison(made.pair(groups=groups), slices={"a": ("x", "y"), "b": ("x",)})
    rules = [
        Rule(metric="lost", at_most=0.1, slice=("a", "x")),
        Rule(metric="lost", at_most=0.1, slice=("a", "*")),
        Rule(metric="lost", at_most=0.1, slice=("b", "*")),
    ]
    found = [(outcome.part, outcome.status) for outcome in judge(comparison, rules).outcomes]
    assert found == [
        ("a = x", "passed"),
        ("a = x", "passed"),
        ("a = y", "failed"),
        ("b = x", "failed"),
    ]


def test_small_classes_are_left_out_of_a_rule_for_every_class_and_named():
    pair = made.pair(groups=(made.group("cat", lost=0.0), made.group("frog", inputs=3, lost=1.0)))
    comparison = made.comparison(pair, classes=("cat", "frog", "newt"))
    verdict = judge(comparison, [Rule(metric="lost", at_most=0.1, class_name="*", min_count=30)])
    assert verdict.passed
    assert [(outcome.status, outcome.reason) for outcome in verdict.outcomes] == [
        ("passed", ""),
        ("not judged", "3 inputs, fewer than 30 (min_count)"),
        ("not judged", "0 inputs, fewer than 30 (min_count)"),
    ]


UNDEFINED = Estimate(math.nan, None, None)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"metric": "pearson"}, naming(r"'pearson ≤ 0\.9'", "scores", "files")),
        ({"metric": "top_5_consistency"}, "needs scores"),
        (
            {"metric": "cohen_kappa"},
            naming(r"'cohen_kappa ≤ 0\.9'", "on all inputs", "another metric"),
        ),
        ({"metric": "win_loss_ratio"}, r"undefined there \(0/0\)"),
        ({"metric": "win_loss_ratio", "on": "bound"}, r"undefined there \(0/0\)"),
        ({"metric": "neutral_churn", "on": "bound"}, "neutral_churn has no interval"),
        ({"metric": "lost", "min_count": 101}, "100 inputs, fewer than 101"),
        ({"metric": "lost", "class_name": "frgo"}, naming("class frgo", '"frog"')),
        (
            {"metric": "lost", "class_name": "newt"},
            naming("on class newt", "0 inputs", r"30 \(min_count\)"),
        ),
        ({"metric": "lost", "class_name": "frog", "min_count": 60}, "50 inputs, fewer than 60"),
        (
            {"metric": "lost", "class_name": "*", "min_count": 60},
            naming("in every class'", "frog: 50 inputs", "newt: 0 inputs", r"60 \(min_count\)"),
        ),
        (
            {"metric": "churn", "class_name": "frog"},
            naming(r"'churn ≤ 0\.9 in class frog'", "measured", "only on all"),
        ),
        ({"metric": "lost", "slice": ("regoin", "*")}, naming("'regoin'", "slice", '"region"')),
        ({"metric": "lost", "slice": ("region", "nroth")}, 'Did you mean "north"'),
        ({"metric": "lost", "slice": ("region", "south")}, "0 inputs, fewer than 30"),
    ],
)
def test_a_gate_never_passes_because_something_was_missing(rule, message):
    pair = made.pair(
        groups=(made.group("frog", lost=0.0),),
        win_loss_ratio=UNDEFINED,
        neutral_churn=Estimate(0.0),
    )
    comparison = made.comparison(
        pair,
        classes=("frog", "newt"),
        has_scores=False,
        slices={"region": ("north", "south")},
    )
    with pytest.raises(ComparisonError, match=message):
        judge(comparison, [Rule(at_most=0.9, allow_odd=True, **rule)])


@pytest.mark.parametrize("rule", [{"metric": "accuracy"}, {"metric": "churn", "class_name": "*"}])
def test_rules_that_need_the_truth_say_so_without_it(rule):
    bare = tuple(GenerationResult(name=name, metrics={}) for name in ("old", "new"))
    comparison = made.comparison(has_truth=False, generations=bare)
    with pytest.raises(ComparisonError, match="truth"):
        judge(comparison, [Rule(at_most=0.9, allow_odd=True, **rule)])


def test_missing_ids_are_refused_unless_allowed():
    comparison = made.comparison(missing=(0, 25))
    rules = [Rule(metric="lost", at_most=0.5)]
    with pytest.raises(ComparisonError, match=naming("ids", "25", '"7"', r"0\.2", "0")):
        judge(comparison, rules)
    with pytest.raises(ComparisonError, match=r"at most 0\.19 may"):
        judge(comparison, rules, allow_missing=0.19)
    assert judge(comparison, rules, allow_missing=0.2).passed


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_the_share_of_missing_ids_is_a_share(share):
    with pytest.raises(PlanError, match=naming("`allow_missing`", "share")):
        judge(made.comparison(), [Rule(metric="lost", at_most=0.9)], allow_missing=share)


def test_no_rules_are_no_gate():
    with pytest.raises(PlanError, match=naming("no rule", "at least one")):
        judge(made.comparison(), [])


def test_three_generations_are_no_retrain():
    three = made.comparison(made.pair(), made.pair(), made.pair(), names=("a", "b", "c"))
    with pytest.raises(ComparisonError, match=r"two generations.* has 3"):
        judge(three, [Rule(metric="lost", at_most=0.9)])


def test_each_rule_is_judged_at_its_own_confidence():
    narrow = made.comparison(made.pair(lost=Estimate(0.05, 0.04, 0.06)), confidence=0.5)
    wide = made.comparison(made.pair(lost=Estimate(0.05, 0.0, 0.2)), confidence=0.99)
    rules = [
        Rule(metric="lost", at_most=0.1, on="bound", confidence=level) for level in (0.99, 0.5)
    ]
    verdict = judge([narrow, wide], rules)
    assert [outcome.judged for outcome in verdict.outcomes] == [0.2, 0.06]
    with pytest.raises(PlanError, match=naming(r"0\.99 confidence", r"0\.5", r"confidence=0\.99")):
        judge(narrow, rules)


def test_the_noise_floor_stands_beside():
    pair = made.pair(noise_floor=made.estimates(lost=0.03))
    verdict = judge(made.comparison(pair), [Rule(metric="lost", at_most=0.1)])
    assert verdict.outcomes[0].noise_floor == 0.03


def test_a_verdict_becomes_json_without_nan():
    pair = made.pair(
        groups=(made.group("cat", lost=0.0), made.group("frog", lost=UNDEFINED)),
        win_loss_ratio=Estimate(math.inf, math.inf, math.inf),
    )
    rules = [
        Rule(metric="win_loss_ratio", at_least=1.0),
        Rule(metric="lost", at_most=0.5, class_name="*", name="<b>"),
    ]
    plain = to_json(judge(made.comparison(pair, notes=("One.",)), rules))
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["schema"] == "dynsnap.gate/1"
    assert plain["passed"] is True
    assert plain["notes"] == ["One."]
    ratio, cat, frog = plain["outcomes"]
    assert (ratio["status"], ratio["value"]) == ("passed", None)
    assert (cat["status"], cat["value"], cat["judged"]) == ("passed", 0.0, 0.0)
    assert (frog["status"], frog["value"], frog["rule"]["name"]) == ("not judged", None, "<b>")
