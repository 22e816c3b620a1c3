"""Rules that nothing can fail, or that ask for a worse value, are slips, mostly."""

import json

import pytest

from dynsnap.errors import PlanError
from dynsnap.gate import Rule
from dynsnap.metrics import catalogue, metric
from tests.cli.helpers import NEW, OLD, dynsnap, refused

VACUOUS = [
    ("--at-most", "lost=1"),
    ("--at-most", "lost=0.9999999999999"),
    ("--at-most", "churn=1"),
    ("--at-most", "expected_calibration_error=1"),
    ("--at-most", "minkowski=1.4142135623730951"),
    ("--at-least", "accuracy=0"),
    ("--at-least", "win_loss_ratio=0"),
    ("--at-least", "cohen_kappa=-1"),
    ("--at-least", "composite=-1"),
    ("--at-least", "composite=-0.2"),
    ("--at-least", "krippendorff_alpha=-0.99999"),
    ("--at-least", "cohen_kappa=-0.5"),
    ("--at-least", "fleiss_kappa=-1e-9"),
    ("--at-least", "pearson=-0.1"),
    ("--at-least", "top_3_accuracy=0"),
]
BACKWARDS = [
    ("--at-least", "lost=0.02"),
    ("--at-least", "nfr=0.02"),
    ("--at-most", "accuracy=0.85"),
    ("--at-most", "correct_consistency=0.9"),
    ("--at-least", "ece=0.1"),
    ("--at-most", "top_2_consistency=0.9"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("option", "rule"), [*VACUOUS, *BACKWARDS])
def test_a_rule_of_the_line_is_wrong_use_unless_it_is_meant_so(option, rule):
    line = refused("gate", OLD, NEW, option, rule, code=2)
    assert metric(rule.split("=")[0]).name in line
    assert "--allow-odd-rules" in line
    assert dynsnap("gate", OLD, NEW, option, rule, "--allow-odd-rules").exit_code in (0, 1)


def test_a_rule_of_a_file_is_wrong_use_unless_it_is_meant_so(tmp_path):
    rules = tmp_path / "gate.toml"
    text = '[[rule]]\nmetric = "churn"\nat_least = 0.01\n'
    rules.write_text(text)
    line = refused("gate", OLD, NEW, "--rules", rules, "--allow-odd-rules", code=2)
    assert "allow_odd = true" in line
    assert "at_most = 0.01" in line
    rules.write_text(text + "allow_odd = true\n")
    result = dynsnap("gate", OLD, NEW, "--rules", rules, "--json", "-")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["outcomes"][0]["rule"]["allow_odd"] is True
    for wrong in ("1", '"yes"'):
        rules.write_text(text + f"allow_odd = {wrong}\n")
        assert "allow_odd" in refused("gate", OLD, NEW, "--rules", rules, code=2)


@pytest.mark.parametrize("name", catalogue)
def test_every_metric_takes_rules_on_its_better_side_only(name):
    better = catalogue[name].direction
    sides = {"at_least": 0.5, "at_most": 0.5}
    about = {"class_name": "cat"} if catalogue[name].of == "class" else {}
    assert better in ("higher", "lower")  # with "neither", both sides are taken
    for side, threshold in sides.items():
        if side == ("at_least" if better == "higher" else "at_most"):
            assert Rule(metric=name, **{side: threshold}, **about).threshold == threshold
        else:
            with pytest.raises(PlanError, match=f"{better}.*allow_odd"):
                Rule(metric=name, **{side: threshold}, **about)
