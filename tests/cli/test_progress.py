"""How long the rest of a study may take, told from what was trained so far."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.cli._progress import TrainingProgress
from dynsnap.ensemble import Recipe, RoundSpec, Schedule


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


def rounds(count, epochs, *, generation=1):
    recipe = Recipe(schedule=Schedule("constant"), epochs=epochs, snapshots=1)
    return [RoundSpec(recipe=recipe, generation=generation, index=i, seed=0) for i in range(count)]


def trained(progress, clock, specs, epochs, pace):
    for epoch in epochs:
        clock.now += pace
        for spec in specs:
            progress.epoch(spec, epoch, 0.5)


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
    progress, specs = TrainingProgress(clock), rounds(lanes, epochs)
    progress.want(specs)
    clock.now += building
    trained(progress, clock, specs, [begun], pace)
    assert progress.seconds_left is None  # nobody knows how long that took
    trained(progress, clock, specs, range(begun + 1, end), pace)
    assert progress.epochs_done == lanes * end
    assert progress.seconds_left == pytest.approx(pace * (epochs - end), abs=1e-6)


@given(building=st.floats(0, 1e4))
def test_what_a_later_wave_is_built_in_does_not_count_either(building):
    clock = Clock()
    progress, first, second = TrainingProgress(clock), rounds(3, 20), rounds(3, 20, generation=2)
    progress.want(first)
    trained(progress, clock, first, range(20), 2.0)
    for spec in first:
        progress.done(spec)
    progress.want(second)
    clock.now += building
    trained(progress, clock, second, range(4), 2.0)
    assert progress.seconds_left == pytest.approx(16 * 2.0)


def test_rounds_one_after_the_other_are_judged_by_all_of_them():
    clock = Clock()
    progress, specs = TrainingProgress(clock), rounds(3, 4)
    progress.want(specs)
    for spec in specs[:2]:
        trained(progress, clock, [spec], range(4), 5.0)
        progress.done(spec)
    assert progress.seconds_left == pytest.approx(4 * 5.0)


def test_rounds_of_one_epoch_are_judged_by_each_other():
    clock = Clock()
    progress, specs = TrainingProgress(clock), rounds(5, 1)
    progress.want(specs)
    for spec in specs[:3]:
        trained(progress, clock, [spec], [0], 4.0)
        progress.done(spec)
    assert progress.seconds_left == pytest.approx(2 * 4.0)
    assert (progress.rounds_done, progress.finished) == (3, False)


def test_a_round_that_was_never_told_of_is_done_all_the_same():
    progress, (spec,) = TrainingProgress(Clock()), rounds(1, 7)
    progress.want([spec])
    progress.done(spec)
    assert progress.finished
    assert (progress.epochs_done, progress.seconds_left) == (7, 0)
