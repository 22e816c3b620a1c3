"""The bookkeeping of many rounds in step, with a stepper that only counts."""

import re
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.ensemble import snapshot_epochs
from dynsnap.errors import Interrupted, TrainingError
from dynsnap.train._drive import CheckpointSaver, drive
from dynsnap.train._lockstep import Lockstep, RoundState
from tests.messages import naming
from tests.train.made import Memory, Watcher, recipe, spec

ROUNDS = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 5), st.integers(1, 8)), min_size=1, max_size=7
)


class Counting:
    """Counts what it is asked to do; a round's state is the number of its epochs."""

    form = "counting"

    def __init__(self, width=3, accuracy=lambda round_: 0.5):
        self.width = width
        self.accuracy = accuracy
        self.held = []
        self.rows = Counter()
        self.steps = Counter()
        self.most = 0

    def admit(self, round_, state, /):
        self.held.append(round_)
        self.most = max(self.most, len(self.held))

    def advance(self, rounds, steps, /):
        assert set(rounds) <= set(self.held)
        for round_ in rounds:
            for rows in round_.order()[round_.step : round_.step + steps]:
                self.rows.update((round_.spec, round_.epoch, int(row)) for row in rows)
            self.steps[round_.spec] += steps

    def validate(self, rounds, /):
        return [self.accuracy(round_) for round_ in rounds]

    def weights(self, round_, /):
        return {"epoch": torch.tensor(round_.epoch)}

    def state(self, round_, /):
        return {"epoch": torch.tensor(round_.epoch)}

    def release(self, round_, /):
        self.held.remove(round_)

    def remain(self, rounds):
        self.remained = list(rounds)


def states_of(rounds):
    specs = [spec(i, epochs=epochs, snapshots=1) for i, (_, epochs, _) in enumerate(rounds)]
    sizes = {one: (rows, batch) for one, (rows, _, batch) in zip(specs, rounds, strict=True)}

    def opening(one):
        rows, batch = sizes[one]
        return RoundState(
            spec=one,
            train=np.arange(100, 100 + rows),
            validation=np.arange(3),
            batch=min(batch, rows),
            prepared={},
        )

    return specs, opening


def run(specs, opening, stepper, *, monitor=None, checkpoints=None, every=60):
    saver = CheckpointSaver(checkpoints=checkpoints, every=every, owner="tests")
    lockstep = Lockstep(specs, opening, width=stepper.width)
    return drive(lockstep, stepper, saver=saver, monitor=monitor)


@given(ROUNDS, st.integers(1, 4))
def test_every_round_takes_all_its_steps_however_many_run_beside_it(rounds, width):
    specs, opening = states_of(rounds)
    stepper = Counting(width)
    done = list(run(specs, opening, stepper))
    assert sorted(round_.spec.index for round_ in done) == list(range(len(rounds)))
    assert stepper.most <= width
    assert not stepper.held
    for round_ in done:
        assert stepper.steps[round_.spec] == round_.steps * round_.spec.recipe.epochs
        assert len(round_.curve) == round_.spec.recipe.epochs


@given(ROUNDS)
def test_every_row_is_seen_in_every_epoch_and_none_more_than_needed(rounds):
    specs, opening = states_of(rounds)
    stepper = Counting()
    for round_ in run(specs, opening, stepper):
        for epoch in range(round_.spec.recipe.epochs):
            seen = [stepper.rows[round_.spec, epoch, int(row)] for row in round_.train]
            assert min(seen) >= 1
            assert sum(seen) == round_.steps * round_.batch
            assert max(seen) <= 1 + (round_.batch > 1)


@given(ROUNDS, st.integers(1, 12))
def test_a_stop_lets_every_round_end_its_epoch_and_saves_it(rounds, after):
    specs, opening = states_of(rounds)
    stepper, checkpoints, done = Counting(), Memory(), []
    watcher = Watcher(after)
    try:
        done += run(specs, opening, stepper, monitor=watcher, checkpoints=checkpoints)
    except Interrupted:
        assert len(watcher.seen) >= after
        for round_ in stepper.held:
            assert round_.step == 0
            assert (round_.spec in checkpoints.kept) == (round_.epoch > 0)
    rest = [one for one in specs if one not in {round_.spec for round_ in done}]
    done += run(rest, opening, stepper2 := Counting(), checkpoints=checkpoints)
    assert len(done) == len(rounds)
    total = stepper.steps + stepper2.steps
    assert all(total[round_.spec] == round_.steps * round_.spec.recipe.epochs for round_ in done)


def test_epochs_are_shuffled_each_in_its_own_way():
    specs, opening = states_of([(30, 3, 30)])
    round_ = opening(specs[0])
    first = round_.order()
    round_.epoch = 1
    second = round_.order()
    assert sorted(first[0]) == sorted(second[0]) == list(range(100, 130))
    assert first.tolist() != second.tolist()


@given(
    st.sampled_from(["window", "top"]),
    st.lists(st.integers(0, 4), min_size=1, max_size=24),
    st.integers(1, 6),
)
def test_a_round_keeps_the_states_of_the_best_epochs(selection, tenths, wanted):
    epochs = len(tenths)
    wanted = min(wanted, epochs)
    while epochs % wanted:
        wanted -= 1
    kind = "cyclic" if selection == "window" else "step"
    round_ = RoundState(
        spec=spec(kind=kind, epochs=epochs, snapshots=wanted),
        train=np.arange(4),
        validation=np.arange(4),
        batch=2,
        prepared={},
    )
    most = 0
    for epoch, value in enumerate(tenths):
        if round_.record(value / 10):
            round_.keep({"epoch": epoch})
        most = max(most, len(round_.kept))
    # The slow way: everything was kept, and the best are picked at the end.
    if selection == "top":
        ranked = sorted(range(epochs), key=lambda e: (-tenths[e], e))
        expected = ranked[:wanted]
    else:
        window = epochs // wanted
        cuts = [range(s, s + window) for s in range(0, epochs, window)]
        expected = [max(cut, key=lambda e: (tenths[e], -e)) for cut in cuts]
    assert set(round_.kept) == set(expected)
    assert all(state == {"epoch": epoch} for epoch, state in round_.kept.items())
    assert snapshot_epochs(round_.spec.recipe, round_.curve).tolist() == expected
    assert most <= wanted


def test_a_diverged_round_stops_with_its_name_and_the_way_out():
    specs, opening = states_of([(10, 3, 5)])
    stepper = Counting(accuracy=lambda round_: float("nan"))
    with pytest.raises(
        TrainingError, match=naming("round 0", "diverged", "epoch 0", "learning rate")
    ):
        list(run(specs, opening, stepper))


@pytest.mark.parametrize("damage", ["bytes", "owner", "spec"])
def test_a_checkpoint_that_does_not_belong_is_passed_over_with_a_warning(damage, caplog):
    specs, opening = states_of([(10, 4, 5)])
    checkpoints = Memory()
    with pytest.raises(Interrupted):
        list(run(specs, opening, Counting(), monitor=Watcher(2), checkpoints=checkpoints))
    content = checkpoints.kept[specs[0]]
    if damage == "bytes":
        checkpoints.kept[specs[0]] = (
            content[:-1] if len(content) < 9 else content[: len(content) // 2]
        )
    elif damage == "owner":
        checkpoints.kept[specs[0]] = content.replace(b"tests", b"other")
    else:
        checkpoints.kept[specs[0]] = content.replace(
            b'\\\\\\"generation\\\\\\":1', b'\\\\\\"generation\\\\\\":2'
        )
    assert checkpoints.kept[specs[0]] != content
    stepper = Counting()
    (round_,) = run(specs, opening, stepper, checkpoints=checkpoints)
    assert stepper.steps[specs[0]] == round_.steps * 4
    assert re.search(naming("round 0 of", "cannot be read|another training", "over"), caplog.text)


def test_the_rate_follows_the_schedule():
    round_ = RoundState(
        spec=spec(kind="cyclic", epochs=4, snapshots=2),
        train=np.arange(4),
        validation=np.arange(4),
        batch=2,
        prepared={},
    )
    assert round_.multipliers.tolist() == pytest.approx([1, 0.5, 1, 0.5])
    assert recipe().schedule.kind == "step"
