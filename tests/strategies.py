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
