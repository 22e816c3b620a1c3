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
