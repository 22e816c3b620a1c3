"""What fails in the middle of a training is one clear line, and what was finished is kept."""

import logging
import re

import pytest
import torch

from dynsnap.ensemble import train_rounds
from dynsnap.errors import PlanError, TrainingError
from dynsnap.train import TorchTrainer
from dynsnap.train._round_groups import RoundGroups
from dynsnap.train.models import cnn, mlp
from dynsnap.train.side_by_side import _choice as choice
from tests.messages import naming
from tests.train.made import blobs, pictures, spec, stream_of

SPECS = [spec(index, epochs=2) for index in range(4)]


class Failing:
    """A stepper whose device fails after so many stretches of steps."""

    width = 1

    def __init__(self, inner, error, after):
        self._inner, self._error, self._left = inner, error, after

    def advance(self, rounds, steps, /):
        if self._left == 0:
            raise self._error
        self._left -= 1
        self._inner.advance(rounds, steps)

    def __getattr__(self, name):
        return getattr(self._inner, name)


class Memory(dict):
    """A store of rounds in memory."""

    def get(self, key, spec, /):
        return super().get(key)

    def put(self, key, done, /):
        self[key] = done


def failing(monkeypatch, error, *, after):
    trainer = TorchTrainer(stream_of(pictures()), model=cnn, batch_size=16, device="cpu")
    usual = RoundGroups.stepper
    made = lambda *args, **more: Failing(usual(*args, **more), error, after)  # noqa: E731
    monkeypatch.setattr(RoundGroups, "stepper", made)
    return trainer


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            RuntimeError("CUDA error: an illegal memory access was encountered\nCUDA kernel ..."),
            naming(
                "1 rounds", "round 2", r": CUDA error: an illegal memory access was encountered\.$"
            ),
        ),
        (torch.OutOfMemoryError("CUDA out of memory. Tried"), "CUDA out of memory.*`batch_size`"),
    ],
)
def test_a_device_that_fails_in_the_middle_leaves_what_was_finished(error, message, monkeypatch):
    store = Memory()
    trainer = failing(monkeypatch, error, after=5)  # two rounds of two epochs, and one epoch
    with pytest.raises(TrainingError, match=message) as caught:
        train_rounds(SPECS, trainer, store=store)
    assert "\n" not in str(caught.value)
    assert {done.spec for done in store.values()} == set(SPECS[:2])
    monkeypatch.undo()
    asked = []
    usual = trainer.train
    monkeypatch.setattr(trainer, "train", lambda specs: asked.extend(specs) or usual(specs))
    done = train_rounds(SPECS, trainer, store=store)
    assert asked == SPECS[2:]
    assert [one.spec for one in done] == SPECS


def test_a_device_that_is_not_there_is_refused_before_anything_is_read():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(PlanError, match=r"no device 'cuda'\. Use `device=\"auto\"`"):
        TorchTrainer(stream_of(blobs()), model=mlp, device="cuda")


class Narrow:
    """Stands in for a stepper that needs so much room that only some rounds fit."""

    most = 3

    def __init__(self, context, module, settings, *, width, rows, grouped):
        if width > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        self.width = width


def chosen(wanted):
    trainer = TorchTrainer(stream_of(pictures()), model=cnn, batch_size=16, device="cpu")
    return choice.side_by_side(
        trainer._context,
        trainer._context.blueprint.build,
        batch_size=16,
        rows=100,
        wanted=wanted,
        grouped=True,
    )


def test_too_little_memory_means_fewer_side_by_side_and_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(choice, "SideBySideStepper", Narrow)
    with caplog.at_level(logging.WARNING, logger="dynsnap.train"):
        assert chosen(12).width == 3
        assert chosen(2).width == 2
    (said,) = caplog.messages
    assert re.search(naming("GPU", "12 rounds", "3"), said)


def test_too_little_memory_for_one_round_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(choice, "SideBySideStepper", Narrow)
    monkeypatch.setattr(Narrow, "most", 0)
    with pytest.raises(
        TrainingError, match=naming("single round", "`batch_size`", '`device = "cpu"`')
    ):
        chosen(5)


def test_a_module_that_cannot_be_captured_is_trained_alone_and_that_is_said(monkeypatch, caplog):
    def refuse(*_, **__):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(choice, "SideBySideStepper", refuse)
    with caplog.at_level(logging.WARNING, logger="dynsnap.train"):
        assert chosen(5) is None
    (said,) = caplog.messages
    assert re.search(
        naming("captured", r"\(operation not permitted.*\)", "one after another"), said
    )
