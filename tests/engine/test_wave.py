"""How rounds are handed out to workers that are simulated: the real schedule, a fake clock."""

import heapq
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.engine import Rules
from dynsnap.engine._wave import Wave
from dynsnap.engine._worker import RoundDone, TaskEnded, TaskFailed, TaskLost
from dynsnap.ensemble import Round
from dynsnap.errors import TrainingError
from tests.engine.made import CYCLIC, STEP, specs
from tests.messages import naming


def made_round(spec):
    members = spec.recipe.members
    return Round(
        spec=spec,
        accuracy=np.zeros(members),
        epochs=np.zeros(members, int),
        scores={},
        curve=np.zeros(spec.recipe.epochs),
    )


class SimulatedPool:
    """Workers that take `seconds(spec)` for a round, one after another.

    Args:
        workers: How many there are.
        seconds: What a round takes, infinity for one that never ends.
        lost: Called with a round when it would be done; whether the worker dies instead.
    """

    def __init__(self, workers, seconds, lost=lambda spec: False):
        self.now = 0.0
        self.busy = 0.0
        self.tasks = []
        self.trained = []
        self.abandoned = []
        self._workers = workers
        self._seconds = seconds
        self._lost = lost
        self._events = []
        self._order = itertools.count()

    def places(self):
        return self._workers

    def begin(self, task, /):
        self.tasks.append(task.specs)
        end = self.now
        for spec in task.specs:
            end += self._seconds(spec)
            if end == float("inf"):
                return
            if self._lost(spec):
                self._at(end, task.number, TaskLost("it was told to"))
                return
            self._at(end, task.number, RoundDone(made_round(spec)))
            self.trained.append(spec.index)
            self.busy += self._seconds(spec)
        self._at(end, task.number, TaskEnded())

    def events(self, seconds, /):
        if not self._events:
            self.now += 10
            return
        self.now, _, number, event = heapq.heappop(self._events)
        yield number, event

    def abandon(self, number, /):
        self.abandoned.append(number)
        self._events = [event for event in self._events if event[2] != number]
        heapq.heapify(self._events)

    def _at(self, when, number, event):
        heapq.heappush(self._events, (when, next(self._order), number, event))


def spread(pool, wanted, **rules):
    wave = Wave(pool=pool, rules=Rules(**rules), clock=lambda: pool.now)
    return list(wave.run(wanted))


@given(
    count=st.integers(0, 60),
    workers=st.integers(1, 9),
    together=st.integers(1, 12),
    unlucky=st.sets(st.integers(0, 59)),
)
def test_every_round_is_given_once_whoever_dies_once(count, workers, together, unlucky):
    left = set(unlucky)

    def lost(spec):
        if spec.index in left:
            left.remove(spec.index)
            return True
        return False

    pool = SimulatedPool(workers, lambda spec: 1 + spec.index % 3, lost)
    done = spread(pool, specs(count), together=together)
    assert sorted(one.spec.index for one in done) == list(range(count))
    assert max(map(len, pool.tasks), default=0) <= together
    # What a worker had delivered before it died is not trained again.
    assert sorted(pool.trained) == list(range(count))
    assert not pool.abandoned


def test_a_round_that_failed_is_tried_alone():
    pool = SimulatedPool(1, lambda spec: 1, lambda spec: spec.index == 2)
    with pytest.raises(TrainingError, match=naming("round 2", "3 times", "was told to")):
        spread(pool, specs(8))
    assert [task for task in pool.tasks if specs(8)[2] in task][1:] == [(specs(8)[2],)] * 2


def test_where_rounds_train_side_by_side_only_the_last_attempt_is_alone():
    pool = SimulatedPool(1, lambda spec: 1, lambda spec: spec.index == 0)
    with pytest.raises(TrainingError, match=r"round 0 .* failed 3 times"):
        spread(pool, specs(4), side_by_side=True)
    assert [len(task) for task in pool.tasks] == [4, 4, 1]


def test_long_rounds_go_first():
    pool = SimulatedPool(2, lambda spec: spec.recipe.epochs)
    spread(pool, [*specs(4), *specs(2, recipe=CYCLIC)], together=1)
    assert [task[0].recipe for task in pool.tasks] == [CYCLIC] * 2 + [STEP] * 4


def test_a_silent_worker_is_overtaken_once_and_then_left_alone():
    stuck = iter([float("inf")])
    pool = SimulatedPool(2, lambda spec: next(stuck, 5) if spec.index == 0 else 5)
    done = spread(pool, specs(6), together=1, patience=30)
    assert len(done) == 6
    assert sum(specs(6)[0] in task for task in pool.tasks) == 2
    assert pool.abandoned == [1]


def test_a_slow_worker_is_not_overtaken_before_its_time():
    pool = SimulatedPool(2, lambda spec: 25 if spec.index == 0 else 5)
    spread(pool, specs(3), together=1, patience=30)
    assert len(pool.tasks) == 3


def test_an_error_of_dynsnaps_own_lets_the_others_finish_and_begins_nothing_new():
    class Failing(SimulatedPool):
        def begin(self, task, /):
            if task.specs[0].index == 0:
                self.tasks.append(task.specs)
                self._at(1, task.number, TaskFailed(TrainingError("diverged"), "diverged", ""))
            else:
                super().begin(task)

    pool, found = Failing(3, lambda spec: 5), []
    wave = Wave(pool=pool, rules=Rules(together=1), clock=lambda: pool.now)
    with pytest.raises(TrainingError, match="diverged"):
        found.extend(done.spec.index for done in wave.run(specs(9)))
    assert found == [1, 2]
    assert [task[0].index for task in pool.tasks] == [0, 1, 2]


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_workers_are_busy_nine_tenths_of_the_time(workers):
    """A wave of 600 rounds of three lengths, each off by up to a tenth."""
    recipes = (STEP, CYCLIC)
    wanted = [spec for recipe in recipes for spec in specs(300, recipe=recipe)]

    def seconds(spec):
        return spec.recipe.epochs * (0.9 + 0.2 * (spec.index * 7919 % 100) / 100)

    pool = SimulatedPool(workers, seconds)
    assert len(spread(pool, wanted)) == 600
    assert pool.busy / (workers * pool.now) >= 0.9
