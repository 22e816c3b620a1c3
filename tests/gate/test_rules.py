import re

import pytest

from dynsnap.errors import FileError, PlanError
from dynsnap.gate import Rule, inline_rule, read_rules, top_k
from tests.messages import naming


def rules_of(tmp_path, toml):
    path = tmp_path / "gate.toml"
    path.write_text(toml)
    return read_rules(path)


def test_a_rule_can_say_everything(tmp_path):
    (rule,) = rules_of(
        tmp_path,
        """
        [[rule]]
        metric = "correct_consistency"
        at_least = 0.85
        on = "bound"
        confidence = 0.9
        class = "frog"
        min_count = 30
        name = "frogs stay frogs"
        """,
    )
    assert rule == Rule(
        metric="correct_consistency",
        at_least=0.85,
        on="bound",
        confidence=0.9,
        class_name="frog",
        min_count=30,
        name="frogs stay frogs",
    )
    assert rule.title == "frogs stay frogs"


def test_rules_keep_their_order_and_slices_are_tables(tmp_path):
    rules = rules_of(
        tmp_path,
        """
        rule = [
          {metric = "lost", at_most = 0, slice = {column = "region"}},
          {metric = "lost", at_most = 0.9, slice = {column = "year", value = 2020}},
          {metric = "accuracy", at_least = 0.5, class = 7},
        ]
        """,
    )
    assert [rule.slice for rule in rules] == [("region", "*"), ("year", "2020"), None]
    assert rules[2].class_name == "7"
    assert [rule.title for rule in rules] == [
        "lost ≤ 0 for every region",
        "lost ≤ 0.9 where year = 2020",
        "accuracy ≥ 0.5 in class 7",
    ]


def test_to_name_a_confidence_is_to_ask_for_the_bound(tmp_path):
    text = '[[rule]]\nmetric = "lost"\nat_most = 0.1\n'
    assert rules_of(tmp_path, text)[0].on == "value"
    assert rules_of(tmp_path, text + "confidence = 0.9\n")[0].on == "bound"
    assert rules_of(tmp_path, text + 'confidence = 0.9\non = "bound"\n')[0].on == "bound"


def test_another_word_for_a_metric_becomes_its_name():
    assert Rule(metric="negative_flip_rate", at_most=0.1).metric == "lost"


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[[rule]]\nmetrik = 'lost'\nat_most = 0.1", r"'metrik' in rule 1 in .*\"metric\""),
        ("[[rules]]\nmetric = 'lost'", r"Unknown key 'rules' in .*\"rule\""),
        ("[[rule]]\nmetric = 'losst'\nat_most = 0.1", r"In rule 1 in .*'losst'.*\"lost\""),
        ("[[rule]]\nat_most = 0.1", "names no metric"),
        ("[[rule]]\nmetric = 'lost'", naming("lost", "`at_least`", "`at_most`", "neither")),
        (
            "[[rule]]\nmetric = 'lost'\nat_most = 0.1\nat_least = 0",
            naming("lost", "`at_least`", "`at_most`", "both", "two rules"),
        ),
        ("[[rule]]\nmetric = 'lost'\nat_most = 2", naming("lost", "0 and 1", "got 2", r"0\.02")),
        ("[[rule]]\nmetric = 'lost'\nat_most = -0.1", "between 0 and 1, got -0.1"),
        ("[[rule]]\nmetric = 'lost'\nat_most = nan", naming("lost", "0 and 1", "got nan")),
        (
            "[[rule]]\nmetric = 'win_loss_ratio'\nat_least = inf",
            naming("win_loss_ratio", "from 0", "got inf"),
        ),
        (
            "[[rule]]\nmetric = 'lost'\nat_most = '0.1'",
            naming("`at_most`", "rule 1", "a number", r"'0\.1'"),
        ),
        (
            "[[rule]]\nmetric = 'lost'\nat_most = true",
            naming("`at_most`", "rule 1", "a number", "True"),
        ),
        ("[[rule]]\nmetric = 'lost'\nat_most = 0.1\non = 'low'", "`on` must be"),
        ("[[rule]]\nmetric = 'lost'\nat_most = 0.1\nconfidence = 95", "between 0 and 1.*got 95"),
        ("[[rule]]\nmetric = 'lost'\nat_most = 0.1\nmin_count = 0", "at least 1, got 0"),
        (
            "[[rule]]\nmetric = 'lost'\nat_most = 0.1\nmin_count = 1.5",
            naming("`min_count`", "rule 1", "whole number", r"1\.5"),
        ),
        (
            "[[rule]]\nmetric = 'lost'\nat_most = 0.1\nclass = 'a'\nslice = {column = 'b'}",
            naming("rule 1", "a class", "a slice"),
        ),
        (
            "[[rule]]\nmetric = 'lost'\nat_most = 0.1\nslice = 'region'",
            naming("`slice`", "rule 1", "a table", "'region'"),
        ),
        ("[[rule]]\nmetric = 'lost'\nat_most = 0.1\nslice = {value = 'a'}", 'column = "region"'),
        (
            "[[rule]]\nmetric = 'lost'\nat_most = 0.1\nslice = {colum = 'a'}",
            naming("'colum'", "slice of rule 1", '"column"'),
        ),
        (
            "[[rule]]\nmetric = 'ambiguity'\nat_most = 0.1\nclass = '*'",
            naming("ambiguity", "all inputs", "class or slice"),
        ),
        ("", "hold no rule"),
        ("rule = 3", naming("tables", r"\[\[rule\]\]")),
        ("[rule]\nmetric = 'lost'", naming("tables", r"\[\[rule\]\]")),
        ("[[rule]", "not valid TOML"),
    ],
)
def test_a_wrong_rule_is_refused_with_what_to_do(tmp_path, toml, message):
    with pytest.raises(PlanError, match=message):
        rules_of(tmp_path, toml)


def test_rules_that_cannot_be_read_are_a_matter_of_files(tmp_path):
    for path in (tmp_path / "absent.toml", tmp_path):
        with pytest.raises(FileError, match=naming("rules", re.escape(str(path)))):
            read_rules(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "gate.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match="not valid TOML"):
        read_rules(tmp_path / "gate.toml")


@pytest.mark.parametrize("text", ["lost", "lost=", "lost=a lot", "=", ""])
def test_an_inline_rule_without_a_number_is_shown_how(text):
    with pytest.raises(PlanError, match="--at-most takes metric=number"):
        inline_rule(text, side="at_most")


def test_the_example_is_one_that_makes_sense_on_its_side():
    with pytest.raises(PlanError, match=naming(r"--at-most lost=0\.02", "'lost=2%'")):
        inline_rule("lost=2%", side="at_most")
    with pytest.raises(PlanError, match=naming("--at-least", "correct_consistency", r"0\.85")):
        inline_rule("accuracy=", side="at_least")


def test_inline_rules_have_a_side():
    assert inline_rule("accuracy=0.9", side="at_least") == Rule(metric="accuracy", at_least=0.9)
    assert inline_rule("lost = 0.1", side="at_most") == Rule(metric="lost", at_most=0.1)


def test_rules_say_which_top_k_they_need():
    names = ["top_3_accuracy", "kept", "top_1_consistency", "top_3_consistency"]
    assert top_k([Rule(metric=name, at_least=0.5) for name in names]) == (1, 3)
