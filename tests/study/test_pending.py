"""Which rounds a study needs: a function of the rounds that are available, and of nothing else."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.ensemble import Rolling, method, serial
from dynsnap.errors import TrainingError
from dynsnap.study import Ensemble, PendingRounds, RoundManager
from tests.messages import naming
from tests.study.test_rolling import Made, a_stream, managed
from tests.study.test_waves import Memory

STREAM = a_stream()


class Available(dict):
    """Rounds by their spec, in memory: nothing is stored and nothing is trained."""

    def head(self, spec, /):
        return dataclasses.replace(self[spec], scores={}, curve=np.empty(0))

    def missing(self, specs, /):
        return [spec for spec in specs if spec not in self]

    def load(self, spec, /):
        return self[spec]

    def member_key(self, spec, place, /):
        return f"{spec.generation}-{spec.index}-{spec.recipe.epochs}-{spec.parent}/{place}"


def ensembles():
    """Three generations of methods that decide in every way there is."""
    small = {"epochs": 8, "members": 6, "snapshots": 4}
    chosen = [
        method("extbagging", **small),
        method("dynsnap-cyc", **small),
        method("dynsnap-cyc", **{**small, "members": "auto"}, tolerance=0.05, most_rounds=4),
        method("rolling", **small, rolling=Rolling(carry_over=0.5, max_accuracy_gap=0.0)),
        method("rolling", **small, rolling=Rolling(carry_over=0.5, finetune_epochs=2)),
        method(
            "rolling", **small, rolling=Rolling(carry_over=0.5, finetune_epochs=2, warm_start=True)
        ),
    ]
    return [
        Ensemble(method=dataclasses.replace(one, name=f"m{number}"), generation=generation)
        for number, one in enumerate(chosen)
        for generation in (1, 2, 3)
    ]


def arrivals(order, ahead=0):
    """All ensembles, grown by rounds that become available one at a time, and these rounds."""
    available, trainer = Available(), Made(STREAM)
    pending = PendingRounds(ensembles(), available, STREAM)
    while specs := pending.outstanding(ahead=ahead):
        assert specs == pending.outstanding(ahead=ahead), "asked again, it needs the same rounds"
        assert len(specs) == len(set(specs))
        assert not set(specs) & set(available)
        for done in trainer.train([specs[order(len(specs))]]):
            available[done.spec] = done
    assert set(pending.complete) == set(pending.ensembles)
    return pending.ensembles, available


def members_of(grown):
    return [(one.members.sources, one.members.accuracy.tolist()) for one in grown.values()]


@pytest.fixture(scope="module")
def in_order():
    return arrivals(lambda count: 0)


@settings(max_examples=5)
@given(random=st.randoms(use_true_random=False), ahead=st.integers(0, 2))
def test_ensembles_do_not_depend_on_the_order_in_which_rounds_arrive(in_order, random, ahead):
    grown, _ = arrivals(random.randrange, ahead)
    assert members_of(grown) == members_of(in_order[0])


def test_an_ensemble_asks_for_no_round_that_it_is_not_certain_to_use(in_order):
    """One round at a time never trains a round that no ensemble is made of."""
    grown, available = in_order
    used = {done.spec for one in grown.values() for done in one.rounds}
    assert set(available) == used


def test_rounds_of_a_generation_that_waits_for_another_are_not_asked_for():
    line = [one for one in ensembles() if one.method.name == "m5"]
    pending = PendingRounds(line, Available(), STREAM)
    assert {spec.generation for spec in pending.outstanding()} == {1}


def test_what_is_complete_is_not_decided_again(in_order, monkeypatch):
    """Each generation asks the one before: deciding anew would double the work with each of 50."""
    grown, _ = in_order
    assert all(one.complete for one in grown.values())
    monkeypatch.setattr(Ensemble, "wanted", lambda *_: pytest.fail("decided again"))
    assert all(one.complete for one in grown.values())


class Giving:
    """An engine that takes more rounds while it works, and gives back what it pleases."""

    takes_more = True

    def __init__(self, give):
        self._give = give

    def __call__(self, trainer, specs, /, *, more):
        for wave in itertools.chain([specs], iter(more, [])):
            yield from self._give(trainer, wave)


def one_lost_of_a_later_wave(trainer, wave):
    first = any(spec.index == 0 for spec in wave)
    return serial(trainer, wave if first else wave[1:])


def another_round_too(trainer, wave):
    return serial(trainer, [*wave, dataclasses.replace(wave[0], index=99)])


def the_first_twice(trainer, wave):
    return serial(trainer, [wave[0], *wave])


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (one_lost_of_a_later_wave, "not give round"),
        (another_round_too, naming("round 99", "asked for")),
        (the_first_twice, naming("round 0", "asked for")),
    ],
)
def test_an_engine_gives_every_round_once_also_those_asked_for_later(give, message):
    line = [one for one in ensembles() if one.method.name in ("m1", "m2")]
    grown = managed(Made(STREAM)).grow(line, engine=Giving(serial))
    assert all(one.complete for one in grown.values())
    assert max(len(one.rounds) for one in grown.values()) > 2  # some were asked for later
    store = Memory()
    with pytest.raises(TrainingError, match=message):
        RoundManager(Made(STREAM), store, None, STREAM).grow(line, engine=Giving(give))
    assert not any(done.spec.index == 99 for done in store.values())
