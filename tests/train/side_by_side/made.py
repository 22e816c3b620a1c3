"""Rounds to be trained both ways."""

import functools

import numpy as np

from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.train._drive import CheckpointSaver, drive
from dynsnap.train._lockstep import Lockstep
from dynsnap.train._round_state import RoundState
from dynsnap.train.side_by_side._feed import feed_of
from dynsnap.train.side_by_side._network import Settings
from dynsnap.train.side_by_side._stepper import SideBySideStepper


def lane(context, spec):
    rows = np.arange(spec.generation * 20)
    return RoundState(
        spec=spec,
        train=rows,
        validation=np.arange(70, 88 + spec.index % 2),
        batch=16,
        prepared=context.prepare.fit(context.inputs, rows),
    )


def specs():
    """Rounds of different sizes, lengths and schedules; more than there are places."""
    step = Recipe(schedule=Schedule("step"), epochs=3, snapshots=2)
    cyclic = Recipe(schedule=Schedule("cyclic"), epochs=4, snapshots=2, selection="window")
    return [
        RoundSpec(recipe=recipe, generation=generation, index=index)
        for recipe, generation, index in ((step, 1, 0), (cyclic, 3, 0), (step, 2, 0), (step, 1, 1))
    ]


def trained(context, stepper, rounds):
    lockstep = Lockstep(rounds, functools.partial(lane, context), width=stepper.width)
    saver = CheckpointSaver(checkpoints=None, every=1e9, owner="")
    return {done.spec: done for done in drive(lockstep, stepper, saver=saver, monitor=None)}


def beside(context, *, grouped, width=2):
    """A stepper for rounds of a context, uncompiled."""
    settings = Settings(
        batch_size=16,
        optimizer=context.optimizer,
        feed=feed_of(context),
        precision=context.precision,
        compiled=False,
        distillation=context.distillation,
    )
    return SideBySideStepper(
        context, context.blueprint.build(), settings, width=width, rows=64, grouped=grouped
    )
