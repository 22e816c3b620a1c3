"""What hypothesis draws from, in one place."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


@st.composite
def three_labellings(draw, max_inputs=40, max_classes=5):
    """An old labelling, a new one and the truth, of the same inputs."""
    inputs = draw(st.integers(1, max_inputs))
    classes = draw(st.integers(1, max_classes))
    labels = hnp.arrays(np.int64, inputs, elements=st.integers(0, classes - 1))
    return draw(labels), draw(labels), draw(labels)


@st.composite
def score_rows(draw, inputs=None, classes=None, max_inputs=20, max_classes=5):
    """Rows of scores that sum to one, with ties and zeros among them."""
    inputs = inputs or draw(st.integers(1, max_inputs))
    classes = classes or draw(st.integers(2, max_classes))
    shares = hnp.arrays(np.int64, (inputs, classes), elements=st.integers(0, 8))
    raw = draw(shares).astype(float)
    raw[raw.sum(axis=1) == 0, 0] = 1
    return raw / raw.sum(axis=1, keepdims=True)


@st.composite
def scored_pairs(draw, max_inputs=12, max_classes=5):
    """Old scores, new scores and the truth, of the same inputs and classes."""
    inputs = draw(st.integers(1, max_inputs))
    classes = draw(st.integers(2, max_classes))
    rows = score_rows(inputs=inputs, classes=classes)
    truth = hnp.arrays(np.int64, inputs, elements=st.integers(0, classes - 1))
    return draw(rows), draw(rows), draw(truth)


def input_weights(inputs):
    """The importance of each input; some are 0, never all."""
    values = hnp.arrays(np.float64, inputs, elements=st.integers(0, 4).map(float))
    return values.filter(lambda weights: weights.any())


def names(max_size=6):
    """Text that may name a class or an input: anything but control characters."""
    allowed = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
    return st.text(allowed, min_size=1, max_size=max_size)


@st.composite
def predictions(draw, max_inputs=8, classes=None, ids=None):
    """Sound predictions of any shape: with and without scores, truth, weights and slices."""
    from dynsnap.predictions import Predictions

    if ids is None:
        kind = draw(st.sampled_from([st.integers(-(2**63), 2**63 - 1), names()]))
        ids = draw(st.lists(kind, min_size=1, max_size=max_inputs, unique=True))
    if classes is None:
        classes = draw(st.lists(names(), min_size=1, max_size=5, unique=True))
    inputs = len(ids)
    positions = hnp.arrays(np.int32, inputs, elements=st.integers(0, len(classes) - 1))
    scores = None
    if draw(st.booleans()):
        width = draw(st.sampled_from([np.float32, np.float64]))
        scores = draw(score_rows(inputs=inputs, classes=len(classes))).astype(width)
    taken = {"id", "truth", "label", "scores", "weight", "classes", "positions"}
    column = names().filter(lambda name: name not in taken)
    value = names() | st.none()
    values = st.lists(value, min_size=inputs, max_size=inputs).filter(any)
    return Predictions(
        ids=ids,
        classes=classes,
        scores=scores,
        labels=draw(positions) if scores is None or draw(st.booleans()) else None,
        truth=draw(st.none() | positions),
        slices=draw(st.dictionaries(column, values, max_size=2)),
        weights=draw(st.none() | input_weights(inputs)),
        positions=True,
    )


@st.composite
def generations(draw, max_inputs=30, max_classes=5, width=None):
    """Two to four sound predictions of the same inputs, lined up already."""
    from dynsnap.predictions import Predictions, align

    inputs, classes = draw(st.integers(1, max_inputs)), draw(st.integers(1, max_classes))
    positions = hnp.arrays(np.int32, inputs, elements=st.integers(0, classes - 1))
    shared = {
        "ids": np.arange(inputs),
        "classes": [f"c{place}" for place in range(classes)],
        "truth": draw(st.none() | positions),
        "weights": draw(st.none() | input_weights(inputs)),
        "slices": {"half": np.arange(inputs) * 2 // inputs} if draw(st.booleans()) else None,
    }
    made = []
    for _ in range(draw(st.integers(2, 4))):
        kind = draw(st.sampled_from([np.float32, np.float64])) if width is None else width
        scores = draw(st.none() | score_rows(inputs=inputs, classes=classes))
        scores = None if scores is None else scores.astype(kind)
        labels = draw(positions) if scores is None or draw(st.booleans()) else None
        made.append(Predictions(scores=scores, labels=labels, **shared))
    return align(*made).generations
