"""Rules on a bound: too little evidence never passes."""

import numpy as np
import pytest

from dynsnap.comparison import Estimate, compare
from dynsnap.errors import ComparisonError
from dynsnap.gate import Rule, judge
from dynsnap.metrics import catalogue
from dynsnap.predictions import Predictions
from tests.gate import made
from tests.messages import naming

SURE = [0.98, 0.01, 0.01]


def generations(*labels, truth, **parts):
    """Predictions that put nearly all of the score on their labels."""
    rows = [np.array([np.roll(SURE, place) for place in each]) for each in labels]
    return [
        Predictions(
            ids=np.arange(len(truth)), classes=list("abc"), scores=scores, truth=truth, **parts
        )
        for scores in rows
    ]


def passes(comparison, **rule):
    """Whether the gate passes; it may also refuse to judge, which is not to pass."""
    if catalogue[rule["metric"]].of == "class":
        rule = {**rule, "class_name": "a"}
    try:
        return judge(comparison, [Rule(on="bound", min_count=1, **rule)]).passed
    except ComparisonError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("name", catalogue)
@pytest.mark.parametrize("weights", [None, [0.2]], ids=["unweighted", "weighted"])
def test_one_input_however_good_passes_no_bound(name, weights):
    best = compare(*generations([0], [0], truth=[0], weights=weights))
    if catalogue[name].direction == "lower":
        assert not passes(best, metric=name, at_most=0.1)
    else:
        assert not passes(best, metric=name, at_least=0.9)


@pytest.mark.slow
@pytest.mark.parametrize("name", catalogue)
def test_few_inputs_of_which_one_carries_the_weight_pass_no_bound(name):
    weights = [1000.0] + [1.0] * 39
    labels = [0] * 20 + [1] * 20  # more than one label, or the kappas are undefined
    best = compare(*generations(labels, labels, truth=labels, weights=weights))
    if catalogue[name].direction == "lower":
        assert not passes(best, metric=name, at_most=0.1)
    else:
        assert not passes(best, metric=name, at_least=0.9)


def lenient(entry, value):
    """A threshold that is clearly worse than a value, and not so far that anything passes it."""
    low, high = entry.range
    if entry.direction == "lower":
        return value / 4 if value < 0 else min(4 * value + 0.05, value + (high - value) / 4)
    if value > 0:
        return value * (3 / 4 if high < np.inf else 1 / 4)  # a ratio of counts varies more
    return value - (value - max(low, -1)) / 4


def test_much_good_evidence_passes_every_bound():
    rows = 3000
    truth = np.arange(rows) % 2
    before, now = truth.copy(), truth.copy()
    before[:300] = 1 - truth[:300]  # gained
    before[300:450] = now[300:450] = 2  # never right
    now[400:450] = 1 - truth[400:450]  # in another way
    now[450:453] = 2  # lost
    good = compare(*generations(before, now, truth=truth))
    (of_class,) = (group for group in good.pairs[0].groups if group.name == "a")
    found = {**good.generations[-1].metrics, **good.pairs[0].metrics, **good.agreement}
    for name, entry in catalogue.items():
        value = (of_class.metrics if entry.of == "class" else found)[name].value
        side = "at_most" if entry.direction == "lower" else "at_least"
        # Of three classes, two sets of two always have one in common.
        odd = name == "top_2_consistency"
        rule = {side: lenient(entry, value), "allow_odd": odd}
        assert passes(good, metric=name, **rule), (name, value, rule)


def test_one_gained_and_none_lost_is_no_proof_of_two_gained_for_each_lost():
    few = compare(*generations([1] + [0] * 19, [0] * 20, truth=[0] * 20))
    assert few.pairs[0].metrics["win_loss_ratio"].value == np.inf
    assert not passes(few, metric="win_loss_ratio", at_least=2.0)


def test_under_every_class_one_without_a_bound_ends_the_gate():
    groups = (
        made.group("cat", win_loss_ratio=3.0),
        made.group("frog", win_loss_ratio=Estimate(np.nan)),
    )
    comparison = made.comparison(made.pair(groups=groups))
    every = {"metric": "win_loss_ratio", "at_least": 1.0, "class_name": "*"}
    verdict = judge(comparison, [Rule(**every)])
    assert [outcome.status for outcome in verdict.outcomes] == ["passed", "not judged"]
    with pytest.raises(ComparisonError, match=naming("frog", "win_loss_ratio", "0/0")):
        judge(comparison, [Rule(on="bound", **every)])
    with pytest.raises(ComparisonError, match=r"class frog"):
        judge(comparison, [Rule(on="bound", min_count=50, **every)])
    groups = (groups[0], made.group("frog", inputs=49, win_loss_ratio=Estimate(np.nan)))
    verdict = judge(
        made.comparison(made.pair(groups=groups)), [Rule(on="bound", min_count=50, **every)]
    )
    assert [outcome.status for outcome in verdict.outcomes] == ["passed", "not judged"]


def test_a_confidence_that_the_resamples_do_not_reach_is_not_judged():
    labels = [0] * 100 + [1] * 100
    pair = generations(labels, labels, truth=labels)
    rule = Rule(metric="composite", at_least=0.5, on="bound", confidence=0.999)
    enough = compare(*pair, confidence=0.999, resamples=1999)
    assert judge(enough, [rule]).passed
    short = compare(*pair, confidence=0.999, resamples=1998)
    with pytest.raises(
        ComparisonError, match=naming("composite", "no interval", "1,998", r"0\.999", "1,999")
    ):
        judge(short, [rule])
