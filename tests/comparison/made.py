"""Generations made at random, with a grain of sense in them."""

import numpy as np

from dynsnap.predictions import Predictions, align


def generations(
    *, rows=200, classes=5, count=2, seed=0, truth=True, scores=True, kind=np.float32, **parts
):
    """Predictions of the same inputs: right more often than not, and drifting."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, rows)
    logits = rng.standard_normal((rows, classes)) * 2
    logits[np.arange(rows), true] += 2
    made = []
    for _ in range(count):
        odds = np.exp(logits + rng.standard_normal((rows, classes)))
        shares = (odds / odds.sum(axis=1, keepdims=True)).astype(kind)
        made.append(
            Predictions(
                ids=[f"i{row}" for row in range(rows)],
                classes=[f"c{place}" for place in range(classes)],
                scores=shares if scores else None,
                labels=None if scores else shares.argmax(axis=1),
                truth=true if truth else None,
                **parts,
            )
        )
    return made


class Blocks:
    """Aligned generations, a few rows at a time."""

    def __init__(self, *generations, step, names=None):
        self.aligned = align(*generations, names=names)
        self.step = step

    @property
    def classes(self):
        return self.aligned.classes

    @property
    def report(self):
        return self.aligned.report

    def __iter__(self):
        for first in range(0, self.report.shared, self.step):
            yield tuple(each.slice(first, first + self.step) for each in self.aligned.generations)
