"""Rounds to be trained both ways."""

import functools

import numpy as np

from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.train._drive import Saver, drive
from dynsnap.train._lane import Lane
from dynsnap.train._lockstep import Lockstep
from dynsnap.train.side_by_side._feed import feed_of
from dynsnap.train.side_by_side._network import Settings
from dynsnap.train.side_by_side._stepper import SideBySideStepper


def lane(workshop, spec):
    rows = np.arange(spec.generation * 20)
    return Lane(
        spec=spec,
        train=rows,
        validation=np.arange(70, 88 + spec.index % 2),
        batch=16,
        prepared=workshop.prepare.fit(workshop.inputs, rows),
    )


def specs():
    """Rounds of different sizes, lengths and schedules; more than there are places."""
    step = Recipe(schedule=Schedule("step"), epochs=3, snapshots=2)
    cyclic = Recipe(schedule=Schedule("cyclic"), epochs=4, snapshots=2, selection="window")
    return [
        RoundSpec(recipe=recipe, generation=generation, index=index)
        for recipe, generation, index in ((step, 1, 0), (cyclic, 3, 0), (step, 2, 0), (step, 1, 1))
    ]


def trained(workshop, stepper, rounds):
    lockstep = Lockstep(rounds, functools.partial(lane, workshop), width=stepper.width)
    saver = Saver(checkpoints=None, every=1e9, owner="")
    return {done.spec: done for done in drive(lockstep, stepper, saver=saver, monitor=None)}


def beside(workshop, *, grouped, width=2):
    """A stepper for rounds of a workshop, uncompiled."""
    settings = Settings(
        batch_size=16,
        optimizer=workshop.optimizer,
        feed=feed_of(workshop),
        precision=workshop.precision,
        compiled=False,
        teaching=workshop.teaching,
    )
    return SideBySideStepper(
        workshop, workshop.blueprint.build(), settings, width=width, rows=64, grouped=grouped
    )
