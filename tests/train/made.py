"""Small made data, and stand-ins for those who watch a training."""

import numpy as np

from dynsnap.data import Pool, from_generations
from dynsnap.ensemble import Recipe, RoundSpec, Schedule


def blobs(rows=150, width=6, classes=3, seed=0):
    """Points around one centre per class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    centres = rng.normal(size=(classes, width))
    inputs = (centres[labels] + rng.normal(size=(rows, width))).astype(np.float32)
    return _pool("blobs", inputs, labels, classes)


def pictures(rows=90, side=8, channels=1, classes=3, seed=0):
    """Bytes in which each class has its own bright corner."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    inputs = rng.integers(0, 120, (rows, side, side, channels))
    for row, label in enumerate(labels):
        inputs[row, label * 2 : label * 2 + 2] += 100
    return _pool("pictures", inputs.astype(np.uint8), labels, classes)


def sentences(rows=60, seed=0, classes=2):
    """Texts in which each class has its own words."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    words = np.array([["red", "warm", "fire"], ["blue", "cold", "ice"], ["moon", "star", "night"]])
    texts = [
        " ".join([*rng.choice(words[label], 3), *rng.choice(["the", "of", "and"], 2)])
        for label in labels
    ]
    return _pool("sentences", np.array(texts, dtype=object), labels, classes)


def stream_of(pool, generations=2):
    """The pool as a stream that grows to its whole; it is its own test set."""
    sizes = [len(pool) * (i + 1) // generations for i in range(generations)]
    cuts = [np.arange(size) for size in sizes]
    return from_generations(pool, cuts, test=pool, validation=0.25)


def recipe(kind="step", epochs=4, snapshots=2, **settings):
    selection = "window" if kind == "cyclic" else "top"
    return Recipe(
        schedule=Schedule(kind),
        epochs=epochs,
        snapshots=snapshots,
        selection=selection,
        **settings,
    )


def spec(index=0, generation=1, seed=0, parent=None, **settings):
    return RoundSpec(
        recipe=recipe(**settings), generation=generation, index=index, seed=seed, parent=parent
    )


def same(a, b):
    """Whether two rounds are equal in every bit that does not measure time."""
    return (
        a.spec == b.spec
        and a.weights == b.weights
        and a.accuracy.tobytes() == b.accuracy.tobytes()
        and a.epochs.tolist() == b.epochs.tolist()
        and a.curve.tobytes() == b.curve.tobytes()
        and a.scores.keys() == b.scores.keys()
        and all(a.scores[name].tobytes() == b.scores[name].tobytes() for name in a.scores)
    )


class Memory:
    """Checkpoints in memory."""

    def __init__(self):
        self.kept = {}
        self.dropped = []

    def load(self, spec, /):
        return self.kept.get(spec)

    def save(self, spec, state, /):
        self.kept[spec] = state

    def drop(self, spec, /):
        self.dropped.append(spec)
        self.kept.pop(spec, None)


class Watcher:
    """Notes every epoch, and stops after so many of them."""

    def __init__(self, after=None):
        self.after = after
        self.seen = []

    def epoch_done(self, spec, epoch, accuracy, /):
        self.seen.append((spec, epoch, accuracy))

    def stopping(self):
        return self.after is not None and len(self.seen) >= self.after


def _pool(name, inputs, labels, classes):
    return Pool(
        name=name,
        inputs=inputs,
        labels=labels.astype(np.int64),
        classes=tuple("abcdefghij"[:classes]),
        ids=np.arange(len(labels)),
    )
