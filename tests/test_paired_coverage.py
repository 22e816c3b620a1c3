"""Simulated studies: their worlds are like published ones, and intervals hold the truth in them."""

import dataclasses
import json

import numpy as np
import pytest

import paired_coverage as script

WORLD = script.World(
    inputs=300,
    difficulty=0.8,
    sides=(
        script.Side(mean=1.2, method=0.1, seed=0.01, run=0.05),
        script.Side(mean=1.0, method=0.02, seed=0.01, run=0.0),
    ),
)


def test_the_true_difference_is_that_of_very_many_inputs_and_seeds():
    many = dataclasses.replace(WORLD, inputs=20_000)
    labels = many.study(40, np.random.default_rng(0))
    for metric in script.METRICS:
        found = labels.difference("method", "reference", metric)
        assert found.value == pytest.approx(WORLD.truth(metric), abs=0.006), metric
    equal = WORLD.worse_by(0.02)
    assert equal.truth("accuracy_2") == pytest.approx(-0.02)


def test_a_world_has_the_accuracy_and_the_spread_of_the_study_that_it_is_like():
    known = {tuple(one["like"]): one["world"] for one in json.loads(script.FOUND.read_text())}
    assert set(known) == set(script.LIKE)
    like = ("digits-rolling", "rolling", "dynsnap-cyc")
    world = script.world_like(*like)
    for side, stored in zip(world.sides, known[like]["sides"], strict=True):
        assert dataclasses.asdict(side) == pytest.approx(stored)
    labels = script.labels_of(script.RESULTS / like[0])
    for side, method in zip(world.sides, like[1:], strict=True):
        right = [np.mean(list(labels.values(method, f"accuracy_{g}").values())) for g in (2, 3)]
        assert script._NORMAL.cdf(side.mean) == pytest.approx(np.mean(right))
        assert 0 <= side.seed < 0.05 and 0 <= side.method < 0.5 and 0 <= side.run < 0.5


def test_two_replicates_are_enough_for_an_interval_that_holds_and_one_is_not():
    held = {n: min(script.held(WORLD, n, 120).values()) for n in (1, 2, 3)}
    assert held[1] < 0.8 and held[2] >= 0.92 and held[3] >= 0.92


def test_verdicts_are_counted_and_a_worse_method_is_seen_more_often():
    equal, worse = (script.judged(WORLD.worse_by(gap), 3, 60) for gap in (0.0, 0.1))
    for found in (equal, worse):
        shares = {said: share for said, share in found.items() if said != "detectable"}
        assert sum(shares.values()) == pytest.approx(2)  # of losses, and of accuracy
    assert equal.get("clearly below", 0) < 0.15 < 0.5 < worse["clearly below"]


@pytest.mark.parametrize("replicates", [1, 3])
def test_verdicts_that_were_simulated_come_again(replicates):
    one = next(
        one
        for one in json.loads(script.FOUND.read_text())
        if one["like"][0] == "digits-single" and one["replicates"] == replicates
    )
    world = script.world_like(*one["like"])
    again = script.judged(world.worse_by(0.0), replicates, one["studies"] // 2)
    assert again == pytest.approx(one["equal"])


def test_what_was_simulated_holds_from_two_replicates_on():
    for one in json.loads(script.FOUND.read_text()):
        if one["replicates"] > 1:
            assert min(one["held"].values()) > 0.92, one["like"]
            assert one["equal"].get("shown", 0) < 0.05
