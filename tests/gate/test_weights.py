"""Weights decide what counts: whose they are, and how few inputs may carry most of them."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynsnap
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.gate import Rule, judge
from dynsnap.predictions import write
from tests.messages import naming

ROWS = 120
TRUTH = ["cat", "dog"] * (ROWS // 2)
LOST = Rule(metric="lost", at_most=0.2)


def said(lost=(), weights=None, **more):
    """Predictions that are right but for some rows."""
    other = {"cat": "dog", "dog": "cat"}
    labels = [other[name] if row in lost else name for row, name in enumerate(TRUTH)]
    made = {"labels": labels, "truth": TRUTH} | more
    return dynsnap.Predictions(ids=range(ROWS), classes=["cat", "dog"], weights=weights, **made)


OWN = [0.0] * 60 + [1.0] * 60  # what was lost does not count
HALF = range(60)


@pytest.mark.parametrize("through", ["memory", "files"])
@pytest.mark.parametrize("twin", [False, True])
def test_new_does_not_weigh_its_own_losses_unless_that_is_asked_for(tmp_path, through, twin):
    made = {"old": said(), "new": said(HALF, OWN)} | ({"twin": said()} if twin else {})
    if through == "files":
        for name, each in made.items():
            write(each, tmp_path / f"{name}.parquet")
        made = {name: tmp_path / f"{name}.parquet" for name in made}
    floor = made.pop("twin", None)
    found = dynsnap.compare(*made.values(), names=["old", "new"], noise_floor=floor)
    assert any("weighted by new" in note for note in found.notes)
    with pytest.raises(ComparisonError, match=naming('"new"', "weights", "--weights-from new")):
        judge(found, [LOST])
    assert judge(found, [LOST], weights_from="new").passed
    with pytest.raises(PlanError, match=r"weights_from.*twin"):
        judge(found, [LOST], weights_from="twin")


def test_weights_of_old_or_of_both_are_taken():
    for old, new in [(OWN, None), (OWN, OWN)]:
        found = dynsnap.compare(said((), old), said(HALF, new), names=["old", "new"])
        assert judge(found, [LOST]).passed  # whoever wrote OLD does not know what NEW will lose
        assert any("weighted by old" in note for note in found.notes)


def test_weights_of_the_twin_alone_are_never_taken():
    found = dynsnap.compare(said(), said(HALF), noise_floor=said((), OWN))
    for side in ("old", "new"):
        with pytest.raises(ComparisonError, match=naming('"noise floor"', "weights")):
            judge(found, [LOST], weights_from=side)


@given(st.lists(st.floats(1e-50, 1e50) | st.just(0.0), min_size=2, max_size=60).filter(any))
def test_the_effective_number_of_inputs_is_that_of_kish(weights):
    rows = len(weights)
    old, new = (
        dynsnap.Predictions(
            ids=range(rows), classes=["a"], labels=["a"] * rows, truth=["a"] * rows, weights=each
        )
        for each in (weights, None)
    )
    found = dynsnap.compare(old, new, resamples=1)
    shares = np.array(weights) / max(weights)
    kish = shares.sum() ** 2 / (shares**2).sum()
    assert found.effective == pytest.approx(kish, rel=1e-9)
    assert found.effective == pytest.approx(found.pairs[0].groups[0].effective, rel=1e-9)
    assert 1 - 1e-9 <= found.effective <= found.counting * (1 + 1e-9)


@pytest.mark.parametrize("heavy", [1e50, 1e6, 100.0])
@pytest.mark.parametrize("where", [{}, {"class_name": "cat"}, {"class_name": "*"}], ids=str)
def test_a_value_that_rests_on_one_heavy_input_is_not_judged(heavy, where):
    weights = [heavy, *[1.0] * (ROWS - 1)]
    found = dynsnap.compare(said((), weights), said(range(1, ROWS)), resamples=200)
    rule = Rule(metric="lost", at_most=0.6, **where)
    with pytest.raises(
        ComparisonError,
        match=naming("evidence", "fewer than 30", "weights", "min_count"),
    ):
        judge(found, [rule])
    bound = Rule(metric="lost", at_most=0.6, on="bound", **where)
    assert not judge(found, [bound]).passed


def test_one_heavy_input_in_a_small_class_is_not_judged_under_every_class():
    truth = ["owl"] * 20 + ["cat"] * 1000
    weights = [200.0] + [1.0] * 1019
    labels = ["owl"] + ["cat"] * 1019  # 19 of 20 owls are lost, a tenth of their weight
    old, new = (
        dynsnap.Predictions(
            ids=range(1020), classes=["cat", "owl"], labels=each, truth=truth, weights=weights
        )
        for each in (truth, labels)
    )
    found = dynsnap.compare(old, new, resamples=20)
    assert found.effective > 30
    with pytest.raises(
        ComparisonError, match=naming("class owl", "20 inputs", r"1\.2 inputs", "than 5")
    ):
        judge(found, [Rule(metric="lost", at_most=0.2, class_name="*")])
    # A rule that leaves small parts out says so; one that takes few inputs is taken at its word.
    left_out = judge(found, [Rule(metric="lost", at_most=0.2, class_name="*", min_count=21)])
    assert [each.status for each in left_out.outcomes] == ["passed", "not judged"]
    assert judge(found, [Rule(metric="lost", at_most=0.2, class_name="*", min_count=1)]).passed


@pytest.mark.parametrize("weight", [0.1, 1.0, 3.7, 1e50, 1e-50])
def test_equal_weights_count_like_none(weight):
    truth = ["cat"] * 30
    old, new = (
        dynsnap.Predictions(
            ids=range(30), classes=["cat"], labels=truth, truth=truth, weights=[weight] * 30
        )
        for _ in range(2)
    )
    for where in ({}, {"class_name": "*"}, {"class_name": "cat"}):
        assert judge(dynsnap.compare(old, new), [Rule(metric="lost", at_most=0.1, **where)]).passed


def test_ordinary_weights_are_judged():
    weights = np.random.default_rng(0).lognormal(sigma=1, size=ROWS)
    found = dynsnap.compare(said((), weights), said([3], weights), resamples=20)
    for where in ({}, {"class_name": "*"}):
        assert judge(found, [Rule(metric="lost", at_most=0.2, **where)]).passed


def test_slices_that_the_old_generation_lacks_are_named():
    region = {"region": ["north", "south"] * (ROWS // 2)}
    for old, new, named in [({}, region, True), (region, {}, False), (region, region, False)]:
        pair = said(slices=old), said(slices=new)
        notes = dynsnap.compare(*pair, names=["v1", "v2"], resamples=1).notes
        assert any('"region" comes from v2' in note for note in notes) is named


def test_truth_that_new_alone_has_and_that_is_its_label_everywhere_is_no_truth(tmp_path):
    old = said(HALF, truth=None)
    sure = said()
    found = dynsnap.compare(old, sure, names=["old", "new"])
    assert any(re.search(naming("true classes", "new alone"), note) for note in found.notes)
    with pytest.raises(ComparisonError, match=naming('"new"', "truth")):
        judge(found, [LOST])
    # Where NEW is wrong somewhere, it is a truth like any other.
    assert judge(dynsnap.compare(old, said([7])), [LOST]).passed
    for one, other in itertools.permutations([said(HALF), sure]):
        judge(dynsnap.compare(one, other), [LOST])
