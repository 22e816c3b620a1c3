"""Rounds to be trained both ways."""

import functools

import numpy as np

from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.train._drive import Saver, drive
from dynsnap.train._lane import Lane
from dynsnap.train._lockstep import Lockstep


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
