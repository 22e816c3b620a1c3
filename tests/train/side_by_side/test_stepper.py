"""Side by side is the same training as alone: lockstep and arithmetic, without a GPU."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dynsnap.train import Adam, Pixels, ShiftsAndFlips
from dynsnap.train._alone import AloneStepper
from dynsnap.train._context import TrainingContext
from dynsnap.train._factory import Blueprint
from dynsnap.train.side_by_side._feed import augmented_images, plain_images
from dynsnap.train.side_by_side._network import Losses
from tests.train.side_by_side.made import (
    ALL_LOSSES,
    assert_same,
    beside,
    lessons,
    round_,
    specs,
    trained,
)

ADAM = Adam(eps=1e-7, kernel_penalty=1e-4)
AUGMENT = ShiftsAndFlips()


class Tiny(nn.Module):
    """A network without a bias before batch norm: Adam would blow its rounding noise up."""

    def __init__(self, classes, dropout=0.0):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(8, classes)

    def forward(self, images):
        hidden = functional.relu(self.norm(self.first(images)))
        hidden = functional.relu(self.second(hidden)).mean((2, 3))
        return self.output(self.dropout(hidden))


@pytest.fixture
def context():
    rng = np.random.default_rng(0)
    prepare = Pixels()
    images = prepare.encode(rng.integers(0, 256, (90, 8, 8, 3), dtype=np.uint8))
    return TrainingContext(
        device=torch.device("cpu"),
        precision=torch.float32,
        blueprint=Blueprint(factory=Tiny, classes=3, offers={"inputs": (3, 8, 8)}),
        prepare=prepare,
        inputs=images,
        labels=torch.from_numpy(rng.integers(0, 3, 90)),
        optimizer=ADAM,
        learning_rate=1e-2,
        augment=AUGMENT,
        parents=None,
    )


# As one network every day; on streams of their own too in the first test and in `make test-slow`.
GROUPED = [True, pytest.param(False, marks=pytest.mark.slow)]


@pytest.mark.parametrize("grouped", [True, False])
def test_a_round_side_by_side_is_the_round_alone(context, grouped):
    alone = trained(context, AloneStepper(context, loss=functional.cross_entropy), specs())
    together = trained(context, beside(context, grouped=grouped), specs())
    assert list(together) != list(alone), "the short ones should overtake the long one"
    for spec, one in alone.items():
        assert_same(one, together[spec])


@pytest.mark.parametrize("grouped", GROUPED)
def test_rounds_with_teachers_and_averages_of_their_own_are_the_rounds_alone(context, grouped):
    rounds, targets = lessons()
    stepper = AloneStepper(context, loss=functional.cross_entropy)
    alone = trained(context, stepper, rounds, targets)
    many = beside(context, grouped=grouped, losses=ALL_LOSSES)
    together = trained(context, many, rounds, targets)
    for spec, one in alone.items():
        assert_same(one, together[spec])


@pytest.mark.parametrize("grouped", GROUPED)
def test_a_plain_round_among_others_is_the_round_among_its_like(context, grouped):
    rounds, targets = lessons()
    plain = specs()[3]
    usual = trained(context, beside(context, grouped=grouped), [plain])[plain]
    many = beside(context, grouped=grouped, losses=ALL_LOSSES, width=4)
    mixed = trained(context, many, [*rounds[:3], plain], targets)[plain]
    assert_same(usual, mixed)


@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.5])
def test_who_else_is_there_does_not_matter(context, dropout):
    (first, *others) = specs()
    first = dataclasses.replace(first, recipe=dataclasses.replace(first.recipe, dropout=dropout))
    rounds = [*others, first] if dropout else [first, *others]  # in another place
    crowd = trained(context, beside(context, grouped=True, width=4), rounds)[first]
    pair = trained(context, beside(context, grouped=True, width=3), [first])[first]
    assert crowd.curve == pair.curve
    for epoch, weights in pair.kept.items():
        for name, value in weights.items():
            torch.testing.assert_close(crowd.kept[epoch][name], value, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("average", [0.0, 0.9])
@pytest.mark.parametrize("grouped", [True, False])
def test_a_round_goes_on_from_where_it_was_saved(context, grouped, average):
    (spec, *_) = specs()
    spec = dataclasses.replace(spec, recipe=dataclasses.replace(spec.recipe, average=average))
    losses = Losses(averaged=average > 0)
    stepper = beside(context, grouped=grouped, losses=losses)
    running = round_(context, spec)
    stepper.admit(running, None)
    stepper.advance([running], running.steps)
    running.epoch += 1
    saved, before = stepper.state(running), stepper.weights(running)
    stepper.advance([running], running.steps)
    after = stepper.weights(running)

    fresh = round_(context, spec)
    fresh.epoch = 1
    again = beside(context, grouped=grouped, losses=losses)
    again.admit(fresh, saved)
    for name, value in again.weights(fresh).items():
        if value.is_floating_point():
            torch.testing.assert_close(value, before[name])
    # The first stepper still had the first epoch's rows in place: lay out the second's.
    again.advance([fresh], fresh.steps)
    stepper.release(running)
    stepper.admit(running, saved)
    stepper.advance([running], running.steps)
    for name, value in again.weights(fresh).items():
        if value.is_floating_point():
            torch.testing.assert_close(value, stepper.weights(running)[name])
    assert any(not torch.equal(after[name], before[name]) for name in after)


def test_a_round_that_diverges_is_reported_and_the_others_are_not(context):
    stepper = beside(context, grouped=True)
    good, bad = (round_(context, spec) for spec in (specs()[0], specs()[3]))
    stepper.admit(good, None)
    stepper.admit(bad, None)
    net, place = stepper._slot[bad]
    net.views(place)["output.weight"].fill_(torch.nan)
    stepper.advance([good, bad], 1)
    accuracies = stepper.validate([good, bad])
    assert 0 <= accuracies[0] <= 1
    assert np.isnan(accuracies[1])


def test_the_gathered_batch_is_what_preparation_and_augmentation_give(context):
    pool = context.inputs.values
    mean = torch.rand(2, 3, 8, 8)
    rows = torch.tensor([[3, 1, 4], [1, 5, 9]])
    draws = torch.stack(
        [torch.rand(3, 3, generator=torch.Generator().manual_seed(place)) for place in range(2)]
    )
    gathered = augmented_images(pool, mean, rows, draws, shift=0.1, flip=True).view(2, 3, 3, 8, 8)
    still = plain_images(pool, mean, rows).view(2, 3, 3, 8, 8)
    for place in range(2):
        images = context.prepare.apply(pool[rows[place]], {"mean": mean[place]})
        torch.testing.assert_close(still[place], images)
        alone = AUGMENT(images, torch.Generator().manual_seed(place))
        torch.testing.assert_close(gathered[place], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("grouped", GROUPED)
def test_the_last_rounds_move_closer_together_and_do_not_notice(context, monkeypatch, grouped):
    rounds, targets = lessons()
    first, how = rounds[1], {"grouped": grouped, "losses": ALL_LOSSES, "width": 4}
    usual = trained(context, beside(context, **how), rounds, targets)[first]
    stepper = beside(context, **how)
    monkeypatch.setattr(stepper, "_pays", lambda rounds: True)  # as if building took no time at all
    moved = trained(context, stepper, rounds, targets)[first]
    assert stepper.width == len(stepper._nets) == 1
    assert moved.curve == usual.curve
    for epoch, weights in usual.kept.items():
        for name, value in weights.items():
            torch.testing.assert_close(moved.kept[epoch][name], value, rtol=1e-5, atol=1e-7)
