"""How many rows of each class learners are trained on, for those who read their predictions."""

import dataclasses

import numpy as np

from dynsnap._types import AnyArray
from dynsnap.data._pool import Pool, Stream
from dynsnap.metrics import majority_classes

TRAINING_ROWS = "training rows"


def training_rows(stream: Stream) -> AnyArray:
    """How many rows of each class a round of each generation learns from: (generations, classes).

    Example:
        >>> from dynsnap.data import digits_stream
        >>> training_rows(digits_stream())[:, 5:8].tolist()
        [[18, 0, 6], [22, 0, 7], [22, 29, 7]]
    """
    labels, classes = stream.pool.labels, len(stream.pool.classes)
    held = [np.bincount(labels[rows], minlength=classes) for rows in stream.generations]
    return np.stack(held) - np.stack(stream.validation)


def with_training_rows(stream: Stream) -> Stream:
    """The stream with a slice that tells inputs of majority and of minority classes apart.

    Held-out sets are often balanced where the training rows are not, so only the slice "training
    rows" can tell. It goes by the rows of the last generation, see `metrics.majority_classes`;
    where classes are equally frequent there is none.
    """
    rows = training_rows(stream)[-1]
    majority = majority_classes(rows)
    if majority[rows > 0].all():
        return stream
    names = np.where(majority, "majority", "minority")
    return dataclasses.replace(
        stream,
        evaluation={name: _sliced(pool, names) for name, pool in stream.evaluation.items()},
    )


def _sliced(pool: Pool, names: AnyArray) -> Pool:
    # A column of that name that the data brings is the user's own.
    return dataclasses.replace(pool, slices={TRAINING_ROWS: names[pool.labels], **pool.slices})
