"""Selection metrics against scikit-learn's, and what they decide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss

from dynsnap.ensemble import SELECTION_METRICS, Judge
from dynsnap.errors import PlanError, TrainingError
from tests.messages import naming

REFERENCES = {
    "accuracy": lambda y, s, w: accuracy_score(y, s.argmax(1), sample_weight=w),
    "balanced_accuracy": lambda y, s, w: balanced_accuracy_score(y, s.argmax(1), sample_weight=w),
    "log_loss": lambda y, s, w: -log_loss(y, s, sample_weight=w, labels=range(s.shape[1])),
    "f1": lambda y, s, w: f1_score(y, s.argmax(1), sample_weight=w, average="macro"),
}


def test_every_metric_has_a_reference():
    assert {*REFERENCES} == {*SELECTION_METRICS}


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("name", REFERENCES)
@given(st.integers(0, 1000), st.integers(2, 5), st.integers(1, 30), st.booleans())
def test_metrics_are_those_of_scikit_learn(name, seed, classes, rows, weighted):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    scores = rng.dirichlet(np.ones(classes), rows)
    weights = rng.uniform(0.1, 3, rows) if weighted else None
    found = Judge(name, weighted=weighted)(truth, scores, weights=weights, inputs=truth)
    assert found == pytest.approx(REFERENCES[name](truth, scores, weights), rel=1e-6, abs=1e-9)


@given(st.integers(0, 1000), st.sampled_from(SELECTION_METRICS))
def test_an_integer_weight_is_a_row_repeated(seed, name):
    rng = np.random.default_rng(seed)
    truth, scores = rng.integers(0, 3, 12), rng.dirichlet(np.ones(3), 12)
    times = rng.integers(1, 4, 12)
    judge, rows = Judge(name), np.repeat(np.arange(12), times)
    weighted = judge(truth, scores, weights=times.astype(float), inputs=truth)
    repeated = judge(truth[rows], scores[rows], weights=None, inputs=truth)
    assert weighted == pytest.approx(repeated)


def test_what_cannot_judge_is_refused():
    with pytest.raises(PlanError, match=naming("acuracy", '"accuracy"')):
        Judge("acuracy")
    with pytest.raises(PlanError, match=naming("selection_metric", "int")):
        Judge(3)
    nothing = Judge(lambda truth, scores, **_: float("nan"))
    with pytest.raises(TrainingError, match=naming("selection metric", "nan")):
        nothing(np.array([0]), np.array([[1.0, 0.0]]), weights=None, inputs=np.array([0]))


def test_functions_are_told_apart_by_their_code():
    def judge(factor):
        return Judge(eval(f"lambda truth, scores, **_: {factor}"))

    assert judge(1).fingerprint == judge(1).fingerprint != judge(2).fingerprint
    assert Judge().fingerprint == ""
    with pytest.raises(PlanError, match="__repr__"):
        _ = Judge(type("Own", (), {"__call__": lambda *_: 0.0})()).fingerprint
