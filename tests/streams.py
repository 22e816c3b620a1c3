"""Streams that are quick to train on."""

import dataclasses

from dynsnap.data import digits, digits_growth, grow


def small_stream(**growth):
    """The digits of `digits_stream`, every third of them, in 4 by 4 pixels.

    Args:
        growth: What grows in another way than in `digits_growth`.
    """
    pool = digits().train
    coarse = dataclasses.replace(pool, inputs=pool.inputs[:, ::2, ::2].copy())
    plan = dataclasses.replace(digits_growth(), **growth)
    return grow(coarse.take(range(0, len(pool.labels), 3)), plan)
