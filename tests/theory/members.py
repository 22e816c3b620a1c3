"""Members of two generations, drawn at random."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

ORDERS = st.sampled_from([1, 1.3, 2, 3, 10, float("inf")])
numbers = st.integers(-80, 80).map(lambda n: n / 8) | st.floats(-1e3, 1e3)


@st.composite
def pairs(draw, min_members=1, max_members=5):
    """Old and new members and true vectors: any real numbers, one column included."""
    members = draw(st.integers(min_members, max_members))
    inputs, classes = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    scores = hnp.arrays(np.float64, (members, inputs, classes), elements=numbers)
    return (
        draw(scores),
        draw(scores),
        draw(hnp.arrays(np.float64, (inputs, classes), elements=numbers)),
    )


def member_weights(members):
    values = hnp.arrays(np.float64, members, elements=st.integers(0, 9).map(float))
    return values.filter(lambda weights: weights.any())


def distance(a, b, order):
    """Of each input, by numpy's own norm."""
    return np.linalg.norm(np.asarray(a) - b, ord=order, axis=-1)


def correct(a, b, r, order):
    return distance(a, b, order) + distance(a, r, order) + distance(b, r, order)
