import re
from dataclasses import replace

import numpy as np
import pytest

from dynsnap.ensemble import (
    COMBINATIONS,
    METHODS,
    EnsemblePlan,
    Method,
    Recipe,
    Rolling,
    RoundSpec,
    Schedule,
    cost,
    grow_rounds,
    members,
    method,
    methods,
    rounds_used,
    wanted,
)
from dynsnap.errors import PlanError
from tests.ensemble.fakes import FakeTrainer, made_round, step_recipe
from tests.messages import naming

# name: (schedule, epochs, snapshots, selection, passes), (size, beta, top), as PAPER.md has them
PAPER = {
    "singlebase": (("step", 200, 10, "top", 1), (1, 0.0, 1)),
    "extbagging": (("step", 200, 10, "top", 1), (20, 0.0, 1)),
    "mcdropout": (("step", 200, 1, "top", 20), (20, 1.0, None)),
    "snapshot": (("cyclic", 400, 20, "window", 1), (20, 1.0, None)),
    "dynsnap-cyc": (("cyclic", 200, 10, "window", 1), (20, "mean", None)),
    "dynsnap-step": (("step", 200, 10, "top", 1), (20, "mean", None)),
}


def test_the_six_methods_are_the_papers():
    found = {
        name: (
            (
                way.recipe.schedule.kind,
                way.recipe.epochs,
                way.recipe.snapshots,
                way.recipe.selection,
                way.recipe.passes,
            ),
            (way.plan.size, way.plan.beta, way.plan.top),
        )
        for name, way in methods(epochs=200).items()
    }
    assert found == PAPER
    assert tuple(found) == METHODS
    dropout = {name: way.recipe.dropout for name, way in methods(epochs=200).items()}
    assert dropout.pop("mcdropout") == 0.1
    assert set(dropout.values()) == {0.0}


def test_one_step_round_serves_three_methods():
    ways = methods(epochs=200)
    assert ways["singlebase"].recipe is ways["extbagging"].recipe is ways["dynsnap-step"].recipe

    rounds = grow_rounds(
        ways["extbagging"].plan, FakeTrainer(), recipe=ways["extbagging"].recipe, generation=1
    )
    assert len(rounds) == 20
    best = [(at, int(np.argmax(done.accuracy))) for at, done in enumerate(rounds)]
    assert members(ways["extbagging"].plan, rounds).origin == tuple(best)
    assert members(ways["singlebase"].plan, rounds).origin == (best[0],)
    assert len(members(ways["dynsnap-step"].plan, rounds)) == 20


def test_costs_are_the_papers():
    ways = methods(epochs=200)
    kappa = {}
    for name, way in ways.items():
        rounds = grow_rounds(way.plan, FakeTrainer(), recipe=way.recipe, generation=1)
        used = rounds_used(way.plan, rounds)
        kappa[name] = cost(way.recipe, rounds=used, epochs=200)
    fixed = {name: kappa[name] for name in ("singlebase", "extbagging", "mcdropout", "snapshot")}
    assert fixed == {"singlebase": 1, "extbagging": 20, "mcdropout": 1, "snapshot": 2}
    assert 2 <= kappa["dynsnap-cyc"] <= 20
    assert 2 <= kappa["dynsnap-step"] <= 20


def test_a_method_alone_equals_the_one_among_six():
    settings = {"epochs": 40, "members": 8, "snapshots": 4, "dropout": 0.2, "beta": 0.5}
    for name, way in methods(**settings).items():
        assert method(name, **settings) == way
        assert way.combinations == COMBINATIONS


def test_an_unknown_method_is_refused_with_a_suggestion():
    with pytest.raises(PlanError, match=naming("'dynsnap-cic'", "dynsnap-cyc")):
        method("dynsnap-cic", epochs=10)


def test_epochs_that_no_window_fits_are_refused_for_cyclic_methods_only():
    assert method("singlebase", epochs=25).recipe.epochs == 25
    with pytest.raises(PlanError, match=naming("50 epochs", "20 windows", "`snapshots`")):
        method("snapshot", epochs=25)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": ""}, naming("method's name", "letters", "''")),
        ({"name": "../up"}, naming("method's name", "letters", r"'\.\./up'")),
        ({"combinations": ()}, naming("mine", "majority", "weighted_average")),
        ({"combinations": ("mean",)}, naming("mine", "combination 'mean'", "majority")),
        ({"plan": EnsemblePlan(snapshots=4)}, naming("mine", "4 snapshots", "yields 10")),
    ],
)
def test_a_method_that_contradicts_itself_is_refused(wrong, message):
    sound = {"name": "mine", "recipe": step_recipe(), "plan": EnsemblePlan()}
    with pytest.raises(PlanError, match=message):
        Method(**{**sound, **wrong})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"schedule": Schedule("cyclic")},
            naming("cyclic schedule", "one snapshot", '`selection="window"`'),
        ),
        ({"selection": "window"}, naming("step schedule", "cycles", '`selection="top"`')),
        ({"selection": "best"}, naming("`selection`", "best")),
        ({"epochs": 0}, naming("`epochs`", "at least 1", "got 0")),
        ({"snapshots": 31}, naming("`snapshots`", "30 epochs", "31")),
        ({"dropout": 1.0}, naming("`dropout`", "below 1", r"1\.0")),
        ({"passes": 0}, naming("`passes`", "at least 1", "got 0")),
        ({"passes": 5}, naming("passes", "`dropout`")),
    ],
)
def test_a_recipe_that_contradicts_itself_is_refused(wrong, message):
    sound = {"schedule": Schedule("step"), "epochs": 30}
    with pytest.raises(PlanError, match=message):
        Recipe(**{**sound, **wrong})


def test_the_step_schedule_is_the_scripts():
    rates = Schedule("step").multipliers(200, window=20)
    changes = [int(e) for e in range(1, 200) if rates[e] != rates[e - 1]]
    assert changes == [81, 121, 161, 181]
    assert rates[[0, 80, 81, 121, 161, 181]].tolist() == [1, 1, 0.1, 0.01, 0.001, 0.0005]
    half = Schedule("step").multipliers(100, window=10)
    assert [int(e) for e in range(1, 100) if half[e] != half[e - 1]] == [41, 61, 81, 91]


def test_the_cyclic_schedule_starts_again_in_every_window():
    rates = Schedule("cyclic").multipliers(40, window=20)
    assert np.array_equal(rates[:20], rates[20:])
    expected = [(np.cos(np.pi * e / 20) + 1) / 2 for e in range(20)]
    np.testing.assert_allclose(rates[:20], expected)


def test_constant_and_custom_schedules_are_what_they_say():
    assert Schedule("constant").multipliers(3, window=1).tolist() == [1, 1, 1]
    own = Schedule("custom", (1.0, 0.5))
    assert own.multipliers(2, window=1).tolist() == [1, 0.5]
    with pytest.raises(PlanError, match="2 multipliers for 3 epochs"):
        own.multipliers(3, window=1)


@pytest.mark.parametrize(
    ("kind", "factors", "message"),
    [
        ("linear", (), naming("cyclic", "step", "constant", "custom", "'linear'")),
        ("custom", (), "it needs them"),
        ("step", (1.0,), naming("`factors`", '"custom"')),
        ("custom", (1.0, -1.0), naming("`factors`", "finite", "negative")),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(kind, factors, message):
    with pytest.raises(PlanError, match=message):
        Schedule(kind, factors)


def test_a_spec_names_its_round_in_words_and_by_a_stable_text():
    spec = RoundSpec(recipe=step_recipe(), generation=2, index=3, twin=1)
    assert re.search(
        naming("round 3", "generation 2", "replicate 0", "twin", "50 epochs"), str(spec)
    )
    continued = RoundSpec(recipe=step_recipe(), generation=2, parent="a/0")
    assert re.search(
        naming("round 0", "generation 2", "replicate 0", "step", "a member"), str(continued)
    )
    assert made_round(spec).spec.canonical() == spec.canonical()
    assert spec.canonical() != RoundSpec(recipe=step_recipe(), generation=2, index=3).canonical()


def test_bagging_that_rolls_takes_the_best_three_of_the_rounds_that_single_learners_have():
    bagging = method("rolling-bagging", epochs=200, members=21, rolling=Rolling(carry_over=0.86))
    assert bagging.recipe == method("singlebase", epochs=200).recipe
    assert (bagging.plan.top, bagging.plan.beta, bagging.plan.most_per_round) == (3, 1.0, 3)
    assert [bagging.new_members(generation) for generation in (1, 2, 3)] == [21, 3, 3]
    assert wanted(bagging.plan, []) == 7
    assert wanted(replace(bagging.plan, size=3), []) == 1
    one = method("rolling-bagging", epochs=10, members=4, snapshots=1)
    assert one.plan.top == 1  # a round that has one snapshot has no more to give


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"rule": "margin"}, ("rule", "cost_ratio")),
        ({"rule": "votes", "cost_ratio": 2.0}, ("rule", "votes")),
        ({"every": 0}, ("every", "0")),
        ({"every": 4, "margin": 0.2}, ("every", "margin")),
        ({"every": 4, "gate": (("accuracy_change", "at_least", 0.0),)}, ("every", "gate")),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, named):
    with pytest.raises(PlanError, match=naming(*named)):
        replace(method("singlebase", epochs=200), **settings)


def test_single_networks_may_keep_their_last_epoch():
    kept = method("singlebase", epochs=8, snapshots=4, last_epoch=True)
    assert (kept.recipe.selection, kept.recipe.snapshots, kept.plan.snapshots) == ("last", 1, 1)
    assert method("single", epochs=200, last_epoch=True).recipe_of(2).selection == "last"
    ensemble = method("dynsnap-cyc", epochs=8, snapshots=4)
    assert method("dynsnap-cyc", epochs=8, snapshots=4, last_epoch=True) == ensemble
