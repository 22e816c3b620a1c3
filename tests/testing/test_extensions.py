"""The checks of extensions accept what dynsnap has, and fail for what breaks their contract."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from dynsnap.data import DataSet, digits, register_source
from dynsnap.ensemble import METHOD_KINDS, method, register_method
from dynsnap.errors import PlanError
from dynsnap.gate import RuleKey, register_rule_key
from dynsnap.metrics import Metric, catalogue, metric, register
from dynsnap.report import register_section
from dynsnap.report.document import Section
from dynsnap.testing import (
    check_method,
    check_metric,
    check_rule_key,
    check_section,
    check_source,
)
from tests.extending import registries


@pytest.fixture(autouse=True)
def forgotten():
    with registries():
        yield


# --- metrics ----------------------------------------------------------------------------------


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
            "a weight of two",
        ),
    ],
)
def test_a_metric_that_breaks_the_contract_is_found_out(changes, said):
    register(a_metric(**changes))
    with pytest.raises(AssertionError, match=said):
        check_metric("toy")


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
    ],
)
def test_a_metric_that_cannot_be_registered_is_refused(changes):
    with pytest.raises(PlanError):
        register(a_metric(**changes))
    assert "toy" not in catalogue


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
    with pytest.raises(PlanError, match="'rolling' is part of dynsnap"):
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
    with pytest.raises(PlanError, match="'digits' is part of dynsnap"):
        register_source("digits", shuffled)


# --- rule keys --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (lambda outcome, value: dataclasses.replace(outcome, judged=0.0), "something else"),
        (lambda outcome, value: dataclasses.replace(outcome, status="maybe"), "status"),
    ],
)
def test_a_rule_key_that_breaks_the_contract_is_found_out(judge, said):
    register_rule_key(RuleKey(name="toy", kinds=(float,), judge=judge))
    with pytest.raises(AssertionError, match=said):
        check_rule_key("toy", 0.5)


def test_a_rule_key_of_dynsnap_cannot_be_replaced():
    with pytest.raises(PlanError, match="'min_count' is part of dynsnap"):
        register_rule_key(RuleKey(name="min_count", kinds=(int,), judge=lambda one, _: one))


# --- page sections ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda comparison: None, "no comparison has it"),
        (lambda comparison: Section(name="other", title="x"), "calls itself"),
        (lambda comparison: Section(name="metrics", title="x"), "calls itself|more than once"),
    ],
)
def test_a_section_that_breaks_the_contract_is_found_out(build, said):
    register_section("toy", build)
    with pytest.raises(AssertionError, match=said):
        check_section("toy")
