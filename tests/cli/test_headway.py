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


def rounds(count, epochs, *, generation=1):
    recipe = Recipe(schedule=Schedule("constant"), epochs=epochs, snapshots=1)
    return [RoundSpec(recipe=recipe, generation=generation, index=i, seed=0) for i in range(count)]


def trained(headway, clock, specs, epochs, pace):
    for epoch in epochs:
        clock.now += pace
        for spec in specs:
            headway.epoch(spec, epoch, 0.5)


@given(
    lanes=st.integers(1, 30),
    epochs=st.integers(3, 50),
    begun=st.integers(0, 40),
    passed=st.integers(2, 40),
    building=st.floats(0, 1e4),
    pace=st.floats(0.01, 100),
)
def test_rounds_side_by_side_are_judged_by_their_pace_alone(
    lanes, epochs, begun, passed, building, pace
):
    """Neither by what building them took, nor by what an earlier slice had trained."""
    begun = min(begun, epochs - 3)
    end = min(begun + passed, epochs)
    clock = Clock()
    headway, specs = Headway(clock), rounds(lanes, epochs)
    headway.want(specs)
    clock.now += building
    trained(headway, clock, specs, [begun], pace)
    assert headway.seconds_left is None  # nobody knows how long that took
    trained(headway, clock, specs, range(begun + 1, end), pace)
    assert headway.epochs_done == lanes * end
    assert headway.seconds_left == pytest.approx(pace * (epochs - end), abs=1e-6)


@given(building=st.floats(0, 1e4))
def test_what_a_later_wave_is_built_in_does_not_count_either(building):
    clock = Clock()
    headway, first, second = Headway(clock), rounds(3, 20), rounds(3, 20, generation=2)
    headway.want(first)
    trained(headway, clock, first, range(20), 2.0)
    for spec in first:
        headway.done(spec)
    headway.want(second)
    clock.now += building
    trained(headway, clock, second, range(4), 2.0)
    assert headway.seconds_left == pytest.approx(16 * 2.0)


def test_rounds_one_after_the_other_are_judged_by_all_of_them():
    clock = Clock()
    headway, specs = Headway(clock), rounds(3, 4)
    headway.want(specs)
    for spec in specs[:2]:
        trained(headway, clock, [spec], range(4), 5.0)
        headway.done(spec)
    assert headway.seconds_left == pytest.approx(4 * 5.0)


def test_rounds_of_one_epoch_are_judged_by_each_other():
    clock = Clock()
    headway, specs = Headway(clock), rounds(5, 1)
    headway.want(specs)
    for spec in specs[:3]:
        trained(headway, clock, [spec], [0], 4.0)
        headway.done(spec)
    assert headway.seconds_left == pytest.approx(2 * 4.0)
    assert (headway.rounds_done, headway.finished) == (3, False)


def test_a_round_that_was_never_told_of_is_done_all_the_same():
    headway, (spec,) = Headway(Clock()), rounds(1, 7)
    headway.want([spec])
    headway.done(spec)
    assert headway.finished
    assert (headway.epochs_done, headway.seconds_left) == (7, 0)
