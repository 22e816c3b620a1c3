"""A small real stream: digits 0 to 3, of which the last arrives in the second generation."""

import functools

import numpy as np
from sklearn.datasets import load_digits

from dynsnap.data import Pool, Stream


@functools.cache
def digits() -> Stream:
    inputs, labels = load_digits(n_class=4, return_X_y=True)
    names = ("zero", "one", "two", "three")
    pool = Pool(name="digits", inputs=inputs, labels=labels, classes=names, ids=np.arange(720))
    learn, test = np.arange(0, 480), np.arange(480, 720)
    early = learn[labels[learn] != 3]
    return Stream(
        pool=pool.take(learn),
        generations=(early, learn),
        validation=(np.array([25, 25, 25, 0]), np.array([25, 25, 25, 25])),
        evaluation={"test": pool.take(test), "late": pool.take(test[labels[test] == 3])},
        late=("three",),
    )
