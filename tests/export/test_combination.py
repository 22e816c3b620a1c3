"""The combination as operators of ONNX, against `combine`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.ensemble import COMBINATIONS, combine

pytestmark = pytest.mark.slow  # it loads ONNX

NAMES = tuple("abcde")


def run_graph(scores, *, how, weights, known):
    import onnxruntime
    from onnx import TensorProto, helper

    from dynsnap.export import _graph

    members, _, classes = scores.shape
    graph = _graph.GraphBuilder()
    own = [
        graph.op("Gather", "inputs", graph.constant(number, np.int64), axis=1)
        for number in range(members)
    ]
    combined = _graph.combination(
        graph, own, classes=classes, how=how, weights=weights, known=known
    )
    feed = helper.make_tensor_value_info("inputs", TensorProto.FLOAT, ["n", members, classes])
    model = _graph.finished(graph, combined, classes=NAMES[:classes], feed=feed, metadata={})
    session = onnxruntime.InferenceSession(
        _graph.checked(model), providers=["CPUExecutionProvider"]
    )
    labels, found = session.run(None, {"inputs": np.ascontiguousarray(scores.transpose(1, 0, 2))})
    return labels, found


@st.composite
def ensembles(draw):
    members, rows = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    classes = draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Few distinct values, so that ties and scores of zero are common.
    scores = rng.integers(0, 4, (members, rows, classes)).astype(np.float32)
    scores[scores.sum(axis=2) == 0] = 1
    scores /= scores.sum(axis=2, keepdims=True)
    known = None
    if draw(st.booleans()):
        known = rng.random((members, classes)) < 0.7
        known[np.arange(members), rng.integers(0, classes, members)] = True
    return scores, draw(st.sampled_from(COMBINATIONS)), rng.random(members) + 0.1, known


@given(ensembles())
@settings(deadline=None)
def test_operators_combine_as_numpy_does(case):
    scores, how, weights, known = case
    expected = combine(scores, how=how, weights=weights, known=known)
    labels, found = run_graph(scores, how=how, weights=weights, known=known)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    best = np.sort(expected, axis=1)
    decided = (best[:, -1] - best[:, -2] > 1e-9) | (known is None)
    chosen = np.array(NAMES)[expected.argmax(axis=1)]
    np.testing.assert_array_equal(np.array(labels)[decided], chosen[decided])
