import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.ensemble import Round, grow_rounds, methods, rounds_used, serial
from dynsnap.errors import TrainingError
from dynsnap.study import Ensemble, RoundManager

SMALL = methods(epochs=8, members=6, snapshots=4)


class ByName:
    """A trainer whose accuracies depend on the name of the round alone."""

    fingerprint = "by name"

    def __init__(self):
        self.asked = []

    def train(self, specs, /):
        self.asked.append(list(specs))
        for spec in specs:
            name = [spec.generation, spec.replicate, spec.index, spec.twin, spec.recipe.epochs]
            rng = np.random.default_rng([*name, len(spec.recipe.schedule.kind)])
            members = spec.recipe.members
            yield Round(
                spec=spec,
                accuracy=rng.integers(0, 5, members) / 10,  # coarse, so that ties occur
                epochs=np.zeros(members, int),
                scores={"test": rng.dirichlet(np.ones(3), (members, 4))},
                curve=np.zeros(spec.recipe.epochs),
                seconds=1.0,
            )


class Memory(dict):
    def get(self, key, spec, /):
        return super().get(key)

    def put(self, key, done, /):
        assert key not in self, "a round was stored twice"
        self[key] = done


def all_ensembles(generations=3, replicates=2, chosen=None, seed=0):
    return [
        Ensemble(method=method, generation=generation, replicate=replicate, seed=seed)
        for method in (SMALL.values() if chosen is None else chosen)
        for generation in range(1, generations + 1)
        for replicate in range(replicates)
    ]


def specs(grown):
    """The names of the rounds of an ensemble."""
    return [done.spec for done in grown.rounds]


SIZES = st.sampled_from([1, 2, 4, 5, 8, 10])  # Snapshot's epochs are cut into as many windows


@given(st.lists(st.sampled_from(list(SMALL)), min_size=1, unique=True), SIZES)
def test_waves_train_for_each_ensemble_what_it_would_train_alone(names, size):
    chosen = methods(epochs=40, members=size, snapshots=4)
    ensembles = all_ensembles(2, 1, [chosen[name] for name in names], seed=3)
    grown = RoundManager(ByName(), Memory()).grow(ensembles, engine=serial)
    for ensemble in ensembles:
        plan = ensemble.method.plan
        alone = grow_rounds(
            plan,
            ByName(),
            recipe=ensemble.method.recipe,
            generation=ensemble.generation,
            replicate=ensemble.replicate,
            seed=3,
        )
        used = rounds_used(plan, alone)
        assert specs(grown[ensemble]) == [done.spec for done in alone[:used]]


def test_all_that_is_certain_is_asked_for_together():
    trainer = ByName()
    RoundManager(trainer, Memory()).grow(all_ensembles(), engine=serial)
    first = Counter((spec.generation, spec.replicate) for spec in trainer.asked[0])
    assert len(first) == 6  # every generation of every replicate is in the first wave
    kinds = {spec.recipe.schedule.kind for spec in trainer.asked[0]}
    assert kinds == {"step", "cyclic"}


def test_no_round_is_trained_twice():
    trainer = ByName()
    RoundManager(trainer, Memory()).grow(all_ensembles(), engine=serial)
    asked = [spec for wave in trainer.asked for spec in wave]
    assert len(asked) == len(set(asked))


def test_what_is_stored_is_not_trained_again():
    store = Memory()
    RoundManager(ByName(), store).grow(all_ensembles(), engine=serial)
    trainer = ByName()
    again = RoundManager(trainer, store)
    again.grow(all_ensembles(), engine=serial)
    assert trainer.asked == []
    assert again.trained == 0


def test_only_what_is_missing_is_trained_again():
    store = Memory()
    RoundManager(ByName(), store).grow(all_ensembles(), engine=serial)
    lost = [store.pop(key).spec for key in list(store)[::3]]
    trainer = ByName()
    RoundManager(trainer, store).grow(all_ensembles(), engine=serial)
    assert sorted(map(str, (s for wave in trainer.asked for s in wave))) == sorted(map(str, lost))


def test_nothing_large_is_held_in_memory():
    manager = RoundManager(ByName(), Memory())
    manager.grow(all_ensembles(), engine=serial)
    assert manager.rounds.heads
    for head in manager.rounds.heads.values():
        assert not head.scores and not head.weights and not len(head.curve)


def test_an_engine_that_loses_rounds_does_not_go_on_for_ever():
    def lossy(trainer, specs):
        return list(trainer.train(specs))[1:]

    with pytest.raises(TrainingError, match="did not give"):
        RoundManager(ByName(), Memory()).grow(all_ensembles(), engine=lossy)


def test_rounds_that_were_done_before_an_error_are_stored():
    store = Memory()

    def breaking(trainer, specs):
        for position, done in enumerate(trainer.train(specs)):
            if position == 3:
                raise TrainingError("the fourth round failed")
            yield done

    with pytest.raises(TrainingError, match="fourth"):
        RoundManager(ByName(), store).grow(all_ensembles(), engine=breaking)
    assert len(store) == 3


def test_the_monitor_hears_of_waves_and_rounds():
    class Monitor:
        def __init__(self):
            self.waves, self.rounds = [], 0

        def wave_begins(self, wave, /, *, found):
            self.waves.append((len(wave), found))

        def round_done(self, done, /):
            self.rounds += 1

    store, monitor = Memory(), Monitor()
    RoundManager(ByName(), store, monitor).grow(all_ensembles(), engine=serial)
    assert sum(count for count, _ in monitor.waves) == monitor.rounds == len(store)
    assert all(found == 0 for _, found in monitor.waves)
    del store[next(iter(store))]
    monitor = Monitor()
    RoundManager(ByName(), store, monitor).grow(all_ensembles(), engine=serial)
    assert monitor.rounds == 1
    assert monitor.waves[0][1] > 0


def test_a_twin_is_another_round():
    (ensemble,) = all_ensembles(1, 1, [SMALL["singlebase"]])
    twin = dataclasses.replace(ensemble, twin=1)
    manager = RoundManager(ByName(), Memory())
    manager.grow([ensemble, twin], engine=serial)
    assert manager.trained == 2
