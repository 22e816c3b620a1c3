"""Digits with names, in two generations: the second brings the sixes."""

import functools

import numpy as np
from sklearn.datasets import load_digits

NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six"])


@functools.cache
def digits():
    """((X, y) of the first generation, (X, y) of what comes later, (X, y) to test on)."""
    inputs, labels = load_digits(n_class=7, return_X_y=True)
    names = NAMES[labels]
    first = np.flatnonzero(labels[:500] != 6)
    return (
        (inputs[first], names[first]),
        (inputs[500:800], names[500:800]),
        (inputs[800:], names[800:]),
    )


@functools.cache
def blobs(classes, rows):
    """(X, y): well separated clouds of points, one per letter."""
    rng = np.random.default_rng(7)
    labels = rng.integers(0, classes, rows)
    centres = 3.0 * rng.standard_normal((classes, 5))
    inputs = centres[labels] + rng.standard_normal((rows, 5))
    return inputs, np.array(list("abcdefgh"))[labels]
