"""Streams that are quick to train on."""

import dataclasses

from dynsnap.data import digits, digits_growth, grow


def small_stream(late=None):
    """The digits of `digits_stream`, every third of them, in 4 by 4 pixels.

    Args:
        late: The digits that come late, and the generation that brings them.
    """
    pool = digits().train
    coarse = dataclasses.replace(pool, inputs=pool.inputs[:, ::2, ::2].copy())
    plan = digits_growth()
    if late is not None:
        plan = dataclasses.replace(plan, late=late)
    return grow(coarse.take(range(0, len(pool.labels), 3)), plan)
