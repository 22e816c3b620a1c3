"""Same spec, same machine, CPU: the same bits, whatever else happens around a round."""

import dataclasses
import functools
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dynsnap.errors import Interrupted
from dynsnap.train import Adam, ShiftsAndFlips, Standardised, TorchTrainer
from dynsnap.train import _stacked as stacked
from dynsnap.train._round_groups import RoundGroups
from dynsnap.train.models import cnn, fasttext, mlp
from tests.messages import naming
from tests.train.made import Memory, Watcher, blobs, pictures, same, sentences, spec, stream_of

BLOBS, PICTURES, TEXTS = stream_of(blobs()), stream_of(pictures()), stream_of(sentences())
DENSE = functools.partial(mlp, hidden=(9, 7))

# Every way that a round can be computed: stacked or alone, with noise of every kind.
WAYS = {
    "stacked": lambda **more: TorchTrainer(
        BLOBS, model=DENSE, prepare=Standardised(), batch_size=16, device="cpu", **more
    ),
    "stacked pictures": lambda **more: TorchTrainer(
        PICTURES, model=DENSE, augment=ShiftsAndFlips(), batch_size=16, device="cpu", **more
    ),
    "alone": lambda **more: TorchTrainer(
        PICTURES,
        model=functools.partial(cnn, width=4),
        augment=ShiftsAndFlips(),
        batch_size=16,
        device="cpu",
        **more,
    ),
    "mixed precision": lambda **more: TorchTrainer(
        PICTURES,
        model=functools.partial(cnn, width=4),
        optimizer=Adam(kernel_penalty=1e-4),
        precision="bfloat16",
        batch_size=16,
        device="cpu",
        **more,
    ),
    "another optimiser": lambda **more: TorchTrainer(
        BLOBS,
        model=DENSE,
        optimizer=functools.partial(torch.optim.SGD, momentum=0.9),
        batch_size=16,
        device="cpu",
        **more,
    ),
    "text": lambda **more: TorchTrainer(
        TEXTS,
        model=functools.partial(fasttext, width=6),
        batch_size=8,
        device="cpu",
        **more,
    ),
}
SPECS = [
    spec(0, epochs=4, dropout=0.2),
    spec(1, epochs=3, generation=2, dropout=0.2),
    spec(2, kind="cyclic", epochs=6, snapshots=2),
    spec(3, epochs=2, generation=2, dropout=0.2, snapshots=1, passes=3),
]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_round_does_not_depend_on_the_rounds_beside_it(way):
    alone = {one: next(iter(WAYS[way]().train([one]))) for one in SPECS}
    trainer = WAYS[way]()
    for order in (SPECS, SPECS[::-1], [SPECS[2], SPECS[0]]):
        done = list(trainer.train(order))
        assert {one.spec for one in done} == set(order)
        assert all(same(one, alone[one.spec]) for one in done)


@pytest.mark.slow
@pytest.mark.parametrize(
    "epochs",
    [(1, 5, 8, 12), pytest.param(range(1, 13), marks=pytest.mark.slow)],
    ids=["some", "all"],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_round_interrupted_after_any_epoch_goes_on_to_the_same_end(way, epochs):
    whole = {one.spec: one for one in WAYS[way]().train(SPECS[:3])}
    for after in epochs:
        checkpoints, done = Memory(), []
        trainer = WAYS[way](monitor=Watcher(after), checkpoints=checkpoints)
        try:
            done += trainer.train(SPECS[:3])
        except Interrupted:
            left = [one for one in SPECS[:3] if one not in {round_.spec for round_ in done}]
            assert left
            done += WAYS[way](checkpoints=checkpoints).train(left)
        assert len(done) == 3
        assert all(same(one, whole[one.spec]) for one in done)
        assert not checkpoints.kept


@pytest.mark.parametrize("way", WAYS)
def test_checkpoints_by_the_way_change_nothing(way):
    checkpoints = Memory()
    plain = list(WAYS[way]().train(SPECS[:2]))
    saved = list(WAYS[way](checkpoints=checkpoints, checkpoint_every=0).train(SPECS[:2]))
    assert all(same(a, b) for a, b in zip(plain, saved, strict=True))
    assert set(checkpoints.dropped) == set(SPECS[:2])


def test_a_round_that_has_to_go_on_in_another_way_is_started_over(monkeypatch, caplog):
    """As on a GPU whose compiler fails the second time: one way's state means nothing to others."""
    checkpoints = Memory()
    with pytest.raises(Interrupted):
        list(WAYS["stacked"](monitor=Watcher(1), checkpoints=checkpoints).train(SPECS[:1]))
    stepping = RoundGroups.stepper

    def alone(self, group, specs):
        return stepping(self, dataclasses.replace(group, layers=None), specs)

    monkeypatch.setattr(RoundGroups, "stepper", alone)
    (over,) = WAYS["stacked"](checkpoints=checkpoints).train(SPECS[:1])
    (fresh,) = WAYS["stacked"]().train(SPECS[:1])
    assert same(over, fresh)
    assert re.search(naming("round 0 of", "another training", "over"), caplog.text)


@pytest.mark.parametrize("way", ["stacked", "stacked pictures"])
def test_a_stacked_round_does_not_depend_on_the_number_of_threads(way):
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(next(iter(WAYS[way]().train(SPECS[:1]))))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert same(*found)


@settings(max_examples=12)
@given(
    inputs=st.integers(1, 40),
    hidden=st.lists(st.integers(1, 70), max_size=2),
    batch=st.integers(1, 40),
    width=st.integers(2, 9),
)
def test_no_shape_of_a_stack_shows_in_its_bits(inputs, hidden, batch, width):
    trainer = TorchTrainer(
        stream_of(blobs(60, width=inputs)),
        model=functools.partial(mlp, hidden=hidden),
        batch_size=batch,
        device="cpu",
    )
    specs = [spec(i, epochs=2, generation=1 + i % 2) for i in range(width)]
    together = {one.spec: one for one in trainer.train(specs)}
    for one in (specs[0], specs[-1]):
        (alone,) = trainer.train([one])
        assert same(alone, together[one])


def test_more_rounds_than_fit_take_turns(monkeypatch):
    monkeypatch.setattr(stacked, "MOST_LANES", 2)
    few = {one.spec: one for one in WAYS["stacked"]().train([*SPECS[:2], spec(7), spec(8)])}
    monkeypatch.undo()
    many = {one.spec: one for one in WAYS["stacked"]().train([*SPECS[:2], spec(7), spec(8)])}
    assert len(few) == 4
    assert all(same(few[one], many[one]) for one in few)


def test_training_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    list(WAYS["alone"]().train(SPECS[:1]))
    assert torch.equal(torch.rand(3), expected)


def test_rounds_that_differ_in_anything_start_and_split_differently():
    trainer = WAYS["stacked"]()
    specs = [spec(0), spec(1), spec(0, seed=1), spec(0, epochs=5)]
    scores = [one.scores["test"][0] for one in trainer.train(specs)]
    for i in range(len(scores)):
        for j in range(i):
            assert not np.array_equal(scores[i], scores[j])


@pytest.mark.parametrize("other", [{"loss": nn.CrossEntropyLoss}, {"optimizer": torch.optim.Adam}])
def test_stacked_and_alone_are_the_same_training(other):
    stacks = TorchTrainer(BLOBS, model=DENSE, batch_size=16, device="cpu")
    # What a caller hands in is not looked into, so these go one after another, through autograd.
    alone = TorchTrainer(BLOBS, model=DENSE, batch_size=16, device="cpu", **other)
    specs = [spec(0, epochs=6), spec(1, generation=2, kind="cyclic", epochs=6)]
    ours = {one.spec: one for one in stacks.train(specs)}
    for theirs in alone.train(specs):
        assert np.allclose(ours[theirs.spec].curve, theirs.curve, atol=0.03)
        scores = ours[theirs.spec].scores["test"]
        assert np.allclose(scores, theirs.scores["test"], atol=2e-4)
