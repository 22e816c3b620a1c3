"""Rounds that are asked for while others are under way: no ensemble waits for another one's."""

import dataclasses
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.engine import ProcessesEngine, Rules
from dynsnap.engine._wave import Wave
from dynsnap.ensemble import methods, serial
from dynsnap.study import RoundManager
from tests.engine.made import CYCLIC, FaultyTrainer, assert_as_serial, specs
from tests.engine.test_wave import SimulatedPool
from tests.study import test_waves
from tests.study.test_waves import ByName, Memory, all_ensembles


class Queue:
    """An engine that trains one round after another, in an order of its own, and takes more."""

    takes_more = True

    def __init__(self, backwards):
        self.calls = 0
        self._backwards = backwards

    def __call__(self, trainer, wanted, /, *, more=None):
        self.calls += 1
        waiting = deque(wanted)
        while waiting:
            yield from trainer.train([waiting.pop() if self._backwards else waiting.popleft()])
            waiting.extend(more())


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from([1, 2, 4, 5, 8, 10]), st.integers(0, 2), st.booleans())
def test_a_study_gets_the_same_ensembles_in_one_go(size, ahead, backwards):
    chosen = list(methods(epochs=40, members=size, snapshots=4).values())
    ensembles = all_ensembles(2, 2, chosen)
    waves, store = RoundManager(ByName(), Memory()), Memory()
    in_waves = waves.grow(ensembles, engine=serial, ahead=ahead)
    engine, manager = Queue(backwards), RoundManager(ByName(), store)
    grown = manager.grow(ensembles, engine=engine, ahead=ahead)
    assert engine.calls == 1
    for ensemble in ensembles:
        assert test_waves.specs(grown[ensemble]) == test_waves.specs(in_waves[ensemble])
    if not ahead:
        assert set(manager.rounds.heads) == set(waves.rounds.heads)


def test_rounds_found_in_the_store_are_not_trained_again():
    store = Memory()
    RoundManager(ByName(), store).grow(all_ensembles(), engine=serial)
    first = next(key for key, done in store.items() if done.spec.recipe.schedule.kind == "cyclic")
    lost = store.pop(first).spec
    manager = RoundManager(ByName(), store)
    manager.grow(all_ensembles(), engine=Queue(False))
    assert manager.trained == 1
    assert lost in manager.rounds.heads
    assert len(manager.rounds.heads) == len(store)


def test_what_is_asked_for_later_goes_first():
    pool = SimulatedPool(1, lambda spec: 1)
    late = deque([specs(1, recipe=CYCLIC)])
    wave = Wave(pool=pool, rules=Rules(together=1), clock=lambda: pool.now)
    done = list(wave.run(specs(4), lambda: late.popleft() if late else []))
    assert [task[0] for task in pool.tasks][:2] == [specs(1)[0], specs(1, recipe=CYCLIC)[0]]
    assert len(done) == 5


def test_few_of_a_kind_go_before_many():
    pool = SimulatedPool(1, lambda spec: 1)
    few = [dataclasses.replace(spec, generation=2) for spec in specs(1)]
    list(Wave(pool=pool, rules=Rules(together=1), clock=lambda: pool.now).run([*specs(4), *few]))
    assert pool.tasks[0] == tuple(few)


@pytest.mark.slow
def test_workers_take_more(tmp_path):
    wanted = specs(5)
    late = [[wanted[3]], [wanted[4]], []]
    with ProcessesEngine(2, rules=Rules(together=1)) as engine:
        found = list(
            engine(FaultyTrainer(tmp_path), wanted[:3], more=lambda: late.pop(0) if late else [])
        )
    assert_as_serial(found, wanted)


@pytest.mark.parametrize("places", [1, 3, 8])
def test_side_by_side_tasks_are_few_and_even(places):
    pool = SimulatedPool(places, lambda spec: 1)
    wave = Wave(pool=pool, rules=Rules(side_by_side=True), clock=lambda: pool.now)
    assert len(list(wave.run(specs(16)))) == 16
    sizes = list(map(len, pool.tasks))
    assert len(sizes) == places
    assert max(sizes) - min(sizes) <= 1
