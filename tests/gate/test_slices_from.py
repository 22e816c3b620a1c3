"""A slice decides which inputs a rule is about: NEW draws none alone, unless that is asked for."""

import pytest

import dynsnap
from dynsnap.errors import ComparisonError, PlanError
from dynsnap.gate import Rule, judge
from dynsnap.predictions import write
from tests.cli.helpers import dynsnap as command
from tests.cli.helpers import refused

ROWS = 120
TRUTH = ["cat", "dog"] * (ROWS // 2)
NORTH = Rule(metric="lost", at_most=0.1, slice=("region", "north"))
HALF = range(60)
OWN = {"region": ["south" if row in HALF else "north" for row in range(ROWS)]}  # no loss in north
FAIR = {"region": ["north", "south"] * (ROWS // 2)}


def said(lost=(), slices=None):
    other = {"cat": "dog", "dog": "cat"}
    labels = [other[name] if row in lost else name for row, name in enumerate(TRUTH)]
    return dynsnap.Predictions(
        ids=range(ROWS), classes=["cat", "dog"], labels=labels, truth=TRUTH, slices=slices or {}
    )


@pytest.mark.parametrize("rule", [NORTH, Rule(metric="lost", at_most=0.9, slice=("region", "*"))])
def test_new_does_not_draw_the_slices_that_it_is_judged_on(rule):
    found = dynsnap.compare(said(), said(HALF, OWN), names=["old", "new"])
    with pytest.raises(ComparisonError, match=r'"region".*"new".*--slices-from new'):
        judge(found, [rule])
    assert judge(found, [NORTH], slices_from="new").passed
    with pytest.raises(PlanError, match=r"slices_from.*twin"):
        judge(found, [rule], slices_from="twin")
    whole = Rule(metric="lost", at_most=0.6)
    assert judge(found, [whole]).passed  # a rule that is not about it does not mind


def test_slices_of_old_are_taken_whatever_new_says():
    found = dynsnap.compare(said((), FAIR), said(HALF, OWN), names=["old", "new"])
    assert not judge(found, [NORTH]).passed


def test_slices_of_the_twin_alone_are_never_taken():
    found = dynsnap.compare(said(), said(HALF), noise_floor=said((), OWN))
    for side in ("old", "new"):
        with pytest.raises(ComparisonError, match='"noise floor"'):
            judge(found, [NORTH], slices_from=side)


def test_the_command_ends_with_3_until_it_is_asked_for(tmp_path):
    write(said(), tmp_path / "old.parquet")
    write(said(HALF, OWN), tmp_path / "new.parquet")
    (tmp_path / "rules.toml").write_text(
        '[[rule]]\nmetric = "lost"\nat_most = 0.1\nslice = { column = "region", value = "north" }\n'
    )
    words = ("gate", tmp_path / "old.parquet", tmp_path / "new.parquet")
    words = (*words, "--rules", tmp_path / "rules.toml", "-q")
    assert "--slices-from" in refused(*words, code=3)
    ended = command(*words, "--slices-from", "new")
    assert ended.exit_code == 0, ended.stderr
