"""The checks of extensions accept what dynsnap has, and fail for what breaks their contract."""

import dataclasses
import re
from dataclasses import replace

import numpy as np
import pytest

from dynsnap.comparison import compare
from dynsnap.data import DataSet, Pool, TimeGrowth, digits, register_source
from dynsnap.ensemble import METHOD_KINDS, method, register_method
from dynsnap.errors import PlanError
from dynsnap.gate import Rule, RuleKey, RuleOutcome, Verdict, register_rule_key
from dynsnap.metrics import Metric, catalogue, metric, register
from dynsnap.predictions import Predictions
from dynsnap.report import register_section, verdict_document
from dynsnap.report.document import Section
from dynsnap.testing import (
    check_method,
    check_metric,
    check_rule_key,
    check_section,
    check_source,
)
from tests.extending import registries
from tests.messages import naming


@pytest.fixture(autouse=True)
def forgotten():
    with registries():
        yield


# --- metrics ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, entry in catalogue.items() if entry.of_cases is not None]
)
def test_every_metric_of_cases_keeps_the_contract(name):
    check_metric(name)


def a_metric(**changes):
    sound = {
        "name": "toy",
        "symbol": "toy",
        "meaning": "Share of inputs that are wrong in the same way.",
        "direction": "lower",
        "scope": "pair",
        "needs": frozenset({"truth"}),
        "interval": "share",
        "of_cases": lambda of: of.wrong_same / of.all,
    }
    return Metric(**{**sound, **changes})


def test_a_sound_metric_is_accepted():
    register(a_metric())
    check_metric("toy")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"meaning": "no sentence"}, "sentence"),
        ({"range": (0.5, 1.0)}, "range"),
        ({"of_cases": lambda of: 2 + of.wrong_same / of.all}, "range"),
        ({"of_cases": lambda of: (of.kept + of.wrong_same) / of.all / 3}, "whole number"),
        ({"needs": frozenset(), "of_cases": lambda of: of.kept / of.all}, "truth"),
        (
            {"interval": "bootstrap", "of_cases": lambda of: of.lost / (of.all + 1)},
            naming("toy:", "weight of two"),
        ),
        (
            {"of_cases": lambda of: float(of.lost.sum() / of.all.sum())},
            naming("toy:", "of_cases", "array"),
        ),
        ({"whole": lambda of: 40.0}, naming("toy:", "whole", "array")),
    ],
)
def test_a_metric_that_breaks_the_contract_is_found_out(changes, said):
    register(a_metric(**changes))
    with pytest.raises(AssertionError, match=said):
        check_metric("toy")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [-1, 2])
def test_a_share_that_is_none_is_measured_without_an_interval(value):
    register(a_metric(of_cases=lambda of: value + of.lost / of.all))
    labels, truth = ([0, 0], [0, 1]), [0, 1]
    old, new = (
        Predictions(ids=[1, 2], classes=["a", "b"], labels=each, truth=truth) for each in labels
    )
    found = compare(old, new, resamples=5).pairs[0].metrics["toy"]
    assert (found.low, found.high) == (None, None)
    assert "share" in found.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "lost"},
        {"name": "nfr"},
        {"name": "top_7_accuracy"},
        {"name": "a b"},
        {"name": ""},
        {"aliases": ("ece",)},
        {"scope": "generation"},
        {"of_cases": None},
        {"needs": frozenset({"scores"})},
        {"group": "ranking"},
        {"of": "class"},
        {"change_of": "accuracy"},
    ],
)
def test_a_metric_that_cannot_be_registered_is_refused(changes):
    with pytest.raises(PlanError):
        register(a_metric(**changes))
    assert "toy" not in catalogue


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("direction", "up"),
        ("scope", "two"),
        ("interval", "exact"),
        ("group", "mine"),
        ("of", "rows"),
        ("needs", "truth"),
        ("needs", frozenset({"labels"})),
        ("aliases", "toys"),
        ("range", (1.0, 0.0)),
        ("range", (0.0, float("nan"))),
        ("range", [0, 1]),
        ("of_cases", 0.5),
        ("whole", "all"),
        ("symbol", None),
    ],
)
def test_an_entry_with_a_word_that_does_not_exist_is_refused(field, value):
    with pytest.raises(PlanError, match=naming(f"`{field}`", re.escape(repr(value)))):
        a_metric(**{field: value})


def test_other_words_for_a_registered_metric_lead_to_it():
    register(a_metric(aliases=("toys",)))
    assert metric("toys").name == "toy"


# --- methods ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHOD_KINDS)
def test_every_method_keeps_the_contract(name):
    check_method(name)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda name, of: METHOD_KINDS["extbagging"].make("other", of), "calls itself"),
        (
            lambda name, of: replace(
                METHOD_KINDS["extbagging"].make(name, of), combinations=("average", "averag")
            ),
            "averag",
        ),
    ],
)
def test_a_method_that_breaks_the_contract_is_found_out(make, said):
    register_method("toy", make)
    with pytest.raises((AssertionError, PlanError), match=said):
        check_method("toy")


def test_a_method_of_dynsnap_cannot_be_replaced_and_settings_must_exist():
    with pytest.raises(PlanError, match=naming("'rolling'", "part of dynsnap")):
        register_method("rolling", METHOD_KINDS["rolling"].make)
    with pytest.raises(PlanError, match="'betta'"):
        register_method("toy", METHOD_KINDS["rolling"].make, uses=["betta"])
    with pytest.raises(PlanError, match="no method 'toy'"):
        method("toy", epochs=10)


# --- data sources -----------------------------------------------------------------------------


def test_a_source_that_breaks_the_contract_is_found_out():
    rng = np.random.default_rng(0)

    def shuffled():
        pool = digits().train
        return DataSet(train=pool.take(rng.permutation(len(pool))))

    register_source("toy", shuffled)
    with pytest.raises(AssertionError, match="other rows"):
        check_source("toy")

    def same_ids():
        pool = digits().train
        return DataSet(train=pool, test=pool)

    register_source("toy", same_ids)
    with pytest.raises(AssertionError, match="ids"):
        check_source("toy")
    with pytest.raises(PlanError, match=naming("'digits'", "part of dynsnap")):
        register_source("digits", shuffled)


def test_a_source_may_grow_by_time_if_its_rows_have_times():
    days = np.datetime64("2013-01-01", "us") + np.arange(70) * np.timedelta64(1, "D")

    def rows(times):
        pool = Pool(
            name="toy",
            inputs=np.arange(140, dtype=np.float32).reshape(70, 2),
            labels=np.arange(70) % 2,
            classes=("cat", "dog"),
            ids=np.arange(70),
            times=times,
        )
        return DataSet(train=pool)

    register_source("toy", lambda: rows(days), growth=TimeGrowth)
    check_source("toy")
    register_source("toy", lambda: rows(None), growth=TimeGrowth)
    with pytest.raises(AssertionError, match="time"):
        check_source("toy")


# --- rule keys --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (lambda outcome, value: dataclasses.replace(outcome, judged=0.0), "something else"),
        (lambda outcome, value: dataclasses.replace(outcome, status="maybe"), "status.*maybe"),
        (lambda outcome, value: dataclasses.replace(outcome, status="not judged"), "status"),
        (lambda outcome, value: None, naming("toy", "`judge`", "None")),
    ],
)
def test_a_rule_key_that_breaks_the_contract_is_found_out(judge, said):
    register_rule_key(RuleKey(name="toy", kinds=(float,), judge=judge))
    with pytest.raises(AssertionError, match=said):
        check_rule_key("toy", 0.5)


def test_a_rule_key_that_fails_on_a_narrow_miss_only_is_found_out():
    def judge(outcome, value):
        if outcome.status == "failed" and abs(outcome.judged - outcome.threshold) <= value:
            raise NameError("replace")
        return outcome

    register_rule_key(RuleKey(name="toy", kinds=(float,), judge=judge))
    with pytest.raises(NameError):
        check_rule_key("toy", 0.01)


@pytest.mark.parametrize("status", ["passed", "failed", "unresolved"])
def test_a_rule_key_may_give_every_status(status):
    def judge(outcome, value):
        return dataclasses.replace(outcome, status=status)

    register_rule_key(RuleKey(name="toy", kinds=(str,), judge=judge))
    check_rule_key("toy", "text")


@pytest.mark.parametrize("kinds", [int, (), [float], ("float",)])
def test_a_rule_key_without_types_is_refused(kinds):
    with pytest.raises(PlanError, match=naming("toy", re.escape(repr(kinds)))):
        RuleKey(name="toy", kinds=kinds, judge=lambda one, _: one)


@pytest.mark.parametrize("field", ["judge", "check"])
def test_a_rule_key_without_functions_is_refused(field):
    sound = {"name": "toy", "kinds": (int,), "judge": lambda one, _: one}
    with pytest.raises(PlanError, match=naming(f"`{field}`", "toy")):
        RuleKey(**{**sound, field: None})


def test_a_value_that_a_rule_key_refuses_is_named():
    def check(value):
        raise ValueError("it must be even")

    register_rule_key(RuleKey(name="toy", kinds=(int,), judge=lambda one, _: one, check=check))
    with pytest.raises(PlanError, match=naming("`toy`", "it must be even")):
        Rule(metric="lost", at_most=0.1, keys={"toy": 3})
    with pytest.raises(AssertionError, match=naming("toy", "3", "it must be even")):
        check_rule_key("toy", 3)
    with pytest.raises(AssertionError, match=naming("toy", "text")):
        check_rule_key("toy", "text")


def test_a_rule_key_of_every_type_is_accepted():
    kinds = (str, int, float, bool, list, dict)
    register_rule_key(RuleKey(name="toy", kinds=kinds, judge=lambda one, _: one))
    check_rule_key("toy", True)


def test_the_sentence_of_an_outcome_names_the_further_keys():
    register_rule_key(RuleKey(name="toy", kinds=(int,), judge=lambda one, _: one))
    rule = Rule(metric="lost", at_most=0.1, keys={"toy": 3})
    outcome = RuleOutcome(rule=rule, part="all inputs", inputs=50, status="failed", judged=0.2)
    verdict = Verdict(old="old", new="new", inputs=50, outcomes=(outcome,))
    (check,) = verdict_document(verdict).checks
    assert re.search(naming("lost", r"0\.1", "toy 3"), check.text)


def test_a_rule_key_of_dynsnap_cannot_be_replaced():
    with pytest.raises(PlanError, match=naming("'min_count'", "part of dynsnap")):
        register_rule_key(RuleKey(name="min_count", kinds=(int,), judge=lambda one, _: one))


# --- page sections ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda comparison: None, naming("toy:", "no comparison")),
        (lambda comparison: Section(name="other", title="x"), "calls itself"),
        (lambda comparison: Section(name="metrics", title="x"), "'metrics'|more than once"),
    ],
)
def test_a_section_that_breaks_the_contract_is_found_out(build, said):
    register_section("toy", build)
    with pytest.raises(AssertionError, match=said):
        check_section("toy")
