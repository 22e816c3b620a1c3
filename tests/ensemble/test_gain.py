import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dynsnap.ensemble import (
    EnsemblePlan,
    RoundSpec,
    expected_gain,
    grow,
    grow_rounds,
    members,
    method,
    rounds_used,
    survivors,
    wanted,
)
from dynsnap.errors import InputError, PlanError
from tests.ensemble.fakes import FakeTrainer, made_round, step_recipe
from tests.messages import naming

SAID = st.integers(2, 7).flatmap(
    lambda rounds: arrays(float, (rounds, 5, 3), elements=st.integers(0, 4).map(float))
)
AUTO = EnsemblePlan(size="auto", snapshots=4, tolerance=0.05, most_rounds=7)


def in_words(rounds):
    """The definition, written for reading."""
    count, half = len(rounds), len(rounds) // 2
    apart = []
    for start in range(count):
        order = [(start + i) % count for i in range(count)]
        for row in range(rounds.shape[1]):
            one = sum(rounds[i][row] for i in order[:half])
            other = sum(rounds[i][row] for i in order[half : 2 * half])
            apart.append(int(np.argmax(one)) != int(np.argmax(other)))
    disagreement = sum(apart) / len(apart)
    return disagreement * (math.sqrt(half / count) - math.sqrt(half / (count + 1)))


@given(SAID)
def test_the_gain_is_what_its_definition_says(rounds):
    assert expected_gain(list(rounds)) == pytest.approx(in_words(rounds))


@given(SAID, st.integers(2, 6))
def test_rounds_that_say_the_same_leave_nothing_to_gain(rounds, count):
    assert expected_gain([rounds[0]] * count) == 0


@given(SAID)
def test_the_scale_of_scores_and_the_order_of_inputs_do_not_matter(rounds):
    assert expected_gain(list(4 * rounds[:, ::-1])) == pytest.approx(expected_gain(list(rounds)))


@pytest.mark.parametrize("count", [2, 5, 8])
def test_members_of_known_agreement_gain_what_the_closed_form_says(count):
    """Margins spread evenly over (-5, 5), each round off by a normal error of its own.

    Two ensembles of k rounds then disagree on 2 ∫ Φ(μ√k) Φ(-μ√k) dμ / 10 = 0.2 / √(πk) of the
    inputs.
    """
    rng = np.random.default_rng(0)
    margins = rng.uniform(-5, 5, 100_000)
    rounds = []
    for _ in range(count):
        score = margins + rng.normal(size=len(margins))
        rounds.append(np.stack([score, np.zeros_like(score)], axis=1))
    known = 0.2 / math.sqrt(math.pi) * (1 / math.sqrt(count) - 1 / math.sqrt(count + 1))
    assert expected_gain(rounds) == pytest.approx(known, rel=0.05)


def test_one_round_shows_no_gain():
    with pytest.raises(InputError, match=naming("2 rounds", "got 1")):
        expected_gain([np.ones((3, 2))])


def grown(plan):
    return grow_rounds(plan, FakeTrainer(), recipe=step_recipe(4), generation=1)


def test_an_automatic_ensemble_grows_until_another_round_is_not_worth_it():
    rounds = grown(EnsemblePlan(size="auto", snapshots=4, tolerance=0.05, most_rounds=40))
    said = [done.scores["test"][survivors(done.accuracy)].sum(axis=0) for done in rounds]
    assert 2 < len(rounds) < 40
    assert expected_gain(said) < 0.05
    assert all(expected_gain(said[:count]) >= 0.05 for count in range(2, len(rounds)))


def test_it_keeps_all_that_pruning_leaves():
    kept = members(AUTO, grown(AUTO))
    assert len(kept) == sum(len(survivors(done.accuracy)) for done in grown(AUTO))
    again = grow(AUTO, FakeTrainer(), recipe=step_recipe(4), generation=1)
    assert kept.origin == again.origin


def test_it_is_bounded():
    plan = EnsemblePlan(size="auto", snapshots=4, tolerance=1e-9, most_rounds=5)
    assert len(grown(plan)) == 5
    assert len(grown(EnsemblePlan(size="auto", snapshots=4, tolerance=1e-9))) == 20


@given(st.floats(0.001, 0.9), st.floats(0.001, 0.9))
def test_a_larger_tolerance_never_grows_further(one, other):
    counts = [
        len(grown(EnsemblePlan(size="auto", snapshots=4, tolerance=each, most_rounds=6)))
        for each in sorted([one, other])
    ]
    assert counts[0] >= counts[1]


def test_the_first_two_rounds_are_certain_and_the_rest_comes_one_at_a_time():
    plan = EnsemblePlan(size="auto", snapshots=4, tolerance=1e-9, most_rounds=4)
    rounds = grown(plan)
    assert [wanted(plan, rounds[:count]) for count in range(5)] == [2, 1, 1, 1, 0]
    assert rounds_used(plan, rounds) == 4


def test_half_precision_decides_alike():
    rounds = grown(AUTO)
    for done in rounds:
        done.scores["test"][:] = done.scores["test"].astype(np.float16)
    assert not wanted(AUTO, rounds)
    assert all(wanted(AUTO, rounds[:count]) for count in range(len(rounds)))


def test_rows_that_nobody_trains_on_come_before_the_test_set():
    rounds = [made_round(RoundSpec(recipe=step_recipe(4), generation=1, index=i)) for i in (0, 1)]
    assert wanted(AUTO, rounds) == 1
    for done in rounds:
        done.scores["untouched"] = np.tile([0.5, 0.3, 0.2], (4, 6, 1))
    assert wanted(AUTO, rounds) == 0


def test_rounds_without_scores_decide_nothing():
    rounds = [made_round(RoundSpec(recipe=step_recipe(4), generation=1, index=i)) for i in (0, 1)]
    for done in rounds:
        done.scores.clear()
    with pytest.raises(InputError, match="comes without scores"):
        wanted(AUTO, rounds)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": "many"}, naming("`size`", "at least 1", '"auto"', "'many'")),
        ({"size": 5, "tolerance": 0.1}, naming("`tolerance`", '"auto" only', "5 members")),
        ({"size": 5, "most_rounds": 3}, r"`most_rounds` has a meaning"),
        ({"size": "auto", "tolerance": 0}, naming("`tolerance`", "above 0", "got 0")),
        ({"size": "auto", "tolerance": math.nan}, "above 0 and below 1"),
        ({"size": "auto", "most_rounds": 1}, "at least 2"),
        ({"size": "auto", "most_rounds": 2.5}, "whole number"),
    ],
)
def test_a_plan_that_cannot_grow_is_refused(wrong, message):
    with pytest.raises(PlanError, match=message):
        EnsemblePlan(**wrong)


@pytest.mark.parametrize("name", ["snapshot", "mcdropout"])
def test_methods_of_one_round_need_a_number(name):
    with pytest.raises(
        PlanError, match=naming(f"{name}", "one round", "number of members", '"auto"')
    ):
        method(name, epochs=10, members="auto")


def test_a_rolling_ensemble_needs_a_number():
    with pytest.raises(PlanError, match=naming("number", '"auto"')):
        method("rolling", epochs=10, members="auto")
