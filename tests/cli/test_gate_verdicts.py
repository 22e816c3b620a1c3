"""`dynsnap gate` with three verdicts: exit codes, their precedence, and options without effect."""

import json
import re
from xml.etree import ElementTree

import pytest

from tests.cli.helpers import NEW, OLD, TWIN, dynsnap, refused
from tests.messages import naming

PASS, FAIL, OPEN = "lost=0.05", "lost=0.005", "lost=0.025"
BOUND = ("--confidence", "0.95")


def gate(*rules, more=()):
    options = [part for rule in rules for part in ("--at-most", rule)]
    return dynsnap("gate", OLD, NEW, *options, *more)


@pytest.mark.parametrize(
    ("rules", "mode", "code"),
    [
        ([PASS], "report", 0),
        ([OPEN], "report", 5),
        ([OPEN, PASS], "report", 5),
        ([FAIL, OPEN], "report", 1),
        ([OPEN], "fail", 1),
        ([OPEN], None, 1),
        ([OPEN], "pass", 0),
        ([FAIL], "pass", 1),
    ],
)
def test_a_failure_comes_before_what_is_unresolved(rules, mode, code):
    more = (*BOUND, *(() if mode is None else ("--unresolved", mode)))
    result = gate(*rules, more=more)
    assert result.exit_code == code
    word = {0: "PASS", 1: "FAIL", 5: "UNRESOLVED"}[code]
    assert result.stdout.startswith(word)


def test_what_cannot_be_judged_comes_before_all_verdicts(tmp_path):
    rules = tmp_path / "gate.toml"
    rules.write_text('[[rule]]\nmetric = "lost"\nat_most = 0.1\nclass = "no such class"\n')
    more = ("--rules", rules, *BOUND, "--unresolved", "report")
    for rule in (PASS, FAIL, OPEN):
        assert gate(rule, more=more).exit_code == 3


def test_every_output_says_what_would_settle_it(tmp_path):
    outputs = {name: tmp_path / f"gate.{name}" for name in ("json", "junit", "markdown", "html")}
    options = [part for name, path in outputs.items() for part in (f"--{name}", path)]
    result = gate(OPEN, more=(*BOUND, "--unresolved", "report", *options))
    assert result.exit_code == 5
    document = json.loads(outputs["json"].read_text())
    (outcome,) = document["outcomes"]
    assert document["verdict"] == outcome["status"] == "unresolved" and not document["passed"]
    further, differing = outcome["further"], outcome["further_differing"]
    assert 0 < differing < further
    said = naming(f"{further:,}", f"{differing:,}")
    texts = [result.stdout, outputs["markdown"].read_text(), outputs["html"].read_text()]
    for text in texts:
        assert re.search(said, text.replace("\n", " "))
    suite = ElementTree.parse(outputs["junit"]).getroot().find("testsuite")
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("0", "1", "0")
    assert re.search(said, suite.find("testcase/error").get("message"))


def test_what_a_bound_needs_is_said_at_the_top(tmp_path):
    rules = tmp_path / "gate.toml"
    rules.write_text('[[rule]]\nmetric = "lost"\nat_most = 0.02\nclass = "*"\non = "bound"\n')
    result = dynsnap("gate", OLD, NEW, "--rules", rules)
    assert result.exit_code == 1
    before, _, _ = result.stdout.partition("Every check")
    assert re.search(naming("183", "class 0"), before)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--at-most", PASS, "--unresolved", "report"), ("--unresolved", "--confidence")),
        (("--at-most", PASS, "--unresolved", "maybe"), ("--unresolved", "report")),
        (("--at-most", PASS, "--confidence", "nan"), ("--confidence",)),
        (("--at-most", PASS, "--confidence", "0.05"), (r"0\.05", r"0\.95")),
        (("--at-most", "lost=1.2 x noise_floor"), ("--noise-floor",)),
        (("--at-most", "lost=1.2 x old"), ("noise_floor",)),
        (("--at-most", "lost=x noise_floor"), ("noise_floor",)),
        (("--at-least", "accuracy_change=-0.5%"), ("--at-least", "accuracy_change")),
        (("--at-most", "accuracy_change=0.01"), ("accuracy_change", "at_least")),
    ],
)
def test_options_that_make_no_sense_are_wrong_use(options, named):
    assert re.search(naming(*named), refused("gate", OLD, NEW, *options, code=2))


def test_confidence_without_a_rule_on_the_line_is_wrong_use(tmp_path):
    rules = tmp_path / "gate.toml"
    rules.write_text('[[rule]]\nmetric = "lost"\nat_most = 0.1\n')
    assert "--confidence" in refused("gate", OLD, NEW, "--rules", rules, *BOUND, code=2)


def test_a_multiple_of_the_noise_floor_on_the_line():
    twin = ("--noise-floor", TWIN)
    assert gate("lost=1.2 x noise_floor", more=twin).exit_code == 0
    assert gate("churn=1.2×same-data", more=twin).exit_code == 1
    result = gate(
        "churn=1.2 x noise_floor", more=(*twin, *BOUND, "--unresolved", "report", "--json", "-")
    )
    assert result.exit_code == 5
    (outcome,) = json.loads(result.stdout)["outcomes"]
    assert outcome["threshold"] == pytest.approx(1.2 * outcome["noise_floor"])
    assert outcome["multiple"] == pytest.approx(outcome["value"] / outcome["noise_floor"])
    assert outcome["low"] < outcome["threshold"] < outcome["high"]


def test_holm_widens_what_each_class_is_judged_by(tmp_path):
    rules = tmp_path / "gate.toml"
    text = '[[rule]]\nmetric = "lost"\nat_most = 0.1\nclass = "*"\nunresolved = "report"\n'
    found = []
    for more in ("", 'correction = "holm"\n'):
        rules.write_text(text + more)
        made = json.loads(dynsnap("gate", OLD, NEW, "--rules", rules, "--json", "-").stdout)
        found.append({each["part"]: each for each in made["outcomes"]})
    alone, together = found
    assert {each["confidence"] for each in alone.values()} == {0.95}
    assert all(each["confidence"] > 0.95 for each in together.values())
    assert [each["status"] for each in together.values()].count("passed") < [
        each["status"] for each in alone.values()
    ].count("passed")
