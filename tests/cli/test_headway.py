"""How long the rest of a study may take, told from what was trained so far."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.cli._headway import Headway
from dynsnap.ensemble import Recipe, RoundSpec, Schedule


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


def rounds(count, epochs):
    recipe = Recipe(schedule=Schedule("constant"), epochs=epochs, snapshots=1)
    return [RoundSpec(recipe=recipe, generation=1, index=i, seed=0) for i in range(count)]


@given(
    lanes=st.integers(1, 30),
    epochs=st.integers(3, 50),
    passed=st.integers(2, 40),
    building=st.floats(0, 1e4),
    pace=st.floats(0.01, 100),
    first=st.integers(0, 40),
)
def test_rounds_side_by_side_are_judged_by_their_pace_alone(
    lanes, epochs, passed, building, pace, first
):
    """Neither by what building them took, nor by what an earlier slice had trained."""
    first, passed = min(first, epochs - 3), min(passed, epochs - 1)
    clock = Clock()
    headway, specs = Headway(clock), rounds(lanes, epochs)
    headway.want(specs, 0)
    assert headway.seconds_left is None
    clock.now += building
    for epoch in range(first, min(first + passed, epochs)):
        clock.now += pace
        for spec in specs:
            headway.epoch(spec, epoch, 0.5)
        if epoch == first:
            assert headway.seconds_left is None
    done = min(first + passed, epochs)
    assert headway.epochs_done == lanes * done
    assert headway.seconds_left == pytest.approx(pace * (epochs - done), abs=1e-6)


def test_rounds_of_one_epoch_are_judged_by_each_other():
    clock = Clock()
    headway, specs = Headway(clock), rounds(5, 1)
    headway.want(specs, 2)
    for spec in specs[:3]:
        clock.now += 4.0
        headway.epoch(spec, 0, 0.5)
        headway.done(spec)
    assert headway.seconds_left == pytest.approx(2 * 4.0)
    assert (headway.rounds_done, headway.found, headway.finished) == (3, 2, False)


def test_a_round_that_was_never_told_of_is_done_all_the_same():
    headway, (spec,) = Headway(Clock()), rounds(1, 7)
    headway.want([spec], 0)
    headway.done(spec)
    assert headway.finished
    assert headway.epochs_done == 7
    assert headway.seconds_left is None
