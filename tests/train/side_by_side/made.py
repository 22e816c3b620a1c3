"""Rounds to be trained both ways."""

import dataclasses

import numpy as np
import torch

from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.train._distillation import RoundTargets
from dynsnap.train._drive import CheckpointSaver, drive
from dynsnap.train._lockstep import Lockstep, RoundState
from dynsnap.train.side_by_side import SideBySideStepper
from dynsnap.train.side_by_side._feed import feed_of
from dynsnap.train.side_by_side._network import NO_OTHERS, Losses, NetworkSettings


def round_(context, spec, targets=None):
    rows = np.arange(spec.generation * 20)
    return RoundState(
        spec=spec,
        train=rows,
        validation=np.arange(70, 88 + spec.index % 2),
        batch=16,
        prepared=context.prepare.fit(context.inputs, rows),
        targets=targets,
    )


def lessons():
    """The rounds of `specs`, each with another loss: two teachers, averages, smoothed labels."""
    first, second, third, fourth = specs()
    smoothed = dataclasses.replace(third.recipe, smoothing=0.2)
    averaged = dataclasses.replace(fourth.recipe, average=0.9, smoothing=0.1)
    both = dataclasses.replace(second.recipe, average=0.8)
    rounds = [
        first,
        dataclasses.replace(second, recipe=both),
        dataclasses.replace(third, recipe=smoothed),
        dataclasses.replace(fourth, recipe=averaged),
    ]
    targets = {
        rounds[0]: soft(1, weight=0.8, temperature=2.0),
        rounds[1]: soft(2, weight=0.5, wrong=True),
        rounds[2]: soft(3, weight=0.7, everywhere=True),
    }
    return rounds, targets


def soft(seed, *, weight, temperature=1.0, wrong=False, everywhere=False):
    """Scores of a teacher that does not know every row, unless it is `everywhere`."""
    rng = np.random.default_rng(seed)
    known = np.ones(90) if everywhere else rng.random(90) < 0.7
    return RoundTargets(
        scores=torch.from_numpy(rng.dirichlet(np.ones(3), 90).astype(np.float32)),
        weights=torch.from_numpy((weight * known).astype(np.float32)),
        temperature=temperature,
        wrong=wrong,
        everywhere=everywhere,
    )


ALL_LOSSES = Losses(taught=True, smoothed=True, averaged=True)


def specs():
    """Rounds of different sizes, lengths and schedules; more than there are places."""
    step = Recipe(schedule=Schedule("step"), epochs=3, snapshots=2)
    cyclic = Recipe(schedule=Schedule("cyclic"), epochs=4, snapshots=2, selection="window")
    return [
        RoundSpec(recipe=recipe, generation=generation, index=index)
        for recipe, generation, index in ((step, 1, 0), (cyclic, 3, 0), (step, 2, 0), (step, 1, 1))
    ]


def trained(context, stepper, rounds, targets=None):
    """The rounds when they are done; `targets` are those of some, by spec."""
    taught = targets or {}
    lockstep = Lockstep(
        rounds, lambda spec: round_(context, spec, taught.get(spec)), width=stepper.width
    )
    saver = CheckpointSaver(checkpoints=None, every=1e9, owner="")
    return {done.spec: done for done in drive(lockstep, stepper, saver=saver, monitor=None)}


def beside(context, *, grouped, width=2, losses=NO_OTHERS):
    """A stepper for rounds of a context, uncompiled."""
    settings = NetworkSettings(
        batch_size=16,
        optimizer=context.optimizer,
        feed=feed_of(context),
        precision=context.precision,
        compiled=False,
        classes=context.blueprint.classes,
        losses=losses,
    )
    return SideBySideStepper(
        context, context.blueprint.build(), settings, width=width, rows=64, grouped=grouped
    )


def assert_same(one, other):
    """The rounds were trained alike, but for rounding."""
    assert other.curve == one.curve
    assert list(other.kept) == list(one.kept)
    for epoch, weights in one.kept.items():
        for name, value in weights.items():
            if value.is_floating_point():
                torch.testing.assert_close(other.kept[epoch][name], value, rtol=2e-4, atol=2e-6)
